package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAPI shows each change of the exported API in a diff of the listing.
func TestAPI(t *testing.T) {
	var got []string
	for _, directory := range directoriesOf("../..") {
		lines, err := listing("../..", directory)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, lines...)
	}
	committed, err := os.ReadFile("../../api.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(committed), "\n"), "\n")
	for _, line := range without(got, want) {
		t.Errorf("not in api.txt: %s", line)
	}
	for _, line := range without(want, got) {
		t.Errorf("only in api.txt: %s", line)
	}
	if !t.Failed() && !slices.Equal(got, want) {
		t.Error("the lines of api.txt have another order")
	}
	if t.Failed() {
		t.Log("if the change is intended, update the listing in tests/api: go run . > ../../api.txt")
	}
}

// without returns the lines that others does not have.
func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

func TestListing(t *testing.T) {
	const source = `package sample

import "io"

const Limit, hidden = 10, 20

var ErrOne error

type Kind string

const First Kind = "first"

type Text = string

type Pair[K comparable, V any] struct {
	Key   K
	value V
	io.Reader
	*Kind
	other
}

type other struct{ Unseen int }

type Doer interface {
	io.Closer
	Do(count int,
		more ...string) (err error)
	private()
}

func New() *Pair[string, int] { return nil }
func internal()               {}

func (p *Pair[K, V]) Swap(a, b K) {}
func (p Pair[K, V]) Len() int     { return 0 }
func (other) Run()                {}
func (*Pair[K, V]) unseen()       {}
`
	root := t.TempDir()
	for name, text := range map[string]string{
		"sample.go":         source,
		"sample_windows.go": "package sample\n\nfunc Windows() {}\n",
		"sample_test.go":    "package sample\n\nfunc Helper() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"sample: const First Kind = \"first\"",
		"sample: const Limit = 10",
		"sample: embedded Doer.io.Closer",
		"sample: embedded Pair.*Kind",
		"sample: embedded Pair.io.Reader",
		"sample: field Pair.Key K",
		"sample: func New() *Pair[string, int]",
		"sample: method (*Pair[K, V]) Swap(a, b K)",
		"sample: method (Doer) Do(count int, more ...string) (err error)",
		"sample: method (Pair[K, V]) Len() int",
		"sample: type Doer interface",
		"sample: type Kind string",
		"sample: type Pair[K comparable, V any] struct",
		"sample: type Text = string",
		"sample: var ErrOne error",
	}
	got, err := listing(root, ".")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
