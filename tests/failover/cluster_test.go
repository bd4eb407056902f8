//go:build unix

package failover

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/pgserver"
	"github.com/go-relayer/relayer/store/postgres"
)

const (
	instances          = 2
	writersPerInstance = 8
)

// cluster is a primary, its standby, and the instances that use them: each has a
// Store, writers and a watcher.
type cluster struct {
	t                *testing.T
	primary, standby *pgserver.Server
	inspector        *postgres.Store // for the comparison
	writers          []*writer
	watchers         []*watcher
	total            tally
	recoveries       []time.Duration // from the promotion to a write of every writer
}

func newCluster(t *testing.T, options ...postgres.Option) *cluster {
	t.Helper()
	c := &cluster{t: t}
	c.primary, c.standby = pgserver.StartPair(t)
	c.inspector = open(t, connStringOf(c.primary, c.standby))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for instance := range instances {
		connString := connStringOf(c.primary, c.standby)
		if instance%2 == 1 { // Open requires the primary without the setting too.
			connString = pgserver.HostList(c.primary, c.standby)
		}
		store := open(t, connString, options...)
		w := &watcher{changes: store.Watch(ctx, "")}
		c.watchers = append(c.watchers, w)
		running.Go(w.run)
		for range writersPerInstance {
			c.writers = append(c.writers, &writer{number: len(c.writers), store: store, ledger: make(map[string]entry)})
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return c
}

// failOver runs the fault, which kills the primary, under the writers. It promotes
// the standby and rebuilds the killed server as the new standby. The writers go on
// all the time.
func (c *cluster) failOver(fault func()) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	for _, w := range c.writers {
		running.Go(func() { w.run(ctx) })
	}
	defer running.Wait()
	defer stop()
	c.awaitWrites()
	time.Sleep(rand.N(300 * time.Millisecond))
	fault()
	must(c.t, c.standby.Promote())
	promoted := time.Now()
	c.awaitWrites()
	c.recoveries = append(c.recoveries, time.Since(promoted))
	must(c.t, c.primary.Follow(c.standby))
	c.primary, c.standby = c.standby, c.primary
	c.awaitWrites()
}

func (c *cluster) killPrimary() { must(c.t, c.primary.Kill()) }

// killPrimaryWithLag stops the standby first, for long enough that more changes
// wait for it than fit into the buffers between the servers.
func (c *cluster) killPrimaryWithLag() {
	must(c.t, c.standby.Pause())
	time.Sleep(500 * time.Millisecond)
	must(c.t, c.primary.Kill())
	must(c.t, c.standby.Continue())
}

// killPrimaryWithoutStandby shuts the standby down first. It starts again after the
// primary is killed.
func (c *cluster) killPrimaryWithoutStandby() {
	must(c.t, c.standby.Stop())
	time.Sleep(12 * shortTimeout)
	must(c.t, c.primary.Kill())
	must(c.t, c.standby.Restart())
}

// awaitWrites waits until each writer has another acknowledged write.
func (c *cluster) awaitWrites() {
	c.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, w := range c.writers {
		for before := w.acknowledged.Load(); w.acknowledged.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				c.t.Fatalf("writer %d has no acknowledged write for a minute", w.number)
			}
		}
	}
}

// verify compares the store and the watchers with the writers' ledgers while no
// writer runs, and empties the store for the next round.
func (c *cluster) verify() {
	c.t.Helper()
	present, _, err := c.inspector.List(c.t.Context(), 0, 1<<30)
	must(c.t, err)
	must(c.t, c.inspector.Check(c.t.Context()))
	found := tally{}
	known := make(map[string]entry)
	for _, w := range c.writers {
		maps.Copy(known, w.ledger)
		found.acknowledged += w.acknowledged.Swap(0)
		clear(w.ledger)
	}
	found.compareRecords(known, present)
	c.deleteAll(present)
	marker := c.writeMarker()
	var received [instances][]change
	for i, w := range c.watchers {
		changes, signaled := w.until(c.t, marker)
		found.compareChanges(known, changes, signaled)
		received[i] = changes
	}
	if found.signaled == 0 && !slices.Equal(received[0], received[1]) {
		c.t.Error("the watchers received different changes")
	}
	c.total.add(found)
}

func (c *cluster) deleteAll(present []relayer.Record) {
	var running sync.WaitGroup
	defer running.Wait()
	for some := range slices.Chunk(present, 1+len(present)/16) {
		running.Go(func() {
			for _, rec := range some {
				if err := c.inspector.Delete(c.t.Context(), rec.ID, rec.Revision); err != nil {
					c.t.Error(err)
				}
			}
		})
	}
}

// writeMarker makes the last changes of a round and returns their ID.
func (c *cluster) writeMarker() string {
	c.t.Helper()
	rec, err := c.inspector.Create(c.t.Context(), relayer.Record{ID: fmt.Sprintf("marker-%d", len(c.recoveries))})
	must(c.t, err)
	must(c.t, c.inspector.Delete(c.t.Context(), rec.ID, rec.Revision))
	return rec.ID
}

func (c *cluster) report() {
	c.t.Helper()
	c.t.Logf("%d failovers: %v", len(c.recoveries), c.total)
	recoveries := slices.Sorted(slices.Values(c.recoveries))
	c.t.Logf("from the promotion to a write of every writer: median %v, longest %v",
		recoveries[len(recoveries)/2], recoveries[len(recoveries)-1])
}
