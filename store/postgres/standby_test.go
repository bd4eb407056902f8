//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestStandby has one pair of servers. The last test promotes the standby.
func TestStandby(t *testing.T) {
	t.Parallel()
	runOnPair(t,
		pairTest{"FunctionsOnStandby", functionsOnStandby},
		pairTest{"PrimaryRestarts", primaryRestarts},
		pairTest{"ConnectionLedElsewhere", connectionLedElsewhere},
		pairTest{"StandbyOnly", standbyOnly})
}

type pairTest struct {
	name string
	run  func(t *testing.T, primary, standby *pgserver.Server)
}

// runOnPair runs tests, one after the other, on one primary and its synchronous standby.
func runOnPair(t *testing.T, tests ...pairTest) {
	primary, standby := pgserver.StartPair(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, primary, standby) })
	}
}

// primaryRestarts restarts the primary under Stores that may connect to
// the standby as well. Once it is back they write to it and read from it again.
func primaryRestarts(t *testing.T, primary, standby *pgserver.Server) {
	schema := newSchema()
	witness := openAt(t, primary.ConnString(), schema)
	one := create(t, witness, record("one"))
	stores := map[string]*postgres.Store{
		"primary first":            openAt(t, pgserver.HostList(primary, standby), schema),
		"standby first":            openAt(t, pgserver.HostList(standby, primary), schema),
		"target_session_attrs=any": openAt(t, pgserver.HostList(standby, primary)+"&target_session_attrs=any", schema),
		"pool of the host":         openOn(t, newPool(t, pgserver.HostList(primary, standby)), schema),
	}
	for name, store := range stores {
		if got := get(t, store, "one"); !same(got, one) {
			t.Errorf("%s: got %v, want %v", name, got, one)
		}
	}
	for range 2 {
		must(t, primary.Stop())
		var pending []<-chan error
		for name, store := range stores {
			pending = append(pending,
				inBackground(func() error { return errorOf(store.Get(t.Context(), "one")) }),
				inBackground(func() error { return errorOf(store.Create(t.Context(), record(name))) }))
		}
		// The standby accepts connections meanwhile.
		time.Sleep(500 * time.Millisecond)
		must(t, primary.Restart())
		for _, done := range pending {
			if err := <-done; err != nil && !errors.Is(err, relayer.ErrUnavailable) {
				t.Error(err)
			}
		}
		eventually(t, "the witness is back", func() bool { _, err := witness.Get(t.Context(), "one"); return err == nil })
		for name, store := range stores {
			rec, err := store.Get(t.Context(), name)
			if errors.Is(err, relayer.ErrNotFound) {
				rec = create(t, store, record(name))
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rec = update(t, witness, rec)
			wantStored(t, store, rec)
			remove(t, store, rec)
		}
	}
	wantConsistent(t, witness)
}

// standbyOnly: a Store that can reach nothing but a standby says so, and goes
// on when the standby is promoted.
func standbyOnly(t *testing.T, primary, standby *pgserver.Server) {
	one := create(t, openAt(t, primary.ConnString()), record("one"))
	short := postgres.ConnectTimeout(3 * time.Second)
	primaryLost := openAt(t, pgserver.HostList(primary, standby)+"&target_session_attrs=primary", short)
	must(t, primary.Kill())
	const reason = "no server of the connection string is the primary now"
	var all sync.WaitGroup
	all.Go(func() { wantUnavailable(t, primaryLost, slack, reason) })
	pool := newPool(t, standby.ConnString())
	for name, open := range map[string]func() (*postgres.Store, error){
		"Open": func() (*postgres.Store, error) { return postgres.Open(t.Context(), standby.ConnString(), short) },
		"New":  func() (*postgres.Store, error) { return postgres.New(t.Context(), pool, short) },
	} {
		all.Go(func() {
			begun := time.Now()
			_, err := open()
			if !errors.Is(err, relayer.ErrUnavailable) || !strings.HasSuffix(err.Error(), reason) {
				t.Errorf("%s: error %v, want ErrUnavailable and the reason", name, err)
			}
			wantWithin(t, name, begun, slack)
			wantNoDriver(t, name, err)
		})
	}
	all.Wait()
	opened := make(chan *postgres.Store, 1)
	failed := inBackground(func() error {
		store, err := postgres.Open(t.Context(), standby.ConnString(), longTimeouts)
		opened <- store
		return err
	})
	time.Sleep(100 * time.Millisecond)
	must(t, standby.Promote())
	must(t, <-failed)
	store := <-opened
	closeAtEnd(t, store)
	wantStored(t, store, one)
	update(t, store, one)
}

// functionsOnStandby calls the functions that read on a standby, as a pooler does
// that leads a connection to another server than at first.
func functionsOnStandby(t *testing.T, primary, standby *pgserver.Server) {
	create(t, openAt(t, primary.ConnString(), postgres.WithSchema("reads")), record("one"))
	onPrimary, onStandby := newPool(t, primary.ConnString()), newPool(t, standby.ConnString())
	eventually(t, "the standby has the schema", func() bool {
		return queryOne[bool](t, onStandby, "SELECT to_regclass('reads.relayers') IS NOT NULL")
	})
	for _, call := range []string{"relayer('one')", "page(0, 0, 10)", "changes_after(0, 0)", "history('', 10, 10)",
		"selection('{id=one}', '{1}', '{}', 1, NULL, 0, 0, 10)"} {
		sql := "SELECT count(*) FROM reads." + call
		if rows := queryOne[int](t, onPrimary, sql); rows != 1 {
			t.Errorf("%s: %d rows on the primary", call, rows)
		}
		_, err := onStandby.Exec(t.Context(), sql)
		if err == nil || !strings.Contains(err.Error(), "SQLSTATE 25006") {
			t.Errorf("%s: error %v on the standby, want 25006", call, err)
		}
	}
}

// connectionLedElsewhere marks connections to the standby as checked
// before, as if a pooler had led them to the primary then.
func connectionLedElsewhere(t *testing.T, primary, standby *pgserver.Server) {
	schema := newSchema()
	one := create(t, openAt(t, primary.ConnString(), schema), record("one"))
	p := newProxy(t, primary.Socket())
	pool := newPoolWith(t, p.connString(), func(config *pgxpool.Config) { config.MaxConns = 4 })
	store := openOn(t, pool, schema)
	onStandby := newPool(t, standby.ConnString())
	written := queryOne[string](t, newPool(t, primary.ConnString()), "SELECT pg_current_wal_lsn()::text")
	eventually(t, "the standby has the record", func() bool {
		return queryOne[bool](t, onStandby, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", written)
	})
	execute(t, onStandby, "SELECT pg_wal_replay_pause()")
	one = update(t, store, one)
	for range 3 {
		p.leadTo(standby.Socket())
		for _, conn := range acquireAll(t, pool, 4) {
			postgres.MarkPrimary(conn.Conn().PgConn())
			conn.Release()
		}
		p.leadTo(primary.Socket())
		wantStored(t, store, one)
		one = update(t, store, one)
	}
	execute(t, onStandby, "SELECT pg_wal_replay_resume()")
}

// acquireAll replaces all connections of a pool by new ones.
func acquireAll(t *testing.T, pool *pgxpool.Pool, connections int) []*pgxpool.Conn {
	t.Helper()
	pool.Reset()
	var all []*pgxpool.Conn
	for range connections {
		all = append(all, mustGet(pool.Acquire(t.Context()))(t))
	}
	return all
}

// TestTimeline_FormerPrimary promotes the standby while the primary goes on, as if only
// its failover manager had died. Stores must use the new primary, wherever it is in the
// list, and never return to the former one.
func TestTimeline_FormerPrimary(t *testing.T) {
	t.Parallel()
	former, promoted := pgserver.StartPair(t)
	schema := newSchema()
	stores := map[string]*postgres.Store{
		"former primary first": openImpatient(t, pgserver.HostList(former, promoted), defaultTimeouts, schema),
		"former primary last":  openImpatient(t, pgserver.HostList(promoted, former), defaultTimeouts, schema),
	}
	changes := make(map[string]*follower)
	for name, store := range stores {
		changes[name] = watch(t, store)
	}
	before := create(t, openAt(t, former.ConnString(), schema), record("before"))
	must(t, promoted.Promote())
	witness := openAt(t, promoted.ConnString(), schema)
	for name, store := range stores {
		made := createSettled(t, store, record(name))
		wantStored(t, witness, made)
	}
	for name, store := range stores {
		wantStoredSoon(t, store, before)
		made := create(t, witness, record("after "+name))
		wantStoredSoon(t, store, made)
		wantOnce(t, changes[name], witness, name)
	}
	must(t, promoted.Stop())
	for name, store := range stores {
		// The wait for the prober may end before the prober reports that there is no server.
		hasReason := func(err error) bool {
			return strings.Contains(err.Error(), "no server") || strings.Contains(err.Error(), "no connection within")
		}
		if got, err := store.Get(t.Context(), "before"); !errors.Is(err, relayer.ErrUnavailable) || !hasReason(err) {
			t.Errorf("%s: got %v, error %v from the former primary, want ErrUnavailable", name, got, err)
		}
		if _, err := store.Create(t.Context(), record("late")); !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: error %v, want ErrUnavailable", name, err)
		}
	}
	must(t, promoted.Restart())
	for name, store := range stores {
		createSettled(t, store, record("last "+name))
	}
	// Or the driver would wait for it to close the connections that were given up.
	must(t, former.Kill())
}

// createSettled repeats a create until its outcome is known. The ID is of no other caller.
func createSettled(t *testing.T, store *postgres.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	var made relayer.Record
	isRepeated := false
	eventually(t, "the create succeeds", func() bool {
		var err error
		if made, err = store.Create(context.Background(), rec); isRepeated && errors.Is(err, relayer.ErrExists) {
			made, err = store.Get(context.Background(), rec.ID)
		}
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		if err != nil && !errors.Is(err, relayer.ErrUnavailable) && !errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		return err == nil
	})
	return made
}

// wantOnce creates records until the change of one of them arrives. No change may be
// repeated without ErrGap, after which a watcher begins again.
func wantOnce(t *testing.T, changes *follower, witness *postgres.Store, name string) {
	t.Helper()
	seen := make(map[string]bool)
	for n := range 10 {
		made := create(t, witness, record(fmt.Sprintf("%s %d", name, n)))
		for isWaiting := true; isWaiting; {
			select {
			case next := <-changes.arrived:
				if next.err != nil {
					clear(seen)
					continue
				}
				if seen[next.Position] {
					t.Fatalf("%s: the change of %s is repeated", name, next.Record.ID)
				}
				seen[next.Position] = true
				if next.Record.ID == made.ID {
					return
				}
			case <-time.After(5 * time.Second):
				isWaiting = false
			}
		}
	}
	t.Fatalf("%s: no change arrives", name)
}

// TestRevisions_Lost has only a copy left, which lacks the last write. The Store uses it, says so
// once in its log, and its followers start again.
func TestRevisions_Lost(t *testing.T) {
	t.Parallel()
	primary, other := pgserver.Start(t), pgserver.Start(t)
	for _, server := range []*pgserver.Server{primary, other} {
		create(t, openAt(t, server.ConnString()), record("one"))
	}
	var log bytes.Buffer
	store := openImpatient(t, pgserver.HostList(primary, other), defaultTimeouts, postgres.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	changes := watch(t, store)
	changes.want(t, relayer.ChangeCreated, createSettled(t, store, record("lost")))
	must(t, primary.Kill())
	if got := changes.next(t); got.err != relayer.ErrGap {
		t.Errorf("a follower receives %v, error %v, want ErrGap", got.RecordChange, got.err)
	}
	found := untilAvailable(t, func() (relayer.Listing, error) { return store.List(t.Context(), relayer.StoreQuery{Limit: 10}) })
	if len(found.Records) != 1 || found.Records[0].ID != "one" {
		t.Errorf("the Store lists %v", found.Records)
	}
	if made := createSettled(t, store, record("later")); made.Revision != 2 {
		t.Errorf("revision %d, want 2, which was lost", made.Revision)
	}
	if err := store.Close(); err != nil { // after which nothing writes to the log
		t.Error(err)
	}
	lines := strings.Count(log.String(), "level=ERROR")
	if lines != 1 || !strings.Contains(log.String(), "revision=1 seen=2") {
		t.Errorf("the log is %q, want one error with both revisions", log.String())
	}
}

// TestForeign_Cluster: all servers of the tests have one system identifier, so that the test
// changes the one that the Store has seen.
func TestForeign_Cluster(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema(), postgres.ConnectTimeout(time.Second))
	create(t, store, record("one"))
	store.ExpectCluster("77")
	wantUnavailable(t, store, slack, "another cluster than the primary before: if that is intended, restart the instances")
}

// TestSynchronousStandby stops the standby of one pair again and again. The last test promotes it.
func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	runOnPair(t,
		pairTest{"WritesRepeated", writesRepeated},
		pairTest{"ReadsWithoutStandby", readsWithoutStandby},
		pairTest{"CommitCanceled", commitCanceled},
		pairTest{"CallerStalls", callerStalls},
		pairTest{"PoolCancels", poolCancels},
		pairTest{"LostByAsynchronousReplication", lostByAsynchronousReplication})
}

// writesRepeated makes writes while the synchronous standby
// is stopped, so that their outcome is unknown, and makes them again. No call may
// return what the first one has done before the standby has it.
func writesRepeated(t *testing.T, primary, standby *pgserver.Server) {
	stores, patient, records := make(map[string]*postgres.Store), make(map[string]*postgres.Store), make(map[string]relayer.Record)
	schemas := make(map[string]string)
	for name, w := range repeatedWrites {
		schemas[name] = schemaName()
		schema := postgres.WithSchema(schemas[name])
		patient[name] = openAt(t, primary.ConnString(), schema)
		records[name] = w.prepare(t, patient[name])
		// On a busy machine a shorter timeout passes before the server has the commit, which then has no effect.
		stores[name] = openImpatient(t, primary.ConnString(), schema, postgres.WithTimeout(3*time.Second))
		stores[name].SetQueueFull() // a commit with a notification would wait for the other commits
	}
	must(t, standby.Stop())
	var writing sync.WaitGroup
	for name, w := range repeatedWrites {
		writing.Go(func() {
			wantUnknown(t, func() error { return w.write(stores[name], records[name]) })
			if err := w.write(stores[name], records[name]); !errors.Is(err, relayer.ErrOutcomeUnknown) && !errors.Is(err, relayer.ErrUnavailable) {
				t.Errorf("%s again, without the standby: error %v, want ErrOutcomeUnknown or ErrUnavailable", name, err)
			}
		})
	}
	writing.Wait()
	must(t, standby.Restart())
	for name, w := range repeatedWrites {
		var err error
		eventually(t, "the outcome is known", func() bool {
			err = w.write(stores[name], records[name])
			return !errors.Is(err, relayer.ErrOutcomeUnknown) && !errors.Is(err, relayer.ErrUnavailable)
		})
		if !errors.Is(err, w.again) {
			t.Errorf("%s again, with the standby: error %v, want %v", name, err, w.again)
		}
		wantConsistent(t, patient[name])
		// The commit has confirmed the write: a read does not need another one.
		release := holdWriteLock(t, newPool(t, primary.ConnString()), schemas[name])
		eventually(t, "the record is read", func() bool {
			_, err := stores[name].Get(t.Context(), records[name].ID)
			return !errors.Is(err, relayer.ErrUnavailable)
		})
		release()
	}
}

// wantUnknown repeats a write until its outcome is unknown. On a busy machine a short
// timeout can also pass before the commit.
func wantUnknown(t *testing.T, write func() error) {
	t.Helper()
	err := write()
	for deadline := time.Now().Add(waitLimit); errors.Is(err, relayer.ErrUnavailable) && time.Now().Before(deadline); {
		err = write()
	}
	wantError(t, err, relayer.ErrOutcomeUnknown)
}

type repeatedWrite struct {
	prepare func(t *testing.T, store *postgres.Store) relayer.Record
	write   func(store *postgres.Store, rec relayer.Record) error
	again   error // of the same write once the standby is back
}

var repeatedWrites = map[string]repeatedWrite{
	"Create": {
		prepare: func(*testing.T, *postgres.Store) relayer.Record { return record("one") },
		write: func(store *postgres.Store, rec relayer.Record) error {
			return errorOf(store.Create(context.Background(), rec))
		},
		again: relayer.ErrExists,
	},
	"Update": {
		prepare: func(t *testing.T, store *postgres.Store) relayer.Record { return create(t, store, record("one")) },
		write: func(store *postgres.Store, rec relayer.Record) error {
			return errorOf(store.Update(context.Background(), rec))
		},
		again: relayer.ErrConflict,
	},
	"Delete": {
		prepare: func(t *testing.T, store *postgres.Store) relayer.Record { return create(t, store, record("one")) },
		write: func(store *postgres.Store, rec relayer.Record) error {
			return store.Delete(context.Background(), rec.ID, rec.Revision, nil)
		},
		again: relayer.ErrNotFound,
	},
	"Import": {
		prepare: func(*testing.T, *postgres.Store) relayer.Record {
			rec := record("imported")
			rec.Revision = 100
			return rec
		},
		write: func(store *postgres.Store, rec relayer.Record) error {
			return store.Import(context.Background(), []relayer.Record{rec})
		},
		again: relayer.ErrExists,
	},
	"Pause of a Manager": {
		prepare: func(t *testing.T, store *postgres.Store) relayer.Record {
			manager, err := relayer.New(store)
			if err == nil {
				_, err = manager.Create(t.Context(), relayer.CreateRequest{
					ID: "one", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
				})
			}
			must(t, err)
			return record("one")
		},
		write: func(store *postgres.Store, rec relayer.Record) error {
			manager, err := relayer.New(store)
			if err == nil {
				_, err = manager.Pause(context.Background(), rec.ID)
			}
			return err
		},
	},
}

// readsWithoutStandby: other reads than those that a change is based on do
// not wait for the standby.
func readsWithoutStandby(t *testing.T, primary, standby *pgserver.Server) {
	schema := newSchema()
	other := openAt(t, primary.ConnString(), schema)
	store := openImpatient(t, primary.ConnString(), schema, postgres.WithTimeout(2*time.Second))
	two := create(t, other, record("two"))
	must(t, standby.Stop())
	wantUnknown(t, func() error { return errorOf(store.Create(t.Context(), record("one"))) })
	eventually(t, "others see the row", func() bool { _, err := other.Get(t.Context(), "one"); return err == nil })
	if got := untilAvailable(t, func() (relayer.Record, error) { return store.Get(t.Context(), "two") }); !same(got, two) {
		t.Errorf("got %v, want %v", got, two)
	}
	untilAvailable(t, func() (int, error) {
		_, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: 10})
		if err == nil && total != 2 {
			t.Errorf("listed %d, want 2", total)
		}
		return total, err
	})
	if _, err := store.Get(t.Context(), "one"); !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("Get of the unconfirmed relayer: error %v, want ErrUnavailable", err)
	}
	must(t, standby.Restart())
	eventually(t, "the relayer is confirmed", func() bool { _, err := store.Get(t.Context(), "one"); return err == nil })
}

// cancelCommits cancels the commits that wait for the standby, as an operator can.
func cancelCommits(t *testing.T, admin *pgxpool.Pool) {
	t.Helper()
	eventually(t, "a commit waits for the standby and is canceled", func() bool {
		return queryOne[int](t, admin, `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) > 0
	})
}

// If the wait for the standby is canceled, the server reports success and a warning, which
// a setting of the session can hide.
func commitCanceled(t *testing.T, primary, standby *pgserver.Server) {
	for _, level := range []string{"notice", "error"} {
		t.Run("client_min_messages="+level, func(t *testing.T) { wantCanceledCommit(t, primary, standby, level) })
	}
}

func wantCanceledCommit(t *testing.T, primary, standby *pgserver.Server, level string) {
	store := openAt(t, parameter(t, primary.ConnString(), "client_min_messages", level), newSchema(), postgres.WithTimeout(30*time.Second))
	admin := newPool(t, primary.ConnString())
	must(t, standby.Stop())
	created := inBackground(func() error { return errorOf(store.Create(context.Background(), record("one"))) })
	cancelCommits(t, admin)
	wantError(t, <-created, relayer.ErrOutcomeUnknown)
	must(t, standby.Restart())
	// With the standby back.
	wantError(t, errorOf(store.Create(context.Background(), record("one"))), relayer.ErrExists)
}

// callerStalls repeats a create of unknown outcome before the goroutine of its caller runs again.
func callerStalls(t *testing.T, primary, standby *pgserver.Server) {
	store := openAt(t, primary.ConnString(), newSchema(), postgres.WithTimeout(30*time.Second))
	must(t, standby.Stop())
	caller := &stallingContext{Context: context.Background(), resumed: make(chan struct{})}
	resume := sync.OnceFunc(func() { close(caller.resumed) })
	t.Cleanup(resume)
	created := inBackground(func() error { return errorOf(store.Create(caller, record("one"))) })
	admin := newPool(t, primary.ConnString())
	waiting := func() int {
		return queryOne[int](t, admin, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	}
	eventually(t, "the commit waits for the standby", func() bool { return waiting() > 0 })
	caller.stalls.Store(true)
	cancelCommits(t, admin)
	eventually(t, "the commit has ended", func() bool { return waiting() == 0 })
	repeated := inBackground(func() error { return errorOf(store.Create(context.Background(), record("one"))) })
	cancelCommits(t, admin)
	wantError(t, <-repeated, relayer.ErrOutcomeUnknown)
	if len(created) > 0 {
		t.Error("the caller did not stall")
	}
	resume()
	wantError(t, <-created, relayer.ErrOutcomeUnknown)
	must(t, standby.Restart())
}

// stallingContext holds up a caller that is about to return.
type stallingContext struct {
	context.Context
	stalls  atomic.Bool
	resumed chan struct{}
}

func (c *stallingContext) Done() <-chan struct{} {
	if c.stalls.Load() {
		<-c.resumed
	}
	return c.Context.Done()
}

// The pool of a host can send a cancel request when a timeout passes.
func poolCancels(t *testing.T, primary, standby *pgserver.Server) {
	pool := newPoolWith(t, primary.ConnString(), func(config *pgxpool.Config) {
		config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 5 * time.Second}
		}
	})
	store := openImpatientOn(t, pool, newSchema(), postgres.WithTimeout(2*time.Second))
	must(t, standby.Stop())
	wantUnknown(t, func() error { return errorOf(store.Create(context.Background(), record("one"))) })
}

// lostByAsynchronousReplication promotes a standby that does not have the last
// commits. Connections that read see its timeline before the first that writes.
func lostByAsynchronousReplication(t *testing.T, primary, standby *pgserver.Server) {
	must(t, standby.Restart())
	store := openImpatient(t, pgserver.HostList(primary, standby), defaultTimeouts)
	createSettled(t, store, record("kept"))
	steps := []func() error{
		func() error { return primary.Configure("synchronous_standby_names = ''") }, standby.Stop,
		func() error { createSettled(t, store, record("lost")); return nil },
		primary.Kill, standby.Restart, standby.Promote,
	}
	for _, step := range steps {
		must(t, step())
	}
	store.Survey()
	if made := createSettled(t, store, record("later")); made.Revision != 2 {
		t.Errorf("revision %d after the promotion, want 2, which was lost", made.Revision)
	}
}
