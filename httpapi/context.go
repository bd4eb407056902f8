package httpapi

import (
	"context"
	"sync"
	"time"
)

// closedClientGrace is how long a request is still processed after its client has
// closed its side of the connection.
const closedClientGrace = 5 * time.Second

// requestContext is the context of a request, except that its cancellation is
// delayed by closedClientGrace. net/http cancels the context of a request when the
// client closes its sending side. A client that is only half-closed still reads
// the response; one that is gone should not occupy the server for long. Deadlines
// are not delayed.
//
// The delayed context is made when it is first needed, because most requests never
// wait for anything.
type requestContext struct {
	context.Context // of the request

	mu      sync.Mutex
	delayed context.Context // nil until it is needed
	cancel  func()
}

func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeDelayed()
	return c.delayed.Done()
}

func (c *requestContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delayed == nil && c.Context.Err() == nil {
		return nil
	}
	c.makeDelayed()
	return c.delayed.Err()
}

func (c *requestContext) makeDelayed() {
	if c.delayed == nil {
		c.delayed, c.cancel = withDelayedCancel(c.Context, closedClientGrace)
	}
}

// release ends the context after the response.
func (c *requestContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

func withDelayedCancel(parent context.Context, delay time.Duration) (context.Context, func()) {
	values := context.WithoutCancel(parent)
	ctx, cancel := context.WithCancel(values)
	if deadline, ok := parent.Deadline(); ok {
		cancel()
		ctx, cancel = context.WithDeadline(values, deadline)
	}
	stop := context.AfterFunc(parent, func() { time.AfterFunc(delay, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}
