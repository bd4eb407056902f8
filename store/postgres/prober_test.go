//go:build unix

package postgres_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// withDeadHost adds a host to those of a server. It closes every connection, and counts them.
func withDeadHost(t *testing.T, server *pgserver.Server) (connString string, logins *atomic.Int64) {
	t.Helper()
	dead := newProxy(t, server.Socket())
	dead.refusal.Store(new("EOF"))
	hosts := filepath.Dir(server.Socket()) + "," + filepath.Dir(dead.listener.Addr().String())
	return parameter(t, server.ConnString(), "host", hosts), &dead.refused
}

// TestProber_NoPrimary: while no primary can be reached, one caller connects to the hosts, and
// the others wait for it. All have the reason.
func TestProber_NoPrimary(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t)
	connString, logins := withDeadHost(t, primary)
	const timeout = time.Second
	store := openImpatient(t, connString, postgres.ConnectTimeout(timeout))
	rec := createSettled(t, store, record("one"))
	must(t, primary.Stop())
	logins.Store(0)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			wantError(t, errorOf(store.Get(context.Background(), "one")), relayer.ErrUnavailable)
		})
	}
	calls.Wait()
	// A caller that is alone connects every 25 ms.
	if count := logins.Load(); count < 1 || count > 160 {
		t.Errorf("%d connections to the other host within %v", count, timeout)
	}
	must(t, primary.Restart())
	if got := untilAvailable(t, func() (relayer.Record, error) { return store.Get(t.Context(), "one") }); !same(got, rec) {
		t.Errorf("got %+v, want %+v", got, rec)
	}
}

// TestSurvey_SlowWrites: the other hosts are asked once in some seconds, although every write
// is slow.
func TestSurvey_SlowWrites(t *testing.T) {
	t.Parallel()
	primary := pgserver.Start(t)
	connString, logins := withDeadHost(t, primary)
	store := openAt(t, connString, postgres.WithTimeout(5*time.Second))
	rec := createSettled(t, store, record("one"))
	admin := newPool(t, primary.ConnString())
	execute(t, admin,
		`CREATE FUNCTION relayer.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.2); RETURN NULL; END $$`,
		`CREATE TRIGGER slow AFTER UPDATE ON relayer.relayers FOR EACH ROW EXECUTE FUNCTION relayer.slow()`)
	logins.Store(0)
	begun := time.Now()
	for range 4 {
		rec = update(t, store, rec)
	}
	// The first one may have begun before, and a busy machine may make another call slow.
	limit := int64(time.Since(begun)/(2*time.Second)) + 3
	if count := logins.Load(); count < 1 || count > limit {
		t.Errorf("%d surveys within %v, want at most %d", count, time.Since(begun), limit)
	}
}
