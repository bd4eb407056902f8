package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// minExchanges is far below the number that the suite has, and far above that of an
// incomplete recording.
const minExchanges = 3000

// TestSuite_Conforms checks every exchange of the suite against the document.
func TestSuite_Conforms(t *testing.T) {
	exact := readStrictly(t, served(t))
	exchanges := record(t)
	if len(exchanges) < minExchanges {
		t.Fatalf("%d exchanges were recorded, want %d or more", len(exchanges), minExchanges)
	}
	seen := make(map[string]bool)
	distinct := make(map[string]exchange)
	for _, x := range exchanges {
		seen[exact.find(x).name+" "+strconv.Itoa(x.Status)] = true
		distinct[x.identity()] = x
	}
	t.Logf("%d exchanges, %d of them distinct; %d responses described", len(exchanges), len(distinct), len(exact.responses()))
	for _, x := range distinct {
		if err := exact.check(x); err != nil {
			t.Errorf("%s %s?%s %.300q: %d %v %.300q: %v",
				x.Method, x.Path, x.Query, x.RequestBody, x.Status, x.Header, x.Body, err)
		}
	}
	// There are no exceptions: the suite can provoke all of them.
	for _, response := range exact.responses() {
		if !seen[response] {
			t.Errorf("%s is described, and no test provokes it", response)
		}
		delete(seen, response)
	}
	for response := range seen {
		t.Errorf("%s is provoked, and is not described", response)
	}
}

// responses returns every operation and status that the document describes.
func (d *document) responses() []string {
	var all []string
	add := func(name, pointer string) {
		for status := range d.at(pointer) {
			all = append(all, name+" "+status)
		}
	}
	for path := range d.at("#/paths") {
		pointer := "#/paths/" + escape.Replace(path)
		if path == "x-unknown-paths" {
			add("unknown path", pointer)
			continue
		}
		add("other "+path, pointer+"/x-other-methods")
		for method := range d.at(pointer) {
			add(strings.ToUpper(method)+" "+path, pointer+"/"+method+"/responses")
		}
	}
	return all
}

// identity returns the same text for exchanges that no check distinguishes.
func (x exchange) identity() string {
	header := x.Header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	return fmt.Sprintf("%s %s %s %v %s %d %v %s", x.Method, x.Path, x.Query, x.RequestHeader, x.RequestBody, x.Status, header, x.Body)
}

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
		// A refusal is one of an unknown path: the host has disabled the document, or the request
		// spells the path differently.
		if path == documentPath && (x.Status == http.StatusUnauthorized || x.Status == http.StatusNotFound) {
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
