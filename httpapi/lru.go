package httpapi

import (
	"container/list"
	"sync"
)

// recent remembers values by key, and past its capacity forgets the one that
// has not been asked for for longest. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	capacity int

	mu      sync.Mutex
	entries map[K]*list.Element
	order   *list.List // of *recentEntry[K, V], the one used last in front
}

type recentEntry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](capacity int) *recent[K, V] {
	return &recent[K, V]{capacity: capacity, entries: make(map[K]*list.Element), order: list.New()}
}

// get returns the value of a key, if it is remembered.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	element, ok := r.entries[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*recentEntry[K, V]).value, true
}

// getOrMake returns the value of a key, and makes and remembers it where it is
// not.
func (r *recent[K, V]) getOrMake(key K, newValue func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if element, ok := r.entries[key]; ok {
		r.order.MoveToFront(element)
		return element.Value.(*recentEntry[K, V]).value
	}
	if r.order.Len() == r.capacity {
		forgotten := r.order.Remove(r.order.Back()).(*recentEntry[K, V])
		delete(r.entries, forgotten.key)
	}
	value := newValue()
	r.entries[key] = r.order.PushFront(&recentEntry[K, V]{key, value})
	return value
}
