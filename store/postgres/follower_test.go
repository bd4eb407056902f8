//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// follower is a fast consumer of changes.
type follower struct {
	arrived chan received
	stop    context.CancelFunc
	ended   chan struct{}
}

type received struct {
	relayer.RecordChange
	err error
}

// watch starts a watch before it returns, and ends it with the test.
func watch(t testing.TB, store relayer.Store) *follower {
	ctx, stop := context.WithCancel(context.Background())
	f := &follower{arrived: make(chan received, 100_000), stop: stop, ended: make(chan struct{})}
	changes := store.Watch(ctx, "")
	go func() {
		defer close(f.ended)
		for changes != nil {
			changes = f.follow(ctx, store, changes)
		}
	}()
	t.Cleanup(func() {
		stop()
		f.wantEnd(t)
	})
	return f
}

// follow receives the changes of a sequence. If it ends with ErrGap, follow returns another
// one that begins before ErrGap is received.
func (f *follower) follow(ctx context.Context, store relayer.Store, changes iter.Seq2[relayer.RecordChange, error]) (next iter.Seq2[relayer.RecordChange, error]) {
	for change, err := range changes {
		if change.Kind == relayer.ChangeHeartbeat {
			continue
		}
		if next != nil {
			err = errors.Join(err, errors.New("the sequence does not end with ErrGap"))
		}
		if err == relayer.ErrGap {
			next = store.Watch(ctx, "")
		}
		f.arrived <- received{change, err}
	}
	return next
}

// waitLimit is far above any delay on a busy machine.
const waitLimit = 3 * time.Minute

func (f *follower) next(t testing.TB) received {
	t.Helper()
	select {
	case next := <-f.arrived:
		return next
	case <-time.After(waitLimit):
		t.Fatal("no change arrives")
		return received{}
	}
}

func (f *follower) want(t testing.TB, kind relayer.ChangeKind, rec relayer.Record) {
	t.Helper()
	next := f.next(t)
	if kind == relayer.ChangeDeleted && next.Record.Revision > rec.Revision {
		rec.Revision = next.Record.Revision // of the delete
	}
	if next.err != nil || next.Kind != kind || !sameChange(next.Record, rec) {
		t.Fatalf("received %s %.200v, error %v, want %s %.200v", next.Kind, next.Record, next.err, kind, rec)
	}
}

func (f *follower) wantGap(t testing.TB) {
	t.Helper()
	if next := f.next(t); !errors.Is(next.err, relayer.ErrGap) {
		t.Fatalf("received %s %.200v, error %v, want ErrGap", next.Kind, next.Record, next.err)
	}
}

// wantEnd waits for the end of the sequence.
func (f *follower) wantEnd(t testing.TB) {
	t.Helper()
	select {
	case <-f.ended:
	case <-time.After(waitLimit):
		t.Error("the sequence of changes does not end")
	}
}
