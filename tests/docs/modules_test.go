package docs

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// crossing returns the imports, as "FROM TO", of an internal package of another module.
func crossing(imports, modules []string) (found []string) {
	moduleOf := func(pkg string) (module string) {
		for _, candidate := range modules {
			if (pkg == candidate || strings.HasPrefix(pkg, candidate+"/")) && len(candidate) > len(module) {
				module = candidate
			}
		}
		return module
	}
	for _, each := range imports {
		from, to, _ := strings.Cut(each, " ")
		isInternal := slices.Contains(strings.Split(to, "/"), "internal")
		if module := moduleOf(to); isInternal && module != "" && module != moduleOf(from) {
			found = append(found, each)
		}
	}
	return found
}

// The versions of the modules of the repository are chosen one by one: an internal
// package that another module imports could never change.
func TestModules_NoInternalImports(t *testing.T) {
	modules := goList(t, "-m", "-f", "{{.Path}}")
	imports := goList(t, "-e", "-f", `{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}{{"\n"}}{{end}}`+
		`{{range .TestImports}}{{$from}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$from}} {{.}}{{"\n"}}{{end}}`, rootPackage+"/...")
	if len(modules) < 2 || !slices.Contains(imports, rootPackage+" "+rootPackage+"/internal/strictjson") {
		t.Fatalf("%d modules with %d imports: the list is not complete", len(modules), len(imports))
	}
	for _, each := range crossing(imports, modules) {
		t.Errorf("import of an internal package of another module: %s", each)
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

func TestModules_CrossingIsFound(t *testing.T) {
	modules := []string{"m", "m/store", "m/tests"}
	for each, want := range map[string]bool{
		"m/a m/internal/x":           false,
		"m/store/a m/internal/x":     true,
		"m/store/a m/store/internal": false,
		"m/tests m/store/internal":   true,
		"m/a m/store/internal/x":     true,
		"m/a m/storeroom/internal/x": false,
		"m/tests m/internals":        false,
		"m/a internal/abi":           false,
	} {
		if got := len(crossing([]string{each}, modules)) > 0; got != want {
			t.Errorf("%s: found is %t, want %t", each, got, want)
		}
	}
}
