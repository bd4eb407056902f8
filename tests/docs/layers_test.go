package docs

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of the root package have an order in which each uses only names of those before
// it: a reader can begin at the bottom.
func TestRootFiles_NoCycle(t *testing.T) {
	uses := usesBetweenFiles(t, repository)
	left := slices.Sorted(maps.Keys(uses))
	if len(left) < 20 {
		t.Fatalf("found %d files that use others", len(left))
	}
	for {
		rest := slices.DeleteFunc(slices.Clone(left), func(file string) bool {
			usesAny := slices.ContainsFunc(left, func(other string) bool { return uses[file][other] != nil })
			isUsed := slices.ContainsFunc(left, func(other string) bool { return uses[other][file] != nil })
			return !usesAny || !isUsed // not part of a cycle
		})
		if len(rest) == len(left) {
			break
		}
		left = rest
	}
	for _, file := range left {
		for _, other := range left {
			if names := uses[file][other]; names != nil {
				t.Errorf("cycle: %s uses %s of %s", file, strings.Join(names, ", "), other)
			}
		}
	}
}

// usesBetweenFiles returns the names that each file of a package uses of each other one.
func usesBetweenFiles(t *testing.T, directory string) map[string]map[string][]string {
	t.Helper()
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: make(map[*ast.Ident]types.Object)}
	config := types.Config{Importer: importer.ForCompiler(set, "source", nil)}
	checked, err := config.Check(rootPackage, set, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	uses := make(map[string]map[string][]string)
	for name, used := range info.Uses {
		if used.Pkg() != checked || !used.Pos().IsValid() {
			continue
		}
		from, to := filepath.Base(set.Position(name.Pos()).Filename), filepath.Base(set.Position(used.Pos()).Filename)
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string][]string)
		}
		if !slices.Contains(uses[from][to], used.Name()) {
			uses[from][to] = append(uses[from][to], used.Name())
		}
	}
	return uses
}
