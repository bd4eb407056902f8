//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

// TestSelection_Plan explains the statements of a page of 10 out of 100 matches among
// 20,000 records, of a combination of selections, and of IDs.
func TestSelection_Plan(t *testing.T) {
	t.Parallel()
	var plans []string
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) {
		config.MaxConns = 1
		config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { plans = append(plans, notice.Message) }
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `LOAD 'auto_explain'`)
			return err
		}
	})
	name := schemaName()
	store := openOn(t, pool, postgres.WithSchema(name))
	for i := range 20 {
		records := make([]relayer.Record, 1000)
		for j := range records {
			records[j] = record(numbered(1000*i + j))
			records[j].Revision = 1
			if j%200 == 0 {
				records[j].Terms = append(records[j].Terms, "rare")
			}
		}
		if err := store.Import(t.Context(), records); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, pool, `ANALYZE `+name+`.relayers, `+name+`.postings`)
	execute(t, pool, `SET auto_explain.log_min_duration = 0`, `SET auto_explain.log_nested_statements = on`,
		`SET auto_explain.log_analyze = on`, `SET auto_explain.log_level = notice`)
	for what, query := range map[string]relayer.StoreQuery{
		"a rare term":          {Terms: [][]string{{"rare"}}, Offset: 50, Limit: 10},
		"a rare and a common":  {Terms: [][]string{{"rare"}, {"common", "other"}}, Offset: 50, Limit: 10},
		"IDs of a common term": {Terms: [][]string{{"common"}}, IDs: slices.Collect(idsFrom(0, 100)), Offset: 50, Limit: 10},
	} {
		plans = nil
		recs, total, err := list(t.Context(), store, query)
		if err != nil || total != 100 || len(recs) != 10 {
			t.Fatalf("%s: %d of %d, error %v", what, len(recs), total, err)
		}
		plan := strings.Join(plans, "\n")
		if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Index Scan using postings_pkey") ||
			!regexp.MustCompile(`Index Scan using relayers_pkey on relayers r .*rows=1(\.00)? loops=10\)`).MatchString(plan) {
			t.Errorf("%s: the plan does not read by index, or more than the page:\n%s", what, plan)
		}
	}
}

func idsFrom(first, count int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range count {
			if !yield(numbered(first + i)) {
				return
			}
		}
	}
}

// TestSelection_EmptyPostings: a term that no record has any more leaves no row behind.
func TestSelection_EmptyPostings(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	one, two := create(t, store, record("one")), create(t, store, record("two"))
	one.Terms = []string{"common", "new"}
	one = update(t, store, one)
	remove(t, store, two)
	left := queryOne[string](t, admin, fmt.Sprintf(`SELECT string_agg(term, ' ' ORDER BY term) FROM %s.postings`, schema))
	if left != " common new" {
		t.Errorf("postings of %q, want those of all, common and new", left)
	}
	remove(t, store, one)
	if rows := queryOne[int](t, admin, fmt.Sprintf(`SELECT count(*) FROM %s.postings`, schema)); rows != 0 {
		t.Errorf("%d postings are left", rows)
	}
}

// TestSelection_ChangesInBatch has one batch create, update and delete a record, so that
// terms come and go in one commit.
func TestSelection_ChangesInBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	kept := create(t, store, record("kept"))
	release := holdWriteLock(t, admin, schema)
	ends := []<-chan error{inBackground(func() error { _, err := store.Create(t.Context(), record("first")); return err })}
	awaitWaiting(t, admin, schema, 1)
	queue := func(do func() error) {
		ends = append(ends, inBackground(do))
		awaitQueued(t, store, len(ends)-1)
	}
	with := func(id string, revision uint64, terms ...string) relayer.Record {
		rec := record(id)
		rec.Revision, rec.Terms = revision, terms
		return rec
	}
	change := func(rec relayer.Record) func() error {
		return func() error { _, err := store.Update(t.Context(), rec); return err }
	}
	// The revisions follow from the order.
	queue(func() error { _, err := store.Create(t.Context(), with("brief", 0, "a", "b")); return err })
	queue(change(with("brief", 3, "b", "c")))
	queue(func() error { return store.Delete(t.Context(), "brief", 4, nil) })
	queue(change(with("kept", kept.Revision)))
	queue(change(with("kept", 6, "b", "common")))
	release()
	for i, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	wantConsistent(t, store)
	for term, want := range map[string]int{"a": 0, "b": 1, "c": 0, "common": 2, "id=kept": 0} {
		if _, total, err := list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{term}}}); total != want || err != nil {
			t.Errorf("%d records with the term %s, error %v, want %d", total, term, err, want)
		}
	}
}
