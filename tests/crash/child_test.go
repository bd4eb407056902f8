package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/postgres"
)

// task is what a child is to do.
type task struct {
	Round  int
	Store  string // bolt, hasty, postgres
	Path   string // of the file, or the connection string
	Schema string
}

// child opens the store and writes to it until it is killed.
func child(text string) int {
	var given task
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return complain(err)
	}
	say(event{Verb: "opening"})
	store, err := given.open()
	if err != nil {
		return complain(err)
	}
	existing, _, err := store.List(context.Background(), 0, 1<<30)
	if err != nil {
		return complain(err)
	}
	say(event{Verb: "ready"})
	var done sync.WaitGroup
	for number := range workers {
		w := &worker{number: number, round: given.Round, store: store, fewest: given.fewest(), note: say}
		for _, rec := range existing {
			if strings.HasPrefix(rec.ID, w.prefix()) {
				w.own = append(w.own, rec)
			}
		}
		done.Go(w.work)
	}
	done.Wait()
	return 1
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (t task) open() (relayer.Store, error) {
	switch t.Store {
	case "bolt":
		return bolt.Open(context.Background(), t.Path)
	case "hasty":
		store, err := bolt.Open(context.Background(), t.Path)
		return newHasty(store), err
	case "postgres":
		return postgres.Open(context.Background(), t.Path, postgres.WithSchema(t.Schema))
	}
	return nil, fmt.Errorf("no store %q", t.Store)
}

// fewest has those who write to the hasty store create and nothing else: that is
// where it lies.
func (t task) fewest() int {
	if t.Store == "hasty" {
		return 1 << 30
	}
	return 5
}

// say hands a line to the parent in one write: a line is there whole or not at
// all, and stays in the pipe when this process is gone.
func say(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

// work writes until a write fails, which none should.
func (w *worker) work() {
	for {
		if err := w.write(context.Background()); err != nil {
			os.Exit(complain(err))
		}
	}
}

// hasty acknowledges a create before the store has made it. It is here to be
// caught.
type hasty struct {
	relayer.Store
	late chan relayer.Record
}

func newHasty(store relayer.Store) *hasty {
	h := &hasty{Store: store, late: make(chan relayer.Record, 1<<20)}
	go func() {
		for rec := range h.late {
			_, _ = store.Create(context.Background(), rec)
		}
	}()
	return h
}

func (h *hasty) Create(_ context.Context, rec relayer.Record) (relayer.Record, error) {
	h.late <- rec
	return rec, nil
}
