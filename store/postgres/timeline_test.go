//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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
	must(t, promoted.Promote())
	witness := openAt(t, promoted.ConnString(), schema)
	for name, store := range stores {
		made := createSettled(t, store, record(name))
		wantStored(t, witness, made)
	}
	for name, store := range stores {
		if got := get(t, store, "before"); !same(got, before) {
			t.Errorf("%s: got %v, want %v", name, got, before)
		}
		made := create(t, witness, record("after "+name))
		wantStored(t, store, made)
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
	store := openAt(t, pgserver.HostList(primary, other), defaultTimeouts, postgres.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
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
