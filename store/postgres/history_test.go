//go:build unix

package postgres_test

import (
	"errors"
	"flag"
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
	changes := mustGet(store.History(t.Context(), query))(t)
	var lines []string
	for i, c := range changes {
		isDated := time.Since(c.Time).Abs() < time.Hour
		if c.Record.Private != nil || isDated != (i == len(changes)-1) {
			t.Errorf("%s of %s: private part %s, time %v", c.Kind, c.Record.ID, c.Record.Private, c.Time)
		}
		lines = append(lines, fmt.Sprintf("%s %s %d %s→%s %s", c.Kind, c.Record.ID, c.Record.Revision, c.OldText, c.Record.Text, c.Record.Note))
	}
	return strings.Join(lines, ", ")
}

// TestHistory_Retention: the feed loses changes that the history retains.
func TestHistory_Retention(t *testing.T) {
	t.Parallel()
	admin, name := newAdmin(t)
	schema := postgres.WithSchema(name)
	store := open(t, schema)
	rec := create(t, store, record("one"))
	rec = update(t, store, with(rec, "", "another"))
	remove(t, store, rec)
	create(t, store, record("two"))
	brief := open(t, schema)
	must(t, brief.PruneSoon())
	eventually(t, "the feed has lost its changes", func() bool { return queryOne[int](t, admin, `SELECT pruned FROM `+name+`.pruning`) == 4 })
	if got := past(t, brief, relayer.HistoryQuery{ID: "one", Limit: 9}); strings.Count(got, "one") < 3 {
		t.Errorf("history %s", got)
	}
	wantConsistent(t, brief)
	openPruner(t, name)
	wantError(t, errorOf(brief.History(t.Context(), relayer.HistoryQuery{Limit: 1})), errors.ErrUnsupported)
	past := []relayer.RecordChange{{Kind: relayer.ChangeCreated, Record: relayer.Record{ID: "past", Revision: 100, Sequence: 1}}}
	wantError(t, brief.ImportHistory(t.Context(), past), errors.ErrUnsupported)
	eventually(t, "there is no history", func() bool { return changesIn(t, admin, name) == 0 })
	wantConsistent(t, store)
}

// TestHistory_RetentionOfDatabase: the program that names a retention sets it for all. Programs
// that name none neither change it nor delete what it keeps.
func TestHistory_RetentionOfDatabase(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	admin, name := newAdmin(t)
	schema := postgres.WithSchema(name)
	retention := func() string {
		return queryOne[string](t, admin, `SELECT concat_ws(' ', feed_age, history_age, history_changes) FROM `+name+`.pruning`)
	}
	program := open(t, schema)
	if got := retention(); got != fmt.Sprint((10*time.Minute).Microseconds(), " ", (90*24*time.Hour).Microseconds(), " ", 1000) {
		t.Errorf("a new schema has the retention %s", got)
	}
	open(t, schema, postgres.WithHistory(5, year))
	want := fmt.Sprint((10 * time.Minute).Microseconds(), " ", year.Microseconds(), " ", 5)
	open(t, schema)
	if got := retention(); got != want {
		t.Errorf("retention %s, want %s", got, want)
	}
	rec := create(t, program, record("one"))
	for range 9 {
		rec = update(t, program, rec)
	}
	create(t, program, record("two"))
	execute(t, admin, `UPDATE `+name+`.changes SET changed_at = changed_at - 100 * 86400000000 WHERE id = 'one'`)
	must(t, program.PruneAll())
	if got := revisions(t, program, "one"); got != "10 9 8 7 6" {
		t.Errorf("revisions %s of the history, want the newest five", got)
	}
	wantConsistent(t, program)
	// A smaller number applies to what is stored already, a shorter age too.
	open(t, schema, postgres.WithHistory(2, year))
	if got := revisions(t, program, "one"); got != "10 9" {
		t.Errorf("revisions %s of the history, want the newest two", got)
	}
	if err := program.PruneAll(); err != nil || changesIn(t, admin, name) != 3 {
		t.Errorf("%d changes are stored, error %v", changesIn(t, admin, name), err)
	}
	wantConsistent(t, program)
	open(t, schema, postgres.WithHistory(2, 99*24*time.Hour))
	if err := program.PruneAll(); err != nil || changesIn(t, admin, name) != 1 {
		t.Errorf("%d changes are stored, error %v", changesIn(t, admin, name), err)
	}
	// The changes of a relayer are counted on, although none is stored.
	for range 3 {
		rec = update(t, program, rec)
	}
	if got := revisions(t, program, "one"); got != "14 13" {
		t.Errorf("revisions %s of the history, want the newest two", got)
	}
	if got := queryOne[int](t, admin, `SELECT max(nth) FROM `+name+`.changes WHERE id = 'one'`); got != 13 {
		t.Errorf("the last change of the relayer is number %d, want 13", got)
	}
	wantConsistent(t, program)
}

// revisions returns those of the history of a relayer, read in pages of two.
func revisions(t *testing.T, store *postgres.Store, id string) string {
	t.Helper()
	var found []string
	for before := uint64(0); ; {
		changes := mustGet(store.History(t.Context(), relayer.HistoryQuery{ID: id, Limit: 2, Before: before}))(t)
		if len(changes) == 0 {
			return strings.Join(found, " ")
		}
		for _, c := range changes {
			before = c.Record.Revision
			found = append(found, fmt.Sprint(before))
		}
	}
}

var flaps = flag.Int("flaps", 6_000, "the changes of one relayer that TestHistory_FlappingRelayer makes")

// TestHistory_FlappingRelayer: many changes of one relayer leave the history of the others whole,
// and the table bounded, while the newest changes of that relayer stay.
func TestHistory_FlappingRelayer(t *testing.T) {
	t.Parallel()
	const keep, others = 1000, 20
	step := min(*flaps/2, 10_000)
	admin, name := newAdmin(t)
	schema := postgres.WithSchema(name)
	store := open(t, schema)
	for i := range others {
		rec := create(t, store, record(numbered(i)))
		update(t, store, rec)
	}
	create(t, store, record("flapping"))
	most, longest := 0, time.Duration(0)
	for made := 0; made < *flaps; made += step {
		execute(t, admin, fmt.Sprintf(`
			WITH before AS (SELECT last_revision FROM %[1]s.state),
				nth AS (SELECT max(nth) FROM %[1]s.changes WHERE id = 'flapping'),
				advanced AS (UPDATE %[1]s.state SET last_revision = last_revision + %[2]d, last_changed_at = 0)
			INSERT INTO %[1]s.changes (number, kind, changed_at, sequence, id, nth, terms, text, note, document)
			SELECT last_revision + n, 'updated', CASE WHEN n = %[2]d THEN 0 ELSE extract(epoch FROM clock_timestamp()) * 1000000 END, %[3]d, 'flapping', max + n, '{}', '', '', ''
			FROM before, nth, generate_series(1, %[2]d) AS n`, name, step, others+1))
		begun := time.Now()
		must(t, store.PruneAll())
		longest = max(longest, time.Since(begun))
		most = max(most, changesIn(t, admin, name))
	}
	if want := keep + 2*others; most > want {
		t.Errorf("the table has had %d changes, want at most %d", most, want)
	}
	t.Logf("%d changes of one relayer; to prune %d took at most %v; the table has %d bytes", *flaps, step, longest,
		queryOne[int](t, admin, `SELECT pg_total_relation_size('`+name+`.changes')`))
	for i := range others {
		if got, want := revisions(t, store, numbered(i)), fmt.Sprint(2*i+2, " ", 2*i+1); got != want {
			t.Errorf("revisions %s of the history of %s, want %s", got, numbered(i), want)
		}
	}
	newest := queryOne[uint64](t, admin, `SELECT last_revision FROM `+name+`.state`)
	changes, err := store.History(t.Context(), relayer.HistoryQuery{ID: "flapping", Limit: 2 * keep})
	if err != nil || len(changes) != keep || changes[0].Record.Revision != newest || changes[keep-1].Record.Revision != newest-keep+1 {
		t.Errorf("%d changes in the history of the flapping relayer, error %v", len(changes), err)
	}
}
