//go:build unix

package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// insertOldChanges adds changes of the year 1970 and raises the counter.
func insertOldChanges(t *testing.T, admin *pgxpool.Pool, schema string, count int) {
	t.Helper()
	execute(t, admin, fmt.Sprintf(`
		WITH before AS (SELECT last_revision FROM %[1]s.state),
			advanced AS (UPDATE %[1]s.state SET last_revision = last_revision + %[2]d, last_changed_at = 0)
		INSERT INTO %[1]s.changes (number, kind, changed_at, sequence, id, nth, terms, text, note, document)
		SELECT last_revision + n, 'updated', 0, 1, 'old', n, '{}', '', '', '' FROM before, generate_series(1, %[2]d) AS n`, schema, count))
}

func changesIn(t *testing.T, admin *pgxpool.Pool, schema string) int {
	t.Helper()
	return queryOne[int](t, admin, fmt.Sprintf("SELECT count(*) FROM %s.changes", schema))
}

// blockedPruner inserts old changes, locks the oldest of them until it is released, and
// returns a Store that waits for it, for longer than a writer does.
func blockedPruner(t *testing.T, admin *pgxpool.Pool, schema string) (pruner *postgres.Store, release func()) {
	t.Helper()
	insertOldChanges(t, admin, schema, 100)
	release = holdTransaction(t, admin, fmt.Sprintf("SELECT FROM %s.changes ORDER BY number LIMIT 1 FOR UPDATE", schema))
	pruner = open(t, postgres.WithSchema(schema), postgres.WithHistory(0, 0), postgres.WithTimeout(time.Minute))
	must(t, pruner.PruneSoon())
	eventually(t, "pruning is blocked", func() bool {
		return queryOne[int](t, admin, `SELECT count(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM%' || $1 || '%.changes%'`, schema) > 0
	})
	return pruner, release
}

// The servers are checked even if each step of the pruning finds a change that is old now.
func TestPruning_ChecksServers(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	must(t, store.PruneSoon())
	rec := create(t, store, record("one"))
	pruned := func() int { return queryOne[int](t, admin, fmt.Sprintf("SELECT pruned FROM %s.pruning", schema)) }
	eventually(t, "the pruning has begun", func() bool { rec = update(t, store, rec); return pruned() > 0 })
	store.SetQueueFull()
	eventually(t, "a check of the servers", func() bool { rec = update(t, store, rec); return !store.IsQueueFull() })
}

func TestPruning_Surveys(t *testing.T) {
	t.Parallel()
	connString, logins := withDeadHost(t, pgserver.Start(t))
	store := openImpatient(t, connString)
	logins.Store(0)
	store.PruneEach(100 * time.Millisecond)
	eventually(t, "the other server is asked", func() bool { return logins.Load() > 2 })
}

func TestPruning_DoesNotBlockWrites(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	pruner, release := blockedPruner(t, admin, schema)
	rec := create(t, store, record("one"))
	rec = update(t, pruner, rec)
	remove(t, store, rec)
	release()
	eventually(t, "the changes are pruned", func() bool { return changesIn(t, admin, schema) == 0 })
	wantConsistent(t, store)
}

// TestPruning_UnderLoad: while two Stores write as fast as they can, the number of changes stays
// below a bound, however many were written.
func TestPruning_UnderLoad(t *testing.T) {
	t.Parallel()
	const writers, bound = 16, 1000
	admin, schema := newAdmin(t)
	stores := []*postgres.Store{openPruner(t, schema), openPruner(t, schema)}
	var written atomic.Int64
	var running sync.WaitGroup
	stop := make(chan struct{})
	for i := range writers {
		running.Go(func() {
			store := stores[i%len(stores)]
			rec, err := store.Create(context.Background(), record(numbered(i)))
			for ; err == nil; rec, err = store.Update(context.Background(), rec) {
				written.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
			t.Error(err)
		})
	}
	defer running.Wait()
	defer close(stop)
	for _, least := range []int64{2 * bound, 3 * bound} {
		eventually(t, "the changes are pruned", func() bool {
			return written.Load() >= least && changesIn(t, admin, schema) <= bound
		})
	}
}

func TestPruning_EndsWithClose(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	open(t, postgres.WithSchema(schema))
	pruner, release := blockedPruner(t, admin, schema)
	defer release()
	begun := time.Now()
	must(t, pruner.Close())
	wantWithin(t, "Close", begun, waitLimit)
}

// TestPruning_OldSnapshot prunes while a long transaction keeps all deleted rows.
// Each step must begin after the rows that earlier steps have deleted.
func TestPruning_OldSnapshot(t *testing.T) {
	t.Parallel()
	const count = 20_000
	admin, schema := newAdmin(t)
	// One connection, so that the test can ask for its statistics.
	pool := newPoolWith(t, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 1 })
	openOn(t, admin, postgres.WithSchema(schema))
	insertOldChanges(t, admin, schema, count)
	holdTransaction(t, admin, "SELECT FROM "+schema+".state")
	must(t, openOn(t, pool, postgres.WithSchema(schema), postgres.WithHistory(0, 0)).PruneSoon())
	eventually(t, "the changes are pruned", func() bool {
		return queryOne[int64](t, admin, fmt.Sprintf("SELECT pruned FROM %s.pruning", schema)) == count
	})
	execute(t, pool, "SELECT pg_stat_force_next_flush()")
	read := queryOne[int](t, pool, `SELECT idx_tup_read FROM pg_stat_user_indexes
		WHERE schemaname = $1 AND relname = 'changes'`, schema)
	if read < count || read > 4*count {
		t.Errorf("%d entries of the index were read to prune %d changes", read, count)
	}
}

// TestPruning_ReadOnlySessions prunes several steps in sessions that are read-only by
// default.
func TestPruning_ReadOnlySessions(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	store := openAt(t, asRole(t, map[string]string{"default_transaction_read_only": "on", "lock_timeout": "1ms"}),
		postgres.WithSchema(schema), postgres.WithHistory(0, 0))
	must(t, store.PruneSoon())
	create(t, store, record("kept"))
	execute(t, admin, fmt.Sprintf(`WITH advanced AS (UPDATE %s.state SET last_revision = 2501)
		INSERT INTO %[1]s.changes (number, kind, sequence, id, nth, terms, text, note, document)
		SELECT 1 + n, 'updated', 1, 'kept', 1 + n, '{}', '', '', '' FROM generate_series(1, 2500) AS n`, schema))
	eventually(t, "all changes are pruned", func() bool {
		return queryOne[int](t, admin, fmt.Sprintf(`SELECT count(*) FROM %s.changes`, schema)) == 0
	})
	if pruned := queryOne[int](t, admin, fmt.Sprintf(`SELECT pruned FROM %s.pruning`, schema)); pruned != 2501 {
		t.Errorf("pruned up to %d, want 2501", pruned)
	}
	if rec := get(t, store, "kept"); rec.Revision != 1 {
		t.Errorf("revision %d, want 1", rec.Revision)
	}
}

var vacuumWrites = flag.Int64("vacuum.writes", 1000, "writes beside which autovacuum runs; 500000 in a long run")

// TestVacuum_SteadyWriters has three instances whose writers never leave the write lock free.
// Autovacuum removes the old versions of the row of state, and no write fails.
func TestVacuum_SteadyWriters(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t, "fsync = off", "autovacuum_naptime = 1s", "autovacuum_vacuum_scale_factor = 0.01")
	admin := newPool(t, primary.ConnString())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	var stores [3]*postgres.Store
	var written atomic.Int64
	for i := range stores {
		stores[i] = openAt(t, primary.ConnString())
		for w := range 4 {
			rec := create(t, stores[i], record(fmt.Sprintf("%d-%d", i, w)))
			writing.Go(func() {
				for ctx.Err() == nil {
					made, err := stores[i].Update(context.Background(), rec)
					if err != nil {
						t.Error(err)
						stop()
						return
					}
					rec = made
					written.Add(1)
				}
			})
		}
	}
	dead := func() int {
		return queryOne[int](t, admin, `SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'relayer.state'::regclass`)
	}
	var most int
	within(t, "autovacuum processes the table state", waitLimit*(1+time.Duration(*vacuumWrites/10_000)), func() bool {
		most = max(most, dead())
		vacuums := queryOne[int](t, admin, `SELECT autovacuum_count FROM pg_stat_user_tables WHERE relid = 'relayer.state'::regclass`)
		return vacuums >= 2 && written.Load() >= *vacuumWrites || ctx.Err() != nil
	})
	stop()
	writing.Wait()
	t.Logf("%d writes, at most %d dead rows, %d at the end", written.Load(), most, dead())
	if most > 50_000 {
		t.Errorf("the table state had %d dead rows", most)
	}
	wantConsistent(t, stores[0])
}
