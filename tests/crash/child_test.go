package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// event is one line that the child writes: what a worker is about to do, and
// then what came of it.
type event struct {
	Worker   int
	Verb     string // opening, ready, create, update, delete, done
	ID       string
	Revision uint64
	Version  int
}

// workers is how many writes the child has in flight at a time.
const workers = 16

// child opens the store and writes to it until it is killed.
func child(path, round, kind string) int {
	say(event{Verb: "opening"})
	opened, err := bolt.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	store, fewest := relayer.Store(opened), 5
	if kind == "hasty" {
		store, fewest = newHasty(opened), 1<<30
	}
	existing, _, err := opened.List(context.Background(), 0, 1<<30)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	say(event{Verb: "ready"})
	var done sync.WaitGroup
	for number := range workers {
		w := &worker{number: number, round: round, store: store, fewest: fewest}
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

// worker has records of its own, so that it knows how each of them stands.
type worker struct {
	number int
	round  string
	store  relayer.Store
	fewest int // with fewer records of its own it makes another
	own    []relayer.Record
	made   int
}

func (w *worker) prefix() string { return fmt.Sprintf("w%d-", w.number) }

// work writes until a write fails, which none should.
func (w *worker) work() {
	for version := 1; ; version++ {
		before := event{Worker: w.number, Version: version}
		err := w.write(before)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func (w *worker) write(e event) error {
	choice := rand.IntN(10)
	switch {
	case len(w.own) < w.fewest || choice < 4 && len(w.own) < 40:
		return w.create(e)
	case choice < 8:
		return w.update(e, rand.IntN(len(w.own)))
	}
	return w.delete(e, rand.IntN(len(w.own)))
}

func (w *worker) create(e event) error {
	w.made++
	e.Verb, e.ID = "create", fmt.Sprintf("%sr%s-%d", w.prefix(), w.round, w.made)
	say(e)
	rec, err := w.store.Create(context.Background(), content(e.ID, e.Version))
	if err != nil {
		return err
	}
	w.own = append(w.own, rec)
	w.done(e, rec.Revision)
	return nil
}

func (w *worker) update(e event, at int) error {
	e.Verb, e.ID = "update", w.own[at].ID
	say(e)
	rec := content(e.ID, e.Version)
	rec.Revision = w.own[at].Revision
	rec, err := w.store.Update(context.Background(), rec)
	if err != nil {
		return err
	}
	w.own[at] = rec
	w.done(e, rec.Revision)
	return nil
}

func (w *worker) delete(e event, at int) error {
	e.Verb, e.ID = "delete", w.own[at].ID
	say(e)
	if err := w.store.Delete(context.Background(), e.ID, w.own[at].Revision); err != nil {
		return err
	}
	w.own = append(w.own[:at], w.own[at+1:]...)
	w.done(e, 0)
	return nil
}

func (w *worker) done(e event, revision uint64) {
	e.Verb, e.Revision = "done", revision
	say(e)
}

// content is what a version of a record holds: a few pages at times, so that
// half of it would show.
func content(id string, version int) relayer.Record {
	size := 1 + version%7*300
	return relayer.Record{
		ID:       id,
		Claim:    fmt.Sprintf("%s/%d", id, version),
		Document: bytes.Repeat(fmt.Appendf(nil, "%s is at %d;", id, version), 1+size/20),
		Private:  bytes.Repeat(fmt.Appendf(nil, "private %d;", version), 1+size/40),
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
