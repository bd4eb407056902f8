package storetest

import (
	"cmp"
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
	rounds = 30

	// readersTime is how long readers read at most beside a writer that has ended its least work.
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

// racingWrites has many writers attempt the same, of which exactly one succeeds.
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
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(made, func(a, b relayer.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	wantPage(t, store, 0, len(made)+1, made)
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
// different moments are detected. It continues until there were enough reads, or for a time.
func readersSeeSnapshots(t *testing.T, store relayer.Store) {
	const window, fewestMoves, reads = 8, 60, 4000
	live := createMany(t, store, window)
	var listed atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		listed.Add(1)
		return snapshotError(t, store, window)
	})
	for i, begun := 0, time.Now(); i < fewestMoves || time.Since(begun) < readersTime && listed.Load() < reads && !t.Failed(); i++ {
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

// readersSeeSelections lists while each record changes between two terms, and between two texts with
// them. A record always has one of them, and never both.
func readersSeeSelections(t *testing.T, store relayer.Store) {
	const records, fewest, reads = 8, 60, 2000
	all := createMany(t, store, records)
	change := func(at int, term string) {
		all[at].Terms, all[at].Text = []string{term}, term
		all[at] = mustUpdate(t, store, all[at])
	}
	for i := range all {
		change(i, "a")
	}
	var listed atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		listed.Add(1)
		for _, c := range []struct {
			terms    [][]string
			contains []string
			want     int
		}{
			{[][]string{{"a", "b"}}, nil, records},
			{[][]string{{"a"}, {"b"}}, nil, 0},
			{[][]string{{"b"}}, nil, -1},
			{nil, []string{"a", "b"}, records},
			{[][]string{{"a"}}, []string{"b"}, 0},
			{nil, []string{"b"}, -1},
		} {
			query := relayer.StoreQuery{Terms: c.terms, Contains: c.contains, Limit: 2 * records}
			page, err := store.List(t.Context(), query)
			if err != nil || len(page.Records) != page.Total || c.want >= 0 && page.Total != c.want {
				return fmt.Errorf("list of %+v: %d records and a total of %d, error %v", query, len(page.Records), page.Total, err)
			}
			for _, rec := range page.Records {
				if !selects(query, rec) {
					return fmt.Errorf("list of %+v: record with the terms %q and the text %q", query, rec.Terms, rec.Text)
				}
			}
		}
		return nil
	})
	for i, begun := 0, time.Now(); i < fewest || time.Since(begun) < readersTime && listed.Load() < reads && !t.Failed(); i++ {
		change(i*5%records, string("ba"[i/records%2]))
	}
	stop()
	wantPage(t, store, 0, 100, all)
}

// walkDuringWrites walks all records by After. Others are deleted between the pages, and
// created and deleted all the time.
func walkDuringWrites(t *testing.T, store relayer.Store) {
	random := newRandom(t)
	var passing atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		made, err := store.Create(t.Context(), sample(fmt.Sprint("passing-", passing.Add(1))))
		if err != nil {
			return err
		}
		return store.Delete(t.Context(), made.ID, made.Revision, nil)
	})
	defer stop()
	var staying, leaving []relayer.Record
	for _, limit := range []int{1, 4} {
		for i := range 30 {
			rec := mustCreate(t, store, sample(fmt.Sprintf("%d-%d", limit, i)))
			if random.IntN(3) == 0 {
				staying = append(staying, rec)
			} else {
				leaving = append(leaving, rec)
			}
		}
		walk(t, store, limit, staying, func() {
			if len(leaving) > 0 {
				i := random.IntN(len(leaving))
				mustDelete(t, store, leaving[i])
				leaving = slices.Delete(leaving, i, i+1)
			}
		})
	}
}

// walk fails unless a walk returns each of the staying records once, in their order.
func walk(t *testing.T, store relayer.Store, limit int, staying []relayer.Record, between func()) {
	t.Helper()
	isStaying := make(map[string]bool)
	for _, rec := range staying {
		isStaying[rec.ID] = true
	}
	var found []relayer.Record
	for after := uint64(0); len(staying) > 0 && after < staying[len(staying)-1].Sequence; between() {
		page, err := store.List(t.Context(), relayer.StoreQuery{After: after, Limit: limit})
		if err != nil || len(page.Records) == 0 || len(page.Records) > limit {
			t.Fatalf("List after %d: %d records, error %v", after, len(page.Records), err)
		}
		for _, rec := range page.Records {
			if rec.Sequence <= after {
				t.Fatalf("a walk has the sequence %d after %d", rec.Sequence, after)
			}
			after = rec.Sequence
			if isStaying[rec.ID] {
				found = append(found, rec)
			}
		}
	}
	if len(found) != len(staying) {
		t.Fatalf("a walk with pages of %d returned %d of %d records", limit, len(found), len(staying))
	}
	for i, rec := range staying {
		wantSame(t, "walk", found[i], rec)
	}
}
