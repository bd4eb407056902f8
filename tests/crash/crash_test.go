//go:build unix

package crash

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/ledger"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// TestBolt_KilledWhileWriting kills a child that writes with many goroutines. The
// next child continues with the same file.
func TestBolt_KilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	killWhileWriting(t, location{Store: boltStore, Path: path}, func() {})
}

// killWhileWriting kills a child in each round, some time after its first acknowledged write, and
// compares what is left with what was acknowledged. The function settled waits until no request of
// a killed child is left.
func killWhileWriting(t *testing.T, l location, settled func()) {
	t.Helper()
	known := newKnown()
	inFlight, carriedOut := 0, 0
	for round := range *rounds {
		run(t, task{Round: round, location: l}, ledger.Done, writingTime(round, 80*time.Millisecond), known.note)
		settled()
		found, unknown, done := known.compare(survivors(t, l, known.revision))
		if !found.isEmpty() {
			t.Fatalf("round %d: %v", round, found)
		}
		inFlight += unknown
		carriedOut += done
	}
	must(t, known.compareAll(survivors(t, l, 0).History))
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d in flight: %d carried out, the others not at all",
		*rounds, known.acknowledged, inFlight, carriedOut)
}

// TestControl_EarlyAcknowledgement proves that the comparison can fail.
func TestControl_EarlyAcknowledgement(t *testing.T) {
	const most = 20
	for round := range most {
		l := location{Store: earlyStore, Path: filepath.Join(t.TempDir(), "relayers.db")}
		known := newKnown()
		run(t, task{Round: round, location: l}, ready, 10*time.Millisecond+upTo(30*time.Millisecond), known.note)
		if found, _, _ := known.compare(survivors(t, l, 0)); len(found.Lost) > 0 {
			t.Logf("round %d: %d of %d acknowledged creates lost", round, len(found.Lost), known.acknowledged)
			return
		}
	}
	t.Errorf("a store that acknowledges before it commits lost nothing in %d rounds", most)
}

// writingTime returns how long to write before the fault of a round. Each tenth round is longer, for
// more writes in a test.
func writingTime(round int, most time.Duration) time.Duration {
	if round%10 == 9 {
		most *= 20
	}
	return upTo(most)
}

func upTo(most time.Duration) time.Duration { return rand.N(most) }

// survivors opens and checks the store that is left, and returns its contents. A server may still
// be in recovery.
func survivors(t *testing.T, l location, after uint64) contents {
	t.Helper()
	var left store
	open := func() (err error) {
		left, err = l.open(t.Context())
		return err
	}
	if l.Store == postgresStore {
		must(t, pgtest.UntilAvailable(open))
	} else {
		must(t, open())
	}
	defer left.Close()
	must(t, left.Check(t.Context()))
	found, err := contentsOf(t.Context(), left, after)
	must(t, err)
	return found
}

// TestControl_WrongHistory proves that the comparison of the history can fail.
func TestControl_WrongHistory(t *testing.T) {
	refusedWrite := event{Event: ledger.Event[int]{Step: ledger.Begin, Writer: 1, Keys: []string{"w1-1"}, Value: 1}, Kind: relayer.ChangeCreated}
	type changes = []relayer.RecordChange
	for name, falsify := range map[string]func(changes) changes{
		"none":    func(h changes) changes { return h },
		"doubled": func(h changes) changes { return slices.Insert(h, 7, h[7]) },
		"doubled under another revision": func(h changes) changes {
			double := h[7]
			double.Record.Revision = h[0].Record.Revision + 1
			return slices.Insert(h, 0, double)
		},
		"refused": func(h changes) changes {
			kept := refusedWrite.change()
			kept.Record.Revision = h[0].Record.Revision + 1
			return slices.Insert(h, 0, kept)
		},
		"missing":       func(h changes) changes { return slices.Delete(h, 7, 8) },
		"out of order":  func(h changes) changes { h[7], h[8] = h[8], h[7]; return h },
		"another note":  func(h changes) changes { h[7].Record.Note = []byte("another"); return h },
		"another kind":  func(h changes) changes { h[7].Kind = relayer.ChangeHeartbeat; return h },
		"another term":  func(h changes) changes { h[7].OldTerms = []string{"another"}; return h },
		"another bytes": func(h changes) changes { h[7].Record.Document = []byte("another"); return h },
	} {
		path, known := filepath.Join(t.TempDir(), "relayers.db"), newKnown()
		store, err := bolt.Open(t.Context(), path)
		w := &worker{store: store, minRecords: 5, note: known.note}
		for range 50 {
			err = cmp.Or(err, w.write(t.Context()))
		}
		records, history, readErr := read(t.Context(), store, 0)
		must(t, err, readErr, store.Close())
		known.note(refusedWrite)
		known.versions.Note(ledger.Event[int]{Step: ledger.Refused, Writer: 1})
		if found, _, _ := known.compare(newContents(records, falsify(history))); found.isEmpty() != (name == "none") {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

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
		f.isStopped.Store(true)
		f.done.Wait() // until the current writes have ended
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
			w.note(event{Event: ledger.Event[int]{Step: ledger.Refused, Writer: w.number}})
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
