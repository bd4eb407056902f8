package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName     = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)(?:_?[A-Z]\w*)`)
	exportedName = regexp.MustCompile("`(?:\\[?\\*)?([a-z]+)\\.([A-Z]\\w*)")
	sourceFile   = regexp.MustCompile("`([\\w./]+\\.go)`")
	relativeLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

func TestPages_CitedTestsExist(t *testing.T) {
	declared := declarations(t).tests
	cited := 0
	for name, page := range pages(t) {
		for _, test := range testName.FindAllString(withoutBlocks(page), -1) {
			cited++
			if !declared[test] {
				t.Errorf("%s cites %s, which does not exist", name, test)
			}
		}
	}
	if cited == 0 {
		t.Error("no page cites a test")
	}
}

func TestPages_CitedNamesExist(t *testing.T) {
	declared := declarations(t).exported
	cited := 0
	for name, page := range pages(t) {
		for _, match := range exportedName.FindAllStringSubmatch(withoutBlocks(page), -1) {
			names, ours := declared[match[1]]
			if !ours {
				continue // a package of the standard library
			}
			cited++
			if !names[match[2]] {
				t.Errorf("%s cites %s.%s, which does not exist", name, match[1], match[2])
			}
		}
	}
	if cited == 0 {
		t.Error("no page cites an exported name")
	}
}

func TestPages_CitedFilesExist(t *testing.T) {
	for name, page := range pages(t) {
		for _, match := range sourceFile.FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(match[1]))); err != nil {
				t.Errorf("%s cites %s, which does not exist", name, match[1])
			}
		}
		for _, match := range relativeLink.FindAllStringSubmatch(withoutBlocks(page), -1) {
			target := filepath.Join(repository, filepath.FromSlash(path.Join(path.Dir(name), match[1])))
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, match[1])
			}
		}
	}
}

func TestREADME_DependencyCount(t *testing.T) {
	requirements := regexp.MustCompile(`(?m)^\t\S+ v\S+( // indirect)?$`).FindAllStringSubmatch(read(t, "go.mod"), -1)
	indirect := 0
	for _, match := range requirements {
		if match[1] != "" {
			indirect++
		}
	}
	text := fmt.Sprintf("%d direct and %d indirect", len(requirements)-indirect, indirect)
	if !strings.Contains(strings.Join(strings.Fields(read(t, "README.md")), " "), text) {
		t.Errorf("README.md does not say %q", text)
	}
}

// CI runs the commands that the README lists, with their results as JSON.
func TestREADME_TestCommandsRunInCI(t *testing.T) {
	_, lane, _ := strings.Cut(strings.ReplaceAll(read(t, ".ci/run"), " test -json ", " test "), "the commands of README.md")
	count := 0
	for _, b := range blocks(read(t, "README.md")) {
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, "#")
			command = strings.TrimSpace(command)
			if b.language != "sh" || !strings.Contains(command, " test ") {
				continue
			}
			count++
			if !strings.Contains(lane, command+`"`) {
				t.Errorf(".ci/run does not run %q", command)
			}
		}
	}
	if count == 0 {
		t.Error("README.md lists no test command")
	}
}

// withoutBlocks returns a page without its code blocks, which are compiled.
func withoutBlocks(page string) string { return fence.ReplaceAllString(page, "") }

// declared is what the Go files of the repository declare at package level.
type declared struct {
	tests    map[string]bool            // functions of test files
	exported map[string]map[string]bool // exported names by package name
}

func declarations(t *testing.T) declared {
	t.Helper()
	found := declared{tests: make(map[string]bool), exported: make(map[string]map[string]bool)}
	files := token.NewFileSet()
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found.add(file, strings.HasSuffix(path, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (d declared) add(file *ast.File, isTest bool) {
	names := namesOf(file)
	if isTest {
		for _, name := range names {
			d.tests[name] = true
		}
		return
	}
	if d.exported[file.Name.Name] == nil {
		d.exported[file.Name.Name] = make(map[string]bool)
	}
	for _, name := range names {
		d.exported[file.Name.Name][name] = true
	}
}

// namesOf returns the names that a file declares at package level.
func namesOf(file *ast.File) []string {
	var names []string
	for _, declaration := range file.Decls {
		switch declaration := declaration.(type) {
		case *ast.FuncDecl:
			if declaration.Recv == nil {
				names = append(names, declaration.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range declaration.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}
