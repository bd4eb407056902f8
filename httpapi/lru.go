package httpapi

import (
	"container/list"
	"sync"
)

// lru is a cache that evicts the least recently used entry when it is full. It is
// safe for concurrent use.
type lru[K comparable, V any] struct {
	capacity int

	mu      sync.Mutex
	entries map[K]*list.Element
	order   *list.List // of *lruEntry[K, V], most recently used first
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](capacity int) *lru[K, V] {
	return &lru[K, V]{capacity: capacity, entries: make(map[K]*list.Element), order: list.New()}
}

func (c *lru[K, V]) get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(element)
	return element.Value.(*lruEntry[K, V]).value, true
}

// getOrAdd returns the value of a key. If it is not cached, newValue makes it.
func (c *lru[K, V]) getOrAdd(key K, newValue func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(*lruEntry[K, V]).value
	}
	if c.order.Len() == c.capacity {
		evicted := c.order.Remove(c.order.Back()).(*lruEntry[K, V])
		delete(c.entries, evicted.key)
	}
	value := newValue()
	c.entries[key] = c.order.PushFront(&lruEntry[K, V]{key, value})
	return value
}

func (c *lru[K, V]) remove(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.order.Remove(element)
		delete(c.entries, key)
	}
}
