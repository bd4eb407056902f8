package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// randomChanges writes at random, and returns the changes with their positions. It skips the
// case if the feed cannot resume.
func randomChanges(t *testing.T, store relayer.Store, writes int) []relayer.RecordChange {
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
		wantPositionForm(t, position)
		if seen[position] {
			t.Fatalf("the position of %s %q is %q, which is that of an earlier change", change.Kind, change.Record.ID, position)
		}
		seen[position] = true
	}
}

// watchResumes: after each position come exactly the changes that followed, or ErrGap.
func watchResumes(t *testing.T, store relayer.Store) {
	changes := randomChanges(t, store, 60)
	var watchers []watcher
	for _, change := range changes {
		watchers = append(watchers, watchAfter(t, store, change.Position))
	}
	later := mustCreate(t, store, sample("later"))
	changes = append(changes, relayer.RecordChange{Kind: relayer.ChangeCreated, Record: later})
	for i, w := range watchers {
		wantResumed(t, w, changes[i+1:])
	}
}

// wantResumed expects either the changes, or ErrGap.
func wantResumed(t *testing.T, w watcher, changes []relayer.RecordChange) {
	t.Helper()
	for i, want := range changes {
		change, err, ok := w.next()
		if i == 0 && errors.Is(err, relayer.ErrGap) {
			return
		}
		if err != nil || !ok || want.Position != "" && change.Position != want.Position {
			t.Fatalf("resumed Watch, change %d of %d: %s %q at %q, error %v, ended is %t, want %s %q at %q",
				i, len(changes), change.Kind, change.Record.ID, change.Position, err, !ok, want.Kind, want.Record.ID, want.Position)
		}
		wantSameChange(t, change, want)
	}
}

func watchAfterUnknown(t *testing.T, store relayer.Store) {
	changes := randomChanges(t, store, 20)
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
	positions = slices.DeleteFunc(positions, func(position string) bool { return known[position] || position == "" })
	var watchers []watcher
	for _, position := range positions {
		watchers = append(watchers, watchAfter(t, store, position))
	}
	mustCreate(t, store, sample("later"))
	for i, position := range positions {
		watchers[i].wantEnd(t, "Watch after an unknown position "+position[:min(50, len(position))], relayer.ErrGap)
	}
}

// watchAcrossReopening: a position from before leads to exactly the changes that
// followed, or to ErrGap.
func watchAcrossReopening(t *testing.T, open opener) {
	store := open(t)
	changes := randomChanges(t, store, 20)
	closeStore(t, store)
	store = openUntilEnd(t, open)
	for i := range changes {
		w := watchAfter(t, store, changes[i].Position)
		later := mustCreate(t, store, sample(numbered(100+i)))
		changes = append(changes, relayer.RecordChange{Kind: relayer.ChangeCreated, Record: later})
		wantResumed(t, w, changes[i+1:])
	}
}
