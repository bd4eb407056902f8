package httpapi

import (
	"context"
	"sync"
	"time"
)

// closedClientGrace is how long a request is still processed after its client has
// closed its sending side.
const closedClientGrace = 5 * time.Second

// requestContext is the context of a request whose cancellation is delayed by
// closedClientGrace. net/http cancels the context of a request when the client
// closes its sending side, but a half-closed client still reads the response. The
// delay is bounded, so that clients that are gone do not occupy the server.
// Deadlines are not delayed.
//
// The delayed context is created on first use, because most requests never wait.
type requestContext struct {
	context.Context // of the request

	mu      sync.Mutex
	delayed context.Context // nil until first use
	cancel  func()
}

func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.createDelayed()
	return c.delayed.Done()
}

func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delayed == nil && c.Context.Err() == nil {
		return nil
	}
	c.createDelayed()
	return c.delayed.Err()
}

// createDelayed requires the lock.
func (c *requestContext) createDelayed() {
	if c.delayed == nil {
		c.delayed, c.cancel = withDelayedCancel(c.Context, closedClientGrace)
	}
}

// release cancels the context after the response.
func (c *requestContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

func withDelayedCancel(parent context.Context, delay time.Duration) (context.Context, func()) {
	ctx := context.WithoutCancel(parent)
	var cancel context.CancelFunc
	if deadline, ok := parent.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, deadline)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	stop := context.AfterFunc(parent, func() {
		select {
		case <-time.After(delay):
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		stop()
		cancel()
	}
}
