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

// writer creates, updates and deletes its own records through one Store. A
// write of unknown outcome is repeated until its outcome is known. Any other error
// shows that an earlier write was lost, which the comparison finds.
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

// run writes until ctx is done, and rests between two records. It deletes most of its
// records again.
func (w *writer) run(ctx context.Context, rest time.Duration) {
	for ; ctx.Err() == nil; time.Sleep(rest) {
		id := w.create()
		if id != "" && w.update(id) && w.made%8 > 0 {
			w.delete(id)
		}
	}
}

// create returns the ID of the new record, or nothing.
func (w *writer) create() string {
	w.made++
	id := fmt.Sprintf("w%d-%d", w.number, w.made)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	made, err := createOnce(ctx, w.store, content(id, "created"))
	if err != nil {
		return ""
	}
	w.note(id, func(e *entry) { e.created = made.Revision })
	return id
}

// update starts again from the current revision if a repeated update finds that
// the first one was carried out: to read it does not prove that it is durable.
func (w *writer) update(id string) bool {
	rec := content(id, "updated")
	rec.Revision = w.ledger[id].created
	var made relayer.Record
	isRepeated := false
	err := w.settle(func(ctx context.Context) (err error) {
		made, err = w.store.Update(ctx, rec)
		if isRepeated && errors.Is(err, relayer.ErrConflict) {
			found, err := w.store.Get(ctx, id)
			if err != nil {
				return err
			}
			rec.Revision, isRepeated = found.Revision, false
			return relayer.ErrOutcomeUnknown
		}
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	if err == nil {
		w.note(id, func(e *entry) { e.updated = made.Revision })
	}
	return err == nil
}

// delete makes another write if a repeated delete finds that the first one was
// carried out: a later acknowledged write proves that it is durable.
func (w *writer) delete(id string) {
	isRepeated := false
	err := w.settle(func(ctx context.Context) error {
		err := w.store.Delete(ctx, id, w.ledger[id].current(), nil)
		isRepeated = isRepeated || errors.Is(err, relayer.ErrOutcomeUnknown)
		return err
	})
	if err == nil || isRepeated && errors.Is(err, relayer.ErrNotFound) && w.create() != "" {
		w.note(id, func(e *entry) { e.isDeleted = true })
	}
}

func (w *writer) settle(call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return settle(ctx, func() error { return call(ctx) })
}

// note changes the entry of a record after an acknowledged write.
func (w *writer) note(id string, change func(*entry)) {
	e := w.ledger[id]
	change(&e)
	w.ledger[id] = e
	w.acknowledged.Add(1)
}

func content(id, version string) relayer.Record {
	return relayer.Record{ID: id, Claim: id, Document: []byte(`{"version":"` + version + `"}`), Private: make([]byte, 200)}
}
