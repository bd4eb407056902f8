package httpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOpenAPI_SameRoutesAsHandler: the handler and the document have the same routes.
func TestOpenAPI_SameRoutesAsHandler(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openAPIDocument, &document); err != nil {
		t.Fatal(err)
	}
	described := make(map[string][]string)
	for path, item := range document.Paths {
		if !strings.HasPrefix(path, "/") {
			continue // a specification extension
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			if _, ok := item[strings.ToLower(method)]; ok {
				described[path] = append(described[path], method)
			}
		}
	}
	served := allowedMethods((&API{settings: settings{engineOperations: true}}).routes())
	for path, methods := range served {
		slices.Sort(methods)
		slices.Sort(described[path])
		if !slices.Equal(methods, described[path]) {
			t.Errorf("%s has the methods %q, but the document has %q", path, methods, described[path])
		}
	}
	for path := range described {
		if served[path] == nil {
			t.Errorf("the document describes %s, which is not served", path)
		}
	}
}

// The documentation of the package has every route, and no other.
func TestPackageDocumentation_Routes(t *testing.T) {
	source, err := os.ReadFile("httpapi.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented, served []string
	for _, line := range regexp.MustCompile(`(?m)^//\t([A-Z]+) +(/api/v1/[^ ?]+) `).FindAllStringSubmatch(string(source), -1) {
		documented = append(documented, line[1]+" "+line[2])
	}
	for path, methods := range allowedMethods((&API{settings: settings{engineOperations: true}}).routes()) {
		for _, method := range methods {
			if method != "HEAD" { // as GET
				served = append(served, method+" "+path)
			}
		}
	}
	slices.Sort(documented)
	slices.Sort(served)
	if !slices.Equal(documented, served) {
		t.Errorf("the documentation has\n%q, the handler\n%q", documented, served)
	}
}

// Every change of several relayers has the limit of TestShares.
func TestRoutes_Bulk(t *testing.T) {
	a := &API{settings: settings{bulk: newLimit("bulk", 8)}}
	count := 0
	for _, route := range a.routes() {
		if isBulk := route.method == "POST" && route.hasFilters; isBulk != (route.limit == a.bulk) {
			t.Errorf("%s %s has the limit of a bulk: %t", route.method, route.path, !isBulk)
		} else if isBulk {
			count++
		}
	}
	if count != 2 {
		t.Errorf("%d routes change several relayers, want 2", count)
	}
}
