//go:build unix

package crash

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

// crew is workers that go on whatever befalls the server, and the ledger of what
// they were told.
type crew struct {
	t       *testing.T
	server  *pgserver.Server
	workers []*worker
	acked   [workers]atomic.Int64
	tally   tally

	mu   sync.Mutex
	kept *ledger

	ctx  context.Context // ends with the test, however that ends
	stop chan struct{}
	done sync.WaitGroup
}

// withstand has a crew write to the stores all through each round's fault, and
// compares what is there after it with what the crew was told.
func withstand(t *testing.T, server *pgserver.Server, stores []*postgres.Store, fault func(round int)) *crew {
	t.Helper()
	c := newCrew(t, server, stores)
	for round := range *rounds {
		c.start()
		time.Sleep(upTo(60 * time.Millisecond))
		fault(round)
		c.awaitRecovery(round)
		c.quiesce()
		c.compare(round)
	}
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d unavailable, none of them carried out; %d of unknown outcome carried out, %d not",
		*rounds, c.kept.acked, c.tally.unavailable.Load(), c.tally.carriedOut.Load(), c.tally.notCarriedOut.Load())
	return c
}

// newCrew spreads the workers over the stores. Each has records of its own.
func newCrew(t *testing.T, server *pgserver.Server, stores []*postgres.Store) *crew {
	ctx, cancel := context.WithCancel(t.Context())
	c := &crew{t: t, server: server, kept: newLedger(), ctx: ctx}
	t.Cleanup(func() {
		cancel()
		c.done.Wait()
	})
	for number := range workers {
		store := settling{stores[number%len(stores)], &c.tally}
		c.workers = append(c.workers, &worker{number: number, store: store, fewest: 5, note: c.note})
	}
	return c
}

func (c *crew) note(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.note(e)
}

func (c *crew) start() {
	c.stop = make(chan struct{})
	for _, w := range c.workers {
		c.done.Go(func() { c.work(w, c.stop) })
	}
}

// work writes until it is told to stop. A write that is refused because the
// server is out of reach has not been carried out, and is not made again.
func (c *crew) work(w *worker, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-c.ctx.Done():
			return
		default:
		}
		err := w.write(c.ctx)
		switch {
		case err == nil:
			c.acked[w.number].Add(1)
		case errors.Is(err, relayer.ErrUnavailable):
			c.tally.unavailable.Add(1)
			c.note(event{Worker: w.number, Verb: "refused"})
			pause(c.ctx)
		case c.ctx.Err() == nil:
			c.t.Errorf("worker %d: %v", w.number, err)
			return
		}
	}
}

// awaitRecovery waits until every worker has written again.
func (c *crew) awaitRecovery(round int) {
	c.t.Helper()
	var before [workers]int64
	for number := range before {
		before[number] = c.acked[number].Load()
	}
	deadline := time.Now().Add(30 * time.Second)
	for number := range before {
		for c.acked[number].Load() == before[number] {
			if c.t.Failed() {
				c.t.FailNow()
			}
			if time.Now().After(deadline) {
				c.t.Fatalf("round %d: worker %d does not write again", round, number)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// quiesce lets every worker come to the end of what it is at.
func (c *crew) quiesce() {
	close(c.stop)
	c.done.Wait()
}

// compare holds what is there against the ledger. With no write in flight the
// two are the same to the last byte.
func (c *crew) compare(round int) {
	c.t.Helper()
	if c.t.Failed() {
		c.t.FailNow()
	}
	if len(c.kept.inFlight) > 0 {
		c.t.Fatalf("round %d: in flight %v", round, c.kept.inFlight)
	}
	if found := c.kept.compare(survivorsOn(c.t, c.server, postgres.DefaultSchema)); !found.clean() {
		c.t.Fatalf("round %d: %v", round, found)
	}
}
