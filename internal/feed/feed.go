// Package feed fans out changes to subscribers. A publisher never waits: a
// subscriber that falls behind gets an error in place of the changes that were
// dropped, and then the changes that follow.
package feed

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// The most that is queued for a subscriber.
const (
	maxChanges = 1024
	maxBytes   = 16 << 20
)

// Feed publishes changes of type T. Create one with [New]. All methods are safe for
// concurrent use. Subscribers get the changes in the order of the calls of Publish.
type Feed[T any] struct {
	gap   error
	clone func(T) T

	mu          sync.Mutex
	subscribers []*subscriber[T]
	closed      error
}

// New returns a Feed whose subscribers get the error gap in place of dropped
// changes. Clone returns a deep copy of a change: every subscriber gets its own.
func New[T any](gap error, clone func(T) T) *Feed[T] { return &Feed[T]{gap: gap, clone: clone} }

// Publish sends a change to every current subscriber. What it points to must not be
// modified afterwards, because it is cloned when a subscriber takes it. Size is its size in bytes, for
// the limit of the queues. Publish does nothing after Close.
func (f *Feed[T]) Publish(change T, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subscribers {
		s.add(change, size)
	}
}

// PublishGap reports to every current subscriber that changes are not known, and
// drops what is queued for it.
func (f *Feed[T]) PublishGap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.subscribers {
		s.drop()
	}
}

// Close ends all present and future subscriptions with err, which must not be nil,
// after the changes that are queued. Further calls do nothing.
func (f *Feed[T]) Close(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return
	}
	f.closed = err
	for _, s := range f.subscribers {
		s.end(err)
	}
	f.subscribers = nil
}

// Subscribe returns the changes published from the call on, until ctx is done. The
// sequence continues after the gap error; any other error is the last. It can be
// ranged over once. A subscription is kept until ctx is done or the range ends.
func (f *Feed[T]) Subscribe(ctx context.Context) iter.Seq2[T, error] {
	s := f.subscribe()
	unsubscribe := sync.OnceFunc(func() { f.remove(s) })
	stop := context.AfterFunc(ctx, unsubscribe)
	return func(yield func(T, error) bool) {
		defer unsubscribe()
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.removed:
				return
			case <-s.wake:
			}
			if !f.deliver(ctx, s, yield) {
				return
			}
		}
	}
}

// deliver yields what is queued, and reports whether the subscription continues.
func (f *Feed[T]) deliver(ctx context.Context, s *subscriber[T], yield func(T, error) bool) bool {
	var none T
	changes, isGap, end := s.take()
	if isGap && !yield(none, f.gap) {
		return false
	}
	for _, change := range changes {
		if ctx.Err() != nil || !yield(f.clone(change), nil) {
			return false
		}
	}
	if end != nil {
		yield(none, end)
	}
	return end == nil
}

func (f *Feed[T]) subscribe() *subscriber[T] {
	s := &subscriber[T]{wake: make(chan struct{}, 1), removed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		s.end(f.closed)
		return s
	}
	f.subscribers = append(f.subscribers, s)
	return s
}

func (f *Feed[T]) remove(s *subscriber[T]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.subscribers, s); i >= 0 {
		f.subscribers = slices.Delete(f.subscribers, i, i+1)
	}
	s.take() // frees the queue
	close(s.removed)
}

// subscriber is the bounded queue of one subscription.
type subscriber[T any] struct {
	wake    chan struct{} // has a token if there is something to take
	removed chan struct{} // closed when nothing will be added anymore

	mu    sync.Mutex
	queue []T
	bytes int
	isGap bool
	err   error // that ends the subscription
}

func (s *subscriber[T]) add(change T, size int) {
	s.mu.Lock()
	if len(s.queue) == maxChanges || s.bytes+size > maxBytes {
		s.queue, s.bytes, s.isGap = nil, 0, true
	} else {
		s.queue = append(s.queue, change)
		s.bytes += size
	}
	s.mu.Unlock()
	s.signal()
}

func (s *subscriber[T]) drop() {
	s.mu.Lock()
	s.queue, s.bytes, s.isGap = nil, 0, true
	s.mu.Unlock()
	s.signal()
}

func (s *subscriber[T]) end(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	s.signal()
}

func (s *subscriber[T]) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *subscriber[T]) take() (queue []T, isGap bool, end error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue, isGap = s.queue, s.isGap
	s.queue, s.bytes, s.isGap = nil, 0, false
	return queue, isGap, s.err
}
