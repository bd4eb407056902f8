package docs

import (
	"maps"
	"regexp"
	"strings"
	"testing"
)

// The numbers of formats are those of the constants.
func TestPages_FormatNumbers(t *testing.T) {
	for _, c := range []struct{ file, constant, page, text string }{
		{"store/bolt/format.go", "formatVersion", "docs/internals.md", "and the version, 4 bytes: N |"},
		{"store/bolt/format.go", "formatVersion", "docs/relayerd.md", "has the [format](internals.md#format) N."},
		{"store/bolt/format.go", "entryVersion", "docs/internals.md", "A record: version N "},
		{"store/postgres/schema.go", "schemaVersion", "docs/postgres.md", "The version of the schema is N,"},
		{"store/postgres/schema.go", "schemaVersion", "docs/relayerd.md", "has the schema version N."},
	} {
		value := regexp.MustCompile(`\b` + c.constant + ` += (\d+)`).FindStringSubmatch(read(t, c.file))
		if value == nil {
			t.Fatalf("%s has no %s", c.file, c.constant)
		}
		wantSays(t, c.page, strings.Replace(c.text, "N", value[1], 1))
	}
}

// differences reports what only one of two sets has. A name with … stands for every name that
// begins with the text before it.
func differences(t *testing.T, documented, actual map[string]bool) {
	t.Helper()
	isActual := make(map[string]bool) // of the documented names
	for name := range actual {
		isDocumented := false
		for pattern := range documented {
			prefix, _, isPrefix := strings.Cut(pattern, "…")
			if name == pattern || isPrefix && strings.HasPrefix(name, prefix) {
				isDocumented, isActual[pattern] = true, true
			}
		}
		if !isDocumented {
			t.Errorf("the page lacks %q", name)
		}
	}
	for pattern := range documented {
		if !isActual[pattern] {
			t.Errorf("the page has %q, which does not exist", pattern)
		}
	}
	if len(actual) < 5 {
		t.Errorf("found only %d names in the code", len(actual))
	}
}

// The metrics that pages and alerts name exist.
func TestPages_Metrics(t *testing.T) {
	actual := set(`(?:Name: +|gauge\(|NewDesc\()"(relayerd?_[a-z_]+)"`, code(t, false, "cmd/relayerd", "observe/prometheus"))
	for name := range set(`\b(relayerd?_[a-z_]+_(?:total|seconds|bytes|bucket))\b`, read(t, "docs/relayerd.md")+read(t, "deploy/alerts.yaml")) {
		if !actual[strings.TrimSuffix(name, "_bucket")] {
			t.Errorf("no metric is named %s", name)
		}
	}
	if len(actual) < 8 {
		t.Errorf("found the metrics %v", actual)
	}
}

// Every warning and error that the server logs is in the table of the log, with what to do. A text
// that continues with a value ends with … there.
func TestPages_LogLines(t *testing.T) {
	documented := make(map[string]bool)
	for line := range strings.Lines(section(t, "docs/relayerd.md", "The log")) {
		if cell, isRow := strings.CutPrefix(line, "| "); isRow {
			cell, _, _ = strings.Cut(cell, " | ")
			maps.Copy(documented, set("`([^`]+)`", cell))
		}
	}
	delete(documented, "msg")
	differences(t, documented, set(`(?:logger\.(?:Warn|Error)\(|slog\.Level(?:Warn|Error), |level, )"([^"]+)"`,
		code(t, false, ".", "cmd/relayerd", "httpapi", "store/bolt", "store/postgres")))
}
