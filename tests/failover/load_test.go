//go:build unix

package failover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/tests/internal/ledger"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// load is what instances do to a database: each has a Store, writers and a watcher.
type load struct {
	t          *testing.T
	inspector  *postgres.Store // for the comparison
	writers    []*writer
	known      *ledger.Ledger[uint64] // of all writers: revisions by ID
	watchers   []*watcher
	total      tally
	rounds     int
	markers    int
	recoveries []time.Duration // from the promotion to a write of every writer
	outages    []time.Duration // from the fault to a write of every writer
}

// newLoad opens one instance for each connection string, with a number of writers.
func newLoad(t *testing.T, inspector string, connStrings []string, writers int, options ...postgres.Option) *load {
	t.Helper()
	l := &load{t: t, inspector: pgtest.Open(t, inspector, postgres.WithTimeout(5*time.Second)), known: ledger.New[uint64]()}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, connString := range connStrings {
		store := pgtest.Open(t, connString, options...)
		w := &watcher{}
		l.watchers = append(l.watchers, w)
		changes := store.Watch(ctx, "")
		running.Go(func() { w.run(ctx, store, changes) })
		for range writers {
			l.writers = append(l.writers, &writer{number: len(l.writers), store: store, known: l.known})
		}
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l
}

// write starts the writers, which rest between two records. The caller calls stop, which
// waits for their last writes.
func (l *load) write(rest time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var running sync.WaitGroup
	for _, w := range l.writers {
		running.Go(func() { w.run(ctx, rest) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// awaitWrites waits until each writer has another acknowledged write.
func (l *load) awaitWrites() {
	l.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, w := range l.writers {
		for before := w.acknowledged.Load(); w.acknowledged.Load() == before; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				l.t.Fatalf("writer %d has no acknowledged write for a minute", w.number)
			}
		}
	}
}

// verify compares the store and the watchers with the writers' ledger while no
// writer runs, and empties the store for the next round.
func (l *load) verify() {
	l.t.Helper()
	l.rounds++
	var present []relayer.Record
	must(l.t, settle(l.t.Context(), func(ctx context.Context) error {
		all, err := l.inspector.List(ctx, relayer.StoreQuery{Limit: 1 << 30})
		present = all.Records
		return err
	}))
	must(l.t, settle(l.t.Context(), l.inspector.Check))
	found := tally{}
	for _, w := range l.writers {
		found.acknowledged += w.acknowledged.Swap(0)
	}
	found.compareRecords(l.known, present)
	l.deleteAll(present)
	marker := l.writeMarker()
	var complete [][]change // of the watchers that received no gap
	for _, w := range l.watchers {
		changes := w.until(l, marker)
		if found.compareChanges(l.known, changes) {
			complete = append(complete, changes)
		}
	}
	l.known.Adopt(nil)
	for _, other := range complete {
		if !slices.Equal(complete[0], other) {
			l.t.Error("the watchers received different changes")
		}
	}
	if found.lost+found.doubled+found.gaps > 0 {
		l.t.Logf("round %d: %v", l.rounds, found)
	}
	l.total.add(found)
}

func (l *load) deleteAll(present []relayer.Record) {
	var running sync.WaitGroup
	defer running.Wait()
	for some := range slices.Chunk(present, 1+len(present)/16) {
		running.Go(func() {
			for _, rec := range some {
				if err := l.delete(rec); err != nil {
					l.t.Error(err)
				}
			}
		})
	}
}

func (l *load) delete(rec relayer.Record) error {
	isUnknown := false
	return settle(l.t.Context(), func(ctx context.Context) error {
		err := l.inspector.Delete(ctx, rec.ID, rec.Revision, nil)
		if isUnknown && errors.Is(err, relayer.ErrNotFound) {
			return nil
		}
		isUnknown = isUnknown || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
}

// writeMarker makes changes for the watchers to wait for, and returns their ID.
func (l *load) writeMarker() string {
	l.t.Helper()
	l.markers++
	rec, err := createOnce(l.t.Context(), l.inspector, relayer.Record{ID: fmt.Sprintf("marker-%d", l.markers)})
	must(l.t, err)
	must(l.t, l.delete(rec))
	return rec.ID
}

func (l *load) report() {
	l.t.Helper()
	l.t.Logf("%d rounds: %v", l.rounds, l.total)
	l.logTimes("from the promotion to a write of every writer", l.recoveries)
	l.logTimes("from the fault to a write of every writer", l.outages)
}

func (l *load) logTimes(what string, times []time.Duration) {
	l.t.Helper()
	if len(times) == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(times))
	l.t.Logf("%s: median %v, longest %v", what,
		sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond))
}

// writer creates, updates and deletes its own records through one Store. A
// write of unknown outcome is repeated until its outcome is known. Any other error
// shows that an earlier write was lost, which the comparison finds.
type writer struct {
	number       int
	store        relayer.Store
	made         int
	acknowledged atomic.Int64
	known        *ledger.Ledger[uint64] // revisions by ID, of all writers
}

// run writes until ctx is done, and rests between two records. It deletes most of its
// records again.
func (w *writer) run(ctx context.Context, rest time.Duration) {
	for ; ctx.Err() == nil; time.Sleep(rest) {
		rec, err := w.create()
		if err == nil {
			rec, err = w.update(rec)
		}
		if err == nil && w.made%8 > 0 {
			w.delete(rec)
		}
	}
}

func (w *writer) create() (relayer.Record, error) {
	w.made++
	id := fmt.Sprintf("w%d-%d", w.number, w.made)
	made, err := createOnce(context.Background(), w.store, content(id, "created"))
	return made, w.note(err, id, made.Revision)
}

// update starts again from the current revision if a repeated update finds that
// the first one was carried out: to read it does not prove that it is durable.
func (w *writer) update(created relayer.Record) (made relayer.Record, err error) {
	rec := content(created.ID, "updated")
	rec.Revision = created.Revision
	isRepeated := false
	err = settle(context.Background(), func(ctx context.Context) (err error) {
		made, err = w.store.Update(ctx, rec)
		if isRepeated && errors.Is(err, relayer.ErrConflict) {
			found, err := w.store.Get(ctx, rec.ID)
			if err != nil {
				return err
			}
			rec.Revision, isRepeated = found.Revision, false
			return relayer.ErrOutcomeUnknown
		}
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	return made, w.note(err, rec.ID, made.Revision)
}

// delete makes another write if a repeated delete finds that the first one was
// carried out: a later acknowledged write proves that it is durable.
func (w *writer) delete(rec relayer.Record) {
	isRepeated := false
	err := settle(context.Background(), func(ctx context.Context) error {
		err := w.store.Delete(ctx, rec.ID, rec.Revision, nil)
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	if isRepeated && errors.Is(err, relayer.ErrNotFound) {
		_, err = w.create()
	}
	_ = w.note(err, rec.ID, 0)
}

// note notes the revision after an acknowledged write, 0 after a delete. It returns err.
func (w *writer) note(err error, id string, revision uint64) error {
	if err == nil {
		w.known.Add(ledger.Done, revision, id)
		w.acknowledged.Add(1)
	}
	return err
}

func content(id, version string) relayer.Record {
	return relayer.Record{ID: id, Claim: id, Document: []byte(`{"version":"` + version + `"}`), Private: make([]byte, 200)}
}

// change is a change that a watcher received. A delete has no revision, which its writer does
// not know.
type change struct {
	id       string
	revision uint64
}

// gap is ErrGap among the changes.
var gap = change{id: "gap"}

// watcher collects the changes of one Store.
type watcher struct {
	mu       sync.Mutex
	received []change // and gaps
	failed   error
}

// run watches again after a gap, and resumes after the servers were not reachable.
func (w *watcher) run(ctx context.Context, store relayer.Store, changes iter.Seq2[relayer.RecordChange, error]) {
	position := ""
	for changes != nil {
		watched := changes
		changes = nil
		for received, err := range watched {
			switch {
			case errors.Is(err, relayer.ErrGap):
				position, changes = "", store.Watch(ctx, "")
			case errors.Is(err, relayer.ErrUnavailable) && position != "":
				changes = store.Watch(ctx, position)
				continue
			default:
				position = received.Position
			}
			w.note(received, err)
		}
	}
}

func (w *watcher) note(received relayer.RecordChange, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, relayer.ErrGap):
		w.received = append(w.received, gap)
	case err != nil:
		w.failed = err
	case received.Kind == relayer.ChangeHeartbeat:
	case received.Kind == relayer.ChangeDeleted:
		w.received = append(w.received, change{id: received.Record.ID})
	default:
		w.received = append(w.received, change{received.Record.ID, received.Record.Revision})
	}
}

// until waits for the end of the marker and returns the changes and gaps up to it, without
// markers. If the marker can have been in a gap, it waits for another one instead.
func (w *watcher) until(l *load, marker string) (changes []change) {
	l.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for again := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		isEnd := func(c change) bool { return c == change{id: marker} }
		end := 1 + slices.IndexFunc(w.received, isEnd)
		if end > 0 {
			changes, w.received = w.received[:end:end], w.received[end:]
		}
		hasGap, failed := slices.Contains(w.received, gap), w.failed
		w.mu.Unlock()
		switch {
		case failed != nil:
			l.t.Fatalf("watch: %v", failed)
		case end > 0:
			return slices.DeleteFunc(changes, func(c change) bool { return strings.HasPrefix(c.id, "marker-") })
		case time.Now().After(deadline):
			l.t.Fatal("the last change does not reach the watcher within a minute")
		case hasGap && time.Now().After(again):
			marker = l.writeMarker()
			again = time.Now().Add(time.Second)
		}
	}
}

// tally counts acknowledged writes and what is wrong with them afterwards.
type tally struct {
	acknowledged int64
	lost         int // acknowledged writes that the store does not have
	doubled      int // writes that were carried out twice, and changes that were received twice
	gaps         int // changes that a watcher did not receive, or not in order, without ErrGap
	signaled     int // gaps that a watcher received as ErrGap
}

func (y tally) String() string {
	return fmt.Sprintf("%d writes acknowledged, %d lost, %d doubled, %d gaps in Watch, %d signaled gaps",
		y.acknowledged, y.lost, y.doubled, y.gaps, y.signaled)
}

func (y *tally) add(other tally) {
	y.acknowledged += other.acknowledged
	y.lost += other.lost
	y.doubled += other.doubled
	y.gaps += other.gaps
	y.signaled += other.signaled
}

// compareRecords counts what is lost or doubled among the stored records.
func (y *tally) compareRecords(known *ledger.Ledger[uint64], present []relayer.Record) {
	held := make(map[string]uint64)
	for _, rec := range present {
		if _, isTwice := held[rec.ID]; isTwice {
			y.doubled++
		}
		held[rec.ID] = rec.Revision
	}
	found := known.Compare(held)
	y.lost += len(found.Lost)
	y.doubled += len(found.Unexpected)
}

// compareChanges counts what a watcher did not receive exactly once and in order. After
// ErrGap a watcher has to read all records again, so that it may miss changes before it
// and receive them again after it. It reports whether there was no ErrGap.
func (y *tally) compareChanges(known *ledger.Ledger[uint64], changes []change) (isComplete bool) {
	isComplete = true
	received := make(map[change]bool)
	var last uint64
	for _, c := range changes {
		if c == gap {
			y.signaled++
			isComplete = false
			clear(received)
			last = 0
			continue
		}
		if received[c] {
			y.doubled++
		}
		received[c] = true
		if c.revision == 0 {
			continue
		}
		if c.revision <= last {
			y.gaps++
		}
		last = c.revision
	}
	if !isComplete {
		return false
	}
	for _, want := range known.Acknowledged() {
		if !received[change{want.Key, want.Value}] {
			y.gaps++
		}
	}
	return true
}
