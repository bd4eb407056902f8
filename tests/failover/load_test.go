//go:build unix

package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/tests/internal/ledger"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// load is what instances do to a database: each has a Store, writers and a watcher.
type load struct {
	t          *testing.T
	inspector  *postgres.Store // for the comparison
	writers    []*writer
	known      *ledger.Ledger[uint64] // of all writers: revisions by ID
	watchers   []*watcher
	total      tally
	rounds     int
	markers    int
	recoveries []time.Duration // from the promotion to a write of every writer
	outages    []time.Duration // from the fault to a write of every writer
}

// newLoad opens one instance for each connection string, with a number of writers.
func newLoad(t *testing.T, inspector string, connStrings []string, writers int, options ...postgres.Option) *load {
	t.Helper()
	l := &load{t: t, inspector: pgtest.Open(t, inspector), known: ledger.New[uint64]()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, connString := range connStrings {
		store := pgtest.Open(t, connString, options...)
		w := &watcher{}
		l.watchers = append(l.watchers, w)
		changes := store.Watch(ctx, "")
		running.Go(func() { w.run(ctx, store, changes) })
		for range writers {
			l.writers = append(l.writers, &writer{number: len(l.writers), store: store, known: l.known})
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l
}

// write starts the writers, which rest between two records. The caller calls stop, which
// waits for their last writes.
func (l *load) write(rest time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var running sync.WaitGroup
	for _, w := range l.writers {
		running.Go(func() { w.run(ctx, rest) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// awaitWrites waits until each writer has another acknowledged write.
func (l *load) awaitWrites() {
	l.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, w := range l.writers {
		for before := w.acknowledged.Load(); w.acknowledged.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				l.t.Fatalf("writer %d has no acknowledged write for a minute", w.number)
			}
		}
	}
}

// verify compares the store and the watchers with the writers' ledger while no
// writer runs, and empties the store for the next round.
func (l *load) verify() {
	l.t.Helper()
	l.rounds++
	var present []relayer.Record
	must(l.t, settle(l.t.Context(), func(ctx context.Context) error {
		all, err := l.inspector.List(ctx, relayer.StoreQuery{Limit: 1 << 30})
		present = all.Records
		return err
	}))
	must(l.t, settle(l.t.Context(), l.inspector.Check))
	found := tally{}
	for _, w := range l.writers {
		found.acknowledged += w.acknowledged.Swap(0)
	}
	found.compareRecords(l.known, present)
	l.deleteAll(present)
	marker := l.writeMarker()
	var complete [][]change // of the watchers that received no gap
	for _, w := range l.watchers {
		changes := w.until(l, marker)
		if found.compareChanges(l.known, changes) {
			complete = append(complete, changes)
		}
	}
	l.known.Adopt(nil)
	for _, other := range complete {
		if !slices.Equal(complete[0], other) {
			l.t.Error("the watchers received different changes")
		}
	}
	if found.lost+found.doubled+found.gaps > 0 {
		l.t.Logf("round %d: %v", l.rounds, found)
	}
	l.total.add(found)
}

func (l *load) deleteAll(present []relayer.Record) {
	var running sync.WaitGroup
	defer running.Wait()
	for some := range slices.Chunk(present, 1+len(present)/16) {
		running.Go(func() {
			for _, rec := range some {
				if err := l.delete(rec); err != nil {
					l.t.Error(err)
				}
			}
		})
	}
}

func (l *load) delete(rec relayer.Record) error {
	isUnknown := false
	return settle(l.t.Context(), func(ctx context.Context) error {
		err := l.inspector.Delete(ctx, rec.ID, rec.Revision, nil)
		if isUnknown && errors.Is(err, relayer.ErrNotFound) {
			return nil
		}
		isUnknown = isUnknown || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
}

// writeMarker makes changes for the watchers to wait for, and returns their ID.
func (l *load) writeMarker() string {
	l.t.Helper()
	l.markers++
	rec, err := createOnce(l.t.Context(), l.inspector, relayer.Record{ID: fmt.Sprintf("marker-%d", l.markers)})
	must(l.t, err)
	must(l.t, l.delete(rec))
	return rec.ID
}

func (l *load) report() {
	l.t.Helper()
	l.t.Logf("%d rounds: %v", l.rounds, l.total)
	l.logTimes("from the promotion to a write of every writer", l.recoveries)
	l.logTimes("from the fault to a write of every writer", l.outages)
}

func (l *load) logTimes(what string, times []time.Duration) {
	l.t.Helper()
	if len(times) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(times))
	l.t.Logf("%s: median %v, longest %v", what,
		sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond))
}
