package crash

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/faulty"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// The stores that a child can open.
const (
	boltStore     = "bolt"
	earlyStore    = "bolt, acknowledging creates early"
	postgresStore = "postgres"
)

// task says which store a child writes to.
type task struct {
	Round  int
	Store  string
	Path   string // of the file, or the connection string
	Schema string
}

// writeUntilKilled is the work of a child. It returns if a write fails.
func writeUntilKilled(t task) error {
	child.Send(ledger.Event[int]{Step: opening})
	store, err := t.open()
	if err != nil {
		return err
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
			if strings.HasPrefix(rec.ID, w.prefix()) {
				w.own = append(w.own, rec)
			}
		}
		go func() { failed <- w.work() }()
	}
	return <-failed
}

func (t task) open() (relayer.Store, error) {
	switch t.Store {
	case boltStore:
		return bolt.Open(context.Background(), t.Path)
	case earlyStore:
		store, err := bolt.Open(context.Background(), t.Path)
		return faulty.NewEarly(store), err
	case postgresStore:
		return postgres.Open(context.Background(), t.Path, postgres.WithSchema(t.Schema))
	}
	return nil, fmt.Errorf("no store %q", t.Store)
}

// minRecords makes the workers of the early store only create, because it
// acknowledges only creates early.
func (t task) minRecords() int {
	if t.Store == earlyStore {
		return 1 << 30
	}
	return 5
}

// work writes until a write fails. None should.
func (w *worker) work() error {
	for {
		if err := w.write(context.Background()); err != nil {
			return err
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
