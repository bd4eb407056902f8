package storeutil_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/storeutil"
)

func TestCheck(t *testing.T) {
	const maxBytes = 10
	valid := relayer.Record{ID: "a", Revision: 1}
	for name, c := range map[string]struct {
		change func(*relayer.Record)
		field  string // blamed, or "valid"
	}{
		"shortest":      {func(*relayer.Record) {}, "valid"},
		"no revision":   {func(r *relayer.Record) { r.Revision = 0 }, "valid"}, // which a create does not have
		"longest ID":    {func(r *relayer.Record) { r.ID = strings.Repeat("a", limits.ID) }, "valid"},
		"longest claim": {func(r *relayer.Record) { r.Claim = strings.Repeat("a", limits.Claim) }, "valid"},
		"most bytes":    {func(r *relayer.Record) { r.Document, r.Private = make([]byte, 4), make([]byte, 6) }, "valid"},

		"terms": {func(r *relayer.Record) {
			r.Terms = []string{"a", "b", strings.Repeat("b", limits.Term), "é"}
		}, "valid"},

		"most terms":             {func(r *relayer.Record) { r.Terms = manyTerms(limits.Terms) }, "valid"},
		"too many terms":         {func(r *relayer.Record) { r.Terms = manyTerms(limits.Terms + 1) }, "terms"},
		"empty term":             {func(r *relayer.Record) { r.Terms = []string{""} }, "terms"},
		"long term":              {func(r *relayer.Record) { r.Terms = []string{strings.Repeat("b", limits.Term+1)} }, "terms"},
		"NUL in a term":          {func(r *relayer.Record) { r.Terms = []string{"a\x00"} }, "terms"},
		"term not UTF-8":         {func(r *relayer.Record) { r.Terms = []string{"\xff"} }, "terms"},
		"equal terms":            {func(r *relayer.Record) { r.Terms = []string{"a", "a"} }, "terms"},
		"terms in reverse order": {func(r *relayer.Record) { r.Terms = []string{"b", "a"} }, "terms"},

		"longest text":   {func(r *relayer.Record) { r.Text = strings.Repeat("é", limits.Text/2) }, "valid"},
		"long text":      {func(r *relayer.Record) { r.Text = strings.Repeat("a", limits.Text+1) }, "text"},
		"NUL in text":    {func(r *relayer.Record) { r.Text = "a\x00" }, "text"},
		"text not UTF-8": {func(r *relayer.Record) { r.Text = "\xff" }, "text"},
		"longest note":   {func(r *relayer.Record) { r.Note = make([]byte, limits.Note) }, "valid"},
		"long note":      {func(r *relayer.Record) { r.Note = make([]byte, limits.Note+1) }, "note"},

		"no ID":          {func(r *relayer.Record) { r.ID = "" }, "id"},
		"NUL in ID":      {func(r *relayer.Record) { r.ID = "a\x00" }, "id"},
		"long ID":        {func(r *relayer.Record) { r.ID = strings.Repeat("a", limits.ID+1) }, "id"},
		"long claim":     {func(r *relayer.Record) { r.Claim = strings.Repeat("a", limits.Claim+1) }, "claim"},
		"large document": {func(r *relayer.Record) { r.Document = make([]byte, 11) }, ""},
		"large private":  {func(r *relayer.Record) { r.Private = make([]byte, 11) }, ""},
		"large together": {func(r *relayer.Record) { r.Document, r.Private = make([]byte, 5), make([]byte, 6) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := valid
			c.change(&rec)
			err := storeutil.Check(rec, maxBytes)
			var invalid *relayer.ValidationError
			if (err == nil) != (c.field == "valid") || err != nil && (!errors.As(err, &invalid) || invalid.Fields[0].Field != c.field) {
				t.Errorf("error %v, want a problem of %q", err, c.field)
			}
		})
	}
}

func manyTerms(n int) []string {
	terms := make([]string, n)
	for i := range terms {
		terms[i] = strings.Repeat("t", i+1)
	}
	return terms
}
