package linearizability

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

var (
	histories = flag.Int("histories", 4000, "number of histories to check per store")
	atMost    = flag.Duration("at-most", 10*time.Second, "time limit per store")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHistories_Memory(t *testing.T) {
	checkHistories(t, memory.New())
}

func TestHistories_Bolt(t *testing.T) {
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

func TestHistories_Map(t *testing.T) {
	checkHistories(t, new(mapstore.Store))
}

// TestControl_StaleReads proves that the check can fail. It must catch a store with
// stale reads, alone and next to a correct store on the same data.
func TestControl_StaleReads(t *testing.T) {
	alone, shared := memory.New(), memory.New()
	for name, stores := range map[string][]relayer.Store{
		"one store":  {&stale{Store: alone}},
		"two stores": {shared, &stale{Store: shared}},
		"pages":      {&stalePages{Store: memory.New(), previous: make(map[string]page)}},
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
	t.Error("2000 histories with stale reads were all linearizable")
}

// stale returns the result of the previous Get again in one of four calls.
type stale struct {
	relayer.Store
	calls    atomic.Int64
	previous atomic.Pointer[relayer.Record]
}

func (s *stale) Get(ctx context.Context, id string) (relayer.Record, error) {
	if previous := s.previous.Load(); previous != nil && previous.ID == id && s.calls.Add(1)%4 == 0 {
		return *previous, nil
	}
	rec, err := s.Store.Get(ctx, id)
	if err == nil {
		s.previous.Store(&rec)
	}
	return rec, err
}

// stalePages returns the previous page again in one of four calls for the same page.
type stalePages struct {
	relayer.Store
	mu       sync.Mutex
	calls    int
	previous map[string]page
}

type page struct {
	recs  []relayer.Record
	total int
}

func (s *stalePages) List(ctx context.Context, query relayer.StoreQuery) ([]relayer.Record, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(query)
	if previous, ok := s.previous[key]; ok {
		if s.calls++; s.calls%4 == 0 {
			return previous.recs, previous.total, nil
		}
	}
	recs, total, err := s.Store.List(ctx, query)
	s.previous[key] = page{recs, total}
	return recs, total, err
}

// checkHistories records histories of one store, or of several on the same data,
// and checks that each is linearizable.
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

// empty deletes all records: the model begins without any.
func empty(t *testing.T, store relayer.Store) {
	t.Helper()
	if pages, ok := store.(*stalePages); ok {
		store = pages.Store
	}
	recs, _, err := store.List(t.Context(), relayer.StoreQuery{Limit: 1000})
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

// Short histories are quick to check. All histories use the same store.
const (
	clients        = 5
	callsPerClient = 6
)

// record has clients call the stores concurrently, and returns each call with its
// result, its begin and its end.
func record(t *testing.T, stores []relayer.Store, seed uint64) []porcupine.Operation {
	t.Helper()
	begun := time.Now()
	history := make([]porcupine.Operation, clients*callsPerClient)
	start := make(chan struct{})
	var done sync.WaitGroup
	for c := range clients {
		done.Go(func() {
			client := &client{store: stores[c%len(stores)], random: rand.New(rand.NewPCG(seed, uint64(c))), seen: make(map[string]uint64)}
			<-start
			for i := range callsPerClient {
				in := client.draw(fmt.Sprintf("%d-%d-%d", seed, c, i))
				call := time.Since(begun).Nanoseconds()
				out := client.call(t, in)
				history[c*callsPerClient+i] = porcupine.Operation{
					ClientId: c, Input: in, Call: call, Output: out, Return: time.Since(begun).Nanoseconds(),
				}
			}
		})
	}
	close(start)
	done.Wait()
	return history
}

// client bases its writes on the last revisions that it has seen.
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
		term:    string(rune('s' + c.random.IntN(2))),
	}
	if c.random.IntN(2) == 0 {
		in.selected = string(rune('s' + c.random.IntN(2)))
	}
	if c.random.IntN(2) == 0 {
		in.claim = string(rune('x' + c.random.IntN(2)))
	}
	in.revision = c.seen[in.id]
	return in
}

func (c *client) call(t *testing.T, in input) output {
	rec := relayer.Record{ID: in.id, Claim: in.claim, Terms: []string{in.term}, Revision: in.revision, Document: []byte(in.content), Private: []byte(in.content)}
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
		query := relayer.StoreQuery{Offset: in.offset, Limit: in.limit}
		if in.selected != "" {
			query.Terms = [][]string{{in.selected}}
		}
		recs, out.total, out.err = c.store.List(t.Context(), query)
	case update:
		rec, out.err = c.store.Update(t.Context(), rec)
		recs = append(recs, rec)
	case remove:
		out.err = c.store.Delete(t.Context(), in.id, in.revision)
	}
	var ok bool
	if out.err, ok = sentinel(out.err); !ok {
		t.Error(out.err)
	}
	if out.err == nil {
		out.rows = c.note(t, recs)
	}
	return out
}

func (c *client) note(t *testing.T, recs []relayer.Record) []row {
	rows := make([]row, 0, len(recs))
	for _, rec := range recs {
		if string(rec.Document) != string(rec.Private) {
			t.Errorf("%s is from two writes", rec.ID)
		}
		c.seen[rec.ID] = rec.Revision
		rows = append(rows, row{rec.ID, rec.Claim, strings.Join(rec.Terms, " "), string(rec.Document), rec.Revision})
	}
	return rows
}
