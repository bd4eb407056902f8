// Package docs checks the documentation against the code: snippets compile, samples are real
// responses, and cited tests, names, files and figures exist.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const (
	repository  = "../.."
	rootPackage = "github.com/go-relayer/relayer"
)

// pages returns the text of every Markdown page by its path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil || len(paths) < 3 {
			t.Fatalf("%s: %d pages, error %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			name, _ := filepath.Rel(repository, path)
			texts[filepath.ToSlash(name)] = read(t, name)
		}
	}
	return texts
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, name))
	must(t, err)
	return string(content)
}

// says reports whether a page has a text, which may be wrapped.
func says(t *testing.T, page, text string) bool {
	t.Helper()
	return strings.Contains(strings.Join(strings.Fields(read(t, page)), " "), text)
}

// wantSays checks that a page has a text.
func wantSays(t *testing.T, page, text string) {
	t.Helper()
	if !says(t, page, text) {
		t.Errorf("%s does not say %q", page, text)
	}
}

// section returns the part of a page from a heading to the next one of its level.
func section(t *testing.T, page, title string) string {
	t.Helper()
	return partOf(t, page, "\n## "+title+"\n", "\n## ")
}

// partOf returns the part of a file from one text to the next occurrence of another, or to the end.
func partOf(t *testing.T, name, from, to string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, name), from)
	if !found {
		t.Fatalf("%s does not have %q", name, from)
	}
	text, _, _ = strings.Cut(text, to)
	return text
}

// block is a fenced code block.
type block struct {
	language string
	text     string
	line     int
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

func blocks(page string) []block {
	var found []block
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		found = append(found, block{page[at[2]:at[3]], page[at[4]:at[5]], 1 + strings.Count(page[:at[4]], "\n")})
	}
	return found
}

// withoutBlocks returns a page without its code blocks, which are compiled.
func withoutBlocks(page string) string { return fence.ReplaceAllString(page, "") }

// set returns the first groups of all matches.
func set(pattern, text string) map[string]bool {
	found := make(map[string]bool)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[match[1]] = true
	}
	return found
}

// code returns the Go files of directories, with or without their tests.
func code(t *testing.T, withTests bool, directories ...string) string {
	t.Helper()
	var text strings.Builder
	for _, directory := range directories {
		paths, err := filepath.Glob(filepath.Join(repository, directory, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s has no Go files: %v", directory, err)
		}
		for _, path := range paths {
			if withTests || !strings.HasSuffix(path, "_test.go") {
				name, _ := filepath.Rel(repository, path)
				text.WriteString(read(t, name))
			}
		}
	}
	return text.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
