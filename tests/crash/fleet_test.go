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
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// fleet is a number of workers that continue through every fault of the server,
// and the ledger of their writes.
type fleet struct {
	t            *testing.T
	server       *pgserver.Server
	workers      []*worker
	acknowledged [workers]atomic.Int64
	tally        tally

	mu    sync.Mutex
	known *known

	ctx       context.Context // canceled at the end of the test
	isStopped atomic.Bool
	done      sync.WaitGroup
}

// surviveFaults has workers write to the stores during a fault in each round, and
// compares the store with the ledger after it.
func surviveFaults(t *testing.T, server *pgserver.Server, stores []*postgres.Store, fault func()) *fleet {
	t.Helper()
	f := newFleet(t, server, stores)
	for round := range *rounds {
		f.start()
		time.Sleep(writingTime(round, 60*time.Millisecond))
		fault()
		f.awaitRecovery(round)
		f.quiesce()
		f.compare(round)
	}
	must(t, f.known.compareAll(survivors(t, f.location(), 0).History))
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d unavailable, none of them carried out; %d of unknown outcome carried out, %d not",
		*rounds, f.known.acknowledged, f.tally.unavailable.Load(), f.tally.carriedOut.Load(), f.tally.notCarriedOut.Load())
	return f
}

// newFleet spreads the workers over the stores.
func newFleet(t *testing.T, server *pgserver.Server, stores []*postgres.Store) *fleet {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fleet{t: t, server: server, known: newKnown(), ctx: ctx}
	t.Cleanup(func() {
		cancel()
		f.done.Wait()
	})
	for number := range workers {
		store := settling{stores[number%len(stores)], &f.tally}
		f.workers = append(f.workers, &worker{number: number, store: store, minRecords: 5, note: f.note})
	}
	return f
}

func (f *fleet) location() location {
	return location{Store: postgresStore, Path: f.server.ConnString()}
}

func (f *fleet) note(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known.note(e)
}

func (f *fleet) start() {
	f.isStopped.Store(false)
	for _, w := range f.workers {
		f.done.Go(func() { f.work(w) })
	}
}

// work writes until the workers are stopped. A write that is refused because the server is
// unavailable was not carried out, and is not repeated.
func (f *fleet) work(w *worker) {
	for !f.isStopped.Load() && f.ctx.Err() == nil {
		err := w.write(f.ctx)
		switch {
		case err == nil:
			f.acknowledged[w.number].Add(1)
		case errors.Is(err, relayer.ErrUnavailable):
			f.tally.unavailable.Add(1)
			w.noteEnd(ledger.Refused)
			pause(f.ctx)
		case f.ctx.Err() == nil:
			f.t.Errorf("worker %d: %v", w.number, err)
			return
		}
	}
}

// awaitRecovery waits for another acknowledged write of every worker.
func (f *fleet) awaitRecovery(round int) {
	f.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for number := range workers {
		acknowledged := &f.acknowledged[number]
		for before := acknowledged.Load(); acknowledged.Load() == before; time.Sleep(time.Millisecond) {
			if f.t.Failed() {
				f.t.FailNow()
			}
			if time.Now().After(deadline) {
				f.t.Fatalf("round %d: worker %d has no acknowledged write after the fault", round, number)
			}
		}
	}
}

// quiesce stops the workers and waits for their current writes.
func (f *fleet) quiesce() {
	f.isStopped.Store(true)
	f.done.Wait()
}

// compare compares the store with the ledger. No write is in flight, so both agree
// to the last byte.
func (f *fleet) compare(round int) {
	f.t.Helper()
	if f.t.Failed() {
		f.t.FailNow()
	}
	found, inFlight, _ := f.known.compare(survivors(f.t, f.location(), f.known.revision))
	if inFlight > 0 || !found.isEmpty() {
		f.t.Fatalf("round %d: %d writes in flight, %v", round, inFlight, found)
	}
}
