package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
)

const (
	racers = 32
	rounds = 30
)

// race runs a function in many goroutines concurrently and returns their errors.
func race(contenders int, run func(i int) error) []error {
	errs := make([]error, contenders)
	start := make(chan struct{})
	var done sync.WaitGroup
	for i := range contenders {
		done.Go(func() {
			<-start
			errs[i] = run(i)
		})
	}
	close(start)
	done.Wait()
	return errs
}

// wantOneWinner fails unless exactly one of the errors is nil and all others match one
// of losers. It returns the index of the winner.
func wantOneWinner(t *testing.T, errs []error, losers ...error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		if err == nil && winner >= 0 {
			t.Fatalf("contenders %d and %d both won", winner, i)
		}
		if err == nil {
			winner = i
			continue
		}
		if !matchesAny(err, losers) {
			t.Fatalf("contender %d lost with %v, want %v", i, err, losers)
		}
	}
	if winner < 0 {
		t.Fatal("no contender won")
	}
	return winner
}

func matchesAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

func racingCreates(t *testing.T, store relayer.Store) {
	var all []relayer.Record
	for round := range rounds {
		made := make([]relayer.Record, racers)
		errs := race(racers, func(i int) (err error) {
			rec := sample(numbered(round))
			rec.Document = fmt.Appendf(nil, `{"contender":%d}`, i)
			made[i], err = store.Create(t.Context(), rec)
			return err
		})
		winner := made[wantOneWinner(t, errs, relayer.ErrExists)]
		wantSame(t, "Get", mustGet(t, store, winner.ID), winner)
		all = append(all, winner)
	}
	wantPage(t, store, 0, rounds+1, all)
}

func racingClaims(t *testing.T, store relayer.Store) {
	for round := range rounds {
		claim := fmt.Sprintf("claim %d", round)
		errs := race(racers, func(i int) error {
			_, err := store.Create(t.Context(), claiming(fmt.Sprintf("r%d-%d", round, i), claim))
			return err
		})
		winner := wantOneWinner(t, errs, relayer.ErrClaimed)
		page, total := mustList(t, store, round, 10)
		if total != round+1 || len(page) != 1 || page[0].ID != fmt.Sprintf("r%d-%d", round, winner) {
			t.Fatalf("round %d: %d of %d records listed", round, len(page), total)
		}
	}
}

func racingUpdates(t *testing.T, store relayer.Store) {
	current := mustCreate(t, store, sample("one"))
	for range rounds {
		made := make([]relayer.Record, racers)
		errs := race(racers, func(i int) (err error) {
			rec := current
			rec.Document = fmt.Appendf(nil, `{"contender":%d}`, i)
			made[i], err = store.Update(t.Context(), rec)
			return err
		})
		current = made[wantOneWinner(t, errs, relayer.ErrConflict)]
		wantSame(t, "Get", mustGet(t, store, "one"), current)
	}
}

func racingDeletes(t *testing.T, store relayer.Store) {
	for range rounds {
		rec := mustCreate(t, store, claiming("one", "x"))
		errs := race(racers, func(int) error {
			return store.Delete(t.Context(), rec.ID, rec.Revision, deleteNote)
		})
		wantOneWinner(t, errs, relayer.ErrNotFound)
		wantPage(t, store, 0, 10, nil)
	}
}

func racingUpdateAndDelete(t *testing.T, store relayer.Store) {
	for round := range rounds {
		rec := mustCreate(t, store, sample(numbered(round)))
		errs := race(racers, func(i int) error {
			if i%2 == 0 {
				return store.Delete(t.Context(), rec.ID, rec.Revision, deleteNote)
			}
			_, err := store.Update(t.Context(), rec)
			return err
		})
		winner := wantOneWinner(t, errs, relayer.ErrConflict, relayer.ErrNotFound)
		got, err := store.Get(t.Context(), rec.ID)
		if winner%2 == 0 {
			wantError(t, "Get after a delete", err, relayer.ErrNotFound)
			continue
		}
		if err != nil || got.Revision <= rec.Revision {
			t.Fatalf("Get after an update: revision %d after %d, error %v", got.Revision, rec.Revision, err)
		}
		mustDelete(t, store, got)
	}
}

func concurrentCreates(t *testing.T, store relayer.Store) {
	const each = 10
	made := make([]relayer.Record, racers*each)
	errs := race(racers, func(i int) (err error) {
		for j := range each {
			n := i*each + j
			if made[n], err = store.Create(t.Context(), claiming(numbered(n), numbered(n))); err != nil {
				return err
			}
		}
		return nil
	})
	for i, err := range errs {
		if err != nil {
			t.Fatalf("contender %d: %v", i, err)
		}
	}
	revisions := make(map[uint64]string)
	for _, rec := range made {
		wantSame(t, "Get", mustGet(t, store, rec.ID), rec)
		revisions[rec.Revision] = rec.ID
	}
	page, total := mustList(t, store, 0, len(made)+1)
	if total != len(made) || len(page) != len(made) {
		t.Fatalf("%d records listed and a total of %d, want %d", len(page), total, len(made))
	}
}

// repeatUntilStopped calls a function in several goroutines until stop is called. A
// goroutine ends at the first error, which fails the test.
func repeatUntilStopped(t *testing.T, call func() error) (stop func()) {
	stopped := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				if err := call(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		close(stopped)
		callers.Wait()
	}
}

// readersSeeSnapshots lists while records are created and deleted. The writer keeps the
// IDs in a contiguous window that only moves forward, so that a page and a total from
// different moments are detected. It continues until there were enough reads.
func readersSeeSnapshots(t *testing.T, store relayer.Store) {
	const window, fewestMoves, mostMoves, reads = 8, 60, 5000, 4000
	live := createMany(t, store, window)
	var listed atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		listed.Add(1)
		return snapshotError(t, store, window)
	})
	for i := 0; i < fewestMoves || i < mostMoves && listed.Load() < reads && !t.Failed(); i++ {
		live = append(live, mustCreate(t, store, sample(numbered(window+i))))
		// Otherwise a writer in memory finishes before a reader is scheduled, or always
		// between two moves, which do not change the total.
		runtime.Gosched()
		mustDelete(t, store, live[0])
		live = live[1:]
		live[window/2] = mustUpdate(t, store, live[window/2])
	}
	stop()
	wantPage(t, store, 0, 100, live)
}

func snapshotError(t *testing.T, store relayer.Store, window int) error {
	page, err := store.List(t.Context(), relayer.StoreQuery{Limit: 2 * window})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	recs, total := page.Records, page.Total
	if len(recs) != total {
		return fmt.Errorf("list: %d records and a total of %d", len(recs), total)
	}
	if total != window && total != window+1 {
		return fmt.Errorf("list: total is %d, and was never", total)
	}
	var first int
	if _, err := fmt.Sscanf(recs[0].ID, "id-%04d", &first); err != nil {
		return fmt.Errorf("list: ID %q", recs[0].ID)
	}
	for i, rec := range recs {
		want := sample(numbered(first + i))
		want.Revision, want.Sequence = rec.Revision, rec.Sequence
		if diff := difference(rec, want); diff != "" {
			return fmt.Errorf("list[%d]: %s", i, diff)
		}
	}
	tail, err := store.List(t.Context(), relayer.StoreQuery{Terms: [][]string{{"common"}}, Offset: window - 1, Limit: 2 * window})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(tail.Records) != tail.Total-(window-1) {
		return fmt.Errorf("list from %d: %d records and a total of %d", window-1, len(tail.Records), tail.Total)
	}
	return nil
}
