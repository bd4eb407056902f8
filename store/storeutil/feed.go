package storeutil

import (
	"context"
	"crypto/rand"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
)

// The limits of what a Feed retains, for all consumers together.
const (
	maxChanges = 1024
	maxBytes   = 16 << 20
)

// Feed is the change feed of a store whose writes all happen in one process. The store
// calls Publish for every write, and its Watch method calls Watch.
//
// A Feed retains the last 1,024 changes or 16 MiB from the first call of Watch on. A
// consumer that is further behind, or resumes at an earlier position, gets
// [relayer.ErrGap]. Positions are valid until the process ends. They are unknown to every
// other Feed.
//
// The zero value is ready to use. All methods are safe for concurrent use. A Feed must not
// be copied after first use.
type Feed struct {
	mu      sync.Mutex
	epoch   string                 // prefix of the positions; empty until there is a consumer
	last    uint64                 // number of the last change or gap
	recent  []relayer.RecordChange // the changes up to last
	bytes   int                    // of recent
	closed  error
	updated chan struct{} // closed by the next change; nil if no consumer waits
}

// Publish sends a change to every consumer, and never waits for one. Feed sets its
// Position. Call Publish in the order of the writes, and for each write after reads return
// its result: a store with a mutex calls it after the write, before it unlocks the mutex.
// Publish does nothing after Close.
func (f *Feed) Publish(change relayer.RecordChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.last++
	if f.epoch == "" {
		return // no consumer has a position before this change
	}
	change.Position = f.epoch + strconv.FormatUint(f.last, 10)
	f.recent = append(f.recent, change)
	f.bytes += size(change)
	for len(f.recent) > maxChanges || f.bytes > maxBytes {
		f.bytes -= size(f.recent[0])
		f.recent[0] = relayer.RecordChange{} // frees its memory
		f.recent = f.recent[1:]
	}
	f.wake()
}

func size(change relayer.RecordChange) int {
	return len(change.Record.Document) + len(change.Record.Private)
}

// PublishGap ends the sequence of every consumer, present or resuming, with
// [relayer.ErrGap]. Call it after writes that cannot be published one by one. It does
// nothing after Close.
func (f *Feed) PublishGap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.last++
	f.recent, f.bytes = nil, 0
	f.wake()
}

// Close ends all present and future sequences with err, after the changes that are
// retained. Err must not be nil; [relayer.Store] requires an error that matches
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
		for ctx.Err() == nil {
			change, updated, err := f.next(seen)
			if updated != nil {
				select {
				case <-updated:
				case <-ctx.Done():
				}
				continue
			}
			if !yield(change, err) || err != nil {
				return
			}
			seen++
		}
	}
}

// begin returns the number of the change before the first one to deliver. It returns
// ErrGap if changes after the position are not retained.
func (f *Feed) begin(after string) (seen uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.epoch == "" {
		f.epoch = rand.Text()[:16] + "."
	}
	if after == "" {
		return f.last, nil
	}
	seen, ok := f.numberOf(after)
	if !ok || seen > f.last || seen < f.base() {
		return 0, relayer.ErrGap
	}
	return seen, nil
}

// base returns the number of the change before the retained ones.
func (f *Feed) base() uint64 { return f.last - uint64(len(f.recent)) }

// numberOf parses a position of this Feed.
func (f *Feed) numberOf(position string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(position, f.epoch)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && strconv.FormatUint(number, 10) == digits
}

// next returns the change after the one with the number, or the error that ends the
// sequence, or a channel that is closed when there is one of them.
func (f *Feed) next(seen uint64) (relayer.RecordChange, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch base := f.base(); {
	case seen < base:
		return relayer.RecordChange{}, nil, relayer.ErrGap
	case seen < f.last:
		return f.recent[seen-base], nil, nil
	case f.closed != nil:
		return relayer.RecordChange{}, nil, f.closed
	}
	if f.updated == nil {
		f.updated = make(chan struct{})
	}
	return relayer.RecordChange{}, f.updated, nil
}
