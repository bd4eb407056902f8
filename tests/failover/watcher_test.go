//go:build unix

package failover

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// change is a change that a watcher received. A delete has no revision, which its writer does
// not know.
type change struct {
	id       string
	revision uint64
}

// gap is ErrGap among the changes.
var gap = change{id: "gap"}

// watcher collects the changes of one Store.
type watcher struct {
	mu       sync.Mutex
	received []change // and gaps
	failed   error
}

// run watches again after a gap, and resumes after the servers were not reachable.
func (w *watcher) run(ctx context.Context, store relayer.Store, changes iter.Seq2[relayer.RecordChange, error]) {
	position := ""
	for changes != nil {
		watched := changes
		changes = nil
		for received, err := range watched {
			switch {
			case errors.Is(err, relayer.ErrGap):
				position, changes = "", store.Watch(ctx, "")
			case errors.Is(err, relayer.ErrUnavailable) && position != "":
				changes = store.Watch(ctx, position)
				continue
			default:
				position = received.Position
			}
			w.note(received, err)
		}
	}
}

func (w *watcher) note(received relayer.RecordChange, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, relayer.ErrGap):
		w.received = append(w.received, gap)
	case err != nil:
		w.failed = err
	case received.Kind == relayer.ChangeHeartbeat:
	case received.Kind == relayer.ChangeDeleted:
		w.received = append(w.received, change{id: received.Record.ID})
	default:
		w.received = append(w.received, change{received.Record.ID, received.Record.Revision})
	}
}

// until waits for the end of the marker and returns the changes and gaps up to it, without
// markers. If the marker can have been in a gap, it waits for another one instead.
func (w *watcher) until(l *load, marker string) (changes []change) {
	l.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for again := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		isEnd := func(c change) bool { return c == change{id: marker} }
		end := 1 + slices.IndexFunc(w.received, isEnd)
		if end > 0 {
			changes, w.received = w.received[:end:end], w.received[end:]
		}
		hasGap, failed := slices.Contains(w.received, gap), w.failed
		w.mu.Unlock()
		switch {
		case failed != nil:
			l.t.Fatalf("watch: %v", failed)
		case end > 0:
			return slices.DeleteFunc(changes, func(c change) bool { return strings.HasPrefix(c.id, "marker-") })
		case time.Now().After(deadline):
			l.t.Fatal("the last change does not reach the watcher within a minute")
		case hasGap && time.Now().After(again):
			marker = l.writeMarker()
			again = time.Now().Add(time.Second)
		}
	}
}
