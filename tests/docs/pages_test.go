package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// pages returns the text of every Markdown page by its path in the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, err := filepath.Rel(repository, path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = read(t, name)
		}
	}
	if len(texts) < 5 {
		t.Fatalf("found only %d pages", len(texts))
	}
	return texts
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
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
		found = append(found, block{
			language: page[at[2]:at[3]],
			text:     page[at[4]:at[5]],
			line:     1 + strings.Count(page[:at[4]], "\n"),
		})
	}
	return found
}
