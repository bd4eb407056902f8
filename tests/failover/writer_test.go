//go:build unix

package failover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

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
