package docs

import (
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "docs/internals.md"

var (
	node   = regexp.MustCompile(`(\w+)\["([^"]+)"\]`)
	arrows = regexp.MustCompile(`(?m)^\s*(\w+) --> (\w+(?: & \w+)*)$`)

	// notDrawn matches the packages that the picture omits: examples and test helpers.
	notDrawn = regexp.MustCompile(`^examples/|^internal/(patroni|pgserver|process)$`)
)

// The nodes of the picture are the packages of the library and of the modules that it names, and
// its arrows are the imports between them.
func TestArchitecture_Picture(t *testing.T) {
	picture := partOf(t, architecture, "```mermaid\n", "```")
	packages := make(map[string]string) // by key
	for _, match := range node.FindAllStringSubmatch(picture, -1) {
		packages[match[1]] = match[2]
	}
	nodes := slices.Collect(maps.Values(packages))
	for _, path := range goList(t, "./...") {
		if name := directory(path); !notDrawn.MatchString(name) && !slices.Contains(nodes, name) {
			t.Errorf("the picture lacks the package %s", name)
		}
	}

	drawn := make(map[string]bool)
	for _, match := range arrows.FindAllStringSubmatch(picture, -1) {
		for target := range strings.SplitSeq(match[2], " & ") {
			drawn[packages[match[1]]+" --> "+packages[target]] = true
		}
	}
	arguments := []string{"-f", `{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}{{"\n"}}{{end}}`}
	for _, name := range nodes {
		arguments = append(arguments, strings.TrimSuffix(rootPackage+"/"+name, "/relayer"))
	}
	imported := make(map[string]bool)
	for _, line := range goList(t, arguments...) {
		from, to, _ := strings.Cut(line, " ")
		if name := directory(to); slices.Contains(nodes, name) {
			imported[directory(from)+" --> "+name] = true
		}
	}
	differences(t, drawn, imported)
}

// directory names a package by its directory, and the root package relayer.
func directory(path string) string {
	if path == rootPackage {
		return "relayer"
	}
	return strings.TrimPrefix(path, rootPackage+"/")
}

var step = regexp.MustCompile("`(?:(\\w+)\\.)?(\\w+)` \\(`([\\w/]+\\.go)`\\)")

// A step names a function, or a method with its type, and its file.
func TestArchitecture_StepsExist(t *testing.T) {
	steps := step.FindAllStringSubmatch(read(t, architecture), -1)
	if len(steps) < 20 {
		t.Fatalf("found %d steps", len(steps))
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

// The versions of the modules of the repository are chosen one by one: an internal package that
// another module imports could never change.
func TestModules_NoInternalImports(t *testing.T) {
	modules := goList(t, "-m", "-f", "{{.Path}}")
	moduleOf := func(pkg string) (module string) {
		for _, candidate := range modules {
			if (pkg == candidate || strings.HasPrefix(pkg, candidate+"/")) && len(candidate) > len(module) {
				module = candidate
			}
		}
		return module
	}
	imports := goList(t, "-e", "-f", `{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}{{"\n"}}{{end}}`+
		`{{range .TestImports}}{{$from}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$from}} {{.}}{{"\n"}}{{end}}`, rootPackage+"/...")
	if len(modules) < 2 || !slices.Contains(imports, rootPackage+" "+rootPackage+"/internal/strictjson") {
		t.Fatalf("%d modules with %d imports: the list is not complete", len(modules), len(imports))
	}
	for _, each := range imports {
		from, to, _ := strings.Cut(each, " ")
		isInternal := slices.Contains(strings.Split(to, "/"), "internal")
		if module := moduleOf(to); isInternal && module != "" && module != moduleOf(from) {
			t.Errorf("import of an internal package of another module: %s", each)
		}
	}
}

// goList returns the distinct lines that go list prints in the workspace.
func goList(t *testing.T, arguments ...string) []string {
	t.Helper()
	list := exec.Command("go", append([]string{"list"}, arguments...)...)
	list.Dir = repository
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	lines := slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(output)), "\n"))
	return slices.Compact(lines)
}

var secretFile = regexp.MustCompile(`--(?:db|tokens-file|keys|tls-cert|tls-key|from|to) ([\w./-]+\.\w+|tokens)`)

// The files with secrets that the pages name get neither into a commit nor into the context of an
// image.
func TestIgnoreFiles_Secrets(t *testing.T) {
	var names []string
	for _, page := range pages(t) {
		for _, match := range secretFile.FindAllStringSubmatch(page, -1) {
			names = append(names, path.Base(match[1]))
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if !slices.Contains(names, "tokens") || !slices.Contains(names, "relayer.keys") || !slices.Contains(names, "key.pem") {
		t.Fatalf("the pages name %q", names)
	}
	patterns := strings.Fields(read(t, ".dockerignore"))
	for _, name := range names {
		for _, file := range []string{name, "deploy/" + name} {
			if err := exec.Command("git", "-C", repository, "check-ignore", "-q", "--no-index", file).Run(); err != nil {
				t.Errorf(".gitignore does not name %s: %v", file, err)
			}
		}
		if !slices.ContainsFunc(patterns, func(pattern string) bool {
			suffix, anywhere := strings.CutPrefix(pattern, "**/")
			matches, _ := path.Match(suffix, name)
			return anywhere && matches
		}) {
			t.Errorf(".dockerignore does not name %s", name)
		}
	}
}

// The code of a pull request gets neither credentials nor a privileged container, and nobody can
// change what an action or an image is.
func TestWorkflow_LeastPrivilege(t *testing.T) {
	workflow := read(t, ".github/workflows/ci.yml")
	for lines, want := range map[string]string{
		`uses:.*`:                `^uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`,
		`(?:image:|docker://).*`: `^image: \S+@sha256:[0-9a-f]{64}$`,
		`(?s)uses: actions/checkout@.*?(?:- run|\z)`: `(?s)\n\s+with:\n.*persist-credentials: false\n`,
		`(?m)^ *permissions:(?:\n +.+)+`:             `^permissions:\n  contents: read$`,
	} {
		found := regexp.MustCompile(lines).FindAllString(workflow, -1)
		if len(found) == 0 {
			t.Errorf("the workflow has no line %q", lines)
		}
		for _, text := range found {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("the workflow has %q, want %q", text, want)
			}
		}
	}
	if found := regexp.MustCompile(`--privileged|pull_request_target|secrets\.|github\.token|write-all`).FindString(workflow); found != "" {
		t.Errorf("the workflow has %q", found)
	}
}
