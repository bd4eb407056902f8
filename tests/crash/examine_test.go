//go:build unix

package crash

import (
	"context"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
)

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
