package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestREADME_FirstSnippetIsMinimalExample(t *testing.T) {
	if got, want := partOf(t, "README.md", "```go\n", "```\n"), read(t, "examples/minimal/main.go"); got != want {
		t.Errorf("the first snippet is not examples/minimal/main.go:\n%s", got)
	}
}

// All snippets compile, as packages of one temporary module in a workspace with the modules of the
// repository. Only pages other than the README may show single statements, which are not compiled.
// A text block that follows a program is its output.
func TestSnippets(t *testing.T) {
	t.Parallel()
	module, count := newModule(t), 0
	outputs := make(map[string]string) // by directory
	for name, page := range pages(t) {
		all := blocks(page)
		for i, b := range all {
			isFragment := name != "README.md" && !strings.Contains(b.text, "import ")
			if b.language != "go" || isFragment {
				continue
			}
			directory := fmt.Sprintf("%s_%d", regexp.MustCompile(`\W`).ReplaceAllString(name, "_"), b.line)
			module.write(t, filepath.Join(directory, "snippet.go"), regexp.MustCompile(`^import `).ReplaceAllString(b.text, "package snippet\n\nimport "))
			count++
			if i+1 < len(all) && all[i+1].language == "text" {
				outputs[directory] = all[i+1].text
			}
		}
	}
	if count < 5 || len(outputs) < 2 {
		t.Fatalf("found %d snippets and %d programs with their output", count, len(outputs))
	}
	if output, err := module.command("vet", "./...").CombinedOutput(); err != nil {
		t.Fatalf("the directory of a snippet names its page and line: %v\n%s", err, output)
	}
	for directory, want := range outputs {
		if output, err := module.command("run", "./"+directory).CombinedOutput(); err != nil || string(output) != want {
			t.Errorf("%s prints, with error %v:\n%s", directory, err, output)
		}
	}
}

// module is the directory of a temporary module, with a workspace.
type module string

func newModule(t *testing.T) module {
	t.Helper()
	m := module(t.TempDir())
	root, err := filepath.Abs(repository)
	must(t, err)
	m.write(t, "go.mod", "module example.com/snippets\n\ngo 1.26.0\n")
	work := strings.ReplaceAll(read(t, "go.work"), "./", root+"/")
	m.write(t, "go.work", strings.ReplaceAll(work, "\t.\n", "\t.\n\t"+root+"\n"))
	return m
}

func (m module) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(string(m), name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// command returns a go command that runs in the module, without flags such as -race that the
// environment of the test sets.
func (m module) command(arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.Dir = string(m)
	command.Env = append(os.Environ(), "GOWORK="+filepath.Join(string(m), "go.work"), "GOFLAGS=-buildvcs=false")
	return command
}
