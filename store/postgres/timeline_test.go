//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// TestTimeline_FormerPrimary promotes the standby while the primary goes on, as if only
// its failover manager had died. Stores must use the new primary, wherever it is in the
// list, and never return to the former one.
func TestTimeline_FormerPrimary(t *testing.T) {
	t.Parallel()
	former, promoted := pgserver.StartPair(t)
	schema := newSchema()
	stores := map[string]*postgres.Store{
		"former primary first": openAt(t, pgserver.HostList(former, promoted), defaultTimeouts, schema),
		"former primary last":  openAt(t, pgserver.HostList(promoted, former), defaultTimeouts, schema),
	}
	changes := make(map[string]*follower)
	for name, store := range stores {
		changes[name] = watch(t, store)
	}
	before := create(t, openAt(t, former.ConnString(), schema), record("before"))
	if err := promoted.Promote(); err != nil {
		t.Fatal(err)
	}
	witness := openAt(t, promoted.ConnString(), schema)
	for name, store := range stores {
		made := createSettled(t, store, record(name))
		if got := get(t, witness, name); !same(got, made) {
			t.Errorf("%s: created %v, the new primary has %v", name, made, got)
		}
	}
	for name, store := range stores {
		if got := get(t, store, "before"); !same(got, before) {
			t.Errorf("%s: got %v, want %v", name, got, before)
		}
		made := create(t, witness, record("after "+name))
		if got := get(t, store, made.ID); !same(got, made) {
			t.Errorf("%s: got %v, want %v", name, got, made)
		}
		wantOnce(t, changes[name], witness, name)
	}
	if err := promoted.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, store := range stores {
		if got, err := store.Get(t.Context(), "before"); !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "no server") {
			t.Errorf("%s: got %v, error %v from the former primary, want ErrUnavailable", name, got, err)
		}
		if _, err := store.Create(t.Context(), record("late")); !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("%s: error %v, want ErrUnavailable", name, err)
		}
	}
	if err := promoted.Restart(); err != nil {
		t.Fatal(err)
	}
	for name, store := range stores {
		createSettled(t, store, record("last "+name))
	}
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

// TestTimeline_NoPrimary has only standbys. The error says so, and does not accuse the
// connection string.
func TestTimeline_NoPrimary(t *testing.T) {
	t.Parallel()
	primary, standby := pgserver.StartPair(t)
	store := openAt(t, pgserver.HostList(primary, standby)+"&target_session_attrs=primary", newSchema(), postgres.WithConnectTimeout(3*time.Second))
	create(t, store, record("one"))
	if err := primary.Stop(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	for name, call := range operations(store) {
		all.Go(func() {
			err := call(t.Context())
			if !errors.Is(err, relayer.ErrUnavailable) || !strings.HasSuffix(err.Error(), "no server of the connection string is the primary now") {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
}

// wantRefused kills the primary, so that only another server is left, and checks that the Store
// refuses that until the primary is back.
func wantRefused(t *testing.T, store *postgres.Store, primary, other *pgserver.Server, says string) {
	t.Helper()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for name, call := range operations(store) {
		all.Go(func() {
			if err := call(t.Context()); !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: error %v, want ErrUnavailable and %q", name, err, says)
			}
		})
	}
	all.Wait()
	if tables := queryOne[bool](t, newPool(t, other.ConnString()), `SELECT to_regclass('relayer.state') IS NULL`); !tables {
		if last := queryOne[int](t, newPool(t, other.ConnString()), `SELECT last_revision FROM relayer.state`); last != 1 {
			t.Errorf("the other server has the revision %d, want 1", last)
		}
	}
	if err := primary.Restart(); err != nil {
		t.Fatal(err)
	}
	createSettled(t, store, record("later"))
}

// TestForeign_Server has a primary without the registry in the host list.
func TestForeign_Server(t *testing.T) {
	t.Parallel()
	primary, other := pgserver.Start(t), pgserver.Start(t)
	store := openAt(t, pgserver.HostList(primary, other), defaultTimeouts)
	createSettled(t, store, record("one"))
	wantRefused(t, store, primary, other, "its last revision is 0")
}

// TestForeign_WritableCopy has a copy of the primary in the host list, for a Store that has
// only read the revision that the copy lacks. All servers of the tests have one system
// identifier and one timeline.
func TestForeign_WritableCopy(t *testing.T) {
	t.Parallel()
	type seeing func(t *testing.T, connString string, write func() relayer.Record) *postgres.Store
	for name, see := range map[string]seeing{
		"Open": func(t *testing.T, connString string, write func() relayer.Record) *postgres.Store {
			write()
			return openAt(t, connString, defaultTimeouts)
		},
		"List": func(t *testing.T, connString string, write func() relayer.Record) *postgres.Store {
			store := openAt(t, connString, defaultTimeouts)
			write()
			if _, err := store.List(t.Context(), relayer.StoreQuery{}); err != nil {
				t.Fatal(err)
			}
			return store
		},
		"Watch": func(t *testing.T, connString string, write func() relayer.Record) *postgres.Store {
			store := openAt(t, connString, defaultTimeouts)
			changes := watch(t, store)
			changes.want(t, relayer.ChangeCreated, write())
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, other := pgserver.Start(t), pgserver.Start(t)
			for _, server := range []*pgserver.Server{primary, other} {
				create(t, openAt(t, server.ConnString()), record("one"))
			}
			store := see(t, pgserver.HostList(primary, other), func() relayer.Record {
				return create(t, openAt(t, primary.ConnString()), record("two"))
			})
			wantRefused(t, store, primary, other, "its last revision is 1")
		})
	}
}

// TestForeign_Cluster: all servers of the tests have one system identifier, so that the test
// changes the one that the Store has seen.
func TestForeign_Cluster(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema(), defaultTimeouts)
	create(t, store, record("one"))
	store.ExpectCluster("77")
	for name, call := range operations(store) {
		if err := call(t.Context()); !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "that of the primary was 77") {
			t.Errorf("%s: error %v, want ErrUnavailable and the system identifier", name, err)
		}
	}
}

// TestForeign_Copy has a copy of the primary in the host list, which was promoted apart. Its
// timeline is higher.
func TestForeign_Copy(t *testing.T) {
	t.Parallel()
	primary, detached := pgserver.StartPair(t)
	createSettled(t, openAt(t, primary.ConnString(), defaultTimeouts), record("one"))
	if err := detached.Promote(); err != nil {
		t.Fatal(err)
	}
	standby := pgserver.Start(t)
	if err := standby.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	store := openAt(t, pgserver.HostList(primary, detached), defaultTimeouts)
	createSettled(t, store, record("two"))
	for n := range 3 { // also after it has asked all servers
		store.Survey()
		createSettled(t, store, record(fmt.Sprint(n)))
	}
	wantRefused(t, store, primary, detached, "its last revision is 1")
}

// TestTimeline_LostByAsynchronousReplication promotes a standby that does not have the last
// commits. Connections that read see its timeline before the first that writes.
func TestTimeline_LostByAsynchronousReplication(t *testing.T) {
	t.Parallel()
	primary, standby := pgserver.StartPair(t)
	store := openAt(t, pgserver.HostList(primary, standby), defaultTimeouts)
	createSettled(t, store, record("kept"))
	steps := []func() error{
		func() error { return primary.Configure("synchronous_standby_names = ''") }, standby.Stop,
		func() error { createSettled(t, store, record("lost")); return nil },
		primary.Kill, standby.Restart, standby.Promote,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	store.Survey()
	if made := createSettled(t, store, record("later")); made.Revision != 2 {
		t.Errorf("revision %d after the promotion, want 2, which was lost", made.Revision)
	}
}
