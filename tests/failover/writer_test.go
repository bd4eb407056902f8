//go:build unix

package failover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
)

// writer creates, updates and deletes records of its own through one Store. A
// write of unknown outcome is repeated until its outcome is known.
type writer struct {
	number       int
	store        relayer.Store
	made         int
	acknowledged atomic.Int64
	ledger       map[string]entry // by ID; read only while the writer does not run
}

// entry is what was acknowledged of a record: the revisions of its writes.
type entry struct {
	created, updated uint64
	isDeleted        bool
}

// current is the revision after the acknowledged writes.
func (e entry) current() uint64 { return max(e.created, e.updated) }

// run writes until ctx is done. It deletes most of its records again.
func (w *writer) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.made++
		id := fmt.Sprintf("w%d-%d", w.number, w.made)
		if w.create(id) && w.update(id) && w.made%8 > 0 {
			w.delete(id)
		}
	}
}

// create repeats an unknown outcome with the same record, which the Store
// recognizes.
func (w *writer) create(id string) bool {
	var made relayer.Record
	err := w.settle(func(ctx context.Context) (err error) {
		made, err = w.store.Create(ctx, content(id, "created"))
		return err
	})
	return w.note(id, err, func(e *entry) { e.created = made.Revision })
}

// update reads the record if a repeated update finds another revision: the first
// one was carried out.
func (w *writer) update(id string) bool {
	rec := content(id, "updated")
	rec.Revision = w.ledger[id].created
	var made relayer.Record
	isRepeated := false
	err := w.settle(func(ctx context.Context) (err error) {
		made, err = w.store.Update(ctx, rec)
		if isRepeated && errors.Is(err, relayer.ErrConflict) {
			made, err = w.store.Get(ctx, id)
		}
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	return w.note(id, err, func(e *entry) { e.updated = made.Revision })
}

func (w *writer) delete(id string) {
	isRepeated := false
	err := w.settle(func(ctx context.Context) error {
		err := w.store.Delete(ctx, id, w.ledger[id].current())
		if isRepeated && errors.Is(err, relayer.ErrNotFound) {
			return nil
		}
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	w.note(id, err, func(e *entry) { e.isDeleted = true })
}

func (w *writer) settle(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return settle(ctx, func() error { return call(ctx) })
}

// note changes the entry of an acknowledged write. Other errors show that an
// earlier write was lost, which the comparison finds.
func (w *writer) note(id string, err error, change func(*entry)) bool {
	if err != nil {
		return false
	}
	e := w.ledger[id]
	change(&e)
	w.ledger[id] = e
	w.acknowledged.Add(1)
	return true
}

func content(id, version string) relayer.Record {
	return relayer.Record{ID: id, Claim: id, Document: []byte(`{"version":"` + version + `"}`), Private: make([]byte, 200)}
}
