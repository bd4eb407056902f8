package relayer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parseTree reads JSON without rounding a number.
func parseTree(t testing.TB, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return tree
}

func treeText(t testing.TB, tree any) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// walkTree calls visit for every member and element below tree, with its path
// as the error messages write it.
func walkTree(tree any, path string, visit func(path string, value any)) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			below := strings.TrimPrefix(path+"."+name, ".")
			visit(below, value)
			walkTree(value, below, visit)
		}
	case []any:
		for i, value := range tree {
			below := fmt.Sprintf("%s[%d]", path, i)
			visit(below, value)
			walkTree(value, below, visit)
		}
	}
}

// pathsOf returns the paths of all members and elements of a document, sorted.
func pathsOf(t testing.TB, text string) []string {
	t.Helper()
	var paths []string
	walkTree(parseTree(t, text), "", func(path string, _ any) { paths = append(paths, path) })
	slices.Sort(paths)
	return paths
}

var pathStep = regexp.MustCompile(`[^.\[\]]+`)

// editTree finds the container of what stands at path, and lets edit change it:
// an object by name, or an array by index.
func editTree(t testing.TB, text, path string, edit func(object map[string]any, name string), element func(array []any, index int)) string {
	t.Helper()
	tree := parseTree(t, text)
	steps := pathStep.FindAllString(path, -1)
	at := tree
	for i, step := range steps {
		last := i == len(steps)-1
		switch container := at.(type) {
		case map[string]any:
			if last {
				edit(container, step)
			}
			at = container[step]
		case []any:
			var index int
			if _, err := fmt.Sscan(step, &index); err != nil {
				t.Fatal(err)
			}
			if last {
				element(container, index)
			}
			at = container[index]
		default:
			t.Fatalf("no %s in %s", path, text)
		}
	}
	return treeText(t, tree)
}

// replaced returns text with another value at path.
func replaced(t testing.TB, text, path, value string) string {
	t.Helper()
	return editTree(t, text, path,
		func(object map[string]any, name string) { object[name] = json.RawMessage(value) },
		func(array []any, index int) { array[index] = json.RawMessage(value) })
}

// without returns text without the member at path.
func without(t testing.TB, text, path string) string {
	t.Helper()
	return editTree(t, text, path,
		func(object map[string]any, name string) { delete(object, name) },
		func([]any, int) { t.Fatalf("%s is an element", path) })
}
