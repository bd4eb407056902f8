package httpapi

import (
	"encoding/json"
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
