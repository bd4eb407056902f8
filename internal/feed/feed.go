// Package feed fans out changes to subscribers, and retains the latest changes so that
// a subscriber can resume. A publisher never waits. A subscriber that falls behind
// gets an error in place of the dropped changes, and then the changes that follow.
package feed

import (
	"context"
	"crypto/rand"
	"iter"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// The most that is retained, for all subscribers together.
const (
	maxChanges = 1024
	maxBytes   = 16 << 20
)

// Feed publishes changes of type T. Create one with [New]. All methods are safe for
// concurrent use. Subscribers get the changes in the order of the calls of Publish.
type Feed[T any] struct {
	gap     error
	deliver func(change T, position string) T
	epoch   string // prefix of the positions: they are unknown to every other Feed

	mu      sync.Mutex
	last    uint64    // number of the last change or gap
	recent  []item[T] // the changes up to last
	bytes   int       // of recent
	used    bool      // whether there has been a subscription
	closed  error
	updated chan struct{} // closed by the next change; nil if no subscriber waits
}

type item[T any] struct {
	change   T
	position string
	size     int
}

// New returns a Feed whose subscribers get the error gap in place of dropped changes.
// Deliver returns a deep copy of a change with its position: every subscriber gets its
// own.
func New[T any](gap error, deliver func(change T, position string) T) *Feed[T] {
	return &Feed[T]{gap: gap, deliver: deliver, epoch: rand.Text()[:16] + "."}
}

// Publish sends a change to every subscriber. What it points to must not be modified
// afterwards, because it is copied when a subscriber takes it. Size is its size in
// bytes, for the limit of what is retained. Publish does nothing after Close.
func (f *Feed[T]) Publish(change T, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.last++
	if !f.used {
		return // no subscriber has a position before this change
	}
	f.recent = append(f.recent, item[T]{change, f.epoch + strconv.FormatUint(f.last, 10), size})
	f.bytes += size
	for len(f.recent) > maxChanges || f.bytes > maxBytes {
		f.bytes -= f.recent[0].size
		f.recent[0] = item[T]{} // frees its memory
		f.recent = f.recent[1:]
	}
	f.wake()
}

// PublishGap reports to every subscriber, present or resuming, that changes are not
// known.
func (f *Feed[T]) PublishGap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.last++
	f.recent, f.bytes = nil, 0
	f.wake()
}

// Close ends all present and future subscriptions with err, which must not be nil,
// after the changes that are retained. Further calls do nothing.
func (f *Feed[T]) Close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed == nil {
		f.closed = err
		f.wake()
	}
}

// wake requires the lock.
func (f *Feed[T]) wake() {
	if f.updated != nil {
		close(f.updated)
		f.updated = nil
	}
}

// Subscribe returns the changes published from the call on, until ctx is done. If after
// is a position, it returns the changes after it instead. The gap error comes first if
// they are not retained or the position is of another Feed. The sequence continues
// after the gap error; any other error is the last. It can be ranged over once.
//
// A subscription that is not ranged over uses no resources.
func (f *Feed[T]) Subscribe(ctx context.Context, after string) iter.Seq2[T, error] {
	s := f.subscribe(after)
	var ranged atomic.Bool
	return func(yield func(T, error) bool) {
		if ranged.Swap(true) {
			return
		}
		for ctx.Err() == nil {
			found, updated := f.next(&s)
			if updated == nil {
				if !f.yield(found, yield) {
					return
				}
				continue
			}
			select {
			case <-updated:
			case <-ctx.Done():
			}
		}
	}
}

// subscription is the position of one subscriber.
type subscription struct {
	seen  uint64 // number of the last change that was delivered
	isGap bool   // whether changes after it are not known
}

func (f *Feed[T]) subscribe(after string) subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = true
	if after == "" {
		return subscription{seen: f.last}
	}
	seen, ok := f.numberOf(after)
	if !ok || seen > f.last || seen < f.base() {
		return subscription{seen: f.last, isGap: true}
	}
	return subscription{seen: seen}
}

// base returns the number of the change before the retained ones.
func (f *Feed[T]) base() uint64 { return f.last - uint64(len(f.recent)) }

// numberOf parses a position of this Feed.
func (f *Feed[T]) numberOf(position string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(position, f.epoch)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && strconv.FormatUint(number, 10) == digits
}

// found is what a subscriber gets next: a change, or an error.
type found[T any] struct {
	item[T]
	err   error
	isEnd bool
}

// next returns what comes after the last change delivered, or a channel that is closed
// when there is something.
func (f *Feed[T]) next(s *subscription) (found[T], <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	base := f.base()
	switch {
	case s.isGap, s.seen < base:
		// A subscriber in this state reads everything again. It continues with the
		// changes that are published later.
		if s.seen < base {
			s.seen = f.last
		}
		s.isGap = false
		return found[T]{err: f.gap}, nil
	case s.seen < f.last:
		s.seen++
		return found[T]{item: f.recent[s.seen-base-1]}, nil
	case f.closed != nil:
		return found[T]{err: f.closed, isEnd: true}, nil
	}
	if f.updated == nil {
		f.updated = make(chan struct{})
	}
	return found[T]{}, f.updated
}

// yield reports whether the subscription continues.
func (f *Feed[T]) yield(found found[T], yield func(T, error) bool) bool {
	if found.err != nil {
		var none T
		return yield(none, found.err) && !found.isEnd
	}
	return yield(f.deliver(found.change, found.position), nil)
}
