package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// history writes at random, and returns the changes with their positions. It skips the
// case if the feed cannot resume.
func history(t *testing.T, store relayer.Store, writes int) []relayer.RecordChange {
	t.Helper()
	w := watch(t, store)
	random := newRandom(t)
	for i := range writes {
		if err := writeAny(t.Context(), store, numbered(random.IntN(5)), i); err != nil {
			t.Fatal(err)
		}
	}
	changes := w.readUntil(t, mustCreate(t, store, sample("last")))
	wantPositions(t, changes)
	return changes
}

func newRandom(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// readUntil returns the changes up to that of a record. A gap fails the case.
func (w watcher) readUntil(t *testing.T, last relayer.Record) []relayer.RecordChange {
	t.Helper()
	var changes []relayer.RecordChange
	for {
		change, err, ok := w.next()
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t", err, !ok)
		}
		changes = append(changes, change)
		if change.Record.ID == last.ID && change.Record.Revision == last.Revision {
			return changes
		}
	}
}

// wantPositions checks the form of the positions. They are all empty if the feed cannot
// resume.
func wantPositions(t *testing.T, changes []relayer.RecordChange) {
	t.Helper()
	if changes[0].Position == "" {
		t.Skip("the feed has no positions")
	}
	seen := make(map[string]bool)
	for _, change := range changes {
		position := change.Position
		isOther := func(r rune) bool { return r <= ' ' || r > '~' }
		if position == "" || len(position) > relayer.MaxPositionLength || strings.ContainsFunc(position, isOther) || seen[position] {
			t.Fatalf("the position of %s %q is %q", change.Kind, change.Record.ID, position)
		}
		seen[position] = true
	}
}

// watchResumes: after each position come exactly the changes that followed, or ErrGap.
func watchResumes(t *testing.T, store relayer.Store) {
	changes := history(t, store, 60)
	var watchers []watcher
	for _, change := range changes {
		watchers = append(watchers, watchAfter(t, store, change.Position))
	}
	later := mustCreate(t, store, sample("later"))
	for i, w := range watchers {
		wantResumed(t, w, changes[i+1:], later)
	}
}

// wantResumed expects either the changes after the position and then a create, or ErrGap and then
// the create.
func wantResumed(t *testing.T, w watcher, missed []relayer.RecordChange, created relayer.Record) {
	t.Helper()
	missed = append(missed[:len(missed):len(missed)], relayer.RecordChange{Kind: relayer.Created, Record: created})
	for i, want := range missed {
		change, err, ok := w.next()
		if i == 0 && errors.Is(err, relayer.ErrGap) {
			w.want(t, relayer.Created, created)
			return
		}
		if err != nil || !ok || change.Kind != want.Kind || want.Position != "" && change.Position != want.Position {
			t.Fatalf("resumed Watch, change %d of %d: %s %q at %q, error %v, ended is %t, want %s %q at %q",
				i, len(missed), change.Kind, change.Record.ID, change.Position, err, !ok, want.Kind, want.Record.ID, want.Position)
		}
		wantSame(t, "resumed Watch", change.Record, want.Record)
	}
}

// watchResumesOften has a consumer that reads a few changes per connection while others
// write. It gets the same changes as one that stays connected, except after ErrGap.
func watchResumesOften(t *testing.T, store relayer.Store) {
	const writers, writes = 4, 60
	begin := history(t, store, 1)
	whole := watch(t, store)
	written := make(chan error, 1)
	go func() {
		errs := race(writers, func(writer int) error {
			for i := range writes {
				if err := writeAny(t.Context(), store, numbered((writer+i)%5), i); err != nil {
					return err
				}
			}
			return nil
		})
		_, err := store.Create(t.Context(), sample("end"))
		written <- errors.Join(append(errs, err)...)
	}()
	random := newRandom(t)
	var resumed []item
	position, received := begin[len(begin)-1].Position, 0
	for isWritten := false; ; {
		if !isWritten && len(written) > 0 {
			isWritten = true
			if err := <-written; err != nil {
				t.Fatal(err)
			}
		}
		items := readSome(t, watchAfter(t, store, position), 1+random.IntN(7))
		resumed = append(resumed, items...)
		for _, item := range items {
			if !item.isGap {
				position = item.Position
				received++
			}
		}
		if received > writers*writes+1 {
			t.Fatalf("resumed Watch: %d changes of %d writes", received, writers*writes+1)
		}
		if last := resumed[len(resumed)-1]; last.Record.ID == "end" || last.isGap && isWritten {
			break
		}
	}
	end := mustGet(t, store, "end")
	wantSubsequence(t, resumed, whole.readUntil(t, end))
}

// readSome reads up to a number of changes, and not past a gap or the record end.
func readSome(t *testing.T, w watcher, limit int) (items []item) {
	t.Helper()
	defer w.stop()
	for range limit {
		change, err, ok := w.next()
		if err != nil && !errors.Is(err, relayer.ErrGap) || !ok {
			t.Fatalf("resumed Watch: error %v, ended is %t", err, !ok)
		}
		items = append(items, item{change, err != nil})
		if err != nil || change.Record.ID == "end" {
			break
		}
	}
	return items
}

// item is a change, or a gap.
type item struct {
	relayer.RecordChange
	isGap bool
}

// wantSubsequence checks that only changes before a gap are missing.
func wantSubsequence(t *testing.T, items []item, whole []relayer.RecordChange) {
	t.Helper()
	afterGap := false
	for i, item := range items {
		if item.isGap {
			afterGap = true
			continue
		}
		for afterGap && len(whole) > 0 && whole[0].Position != item.Position {
			whole = whole[1:]
		}
		if len(whole) == 0 || whole[0].Position != item.Position || whole[0].Kind != item.Kind {
			t.Fatalf("resumed Watch: item %d is %s %q at %q, which does not follow", i, item.Kind, item.Record.ID, item.Position)
		}
		wantSame(t, "resumed Watch", item.Record, whole[0].Record)
		whole, afterGap = whole[1:], false
	}
	if len(whole) > 0 && !afterGap {
		t.Fatalf("resumed Watch: %d changes are missing", len(whole))
	}
}

// watchAfterUnknown: ErrGap comes first, and then the changes from the call on.
func watchAfterUnknown(t *testing.T, store relayer.Store) {
	changes := history(t, store, 20)
	last := changes[len(changes)-1].Position
	random := newRandom(t)
	positions := []string{"x", " ", "0", "-1", ".", "1.", ".1", "\x00", "\xff", "é", "9223372036854775808",
		last + "0", last + ".", last + " ", " " + last, "0" + last, "+" + last, strings.Replace(last, ".", ".0", 1), last[1:], last[:len(last)-1], last + last, strings.Repeat("9", 10_000)}
	for range 20 {
		mutated := []byte(last)
		mutated[random.IntN(len(mutated))] ^= byte(1 + random.IntN(255))
		positions = append(positions, string(mutated))
	}
	known := make(map[string]bool)
	for _, change := range changes {
		known[change.Position] = true
	}
	positions = slices.DeleteFunc(positions, func(position string) bool { return known[position] })
	var watchers []watcher
	for _, position := range positions {
		watchers = append(watchers, watchAfter(t, store, position))
	}
	made := mustCreate(t, store, sample("later"))
	for i, position := range positions {
		w := watchers[i]
		if change, err, ok := w.next(); !errors.Is(err, relayer.ErrGap) {
			t.Fatalf("Watch after %.50q: %s %q, error %v, ended is %t, want %v", position, change.Kind, change.Record.ID, err, !ok, relayer.ErrGap)
		}
		w.want(t, relayer.Created, made)
	}
}

// watchAcrossReopening: a position from before leads to exactly the changes that
// followed, or to ErrGap.
func watchAcrossReopening(t *testing.T, open Opener) {
	store := open(t)
	changes := history(t, store, 20)
	closeStore(t, store)
	store = openUntilEnd(t, open)
	for i := range changes {
		w := watchAfter(t, store, changes[i].Position)
		later := mustCreate(t, store, sample(numbered(100+i)))
		wantResumed(t, w, changes[i+1:], later)
		changes = append(changes, relayer.RecordChange{Kind: relayer.Created, Record: later})
	}
}
