package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestRoutesAreThoseOfTheDocument fails where the handler has a route that the
// document lacks, or the other way round.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(openAPIDocument, &document); err != nil {
		t.Fatal(err)
	}
	described := make(map[string][]string)
	for path, item := range document.Paths {
		if !strings.HasPrefix(path, "/") {
			continue // an extension
		}
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			if _, ok := item[strings.ToLower(method)]; ok {
				described[path] = append(described[path], method)
			}
		}
	}
	served := allowedMethods((&api{openAPI: true}).operations())
	for path, methods := range served {
		slices.Sort(methods)
		slices.Sort(described[path])
		if !slices.Equal(methods, described[path]) {
			t.Errorf("%s has the methods %q, and the document describes %q", path, methods, described[path])
		}
	}
	for path := range described {
		if served[path] == nil {
			t.Errorf("the document describes %s, which is not served", path)
		}
	}
	without := allowedMethods((&api{}).operations())
	delete(served, openAPIPath)
	if !slices.Equal(slices.Sorted(maps.Keys(without)), slices.Sorted(maps.Keys(served))) {
		t.Errorf("without the document the paths are %v", without)
	}
}

// What is registered is the table and nothing beside it.
func TestRoutesAreRegisteredFromTheTable(t *testing.T) {
	a := &api{openAPI: true}
	routes := a.newRoutes()
	for _, route := range a.operations() {
		path := strings.ReplaceAll(route.path, "{relayer_id}", "r-1")
		request, err := http.NewRequest(route.method, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, pattern := routes.Handler(request); pattern != route.method+" "+route.path {
			t.Errorf("%s %s is answered by %q", route.method, path, pattern)
		}
	}
}
