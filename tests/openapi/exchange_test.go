package openapi

import (
	"bufio"
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

// exchange is a request to the handler and its answer, as the test suite of
// package httpapi records them.
type exchange struct {
	Method        string
	Path          string // escaped
	Query         string
	RequestHeader http.Header
	RequestBody   []byte // where it was taken
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
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var exchanges []exchange
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, len(content)+1)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		exchanges = append(exchanges, x)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return exchanges
}

// operation is what the document says of a method and a path.
type operation struct {
	name       string // the method and the path, as the document has it
	path       string
	parameters map[string]string // by the name in the path
	responses  string            // a JSON pointer
	described  string            // a JSON pointer, or "" where the method is none of the path's
}

// find returns the part of the document that describes the exchange. There is
// one for whatever is asked: paths and methods that there are not are described
// too.
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

// isRefusal tells whether a status is one that the document's own path has only
// where the host has turned the document off, or where the path is spelled in
// another way: then it is a path like any other that there is not.
func isRefusal(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusNotFound
}

// matchPath tells whether an escaped path is one of a template, segment by
// segment, and returns what stands in place of the template's parameters. Dots
// that lead elsewhere are no segment.
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
