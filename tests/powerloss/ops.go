package powerloss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/faulty"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// event is what a child reports. Its values are versions, by ID.
type event = ledger.Event[int]

// ready is the step of a child whose store is open.
const ready ledger.Step = "ready"

const (
	workers       = 8
	manyRelayers  = 40 // of one worker: it creates no more
	largestImport = 12
)

// worker changes relayers that no other worker changes.
type worker struct {
	number  int
	process int
	random  *rand.Rand
	manager *relayer.Manager
	store   *bolt.Store
	own     []string
	version int
}

// write runs the workers until one fails.
func write(t task) error {
	durable, err := bolt.Open(context.Background(), t.Path)
	if err != nil {
		return err
	}
	var store relayer.Store = durable
	if t.Early {
		store = faulty.NewEarly(durable)
	}
	manager, err := newManager(store)
	if err != nil {
		return err
	}
	owned, err := owners(manager, t.Avoid)
	if err != nil {
		return err
	}
	child.Send(event{Step: ready})
	failed := make(chan error)
	for number := range workers {
		w := &worker{
			number:  number,
			process: t.Process,
			random:  rand.New(rand.NewPCG(t.Seed, uint64(number))),
			manager: manager,
			store:   durable,
			own:     owned[number],
		}
		go func() { failed <- w.run(t.Early) }()
	}
	return <-failed
}

// owners returns the relayers that each worker continues with.
func owners(manager *relayer.Manager, avoid []string) ([workers][]string, error) {
	var owned [workers][]string
	for r, err := range manager.All(context.Background(), relayer.Selector{}) {
		if err != nil {
			return owned, err
		}
		for number := range owned {
			if strings.HasPrefix(r.ID, prefix(number)) && !slices.Contains(avoid, r.ID) {
				owned[number] = append(owned[number], r.ID)
			}
		}
	}
	return owned, nil
}

func prefix(worker int) string { return fmt.Sprintf("w%d-", worker) }

func (w *worker) run(onlyCreate bool) error {
	for {
		choice := w.random.IntN(10)
		var err error
		switch few, many := len(w.own) < 5, len(w.own) >= manyRelayers; {
		case onlyCreate || few || choice < 3 && !many:
			err = w.create()
		case choice == 3 && !many:
			err = w.importMany()
		case choice < 7:
			err = w.update()
		default:
			err = w.delete()
		}
		if err != nil {
			return err
		}
	}
}

// do sends an event before and after an operation, and returns the step at which
// it ended.
func (w *worker) do(e event, operation func(context.Context) error) (ledger.Step, error) {
	e.Writer, e.Step = w.number, ledger.Begin
	child.Send(e)
	err := operation(context.Background())
	if e.Step = ledger.StepOf(err); e.Step == ledger.Refused {
		if !errors.Is(err, relayer.ErrUnavailable) {
			return "", fmt.Errorf("version %d of %v: %w", e.Value, e.Keys, err)
		}
		time.Sleep(time.Millisecond)
	}
	child.Send(e)
	return e.Step, nil
}

func (w *worker) newIDs(count int) []string {
	ids := make([]string, count)
	for i := range ids {
		ids[i] = fmt.Sprintf("%sp%d-%d-%d", prefix(w.number), w.process, w.version, i)
	}
	return ids
}

// nextVersion returns a version that no other process makes.
func (w *worker) nextVersion() int {
	w.version++
	return w.process*1_000_000 + w.version
}

func (w *worker) create() error {
	version := w.nextVersion()
	ids := w.newIDs(1)
	step, err := w.do(event{Keys: ids, Value: version}, func(ctx context.Context) error {
		_, err := w.manager.Create(ctx, content(ids[0], version))
		return err
	})
	if step == ledger.Done {
		w.own = append(w.own, ids...)
	}
	return err
}

func (w *worker) importMany() error {
	version := w.nextVersion()
	ids := w.newIDs(2 + w.random.IntN(largestImport-1))
	records, err := recordsOf(context.Background(), version, ids...)
	if err != nil {
		return err
	}
	step, err := w.do(event{Keys: ids, Value: version, IsImport: true}, func(ctx context.Context) error {
		return w.store.Import(ctx, records)
	})
	if step == ledger.Done {
		w.own = append(w.own, ids...)
	}
	return err
}

func (w *worker) update() error {
	version := w.nextVersion()
	at := w.random.IntN(len(w.own))
	id := w.own[at]
	step, err := w.do(event{Keys: []string{id}, Value: version}, func(ctx context.Context) error {
		_, err := w.manager.Update(ctx, id, func(r *relayer.Relayer) error {
			setContent(r, version)
			return nil
		})
		return err
	})
	if step == ledger.Unknown {
		w.own = slices.Delete(w.own, at, at+1)
	}
	return err
}

func (w *worker) delete() error {
	at := w.random.IntN(len(w.own))
	id := w.own[at]
	step, err := w.do(event{Keys: []string{id}}, func(ctx context.Context) error {
		return w.manager.Delete(ctx, id)
	})
	if step != ledger.Refused {
		w.own = slices.Delete(w.own, at, at+1)
	}
	return err
}
