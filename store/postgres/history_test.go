//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// past returns what a history has of changes: the kind, the ID, the revision and the text
// before and after.
func past(t *testing.T, store *postgres.Store, query relayer.HistoryQuery) string {
	t.Helper()
	changes, err := store.History(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range changes {
		if c.Record.Private != nil || !c.Time.IsZero() {
			t.Errorf("%s of %s: private part %s, time %v", c.Kind, c.Record.ID, c.Record.Private, c.Time)
		}
		lines = append(lines, fmt.Sprintf("%s %s %d %s→%s %s", c.Kind, c.Record.ID, c.Record.Revision, c.OldText, c.Record.Text, c.Record.Note))
	}
	return strings.Join(lines, ", ")
}

// TestHistory writes through two Stores, and reads the history of one relayer and of all.
func TestHistory(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	store, other := open(t, schema), open(t, schema)
	a := create(t, store, relayer.Record{ID: "a", Text: "A1", Note: []byte("n1"), Private: []byte("p1")})
	create(t, other, relayer.Record{ID: "b", Text: "B1"})
	a.Text, a.Note, a.Private = "A2", []byte("n2"), []byte("p2")
	a = update(t, other, a)
	a.Note = []byte("n3")
	remove(t, store, a)
	create(t, store, relayer.Record{ID: "a", Text: "A3"})
	imported := relayer.Record{ID: "c", Revision: 2, Text: "C1"}
	if err := store.Import(t.Context(), []relayer.Record{imported}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		query relayer.HistoryQuery
		want  string
	}{
		"one":          {relayer.HistoryQuery{ID: "a", Limit: 9}, "created a 5 →A3 , deleted a 4 A2→A2 n3, updated a 3 A1→A2 n2, created a 1 →A1 n1"},
		"newest":       {relayer.HistoryQuery{ID: "a", Limit: 2}, "created a 5 →A3 , deleted a 4 A2→A2 n3"},
		"before":       {relayer.HistoryQuery{ID: "a", Limit: 1, Before: 4}, "updated a 3 A1→A2 n2"},
		"before first": {relayer.HistoryQuery{ID: "a", Limit: 1, Before: 1}, ""},
		"all":          {relayer.HistoryQuery{Limit: 9}, "created a 5 →A3 , deleted a 4 A2→A2 n3, updated a 3 A1→A2 n2, created b 2 →B1 , created a 1 →A1 n1"},
		"all before":   {relayer.HistoryQuery{Limit: 1, Before: 3}, "created b 2 →B1 "},
		"unknown":      {relayer.HistoryQuery{ID: "x", Limit: 9}, ""},
		"no text":      {relayer.HistoryQuery{ID: "a\x00\xff", Limit: 9}, ""},
		"beyond":       {relayer.HistoryQuery{ID: "b", Limit: 9, Before: 1<<64 - 1}, "created b 2 →B1 "},
	} {
		if got := past(t, store, c.query); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	wantConsistent(t, store)
}

// TestHistory_Retention: the feed loses changes that the history retains.
func TestHistory_Retention(t *testing.T) {
	t.Parallel()
	name := schemaName()
	admin, schema := newPool(t, server.ConnString()), postgres.WithSchema(name)
	store := open(t, schema)
	rec := create(t, store, record("one"))
	rec = update(t, store, with(rec, "", "another"))
	remove(t, store, rec)
	create(t, store, record("two"))
	brief := open(t, schema, postgres.WithChangeRetention(100*time.Millisecond))
	eventually(t, "the feed has lost its changes", func() bool { return queryOne[int](t, admin, `SELECT pruned FROM `+name+`.pruning`) == 4 })
	if got := past(t, brief, relayer.HistoryQuery{ID: "one", Limit: 9}); strings.Count(got, "one") < 3 {
		t.Errorf("history %s", got)
	}
	wantConsistent(t, brief)
	none := open(t, schema, pruneSoon)
	if _, err := none.History(t.Context(), relayer.HistoryQuery{Limit: 1}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
	eventually(t, "there is no history", func() bool { return changesIn(t, admin, name) == 0 })
	if got := past(t, store, relayer.HistoryQuery{Limit: 9}); got != "" {
		t.Errorf("history %s", got)
	}
	wantConsistent(t, store)
}
