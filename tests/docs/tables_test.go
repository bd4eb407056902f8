package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// partOf returns the part of a file from one text to the next occurrence of another.
func partOf(t *testing.T, name, from, to string) string {
	t.Helper()
	_, text, hasFrom := strings.Cut(read(t, name), from)
	text, _, hasTo := strings.Cut(text, to)
	if !hasFrom || !hasTo {
		t.Fatalf("%s has no part from %q to %q", name, from, to)
	}
	return text
}

// wantWords checks that every word occurs in a text, as a whole.
func wantWords(t *testing.T, where, text string, words []string) {
	t.Helper()
	for _, word := range words {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(text) {
			t.Errorf("%s lacks %s", where, word)
		}
	}
}

// selectorKeys returns the keys of the table in the code.
func selectorKeys(t *testing.T) (keys []string) {
	t.Helper()
	for _, match := range regexp.MustCompile(`\{name: (\S+?),`).FindAllStringSubmatch(partOf(t, "selector.go", "var selectorKeys = ", "\n}\n"), -1) {
		key := strings.Trim(match[1], `"`)
		if key == match[1] { // a constant
			key = regexp.MustCompile(match[1] + `\s+= "(\w+)"`).FindStringSubmatch(read(t, "selector.go"))[1]
		}
		keys = append(keys, key)
	}
	if len(keys) < 8 {
		t.Fatalf("found the keys %q", keys)
	}
	return keys
}

// TestTable_SelectorKeys: every place that lists the keys of selectors has all of the table.
func TestTable_SelectorKeys(t *testing.T) {
	keys := selectorKeys(t)
	for _, key := range keys {
		if problem := (relayer.Selector{}).Where(key, "\x00").Err(); problem == nil || strings.Contains(problem.Error(), "not a known key") {
			t.Errorf("the package does not have the key %s: %v", key, problem)
		}
	}
	wantWords(t, "the doc comment of Selector", partOf(t, "selector.go", "// Selector selects", "type Selector"), keys)
	wantWords(t, "the table of filters", partOf(t, "docs/http.md", "\n## Filters\n", "\n## "), keys)
	wantWords(t, "the page", partOf(t, "page/assets/search.js", "export const keys", "const reordering"), keys)
}

// TestTable_NetworkTypes: every place that lists the network types has all of the table.
func TestTable_NetworkTypes(t *testing.T) {
	var types []string
	for _, name := range relayer.NetworkTypes() {
		types = append(types, string(name))
	}
	for _, name := range types {
		if !regexp.MustCompile("(?im)^## `policies` \\(" + name + "\\)$").MatchString(read(t, "docs/reference.md")) {
			t.Errorf("the reference has no section on %s", name)
		}
	}
}
