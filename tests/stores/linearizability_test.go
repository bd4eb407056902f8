package stores

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
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

// feed has the changes of one history.
type feed struct {
	store   relayer.Store
	next    func() (relayer.RecordChange, error, bool)
	begun   time.Time
	changes []relayer.RecordChange // without the marker
}

// follow begins to watch a store.
func follow(t *testing.T, store relayer.Store) *feed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	next, stop := iter.Pull2(store.Watch(ctx, ""))
	t.Cleanup(func() { stop(); cancel() })
	return &feed{store: store, next: func() (relayer.RecordChange, error, bool) {
		change, err, ok := next()
		if change.Record.ID == marker {
			stop()
			cancel()
		}
		return change, err, ok
	}}
}

// marker is the ID of the record whose create is the last change.
const marker = "marker"

// end reads the changes of a history, and resolves the positions of its lists.
func (f *feed) end(t *testing.T, begun time.Time, history []porcupine.Operation) {
	t.Helper()
	f.begun = begun
	_, err := f.store.Create(t.Context(), relayer.Record{ID: marker})
	must(t, err)
	for {
		change, err, ok := f.next()
		if err != nil || !ok {
			t.Fatalf("Watch: error %v, ended is %t", err, !ok)
		}
		if change.Record.ID == marker {
			break
		}
		f.changes = append(f.changes, change)
	}
	for i, call := range history {
		out := call.Output.(output)
		if out.position != "" {
			out.changes = f.before(t, out.position)
			history[i].Output = out
		}
	}
}

// before returns how many changes are before a position.
func (f *feed) before(t *testing.T, position string) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after, all := 0, 0
	for _, change := range f.changes {
		if change.Kind != relayer.ChangeHeartbeat {
			all++
		}
	}
	for change, err := range f.store.Watch(ctx, position) {
		if err != nil {
			t.Fatalf("Watch from the position of a list: %v", err)
		}
		if change.Record.ID == marker {
			return all - after
		}
		if change.Kind != relayer.ChangeHeartbeat {
			after++
		}
	}
	t.Fatal("Watch ended")
	return 0
}

// check returns an error unless the changes, in their order, are the successful writes, and
// no element has a later time than the end of a write that follows.
func (f *feed) check(history []porcupine.Operation) error {
	writes := make(map[string]porcupine.Operation) // by content, which is the note
	for _, call := range history {
		if in, out := call.Input.(input), call.Output.(output); out.err == nil && in.verb != get && in.verb != list {
			writes[in.content] = call
		}
	}
	var s state
	var reached time.Time
	for _, change := range f.changes {
		if change.Time.Before(reached) {
			return fmt.Errorf("the time of %s %s goes back", change.Kind, change.Record.ID)
		}
		if change.Kind == relayer.ChangeHeartbeat {
			reached = change.Time
			continue
		}
		call, isWrite := writes[string(change.Record.Note)]
		if !isWrite {
			return fmt.Errorf("no write made the change %s %s at %d", change.Kind, change.Record.ID, change.Record.Revision)
		}
		delete(writes, string(change.Record.Note))
		if returned := f.begun.Add(time.Duration(call.Return)); returned.Before(reached) {
			return fmt.Errorf("%s %s returned %s before the time of a change before it", change.Kind, change.Record.ID, reached.Sub(returned))
		}
		reached = change.Time
		after, ok := step(s, call.Input.(input), call.Output.(output))
		if !ok || !isChange(s, after, change) {
			return fmt.Errorf("the change %s %s at %d does not follow those before it", change.Kind, change.Record.ID, change.Record.Revision)
		}
		s = after
	}
	if len(writes) > 0 {
		return fmt.Errorf("the feed does not have %d of the writes", len(writes))
	}
	return nil
}

// isChange reports whether a change has the kind, the old text and the old terms of a step.
func isChange(before, after state, change relayer.RecordChange) bool {
	kind, text, terms := relayer.ChangeCreated, "", []string(nil)
	for _, r := range before.rows {
		if r.id == change.Record.ID {
			kind, text, terms = relayer.ChangeUpdated, textOf(r.term), []string{r.term}
		}
	}
	if len(after.rows) < len(before.rows) {
		kind = relayer.ChangeDeleted
	}
	return change.Kind == kind && change.OldText == text && slices.Equal(change.OldTerms, terms)
}

type verb int

const (
	create verb = iota
	get
	list
	update
	remove
)

// input is one call. The content is the document, the private part and the note.
type input struct {
	verb          verb
	id            string
	claim         string
	term          string // also in the text
	content       string // differs from that of every other call
	revision      uint64
	offset, limit int
	after         uint64
	selected      string // of a list: the term, or empty for all
	searched      string // of a list: a part of the text, or empty for all
}

// output is what the call returned.
type output struct {
	err      error
	rows     []row
	total    int
	position string
	changes  int // of a list: the number of changes before its position
}

type row struct {
	id, claim, term, content string
	revision, sequence       uint64
}

// state is what a store has after some calls. It is never changed in place.
type state struct {
	rows         []row  // in creation order
	changes      int    // number of successful writes
	lastSequence uint64 // of all records that were created
}

// sentinel returns the sentinel error that an error wraps, and false if that is
// none of those that a call may return here.
func sentinel(err error) (error, bool) {
	if err == nil {
		return nil, true
	}
	for _, known := range []error{relayer.ErrExists, relayer.ErrNotFound, relayer.ErrConflict, relayer.ErrClaimed} {
		if errors.Is(err, known) {
			return known, true
		}
	}
	return err, false
}

// model is the sequential behavior of a store.
var model = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, in, out any) (bool, any) {
		after, ok := step(before.(state), in.(input), out.(output))
		return ok, after
	},
	Equal: func(a, b any) bool {
		x, y := a.(state), b.(state)
		return x.changes == y.changes && x.lastSequence == y.lastSequence && slices.Equal(x.rows, y.rows)
	},
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v -> %+v", in, out)
	},
	DescribeState: func(s any) string {
		var text strings.Builder
		for _, r := range s.(state).rows {
			fmt.Fprintf(&text, "%s@%d ", r.id, r.revision)
		}
		return text.String()
	},
}

func step(s state, in input, out output) (state, bool) {
	at := slices.IndexFunc(s.rows, func(r row) bool { return r.id == in.id })
	switch in.verb {
	case get:
		if at < 0 {
			return s, out.err == relayer.ErrNotFound
		}
		return s, out.err == nil && slices.Equal(out.rows, s.rows[at:at+1])
	case list:
		return s, isListed(s, in, out)
	}
	if want := writeError(s.rows, at, in); want != nil || out.err != nil {
		return s, out.err == want
	}
	return apply(s, at, in, out)
}

// isListed reports whether a list returned the page, the total and the position of a state.
func isListed(s state, in input, out output) bool {
	selected := slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool {
		return in.selected != "" && r.term != in.selected || !strings.Contains(textOf(r.term), in.searched)
	})
	page := slices.DeleteFunc(slices.Clone(selected), func(r row) bool { return r.sequence <= in.after })
	page = page[min(in.offset, len(page)):]
	page = page[:min(in.limit, len(page))]
	return out.err == nil && out.total == len(selected) && slices.Equal(out.rows, page) && out.changes == s.changes
}

func textOf(term string) string { return "text of " + term }

// writeError returns the error that a write must return.
func writeError(rows []row, at int, in input) error {
	isOther := func(r row) bool { return r.id != in.id && r.claim == in.claim }
	switch {
	case in.verb == create && at >= 0:
		return relayer.ErrExists
	case in.verb != create && at < 0:
		return relayer.ErrNotFound
	case in.verb != create && rows[at].revision != in.revision:
		return relayer.ErrConflict
	case in.verb != remove && in.claim != "" && slices.ContainsFunc(rows, isOther):
		return relayer.ErrClaimed
	}
	return nil
}

// apply carries out a write. The store chooses the revision, which must be above the
// current one of the row, and the sequence of a new row, which must be above all.
func apply(s state, at int, in input, out output) (state, bool) {
	s.changes++
	if in.verb == remove {
		s.rows = slices.Delete(slices.Clone(s.rows), at, at+1)
		return s, true
	}
	written := row{in.id, in.claim, in.term, in.content, out.rows[0].revision, out.rows[0].sequence}
	if out.rows[0] != written {
		return s, false
	}
	if in.verb == create {
		isNext := written.sequence > s.lastSequence
		s.rows, s.lastSequence = append(slices.Clip(s.rows), written), written.sequence
		return s, isNext
	}
	isNext := written.revision > s.rows[at].revision && written.sequence == s.rows[at].sequence
	s.rows = slices.Clone(s.rows)
	s.rows[at] = written
	return s, isNext
}
