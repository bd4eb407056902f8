//go:build unix

package failover

import (
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// change is a change that a watcher received.
type change struct {
	kind     relayer.ChangeKind
	id       string
	revision uint64
}

// gap is ErrGap among the changes.
var gap = change{kind: "gap"}

// watcher collects the changes of one Store.
type watcher struct {
	changes iter.Seq2[relayer.RecordChange, error]

	mu       sync.Mutex
	received []change // and gaps
	failed   error
}

func (w *watcher) run() {
	for received, err := range w.changes {
		w.mu.Lock()
		switch {
		case err == nil:
			w.received = append(w.received, change{received.Kind, received.Record.ID, received.Record.Revision})
		case errors.Is(err, relayer.ErrGap):
			w.received = append(w.received, gap)
		default:
			w.failed = err
		}
		w.mu.Unlock()
	}
}

// until waits for the end of the marker and returns the changes and gaps up to it.
func (w *watcher) until(t *testing.T, marker string) (changes []change) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		isComplete := len(w.received) > 0 && w.received[len(w.received)-1].id == marker && w.received[len(w.received)-1].kind == relayer.Deleted
		if isComplete {
			changes, w.received = w.received, nil
		}
		failed := w.failed
		w.mu.Unlock()
		switch {
		case failed != nil:
			t.Fatalf("watch: %v", failed)
		case isComplete:
			return changes
		case time.Now().After(deadline):
			t.Fatal("the last change does not reach the watcher within a minute")
		}
	}
}
