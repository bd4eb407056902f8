//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestSynchronousStandby stops the standby of one pair again and again. The last test promotes it.
func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	runOnPair(t,
		pairTest{"WritesRepeated", writesRepeated},
		pairTest{"ReadsWithoutStandby", readsWithoutStandby},
		pairTest{"CommitCanceled", commitCanceled},
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
				_, err = manager.Create(t.Context(), requestFor("one"))
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
	store := openAt(t, pgserver.HostList(primary, standby), defaultTimeouts)
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

func requestFor(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: id, Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}
