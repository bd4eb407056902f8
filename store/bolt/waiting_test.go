package bolt_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// pausing is a context that holds up who asks for its error, from the second
// time on: so a check stops in the middle.
type pausing struct {
	context.Context
	asked   int
	reached chan struct{}
	open    chan struct{}
}

func newPausing(t *testing.T) *pausing {
	return &pausing{Context: t.Context(), reached: make(chan struct{}, 1), open: make(chan struct{})}
}

func (p *pausing) Err() error {
	if p.asked++; p.asked == 2 {
		p.reached <- struct{}{}
		<-p.open
	}
	return p.Context.Err()
}

// pausingWriter is a backup that stops in the middle.
type pausingWriter struct {
	reached chan struct{}
	open    chan struct{}
}

func (w pausingWriter) Write(part []byte) (int, error) {
	select {
	case w.reached <- struct{}{}:
	default:
	}
	<-w.open
	return len(part), nil
}

// TestCancelledWhileChecked: a check makes writes wait, and their callers may
// give up.
func TestCancelledWhileChecked(t *testing.T) {
	store, _ := opened(t)
	if err := create(t, store, relayer.Record{ID: "before"})(); err != nil {
		t.Fatal(err)
	}
	ctx := newPausing(t)
	checked := make(chan error, 1)
	go func() { checked <- store.Check(ctx) }()
	<-ctx.reached
	wantGivenUp(t, store)
	close(ctx.open)
	if err := <-checked; err != nil {
		t.Error(err)
	}
	wantNotWritten(t, store)
}

// A recovery waits for a running backup. Writes wait for the recovery, and their
// callers can give up. Reads go on.
func TestRecovery_WaitsForBackup(t *testing.T) {
	store, _ := failing(t, syncFails)
	backup := pausingWriter{make(chan struct{}, 1), make(chan struct{})}
	copied := make(chan error, 1)
	go func() {
		_, err := store.Backup(t.Context(), struct{ io.Writer }{backup})
		copied <- err
	}()
	<-backup.reached
	doubtfully(t, store)
	wantGivenUp(t, store)
	if _, err := store.Get(t.Context(), "before"); err != nil {
		t.Errorf("Get while a recovery waits: %v", err)
	}
	close(backup.open)
	if err := <-copied; err != nil {
		t.Error(err)
	}
	wantNotWritten(t, store)
}

// TestCheckGivesUpItsTurn: a check that waits for a commit may be given up too.
func TestCheckGivesUpItsTurn(t *testing.T) {
	store, g := gated(t)
	first := make(chan error, 1)
	go func() { first <- create(t, store, relayer.Record{ID: "first"})() }()
	<-g.reached
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	checked := make(chan error, 1)
	go func() { checked <- store.Check(ctx) }()
	select {
	case err := <-checked:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(10 * time.Second):
		t.Error("the check still waits")
	}
	close(g.open)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// wantGivenUp fails unless a write whose context ends while it waits is answered
// at once.
func wantGivenUp(t *testing.T, store *bolt.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		_, err := store.Create(ctx, relayer.Record{ID: "late"})
		answer <- err
	}()
	select {
	case err := <-answer:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(5 * time.Second):
		t.Error("the write still waits")
	}
}

func wantNotWritten(t *testing.T, store *bolt.Store) {
	t.Helper()
	if err := create(t, store, relayer.Record{ID: "after"})(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get(t.Context(), "late"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("Get of what was given up: error is %v, want %v", err, relayer.ErrNotFound)
	}
}
