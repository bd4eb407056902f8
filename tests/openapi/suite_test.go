package openapi

import (
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fewestExchanges is far below what the suite has, and far above what a suite
// that records only a part of itself would have.
const fewestExchanges = 3000

func TestSuiteConforms(t *testing.T) {
	text := served(t)
	exact, other := readStrictly(t, text), newKin(t, text)
	exchanges := record(t)
	if len(exchanges) < fewestExchanges {
		t.Fatalf("only %d exchanges were recorded", len(exchanges))
	}
	seen := make(map[string]bool)
	unlike := make(map[string]exchange)
	for _, x := range exchanges {
		seen[exact.answerOf(x)] = true
		unlike[x.likeness()] = x
	}
	t.Logf("%d exchanges, %d of them unlike the others, %d answers described", len(exchanges), len(unlike), len(exact.answers()))
	for _, x := range unlike {
		if err := exact.check(x); err != nil {
			t.Errorf("%s: %v", x.summary(), err)
		}
	}
	// kin-openapi compiles a schema each time that it looks at it.
	inParallel(maps.Values(unlike), func(x exchange) {
		if err := other.check(t.Context(), x); err != nil {
			t.Errorf("%s: kin-openapi: %v", x.summary(), err)
		}
	})
	for _, answer := range unseen(exact.answers(), seen) {
		t.Errorf("%s is described, and no test has seen it", answer)
	}
}

func inParallel[T any](all iter.Seq[T], do func(T)) {
	queue := make(chan T)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for next := range queue {
				do(next)
			}
		})
	}
	for next := range all {
		queue <- next
	}
	close(queue)
	workers.Wait()
}

// unseen returns the answers described that no test has seen. There is no list
// of excuses: the suite can provoke every one of them.
func unseen(described []string, seen map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(described), func(answer string) bool { return seen[answer] })
}

// answerOf names the operation and the status of an exchange.
func (d *document) answerOf(x exchange) string {
	return d.find(x).name + " " + strconv.Itoa(x.Status)
}

// answers returns every operation and status that the document describes, as
// answerOf names them.
func (d *document) answers() []string {
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

// likeness is the same for exchanges that are one to every check.
func (x exchange) likeness() string {
	header := x.Header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	return fmt.Sprintf("%s %s %s %v %s %d %v %s", x.Method, x.Path, x.Query, x.RequestHeader, x.RequestBody, x.Status, header, x.Body)
}

// summary tells one exchange from another, for people.
func (x exchange) summary() string {
	return fmt.Sprintf("%s %s?%s %.300q answered %d %v %.300q", x.Method, x.Path, x.Query, x.RequestBody, x.Status, x.Header, x.Body)
}
