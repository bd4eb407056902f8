//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestClose_WaitsForAcceptedWrites: each write is carried out and succeeds, or is
// refused.
func TestClose_WaitsForAcceptedWrites(t *testing.T) {
	t.Parallel()
	admin, schema := newAdmin(t)
	store, err := postgres.Open(t.Context(), server.ConnString(), longTimeouts, postgres.WithSchema(schema))
	must(t, err)
	release := holdWriteLock(t, admin, schema)
	const many = 50
	ends := make(chan error, many)
	for i := range many {
		go func() { ends <- errorOf(store.Create(context.Background(), record(numbered(i)))) }()
		if i == 0 {
			awaitWaiting(t, admin, schema, 1)
		}
	}
	awaitQueued(t, store, many-1)
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the Store is closed", func() bool {
		_, err := store.Get(t.Context(), "one")
		return errors.Is(err, relayer.ErrUnavailable)
	})
	wantError(t, errorOf(store.Create(t.Context(), record("late"))), relayer.ErrUnavailable)
	release()
	closing.Wait()
	for range many {
		must(t, <-ends)
	}
	wantTotal(t, open(t, postgres.WithSchema(schema)), many)
}

// TestClose_ServerHangs closes a Store, but not its pool, whose Close is up to the
// driver.
func TestClose_ServerHangs(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	pool := newPool(t, server.ConnString())
	store := openImpatientOn(t, pool, postgres.WithTimeout(2*time.Second), postgres.ConnectTimeout(2*time.Second))
	createSettled(t, store, record("one"))
	watch(t, store)
	must(t, server.Pause())
	pending := inBackground(func() error { return errorOf(store.Create(context.Background(), record("two"))) })
	time.Sleep(50 * time.Millisecond)
	begun := time.Now()
	must(t, store.Close())
	wantWithin(t, "Close", begun, 4*time.Second+slack)
	wantError(t, <-pending, relayer.ErrUnavailable)
	must(t, server.Continue())
}

// TestReads_CanceledContext: reads return the error of the context and release their
// connections.
func TestReads_CanceledContext(t *testing.T) {
	t.Parallel()
	pool := newPool(t, server.ConnString())
	schema := schemaName()
	store := openOn(t, pool, postgres.WithSchema(schema))
	one := create(t, store, record("one"))
	admin := newPool(t, server.ConnString())
	// As a migration locks out readers.
	release := holdTransaction(t, admin, "LOCK TABLE "+schema+".relayers, "+schema+".state, "+schema+".postings")
	reads := operations(store)
	for _, name := range []string{"Get", "List", "List of a selection"} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begun := time.Now()
		if err := reads[name](ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
		wantWithin(t, name, begun, slack)
		cancel()
	}
	release()
	wantStored(t, store, one)
	eventually(t, "all connections are released", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

// A read that succeeds just before its timeout has succeeded.
func TestReads_SuccessAtTimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	must(t, postgres.CauseOf(ctx, nil))
}
