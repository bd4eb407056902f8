package storetest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

const (
	racers = 32
	rounds = 12

	// readersTime is how long a writer goes on at most, unless its least work takes longer.
	readersTime = time.Second
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

// startWriters calls a function in many goroutines, and creates the record "end" when all have
// returned.
func startWriters(t *testing.T, store relayer.Store, writers int, write func(writer int) error) <-chan error {
	written := make(chan error, 1)
	go func() {
		errs := race(writers, write)
		_, err := store.Create(t.Context(), sample("end"))
		written <- errors.Join(append(errs, err)...)
	}()
	return written
}

// wantOneWinner fails unless exactly one of the errors is nil and all others match one
// of losers. It returns the index of the winner.
func wantOneWinner(t *testing.T, errs []error, losers ...error) int {
	t.Helper()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("contenders %d and %d both won", winner, i)
		case err == nil:
			winner = i
		case !matchesAny(err, losers):
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

// racingWrites has many writers compete, of which exactly one succeeds.
func racingWrites(t *testing.T, store relayer.Store) {
	attempt := func(write func(i int) (relayer.Record, error), losers ...error) (winner int, made relayer.Record) {
		t.Helper()
		all := make([]relayer.Record, racers)
		errs := race(racers, func(i int) (err error) { all[i], err = write(i); return err })
		winner = wantOneWinner(t, errs, losers...)
		return winner, all[winner]
	}
	contender := func(rec relayer.Record, i int) relayer.Record {
		rec.Document = fmt.Appendf(nil, `{"contender":%d}`, i)
		return rec
	}
	for round := range rounds {
		id := numbered(round)
		_, rec := attempt(func(i int) (relayer.Record, error) {
			return store.Create(t.Context(), contender(sample(id), i))
		}, relayer.ErrExists)
		wantPage(t, store, 0, 10, []relayer.Record{rec})
		_, rec = attempt(func(i int) (relayer.Record, error) {
			return store.Update(t.Context(), contender(rec, i))
		}, relayer.ErrConflict)
		wantPage(t, store, 0, 10, []relayer.Record{rec})
		winner, changed := attempt(func(i int) (relayer.Record, error) {
			if i%2 == 0 {
				return relayer.Record{}, store.Delete(t.Context(), id, rec.Revision, deleteNote)
			}
			return store.Update(t.Context(), contender(rec, i))
		}, relayer.ErrConflict, relayer.ErrNotFound)
		if winner%2 == 1 {
			wantPage(t, store, 0, 10, []relayer.Record{changed})
			mustDelete(t, store, changed)
		}
		wantPage(t, store, 0, 10, nil)
		_, rec = attempt(func(i int) (relayer.Record, error) {
			return store.Create(t.Context(), claiming(fmt.Sprint(id, "-", i), "one"))
		}, relayer.ErrClaimed)
		wantPage(t, store, 0, 10, []relayer.Record{rec})
		attempt(func(int) (relayer.Record, error) {
			return relayer.Record{}, store.Delete(t.Context(), rec.ID, rec.Revision, deleteNote)
		}, relayer.ErrNotFound)
		wantPage(t, store, 0, 10, nil)
	}
	rivals := createMany(t, store, racers)
	for range rounds {
		winner, rec := attempt(func(i int) (relayer.Record, error) {
			rec := rivals[i]
			rec.Claim = "one"
			return store.Update(t.Context(), rec)
		}, relayer.ErrClaimed)
		rec.Claim = ""
		rivals[winner] = mustUpdate(t, store, rec)
	}
	wantPage(t, store, 0, racers, rivals)
}

// repeatUntilStopped calls a function in several goroutines until stop is called. A
// goroutine ends at the first error, which fails the test.
func repeatUntilStopped(t *testing.T, call func() error) (stop func()) {
	var isStopped atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !isStopped.Load() {
				if err := call(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		isStopped.Store(true)
		callers.Wait()
	}
}

// moving returns a record with a term that is also its text.
func moving(id, term string) relayer.Record {
	rec := sample(id)
	rec.Terms, rec.Text = []string{term}, term
	return rec
}

// readersSeeSnapshots lists while records are created, updated and deleted. The IDs are a
// contiguous window that only moves forward, and each record changes at most once from one term and
// text to another, in the middle of the window. So most pages are detected whose parts, or total,
// are from different moments. The writer continues until there were enough reads, or for a time.
func readersSeeSnapshots(t *testing.T, store relayer.Store) {
	const window, fewestMoves, reads = 8, 60, 4000
	var live []relayer.Record
	for i := range window {
		live = append(live, mustCreate(t, store, moving(numbered(i), "a")))
	}
	var listed atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		listed.Add(1)
		return snapshotError(t, store, window)
	})
	for i, begun := 0, time.Now(); i < fewestMoves || time.Since(begun) < readersTime && listed.Load() < reads && !t.Failed(); i++ {
		live = append(live, mustCreate(t, store, moving(numbered(window+i), "a")))
		// So more lists fall within a move, while the total is one greater.
		runtime.Gosched()
		mustDelete(t, store, live[0])
		live = live[1:]
		changed := moving(live[window/2].ID, "b")
		changed.Revision, changed.Sequence = live[window/2].Revision, live[window/2].Sequence
		live[window/2] = mustUpdate(t, store, changed)
	}
	stop()
	wantPage(t, store, 0, 100, live)
}

func snapshotError(t *testing.T, store relayer.Store, window int) error {
	either, both := [][]string{{"a", "b"}}, [][]string{{"a"}, {"b"}}
	for _, c := range []struct {
		query       relayer.StoreQuery
		least, most int
	}{
		{relayer.StoreQuery{}, window, window + 1},
		{relayer.StoreQuery{Terms: either, Offset: window - 1}, window, window + 1},
		{relayer.StoreQuery{Contains: either[0]}, window, window + 1},
		{relayer.StoreQuery{Terms: both[1:]}, 0, window},
		{relayer.StoreQuery{Contains: both[1]}, 0, window},
		{relayer.StoreQuery{Terms: both}, 0, 0},
		{relayer.StoreQuery{Terms: both[:1], Contains: both[1]}, 0, 0},
	} {
		c.query.Limit = 2 * window
		page, err := store.List(t.Context(), c.query)
		if err != nil || page.Total < c.least || page.Total > c.most || len(page.Records) != page.Total-c.query.Offset {
			return fmt.Errorf("list of %+v: %d records and a total of %d, error %v", c.query, len(page.Records), page.Total, err)
		}
		first := -1
		for i, rec := range page.Records {
			if first < 0 {
				_, _ = fmt.Sscanf(rec.ID, "id-%04d", &first)
			}
			text := rec.Text
			if at := c.query.Offset + i; c.least == window && at != window/2 { // all are selected, and the middle one changes
				text = map[bool]string{false: "a", true: "b"}[at < window/2 && first+i > window/2]
			}
			want := moving(numbered(first+i), text)
			want.Revision, want.Sequence = rec.Revision, rec.Sequence
			if diff := difference(rec, want); diff != "" || !selects(c.query, rec) {
				return fmt.Errorf("list of %+v: the record %q with the terms %q and the text %q: %s", c.query, rec.ID, rec.Terms, rec.Text, diff)
			}
		}
	}
	return nil
}
