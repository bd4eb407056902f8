package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// Every place that lists the keys of selectors has all of the table in the code.
func TestTable_SelectorKeys(t *testing.T) {
	code := partOf(t, "selector.go", "var selectorKeys = ", "\n}\n")
	places := map[string]string{
		"the doc comment of Selector": partOf(t, "selector.go", "// Selector selects", "type Selector"),
		"the table of filters":        section(t, "docs/http.md", "Filters"),
		"the page":                    partOf(t, "page/assets/search.js", "export const keys", "const reordering"),
	}
	count := 0
	for _, match := range regexp.MustCompile(`\{name: (\S+?),`).FindAllStringSubmatch(code, -1) {
		key := strings.Trim(match[1], `"`)
		if key == match[1] { // a constant
			key = regexp.MustCompile(match[1] + `\s+= "(\w+)"`).FindStringSubmatch(read(t, "selector.go"))[1]
		}
		if problem := (relayer.Selector{}).Where(key, "\x00").Err(); problem == nil || strings.Contains(problem.Error(), "not a known key") {
			t.Errorf("the package does not have the key %s: %v", key, problem)
		}
		for place, text := range places {
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(key) + `\b`).MatchString(text) {
				t.Errorf("%s lacks %s", place, key)
			}
		}
		count++
	}
	if count < 8 {
		t.Fatalf("found %d keys", count)
	}
}

// The reference has a section on each network type.
func TestTable_NetworkTypes(t *testing.T) {
	for _, name := range relayer.NetworkTypes() {
		if !regexp.MustCompile("(?im)^## `policies` \\(" + string(name) + "\\)$").MatchString(read(t, "docs/reference.md")) {
			t.Errorf("the reference has no section on %s", name)
		}
	}
}
