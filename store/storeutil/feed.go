// Package storeutil has parts of a [relayer.Store] for storage engines that lack them: a change
// feed ([Feed]), a queue of writes that are committed together ([Queue]), the selection of
// records ([Scan], [Selects]), and the check of the limits of a record ([Check]). Package
// examples/mapstore is a complete store with Feed and Scan.
package storeutil

import (
	"context"
	"crypto/rand"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/recent"
)

// heartbeatInterval is shorter than the 5 seconds that [relayer.Store] permits between two
// elements of a sequence.
const heartbeatInterval = 4 * time.Second

// Feed is the change feed of a store whose writes all happen in one process. The store calls
// Publish for every write, its Watch method calls Watch, and its List method calls Position.
//
// A Feed retains at most the last 1,024 changes, and at most 16 MiB. A consumer that is further
// behind, or resumes at an earlier position, gets [relayer.ErrGap]. Positions are valid until the
// process ends. They are unknown to every other Feed.
//
// The zero value is ready to use. All methods are safe for concurrent use. A Feed must not
// be copied after first use.
type Feed struct {
	mu      sync.Mutex
	epoch   string         // prefix of the positions; empty until there is a position
	last    uint64         // number of the last change or gap
	recent  recent.Changes // up to last
	closed  error
	updated chan struct{} // closed by the next change; nil if no consumer waits
}

// Publish sends a change to every consumer, and never waits for one. The Feed sets its Position
// and Time. Call Publish in the order of the writes, and for each write before it is
// acknowledged: a store with a mutex calls it after the write, before it unlocks the mutex.
// Publish does nothing after Close.
func (f *Feed) Publish(change relayer.RecordChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.last++
	change.Time = time.Now()
	f.recent.Add(change)
	f.wake()
}

// Position returns the position behind the last change. A store calls it while no write can
// be published, together with the read of a page.
func (f *Feed) Position() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position(f.last)
}

// position requires the lock.
func (f *Feed) position(number uint64) string {
	if f.epoch == "" {
		f.epoch = rand.Text()[:16] + "."
	}
	return f.epoch + strconv.FormatUint(number, 10)
}

// Close ends all present and future sequences with err or [relayer.ErrGap], after the changes
// that are retained. Err must not be nil; [relayer.Store] requires an error that matches
// [relayer.ErrUnavailable]. Further calls do nothing.
func (f *Feed) Close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed == nil {
		f.closed = err
		f.wake()
	}
}

// wake requires the lock.
func (f *Feed) wake() {
	if f.updated != nil {
		close(f.updated)
		f.updated = nil
	}
}

// Watch returns the changes that are published from the call on, or those after a
// position. It has the contract of the Watch method of [relayer.Store]. A sequence that is
// not ranged over uses no resources.
func (f *Feed) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	seen, begin := f.begin(after)
	var ranged atomic.Bool
	return func(yield func(relayer.RecordChange, error) bool) {
		if ranged.Swap(true) {
			return
		}
		if begin != nil {
			if ctx.Err() == nil {
				yield(relayer.RecordChange{}, begin)
			}
			return
		}
		heartbeat := time.NewTicker(heartbeatInterval)
		defer heartbeat.Stop()
		isDue := false
		for ctx.Err() == nil {
			change, updated, err := f.next(seen, isDue)
			isDue = false
			if updated != nil {
				select {
				case <-updated:
				case <-ctx.Done():
				case <-heartbeat.C:
					isDue = true
				}
				continue
			}
			heartbeat.Reset(heartbeatInterval)
			if !yield(change, err) || err != nil {
				return
			}
			if change.Kind != relayer.ChangeHeartbeat {
				seen++
			}
		}
	}
}

// begin returns the number of the change before the first one to deliver. It returns
// ErrGap if changes after the position are not retained.
func (f *Feed) begin(after string) (seen uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if after == "" {
		return f.last, nil
	}
	digits, isOurs := strings.CutPrefix(after, f.epoch)
	seen, err = strconv.ParseUint(digits, 10, 64)
	if !isOurs || err != nil || after != f.position(seen) || seen > f.last || seen < f.base() {
		return 0, relayer.ErrGap
	}
	return seen, nil
}

// base returns the number of the change before the retained ones.
func (f *Feed) base() uint64 { return f.last - uint64(len(f.recent.All)) }

// next returns the change after the one with the number, or the error that ends the
// sequence. Without one of them it returns a heartbeat if one is due, up to which every write that
// was acknowledged is published, and otherwise a channel that is closed when there is one.
func (f *Feed) next(seen uint64, isDue bool) (relayer.RecordChange, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch base := f.base(); {
	case seen < base:
		return relayer.RecordChange{}, nil, relayer.ErrGap
	case seen < f.last:
		change := f.recent.All[seen-base]
		change.Position = f.position(seen + 1)
		return change, nil, nil
	case f.closed != nil:
		return relayer.RecordChange{}, nil, f.closed
	case isDue:
		return relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: f.position(seen), Time: time.Now()}, nil, nil
	}
	if f.updated == nil {
		f.updated = make(chan struct{})
	}
	return relayer.RecordChange{}, f.updated, nil
}
