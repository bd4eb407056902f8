package stores

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

var (
	histories = flag.Int("histories", 300, "number of histories to check per store")
	atMost    = flag.Duration("at-most", 3*time.Second, "time limit per store")
)

func TestHistories(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			store := kind.new(t)
			checkHistories(t, store)
			if store, ok := store.(transfer.Checker); ok {
				must(t, store.Check(t.Context()))
			}
		})
	}
}

// TestControl_FaultyStores proves that the check can fail. It must catch a store with
// stale reads, alone and next to a correct store on the same data, and a wrong change feed.
func TestControl_FaultyStores(t *testing.T) {
	alone, shared := memory.New(), memory.New()
	for name, stores := range map[string][]relayer.Store{
		"stale reads of one store":  {&stale{Store: alone}},
		"stale reads of two stores": {shared, &stale{Store: shared}},
		"stale pages":               {&stalePages{Store: memory.New(), previous: make(map[string]relayer.Listing)}},
		"late positions":            {latePositions{memory.New()}},
		"times of the delivery":     {otherFeed{memory.New(), func(c *relayer.RecordChange) { c.Time = time.Now() }}},
		"other old texts":           {otherFeed{memory.New(), func(c *relayer.RecordChange) { c.OldText = "" }}},
		"missing changes": {otherFeed{memory.New(), func(c *relayer.RecordChange) {
			if c.Kind == relayer.ChangeDeleted {
				c.Kind = relayer.ChangeHeartbeat
			}
		}}},
	} {
		t.Run(name, func(t *testing.T) { wantFound(t, stores) })
	}
}

func wantFound(t *testing.T, stores []relayer.Store) {
	for seed := range uint64(2000) {
		empty(t, stores[0])
		history, feed := recordHistory(t, stores, seed)
		if feed.check(history) != nil || !porcupine.CheckOperations(model, history) {
			return
		}
	}
	t.Error("2000 histories of a faulty store were all right")
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
	previous map[string]relayer.Listing
}

func (s *stalePages) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(query)
	if previous, ok := s.previous[key]; ok {
		if s.calls++; s.calls%4 == 0 {
			return previous, nil
		}
	}
	page, err := s.Store.List(ctx, query)
	s.previous[key] = page
	return page, err
}

// latePositions reads the position of a list after the page.
type latePositions struct{ relayer.Store }

func (s latePositions) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	page, err := s.Store.List(ctx, query)
	if err != nil {
		return page, err
	}
	runtime.Gosched()
	later, err := s.Store.List(ctx, relayer.StoreQuery{})
	page.Position = later.Position
	return page, err
}

// otherFeed changes the elements of its feed.
type otherFeed struct {
	relayer.Store
	change func(*relayer.RecordChange)
}

func (s otherFeed) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	changes := s.Store.Watch(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		for change, err := range changes {
			if s.change(&change); !yield(change, err) {
				return
			}
		}
	}
}

// checkHistories records histories of one store, or of several on the same data,
// and checks that each is linearizable.
func checkHistories(t *testing.T, stores ...relayer.Store) {
	t.Helper()
	start := time.Now()
	checked, calls := 0, 0
	for ; checked < *histories && time.Since(start) < *atMost; checked++ {
		empty(t, stores[0])
		history, feed := recordHistory(t, stores, uint64(checked))
		calls += len(history)
		if err := feed.check(history); err != nil {
			t.Fatalf("history %d: %v", checked, err)
		}
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
	page, err := store.List(t.Context(), relayer.StoreQuery{Limit: 1000})
	must(t, err)
	var done sync.WaitGroup
	for _, rec := range page.Records {
		done.Go(func() {
			if err := store.Delete(t.Context(), rec.ID, rec.Revision, nil); err != nil {
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

// recordHistory has callers call the stores concurrently, and returns each call with its
// result, its begin and its end, and the changes of the feed.
func recordHistory(t *testing.T, stores []relayer.Store, seed uint64) ([]porcupine.Operation, *feed) {
	t.Helper()
	followed := follow(t, stores[len(stores)-1])
	begun := time.Now()
	history := make([]porcupine.Operation, clients*callsPerClient)
	start := make(chan struct{})
	var done sync.WaitGroup
	for c := range clients {
		done.Go(func() {
			caller := &caller{store: stores[c%len(stores)], random: rand.New(rand.NewPCG(seed, uint64(c))), seen: make(map[string]uint64)}
			<-start
			for i := range callsPerClient {
				in := caller.draw(fmt.Sprintf("%d-%d-%d", seed, c, i))
				call := time.Since(begun).Nanoseconds()
				out := caller.call(t, in)
				history[c*callsPerClient+i] = porcupine.Operation{
					ClientId: c, Input: in, Call: call, Output: out, Return: time.Since(begun).Nanoseconds(),
				}
			}
		})
	}
	close(start)
	done.Wait()
	followed.end(t, begun, history)
	return history, followed
}

// caller bases its writes on the last revisions that it has seen.
type caller struct {
	store  relayer.Store
	random *rand.Rand
	seen   map[string]uint64
	after  uint64 // a sequence that it has seen
}

func (c *caller) draw(content string) input {
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
	if c.random.IntN(3) == 0 {
		in.searched = " " + string(rune('s'+c.random.IntN(2)))
	}
	if c.random.IntN(3) == 0 {
		in.after = c.after
	}
	if c.random.IntN(2) == 0 {
		in.claim = string(rune('x' + c.random.IntN(2)))
	}
	in.revision = c.seen[in.id]
	return in
}

func (c *caller) call(t *testing.T, in input) output {
	content := []byte(in.content)
	rec := relayer.Record{
		ID: in.id, Claim: in.claim, Terms: []string{in.term}, Text: textOf(in.term), Revision: in.revision,
		Document: content, Private: content, Note: content,
	}
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
		query := relayer.StoreQuery{After: in.after, Offset: in.offset, Limit: in.limit}
		if in.selected != "" {
			query.Terms = [][]string{{in.selected}}
		}
		if in.searched != "" {
			query.Contains = []string{in.searched}
		}
		var page relayer.Listing
		page, out.err = c.store.List(t.Context(), query)
		recs, out.total, out.position = page.Records, page.Total, page.Position
	case update:
		rec, out.err = c.store.Update(t.Context(), rec)
		recs = append(recs, rec)
	case remove:
		out.err = c.store.Delete(t.Context(), in.id, in.revision, content)
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

func (c *caller) note(t *testing.T, recs []relayer.Record) []row {
	rows := make([]row, 0, len(recs))
	for _, rec := range recs {
		term := strings.Join(rec.Terms, " ")
		if string(rec.Document) != string(rec.Private) || string(rec.Document) != string(rec.Note) || rec.Text != textOf(term) {
			t.Errorf("%s is from two writes", rec.ID)
		}
		c.seen[rec.ID], c.after = rec.Revision, rec.Sequence
		rows = append(rows, row{rec.ID, rec.Claim, term, string(rec.Document), rec.Revision, rec.Sequence})
	}
	return rows
}
