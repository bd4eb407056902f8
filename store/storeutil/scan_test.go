package storeutil_test

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/storeutil"
)

func TestScan(t *testing.T) {
	var recs []relayer.Record
	for i, text := range []string{"1", "2 a", "3 a b", "4 b", "5 a c", "6 b c"} {
		fields := strings.Fields(text)
		recs = append(recs, relayer.Record{ID: fields[0], Sequence: uint64(10 * (i + 1)), Terms: fields[1:], Text: text})
	}
	all := func(yield func(relayer.Record, error) bool) {
		for _, rec := range recs {
			if !yield(rec, nil) {
				return
			}
		}
	}
	type terms = [][]string
	for _, c := range []struct {
		query relayer.StoreQuery
		page  string
		total int
	}{
		{relayer.StoreQuery{Limit: 10}, "123456", 6},
		{relayer.StoreQuery{}, "", 6},
		{relayer.StoreQuery{Offset: 1, Limit: 2}, "23", 6},
		{relayer.StoreQuery{Offset: math.MaxInt, Limit: math.MaxInt}, "", 6},
		{relayer.StoreQuery{Offset: 5, Limit: math.MaxInt}, "6", 6},
		{relayer.StoreQuery{Terms: terms{{"a"}}, Limit: 10}, "235", 3},
		{relayer.StoreQuery{Terms: terms{{"a"}}, Offset: 1, Limit: 1}, "3", 3},
		{relayer.StoreQuery{Terms: terms{{"b", "a"}}, Limit: 10}, "23456", 5},
		{relayer.StoreQuery{Terms: terms{{"a"}, {"b", "c"}}, Limit: 10}, "35", 2},
		{relayer.StoreQuery{Terms: terms{{"a"}, {}}, Limit: 10}, "", 0},
		{relayer.StoreQuery{Terms: terms{}, IDs: []string{"6", "x", "1"}, Limit: 10}, "16", 2},
		{relayer.StoreQuery{Terms: terms{{"c"}}, IDs: []string{"6", "1"}, Limit: 10}, "6", 1},
		{relayer.StoreQuery{After: 30, Limit: 10}, "456", 6},
		{relayer.StoreQuery{After: 29, Offset: 1, Limit: 2}, "45", 6},
		{relayer.StoreQuery{After: 60, Limit: 10}, "", 6},
		{relayer.StoreQuery{After: math.MaxUint64, Limit: 10}, "", 6},
		{relayer.StoreQuery{Terms: terms{{"a"}}, After: 20, Limit: 1}, "3", 3},
		{relayer.StoreQuery{Contains: []string{"a"}, Limit: 10}, "235", 3},
		{relayer.StoreQuery{Contains: []string{"a b", " c"}, After: 30, Limit: 10}, "56", 3},
		{relayer.StoreQuery{Contains: []string{""}, Limit: 10}, "123456", 6},
		{relayer.StoreQuery{Contains: []string{"A"}, Limit: 10}, "", 0},
		{relayer.StoreQuery{Contains: []string{"b"}, Terms: terms{{"a"}}, IDs: []string{"2", "3", "4"}, Limit: 10}, "3", 1},
	} {
		page, err := storeutil.Scan(all, c.query)
		got := ""
		for _, rec := range page.Records {
			got += rec.ID
		}
		if got != c.page || page.Total != c.total || err != nil {
			t.Errorf("%+v: %s of %d, error %v, want %s of %d", c.query, got, page.Total, err, c.page, c.total)
		}
	}
}

func TestScan_Error(t *testing.T) {
	failed := errors.New("failed")
	var failing iter.Seq2[relayer.Record, error] = func(yield func(relayer.Record, error) bool) {
		_ = yield(relayer.Record{ID: "a"}, nil) && yield(relayer.Record{}, failed)
	}
	page, err := storeutil.Scan(failing, relayer.StoreQuery{Limit: 10})
	if page.Records != nil || page.Total != 0 || err != failed {
		t.Errorf("%v, %v", page, err)
	}
}

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
