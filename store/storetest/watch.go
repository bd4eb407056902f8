package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

// patience is how long a case waits for one change of a watch.
var patience = 10 * time.Second

type watcher struct {
	pull func() (relayer.RecordChange, error, bool)
	end  context.CancelFunc
	stop func()
}

func watch(t *testing.T, store relayer.Store) watcher {
	t.Helper()
	return watchAfter(t, store, "")
}

// watchAfter resumes after a position, unless it is empty.
func watchAfter(t *testing.T, store relayer.Store, position string) watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	pull, stop := iter.Pull2(store.Watch(ctx, position))
	end := func() { stop(); cancel() }
	t.Cleanup(end)
	return watcher{pull, cancel, end}
}

// next returns the next change. It skips heartbeats, and ends the watch if no change
// arrives in time.
func (w watcher) next() (relayer.RecordChange, error, bool) {
	defer time.AfterFunc(patience, w.end).Stop()
	for {
		if change, err, ok := w.pull(); !ok || err != nil || change.Kind != relayer.ChangeHeartbeat {
			return change, err, ok
		}
	}
}

// want expects a create or an update of what was old before it, and returns the change.
func (w watcher) want(t *testing.T, kind relayer.ChangeKind, rec, old relayer.Record) relayer.RecordChange {
	t.Helper()
	change, err, ok := w.next()
	if err != nil || !ok {
		t.Fatalf("Watch: error %v, ended is %t, want %s %q", err, !ok, kind, rec.ID)
	}
	wantChange(t, change, relayer.RecordChange{Kind: kind, Record: rec, OldTerms: old.Terms, OldText: old.Text})
	return change
}

func wantChange(t *testing.T, got, want relayer.RecordChange) {
	t.Helper()
	if got.Kind != want.Kind {
		t.Fatalf("Watch: %s %q, want %s %q", got.Kind, got.Record.ID, want.Kind, want.Record.ID)
	}
	if len(got.Record.Private) == 0 {
		want.Record.Private = nil // it need not be retained
	}
	wantSame(t, "Watch", got.Record, want.Record)
	if !slices.Equal(got.OldTerms, want.OldTerms) {
		t.Fatalf("Watch: %s %q has the old terms %q, want %q", got.Kind, got.Record.ID, got.OldTerms, want.OldTerms)
	}
	if got.OldText != want.OldText {
		t.Fatalf("Watch: %s %q has the old text %q, want %q", got.Kind, got.Record.ID, got.OldText, want.OldText)
	}
}

// wantEnd expects an error, which is the last.
func (w watcher) wantEnd(t *testing.T, what string, want error) {
	t.Helper()
	if change, err, ok := w.next(); !errors.Is(err, want) {
		t.Fatalf("%s: %s %q, error %v, ended is %t, want %v", what, change.Kind, change.Record.ID, err, !ok, want)
	}
	w.wantNoMore(t, want)
}

func (w watcher) wantNoMore(t *testing.T, last error) {
	t.Helper()
	if change, err, ok := w.next(); ok {
		t.Fatalf("Watch: %s %q and error %v after the error %v", change.Kind, change.Record.ID, err, last)
	}
}

// lastError ranges over a watch, calls a function that ends it after its first element, and returns
// its last error.
func lastError(changes iter.Seq2[relayer.RecordChange, error], end func()) error {
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var last error
		begin := sync.OnceFunc(func() { close(begun) })
		for _, last = range changes {
			begin()
		}
		begin()
		ended <- last
	}()
	<-begun
	end()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return errors.New("the watch goes on")
	}
}

func watchEndsWithContext(t *testing.T, store relayer.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	changes := store.Watch(ctx, "")
	mustCreate(t, store, sample("one"))
	wantError(t, "Watch whose context ends", lastError(changes, cancel), nil)
}

func wantPositionForm(t *testing.T, position string) {
	t.Helper()
	isOther := func(r rune) bool { return r <= ' ' || r > '~' }
	if position == "" || len(position) > limits.Position || strings.ContainsFunc(position, isOther) {
		t.Fatalf("the position is %q", position)
	}
}

// watchUnread makes many writes while a watch is not read. They do not wait for its consumer, which
// then gets all changes, or ErrGap.
func watchUnread(t *testing.T, store relayer.Store) {
	w := watch(t, store)
	w.want(t, relayer.ChangeCreated, mustCreate(t, store, sample("first")), relayer.Record{})
	written := startWriters(t, store, racers, func(writer int) (err error) {
		for i := 0; i < 100 && err == nil; i++ {
			_, err = store.Create(t.Context(), sample(fmt.Sprint(writer, "-", i)))
		}
		return err
	})
	select {
	case err := <-written:
		must(t, err)
	case <-time.After(6 * patience):
		t.Fatal("writes wait for the consumer of a watch")
	}
	for got := 0; ; got++ {
		change, err, ok := w.next()
		switch isEnd := change.Record.ID == "end"; {
		case errors.Is(err, relayer.ErrGap), isEnd && got == racers*100:
			return
		case err != nil, !ok, isEnd:
			t.Fatalf("Watch: error %v, ended is %t after %d changes, want all or %v", err, !ok, got, relayer.ErrGap)
		}
	}
}

func watchAfterUnknown(t *testing.T, store relayer.Store) {
	w, random := watch(t, store), newRandom(t)
	known, last := map[string]bool{"": true}, ""
	for _, rec := range createMany(t, store, 20) {
		last = w.want(t, relayer.ChangeCreated, rec, relayer.Record{}).Position
		known[last] = true
	}
	positions := []string{"x", " ", "0", "-1", ".", "1.", ".1", "\x00", "\xff", "é", "9223372036854775808",
		last + "0", last + ".", last + " ", " " + last, "0" + last, "+" + last, strings.Replace(last, ".", ".0", 1), last[1:], last[:len(last)-1], last + last, strings.Repeat("9", 10_000)}
	for range 20 {
		mutated := []byte(last)
		mutated[random.IntN(len(mutated))] ^= byte(1 + random.IntN(255))
		positions = append(positions, string(mutated))
	}
	positions = slices.DeleteFunc(positions, func(position string) bool { return known[position] })
	var watchers []watcher
	for _, position := range positions {
		watchers = append(watchers, watchAfter(t, store, position))
	}
	mustCreate(t, store, sample("later"))
	for i, position := range positions {
		watchers[i].wantEnd(t, "Watch after an unknown position "+position[:min(50, len(position))], relayer.ErrGap)
	}
}
