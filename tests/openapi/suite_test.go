package openapi

import (
	"fmt"
	"slices"
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
		seen[exact.responseOf(x)] = true
		distinct[x.identity()] = x
	}
	t.Logf("%d exchanges, %d of them distinct; %d responses described", len(exchanges), len(distinct), len(exact.responses()))
	for _, x := range distinct {
		if err := exact.check(x); err != nil {
			t.Errorf("%s: %v", x.summary(), err)
		}
	}
	for _, response := range unseen(exact.responses(), seen) {
		t.Errorf("%s is described, and no test provokes it", response)
	}
}

// unseen returns the described responses that no test provokes. There are no
// exceptions: the suite can provoke all of them.
func unseen(described []string, seen map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(described), func(response string) bool { return seen[response] })
}

// responseOf returns the operation and the status of an exchange.
func (d *document) responseOf(x exchange) string {
	return d.find(x).name + " " + strconv.Itoa(x.Status)
}

// responses returns every operation and status that the document describes, in the
// form of responseOf.
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
	slices.Sort(all)
	return all
}

// identity returns the same text for exchanges that no check distinguishes.
func (x exchange) identity() string {
	header := x.Header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	return fmt.Sprintf("%s %s %s %v %s %d %v %s", x.Method, x.Path, x.Query, x.RequestHeader, x.RequestBody, x.Status, header, x.Body)
}

// summary describes an exchange in a test log.
func (x exchange) summary() string {
	return fmt.Sprintf("%s %s?%s %.300q: %d %v %.300q", x.Method, x.Path, x.Query, x.RequestBody, x.Status, x.Header, x.Body)
}
