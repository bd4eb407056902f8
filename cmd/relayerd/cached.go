package main

import (
	"context"
	"sync"
	"time"
)

// cached keeps what load returns for an interval: requests without a token, such as those for
// metrics and readiness, must not load the store. Concurrent callers share one call of load.
type cached[T any] struct {
	interval, timeout time.Duration
	load              func(context.Context) T

	mu     sync.Mutex
	loaded time.Time
	value  T
}

func (c *cached[T]) get(ctx context.Context) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.loaded) >= c.interval {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		c.value, c.loaded = c.load(ctx), time.Now()
	}
	return c.value
}
