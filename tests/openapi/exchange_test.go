package openapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exchange is a request to the handler and its response, as the test suite of package
// httpapi records them.
type exchange struct {
	Method        string
	Path          string // escaped
	Query         string
	RequestHeader http.Header
	RequestBody   []byte // if the handler accepted the request
	Status        int
	Header        http.Header
	Body          []byte
}

// record runs the test suite of package httpapi and returns its exchanges.
func record(t *testing.T) []exchange {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchanges")
	suite := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./httpapi")
	suite.Dir = filepath.Join("..", "..")
	suite.Env = append(os.Environ(), "HTTPAPI_RECORDING="+file)
	if output, err := suite.CombinedOutput(); err != nil {
		t.Fatalf("the suite failed: %v\n%s", err, output)
	}
	var exchanges []exchange
	for line := range bytes.Lines(must(os.ReadFile(file))(t)) {
		var x exchange
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		exchanges = append(exchanges, x)
	}
	return exchanges
}

// operation is the part of the document for a method and a path.
type operation struct {
	name       string // the method and the path template
	path       string
	parameters map[string]string // path parameters by name
	responses  string            // a JSON pointer
	described  string            // a JSON pointer, or "" if the path does not have the method
}

// find returns the operation of an exchange. The document also describes the
// responses for unknown paths and methods.
func (d *document) find(x exchange) operation {
	for path := range d.at("#/paths") {
		parameters, ok := matchPath(path, x.Path)
		if !ok {
			continue
		}
		if path == documentPath && isRefusal(x.Status) {
			break
		}
		pointer := "#/paths/" + escape.Replace(path)
		described := pointer + "/" + strings.ToLower(x.Method)
		if d.at(described) == nil || x.Method != strings.ToUpper(x.Method) {
			return operation{"other " + path, path, parameters, pointer + "/x-other-methods", ""}
		}
		return operation{x.Method + " " + path, path, parameters, described + "/responses", described}
	}
	return operation{"unknown path", "", nil, "#/paths/x-unknown-paths", ""}
}

// isRefusal reports whether the path of the document is an unknown path here: the
// host has disabled the document, or the request spells the path differently.
func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusNotFound
}

// matchPath reports whether an escaped path matches a template, and returns the
// parameters. The segments "." and ".." never match.
func matchPath(template, escaped string) (map[string]string, bool) {
	wanted, given := strings.Split(template, "/"), strings.Split(escaped, "/")
	if len(wanted) != len(given) {
		return nil, false
	}
	parameters := make(map[string]string)
	for i, segment := range given {
		text, err := url.PathUnescape(segment)
		if err != nil || segment == "." || segment == ".." {
			return nil, false
		}
		name, isParameter := strings.CutPrefix(wanted[i], "{")
		switch {
		case isParameter && text != "":
			parameters[strings.TrimSuffix(name, "}")] = text
		case text != wanted[i]:
			return nil, false
		}
	}
	return parameters, true
}
