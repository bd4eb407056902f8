//go:build unix

package postgres_test

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// statistics are states of the planner's statistics, as an autovacuum that comes early, late
// or never leaves them: after how many relayers of all they are collected.
var statistics = map[string]func(size int) int{
	"of empty tables": func(int) int { return 0 },
	"of one relayer":  func(int) int { return 1 },
	"of a tenth":      func(size int) int { return size / 10 },
	"fresh":           func(size int) int { return size },
	"none":            func(int) int { return -1 },
}

var planned = flag.Int("planned", 2_000, "the relayers of the tests of plans")

// TestPlans_Statistics counts the buffers that calls read, with statistics that fit the tables
// and with others. They must hardly differ.
// It is not parallel: old row versions that a snapshot of another test retains are read too.
func TestPlans_Statistics(t *testing.T) {
	size := *planned
	read := make(map[string]map[string]int) // by call and statistics
	bouncer := pgserver.StartPgBouncer(t, server, "transaction", "default_pool_size = 1")
	modes := map[string]string{
		"":            server.ConnString(),
		", custom":    asRole(t, map[string]string{"plan_cache_mode": "force_custom_plan"}),
		", forced":    asRole(t, map[string]string{"plan_cache_mode": "force_generic_plan", "random_page_cost": "1.1"}),
		", PgBouncer": parameter(t, bouncer, "default_query_exec_mode", "cache_describe"),
	}
	if !*long { // keep those that differ most
		maps.DeleteFunc(statistics, func(name string, _ func(int) int) bool { return name == "of one relayer" || name == "of a tenth" })
		maps.DeleteFunc(modes, func(mode, _ string) bool { return mode == ", custom" || mode == ", PgBouncer" })
	}
	for name, at := range statistics {
		s := fillWithStatistics(t, size, at(size))
		for mode, connString := range modes {
			s.measure(t, connString, func(call string, buffers int) {
				if read[call] == nil {
					read[call] = make(map[string]int)
				}
				read[call][name+mode] = buffers
			})
		}
	}
	for call, of := range read {
		least, most := slices.Min(slices.Collect(maps.Values(of))), slices.Max(slices.Collect(maps.Values(of)))
		t.Logf("%s: %d to %d buffers", call, least, most)
		// A whole table has more pages, and to look up all records that are selected reads more of them.
		if most > min(2*least+32, 100+size/20) {
			t.Errorf("%s reads %v buffers", call, of)
		}
	}
}

// plannedSchema is a schema with the statistics of an earlier time.
type plannedSchema struct {
	name  string
	size  int
	calls int
}

// fillWithStatistics imports relayers, and collects statistics when there are a number of them.
func fillWithStatistics(t *testing.T, size, collectAt int) *plannedSchema {
	t.Helper()
	s := &plannedSchema{name: schemaName(), size: size}
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(s.name))
	tables := queryOne[[]string](t, pool, `SELECT array_agg($1 || '.' || relname) FROM pg_class WHERE relnamespace = $1::text::regnamespace AND relkind = 'r'`, s.name)
	for _, table := range tables {
		execute(t, pool, `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`)
	}
	// Tables that were never filled have no pages, from which the server concludes that their
	// statistics are worth nothing.
	remove(t, store, create(t, store, plannedRecord(size)))
	for imported := 0; ; {
		if imported == collectAt {
			execute(t, pool, `ANALYZE `+strings.Join(tables, ", "))
		}
		if imported == size {
			// What the connection reports later would be counted as the work of others.
			execute(t, pool, `SELECT pg_stat_force_next_flush()`)
			return s
		}
		next := min(imported+1000, size)
		if imported < collectAt {
			next = min(next, collectAt)
		}
		var records []relayer.Record
		for ; imported < next; imported++ {
			records = append(records, plannedRecord(imported))
		}
		must(t, store.Import(t.Context(), records))
	}
}

func plannedRecord(i int) relayer.Record {
	return relayer.Record{
		ID: numbered(i), Revision: uint64(i + 1), Claim: fmt.Sprint("claim ", i),
		Terms:    []string{fmt.Sprintf("half=%d", i%2), fmt.Sprintf("signer=%d", i), fmt.Sprintf("tenth=%d", i%10)},
		Document: []byte(`{}`), Private: []byte(`{}`),
	}
}

// measure reports how many buffers the calls of a new Store read.
func (s *plannedSchema) measure(t *testing.T, connString string, report func(call string, buffers int)) {
	t.Helper()
	pool := newPoolWith(t, connString, func(c *pgxpool.Config) { c.MaxConns = 1 }) // whose statistics can be flushed
	store := openOn(t, pool, postgres.WithSchema(s.name))
	list := func(query relayer.StoreQuery) { must(t, errorOf(store.List(t.Context(), query))) }
	history := func(query relayer.HistoryQuery) { must(t, errorOf(store.History(t.Context(), query))) }
	made := func() relayer.Record {
		s.calls++
		rec := plannedRecord(s.size + s.calls)
		rec.Terms = append(rec.Terms, "unique="+rec.ID)
		return create(t, store, rec)
	}
	var current relayer.Record
	var position string
	counted := func() int {
		execute(t, pool, `SELECT pg_stat_force_next_flush()`)
		return queryOne[int](t, pool, `
			SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0) + coalesce(toast_blks_read, 0) + coalesce(toast_blks_hit, 0))::int
			FROM pg_statio_user_tables WHERE schemaname = $1`, s.name)
	}
	for _, c := range []struct {
		name          string
		prepare, call func()
	}{
		{name: "get", call: func() { get(t, store, numbered(s.size/2)) }},
		{name: "first page", call: func() { list(relayer.StoreQuery{Limit: 10}) }},
		{name: "last page", call: func() { list(relayer.StoreQuery{Offset: s.size - 10, Limit: 10}) }},
		{name: "selection of one", call: func() { list(relayer.StoreQuery{Terms: [][]string{{"signer=17"}}, Limit: 10}) }},
		{name: "selection of half", call: func() { list(relayer.StoreQuery{Terms: [][]string{{"half=1"}}, Offset: s.size / 4, Limit: 10}) }},
		{name: "selection of some", call: func() {
			list(relayer.StoreQuery{Terms: [][]string{{"half=1"}, {"tenth=1", "tenth=3"}}, Limit: 10})
		}},
		{name: "selection of IDs", call: func() {
			list(relayer.StoreQuery{Terms: [][]string{{"half=1"}}, IDs: []string{numbered(3), numbered(4)}, Limit: 10})
		}},
		{name: "page after another", call: func() { list(relayer.StoreQuery{After: uint64(s.size / 2), Limit: 10}) }},
		{name: "search", call: func() { list(relayer.StoreQuery{Contains: []string{"xyz"}, Limit: 10}) }},
		{name: "search in a selection", call: func() {
			list(relayer.StoreQuery{Terms: [][]string{{"signer=17"}}, Contains: []string{"xyz"}, Limit: 10})
		}},
		{name: "history of one", prepare: func() { current = made() }, call: func() { history(relayer.HistoryQuery{ID: current.ID, Limit: 10}) }},
		{name: "create", call: func() { made() }},
		{name: "update", prepare: func() { current = made() }, call: func() { update(t, store, current) }},
		{name: "update of a label", prepare: func() { current = made() }, call: func() {
			current.Terms = current.Terms[:3]
			update(t, store, current)
		}},
		{name: "delete", prepare: func() { current = made() }, call: func() { remove(t, store, current) }},
		{name: "last change", call: func() { must(t, errorOf(store.LastPosition(t.Context()))) }},
		{name: "changes", prepare: func() { position, _ = store.LastPosition(t.Context()); made() }, call: func() {
			must(t, store.ReadChanges(t.Context(), position))
		}},
		// After the others, whose changes fill a page: it passes over those of imports.
		{name: "history", call: func() { history(relayer.HistoryQuery{Limit: 50}) }},
	} {
		// The server plans the first calls each time. What the store does in the background
		// meanwhile is counted too, but not at each call.
		const calls = 8
		least := math.MaxInt
		for n := range calls {
			if c.prepare != nil {
				c.prepare()
			}
			before := counted()
			c.call()
			if n >= calls-3 {
				least = min(least, counted()-before)
			}
		}
		report(c.name, least)
	}
	must(t, store.Close())
}

// TestPlans_SmallTables has the server plan while the tables are small, and checks that
// it still uses the indexes when they are large.
func TestPlans_SmallTables(t *testing.T) {
	t.Parallel()
	name := schemaName()
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(name))
	last := create(t, store, record("small"))
	execute(t, pool, `ANALYZE `+name+`.relayers, `+name+`.changes, `+name+`.postings`)
	changes := watch(t, store)
	use := func() {
		last = update(t, store, last)
		changes.want(t, relayer.ChangeUpdated, last)
		get(t, store, last.ID)
		for _, query := range []relayer.StoreQuery{{Limit: 10}, {Terms: [][]string{{"common"}}, IDs: []string{last.ID}, Limit: 10}} {
			must(t, errorOf(store.List(t.Context(), query)))
		}
	}
	for range 10 {
		use()
	}
	for i := range 5 {
		records := make([]relayer.Record, 1000)
		for j := range records {
			records[j] = record(numbered(1000*i + j))
			records[j].Revision = 1
		}
		must(t, store.Import(t.Context(), records))
		changes.wantGap(t)
	}
	execute(t, pool, `INSERT INTO `+name+`.changes (number, kind, changed_at, sequence, id, nth, terms, text, note, document) SELECT -n, 'created', 0, 1, '', 0, '{}', '', '', '' FROM generate_series(1, 5000) AS n`)

	// A backend reports its statistics when asked to, or after some time.
	read := func() int {
		execute(t, pool, `SELECT pg_stat_force_next_flush()`)
		return queryOne[int](t, pool, `SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables
			WHERE schemaname = $1 AND relname IN ('relayers', 'changes', 'postings')`, name)
	}
	before := read()
	for range 10 {
		use()
	}
	if got := read() - before; got > 0 {
		t.Errorf("%d rows were read without an index", got)
	}
}

// TestPlans_OldSnapshot writes while a long transaction keeps the dead versions of
// the counters. A write must read the current version without reading the others.
func TestPlans_OldSnapshot(t *testing.T) {
	t.Parallel()
	const writes = 200
	admin, schema := newAdmin(t)
	// One connection, so that the test can ask for its statistics.
	pool := newPoolWith(t, server.ConnString(), func(c *pgxpool.Config) { c.MaxConns = 1 })
	store := openOn(t, pool, postgres.WithSchema(schema))
	rec := create(t, store, record("one"))
	holdTransaction(t, admin, "SELECT FROM "+schema+".state")
	for range writes {
		rec = update(t, store, rec)
	}
	execute(t, pool, "SELECT pg_stat_force_next_flush()")
	// Each write reads the counters once and raises them once.
	read := queryOne[int](t, pool, `SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = $1 AND relname = 'state'`, schema)
	if read < 2*writes || read > 4*writes {
		t.Errorf("%d entries of the index of state were read for %d writes", read, writes)
	}
}
