package linearizability

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

var (
	histories = flag.Int("histories", 4000, "histories to check for each store")
	atMost    = flag.Duration("at-most", 10*time.Second, "stop after so long for each store")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	checkHistories(t, memory.New())
}

func TestBolt(t *testing.T) {
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	checkHistories(t, store)
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCheckerFindsStaleReads is there to see the checker fail: neither a store
// whose reads lag behind must pass, nor one that lags behind another with which
// it shares what it keeps.
func TestCheckerFindsStaleReads(t *testing.T) {
	alone, shared := memory.New(), memory.New()
	for name, stores := range map[string][]relayer.Store{
		"one store":  {&lagging{Store: alone}},
		"two stores": {shared, &lagging{Store: shared}},
	} {
		t.Run(name, func(t *testing.T) { wantStale(t, stores) })
	}
}

func wantStale(t *testing.T, stores []relayer.Store) {
	for seed := range uint64(2000) {
		empty(t, stores[0])
		if !porcupine.CheckOperations(model, record(t, stores, seed)) {
			return
		}
	}
	t.Error("2000 histories with stale reads were all found linearizable")
}

// lagging answers a get, now and then, with what the one before it got.
type lagging struct {
	relayer.Store
	calls atomic.Int64
	last  atomic.Pointer[relayer.Record]
}

func (l *lagging) Get(ctx context.Context, id string) (relayer.Record, error) {
	if last := l.last.Load(); last != nil && last.ID == id && l.calls.Add(1)%4 == 0 {
		return *last, nil
	}
	rec, err := l.Store.Get(ctx, id)
	if err == nil {
		l.last.Store(&rec)
	}
	return rec, err
}

// checkHistories calls one store, or several that share what they keep.
func checkHistories(t *testing.T, stores ...relayer.Store) {
	t.Helper()
	start := time.Now()
	checked, calls := 0, 0
	for ; checked < *histories && time.Since(start) < *atMost; checked++ {
		empty(t, stores[0])
		history := record(t, stores, uint64(checked))
		calls += len(history)
		result, info := porcupine.CheckOperationsVerbose(model, history, time.Minute)
		if result != porcupine.Ok {
			for _, call := range history {
				t.Log(call.ClientId, call.Call, call.Return, model.DescribeOperation(call.Input, call.Output))
			}
			t.Fatalf("history %d: %s, partial linearizations: %v", checked, result, info.PartialLinearizations())
		}
	}
	t.Logf("%d histories of %d calls in %v", checked, calls, time.Since(start).Round(time.Millisecond))
}

// empty makes the store what the model starts from.
func empty(t *testing.T, store relayer.Store) {
	t.Helper()
	recs, _, err := store.List(t.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for _, rec := range recs {
		done.Go(func() {
			if err := store.Delete(t.Context(), rec.ID, rec.Revision); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
}

// A history is short, so that checking it is quick; the store lives on through
// thousands of them.
const (
	clients        = 5
	callsPerClient = 6
)

// record has several clients, spread over the stores, call at once and notes who
// got what, and between which moments.
func record(t *testing.T, stores []relayer.Store, seed uint64) []porcupine.Operation {
	t.Helper()
	start := time.Now()
	history := make([]porcupine.Operation, clients*callsPerClient)
	together := make(chan struct{})
	var done sync.WaitGroup
	for c := range clients {
		done.Go(func() {
			client := &client{store: stores[c%len(stores)], random: rand.New(rand.NewPCG(seed, uint64(c))), seen: make(map[string]uint64)}
			<-together
			for i := range callsPerClient {
				in := client.draw(fmt.Sprintf("%d-%d-%d", seed, c, i))
				call := time.Since(start).Nanoseconds()
				out := client.call(t, in)
				history[c*callsPerClient+i] = porcupine.Operation{
					ClientId: c, Input: in, Call: call, Output: out, Return: time.Since(start).Nanoseconds(),
				}
			}
		})
	}
	close(together)
	done.Wait()
	return history
}

// client remembers the revisions it has seen, to base its changes on.
type client struct {
	store  relayer.Store
	random *rand.Rand
	seen   map[string]uint64
}

func (c *client) draw(content string) input {
	in := input{
		verb:    verb(c.random.IntN(5)),
		id:      string(rune('a' + c.random.IntN(3))),
		content: content,
		offset:  c.random.IntN(3),
		limit:   c.random.IntN(4),
	}
	if c.random.IntN(2) == 0 {
		in.claim = string(rune('x' + c.random.IntN(2)))
	}
	in.revision = c.seen[in.id]
	return in
}

func (c *client) call(t *testing.T, in input) output {
	rec := relayer.Record{ID: in.id, Claim: in.claim, Revision: in.revision, Document: []byte(in.content), Private: []byte(in.content)}
	var out output
	var recs []relayer.Record
	switch in.verb {
	case create:
		rec, out.err = c.store.Create(t.Context(), rec)
		recs = append(recs, rec)
	case get:
		rec, out.err = c.store.Get(t.Context(), in.id)
		recs = append(recs, rec)
	case list:
		recs, out.total, out.err = c.store.List(t.Context(), in.offset, in.limit)
	case update:
		rec, out.err = c.store.Update(t.Context(), rec)
		recs = append(recs, rec)
	case remove:
		out.err = c.store.Delete(t.Context(), in.id, in.revision)
	}
	var ok bool
	if out.err, ok = known(out.err); !ok {
		t.Error(out.err)
	}
	if out.err == nil {
		out.recs = c.note(t, recs)
	}
	return out
}

func (c *client) note(t *testing.T, recs []relayer.Record) []row {
	rows := make([]row, 0, len(recs))
	for _, rec := range recs {
		if string(rec.Document) != string(rec.Private) {
			t.Errorf("%s is torn", rec.ID)
		}
		c.seen[rec.ID] = rec.Revision
		rows = append(rows, row{rec.ID, rec.Claim, string(rec.Document), rec.Revision})
	}
	return rows
}
