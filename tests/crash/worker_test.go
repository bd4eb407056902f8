package crash

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/go-relayer/relayer"
)

// event is what a worker is about to do, or what came of it.
type event struct {
	Worker   int
	Verb     string // opening, ready, create, update, delete, done, refused
	ID       string
	Revision uint64
	Version  int
}

// workers is how many writes are in flight at a time.
const workers = 16

// worker has records of its own, so that it knows how each of them stands.
type worker struct {
	number  int
	round   int
	store   relayer.Store
	fewest  int // with fewer records of its own it makes another
	note    func(event)
	own     []relayer.Record
	made    int
	version int
}

func (w *worker) prefix() string { return fmt.Sprintf("w%d-", w.number) }

// write changes something, and notes it before and after. Where it returns an
// error it has noted nothing after.
func (w *worker) write(ctx context.Context) error {
	w.version++
	e := event{Worker: w.number, Version: w.version}
	choice := rand.IntN(10)
	switch {
	case len(w.own) < w.fewest || choice < 4 && len(w.own) < 40:
		return w.create(ctx, e)
	case choice < 8:
		return w.update(ctx, e, rand.IntN(len(w.own)))
	}
	return w.delete(ctx, e, rand.IntN(len(w.own)))
}

func (w *worker) create(ctx context.Context, e event) error {
	w.made++
	e.Verb, e.ID = "create", fmt.Sprintf("%sr%d-%d", w.prefix(), w.round, w.made)
	w.note(e)
	rec, err := w.store.Create(ctx, content(e.ID, e.Version))
	if err != nil {
		return err
	}
	w.own = append(w.own, rec)
	w.done(e, rec.Revision)
	return nil
}

func (w *worker) update(ctx context.Context, e event, at int) error {
	e.Verb, e.ID = "update", w.own[at].ID
	w.note(e)
	rec := content(e.ID, e.Version)
	rec.Revision = w.own[at].Revision
	rec, err := w.store.Update(ctx, rec)
	if err != nil {
		return err
	}
	w.own[at] = rec
	w.done(e, rec.Revision)
	return nil
}

func (w *worker) delete(ctx context.Context, e event, at int) error {
	e.Verb, e.ID = "delete", w.own[at].ID
	w.note(e)
	if err := w.store.Delete(ctx, e.ID, w.own[at].Revision); err != nil {
		return err
	}
	w.own = append(w.own[:at], w.own[at+1:]...)
	w.done(e, 0)
	return nil
}

func (w *worker) done(e event, revision uint64) {
	e.Verb, e.Revision = "done", revision
	w.note(e)
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
