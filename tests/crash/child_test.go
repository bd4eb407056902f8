//go:build unix

package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/transfer"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// The stores that a child can open.
const (
	boltStore     = "bolt"
	earlyStore    = "bolt, acknowledging creates early"
	postgresStore = "postgres"
)

// task is what a child does with a store.
type task struct {
	Work work
	location
	Round int

	// For a child that writes.
	MayFail bool     // a write can be refused, or its outcome unknown
	Avoid   []string // IDs of records whose version is not known

	// For a child that examines.
	TornHeader bool
	After      uint64 // the revision of the last change that is known
}

// location is a store that a process can open.
type location struct {
	Store  string
	Path   string // of the file, or the connection string
	Schema string // of PostgreSQL, if it is not the default one
}

// store is what the stores have in common.
type store interface {
	relayer.Store
	transfer.Importer
	transfer.Checker
	Close() error
}

// work is the kind of a task.
type work int

const (
	writes   work = iota
	examines      // what a power cut left
)

func (t task) carryOut() error {
	if t.Work == examines {
		examine(t)
		return nil
	}
	return writeUntilKilled(t)
}

// writeUntilKilled returns if a write fails.
func writeUntilKilled(t task) error {
	child.Send(ledger.Event[int]{Step: opening})
	opened, err := t.open(context.Background())
	if err != nil {
		return err
	}
	var store relayer.Store = opened
	if t.Store == earlyStore {
		store = newEarly(opened)
	}
	existing, err := store.List(context.Background(), relayer.StoreQuery{Limit: 1 << 30})
	if err != nil {
		return err
	}
	child.Send(ledger.Event[int]{Step: ready})
	failed := make(chan error)
	for number := range workers {
		w := &worker{number: number, round: t.Round, store: store, minRecords: t.minRecords(), note: func(e event) { child.Send(e) }}
		for _, rec := range existing.Records {
			if strings.HasPrefix(rec.ID, w.prefix()) && !slices.Contains(t.Avoid, rec.ID) {
				w.own = append(w.own, rec)
			}
		}
		go func() { failed <- w.work(t.MayFail) }()
	}
	return <-failed
}

func (l location) open(ctx context.Context) (store, error) {
	switch l.Store {
	case boltStore, earlyStore:
		return bolt.Open(ctx, l.Path)
	case postgresStore:
		return postgres.Open(ctx, l.Path, postgres.WithSchema(cmp.Or(l.Schema, "relayer")))
	}
	return nil, fmt.Errorf("no store %q", l.Store)
}

// minRecords makes the workers of the early store only create, because it
// acknowledges only creates early.
func (t task) minRecords() int {
	if t.Store == earlyStore {
		return 1 << 30
	}
	return 5
}

// work writes until a write fails. None should, unless mayFail is set.
func (w *worker) work(mayFail bool) error {
	for {
		err := w.write(context.Background())
		switch step := ledger.StepOf(err); {
		case err == nil:
		case mayFail && (step == ledger.Unknown || errors.Is(err, relayer.ErrUnavailable)):
			w.note(event{Event: ledger.Event[int]{Step: step, Writer: w.number}})
			time.Sleep(time.Millisecond)
		default:
			return fmt.Errorf("worker %d: %w", w.number, err)
		}
	}
}

// run starts a child, passes its writes to note, and kills it some time after the
// first event of the step.
func run(t *testing.T, given task, step ledger.Step, after time.Duration, note func(event)) {
	t.Helper()
	p := child.Start(t, given)
	var once sync.Once
	killed, err := child.Follow(p, func(e event) {
		if e.Step == step {
			once.Do(func() { time.AfterFunc(after, p.Kill) })
		}
		if e.Step != opening && e.Step != ready {
			note(e)
		}
	})
	if err != nil || !killed {
		t.Fatalf("round %d: the child was not killed: %v", given.Round, err)
	}
}

// early acknowledges a create before the store has committed it.
type early struct {
	relayer.Store
	creates chan relayer.Record
}

// newEarly returns a store that acknowledges a create before it carries it out.
// Its other methods are the methods of the given store.
func newEarly(store relayer.Store) relayer.Store {
	e := &early{Store: store, creates: make(chan relayer.Record, 1<<20)}
	go func() {
		for rec := range e.creates {
			_, _ = store.Create(context.Background(), rec)
		}
	}()
	return e
}

func (e *early) Create(_ context.Context, rec relayer.Record) (relayer.Record, error) {
	e.creates <- rec
	return rec, nil
}

// The steps of an examination.
const (
	failedReopen = "failed reopen"
	failedCheck  = "failed check"
	holds        = "holds"
)

// finding is what an examination reports.
type finding struct {
	Step  string
	Error string
	Left  contents
}

// The time that a child has until the power cut, and for an examination.
const (
	patienceToWrite   = 2 * time.Minute
	patienceToExamine = time.Minute
)

// examine opens a store after a power cut and reports its content. A child does
// this, because a damaged file can crash or hang the process.
func examine(t task) {
	store, err := bolt.Open(context.Background(), t.Path)
	if err != nil {
		sendError(failedReopen, err)
		return
	}
	ctx := context.Background()
	// Check reports a torn header until it is written again. The header is that of
	// a commit in flight, so that nothing acknowledged depends on it.
	if !t.TornHeader {
		sendError(failedCheck, store.Check(ctx))
	}
	left, err := contentsOf(ctx, store, t.After)
	if err != nil {
		sendError(failedReopen, err)
		return
	}
	child.Send(finding{Step: holds, Left: left})
	if err := writeHeaders(ctx, store); err != nil {
		sendError(failedReopen, err)
		return
	}
	sendError(failedCheck, store.Check(ctx))
	sendError(failedReopen, store.Close())
}

func sendError(step string, err error) {
	if err != nil {
		child.Send(finding{Step: step, Error: err.Error()})
	}
}

// writeHeaders commits twice, which writes both headers, and leaves no record.
func writeHeaders(ctx context.Context, store relayer.Store) error {
	rec, err := store.Create(ctx, relayer.Record{ID: afterTheCut})
	if err != nil {
		return err
	}
	return store.Delete(ctx, rec.ID, rec.Revision, nil)
}

const afterTheCut = "after-the-cut"
