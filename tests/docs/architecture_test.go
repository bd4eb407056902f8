package docs

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	architecture = "docs/internals.md"
	rootPackage  = "github.com/go-relayer/relayer"
)

var (
	node   = regexp.MustCompile(`(\w+)\["([^"]+)"\]`)
	arrows = regexp.MustCompile(`(?m)^\s*(\w+) --> (\w+(?: & \w+)*)$`)
)

// drawing returns the text of the picture, and the packages of its nodes by their key.
func drawing(t *testing.T) (picture string, packages map[string]string) {
	t.Helper()
	for _, b := range blocks(read(t, architecture)) {
		if b.language == "mermaid" {
			picture = b.text
		}
	}
	packages = make(map[string]string)
	for _, match := range node.FindAllStringSubmatch(picture, -1) {
		packages[match[1]] = match[2]
	}
	return picture, packages
}

// notDrawn matches the packages that the picture omits: examples and test helpers.
var notDrawn = regexp.MustCompile(`^examples/|^internal/(patroni|pgserver|process)$`)

// Every other package of the library is a node of the picture.
func TestArchitecture_EveryPackageIsANode(t *testing.T) {
	list := exec.Command("go", "list", "./...")
	list.Dir = repository
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	_, packages := drawing(t)
	nodes := slices.Collect(maps.Values(packages))
	for line := range strings.Lines(string(output)) {
		name := directory(strings.TrimSpace(line))
		if !notDrawn.MatchString(name) && !slices.Contains(nodes, name) {
			t.Errorf("the picture lacks the package %s", name)
		}
	}
}

// The arrows of the picture are the imports between its packages.
func TestArchitecture_ArrowsAreImports(t *testing.T) {
	picture, packages := drawing(t)
	drawn := make(map[string]bool)
	for _, match := range arrows.FindAllStringSubmatch(picture, -1) {
		for target := range strings.SplitSeq(match[2], " & ") {
			drawn[packages[match[1]]+" --> "+packages[target]] = true
		}
	}
	imported := imports(t, slices.Collect(maps.Values(packages)))
	if len(imported) == 0 {
		t.Fatal("the picture shows no packages")
	}
	for each := range imported {
		if !drawn[each] {
			t.Errorf("the picture lacks %s", each)
		}
	}
	for each := range drawn {
		if !imported[each] {
			t.Errorf("the picture shows %s, which is not an import", each)
		}
	}
}

// imports returns the imports between the packages, which are named by their
// directories.
func imports(t *testing.T, packages []string) map[string]bool {
	t.Helper()
	list := exec.Command("go", "list", "-f", `{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}{{"\n"}}{{end}}`)
	list.Dir = repository
	for _, name := range packages {
		list.Args = append(list.Args, importPath(name))
	}
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	found := make(map[string]bool)
	for line := range strings.Lines(string(output)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name := directory(to); slices.Contains(packages, name) {
			found[directory(from)+" --> "+name] = true
		}
	}
	return found
}

// The root package is named relayer, and all others by their directory.
func importPath(name string) string {
	if name == "relayer" {
		return rootPackage
	}
	return rootPackage + "/" + name
}

func directory(path string) string {
	if path == rootPackage {
		return "relayer"
	}
	return strings.TrimPrefix(path, rootPackage+"/")
}

var step = regexp.MustCompile("(?m)^\\d+\\. `(?:(\\w+)\\.)?(\\w+)` \\(`([^`]+)`\\)")

// The numbered steps name a function, or a method with its type, and its file.
func TestArchitecture_StepsExist(t *testing.T) {
	steps := step.FindAllStringSubmatch(read(t, architecture), -1)
	if len(steps) == 0 {
		t.Fatal("found no steps")
	}
	for _, match := range steps {
		receiver, name, file := match[1], match[2], match[3]
		declaration := `(?m)^func ` + name + `\b`
		if receiver != "" {
			declaration = `(?m)^func \(\w+ \*?` + receiver + `(?:\[\w+\])?\) ` + name + `\b`
		}
		if !regexp.MustCompile(declaration).MatchString(read(t, file)) {
			t.Errorf("%s: %s does not declare %s.%s", architecture, file, receiver, name)
		}
	}
}
