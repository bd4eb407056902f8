//go:build unix

package crash

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
)

// settling is a store without unknown outcomes. It repeats a write of unknown
// outcome until the result shows whether the first one was carried out.
type settling struct {
	relayer.Store
	tally *tally
}

// tally counts the writes that were not acknowledged at once.
type tally struct {
	unavailable, carriedOut, notCarriedOut atomic.Int64
}

// pause waits before a retry.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// untilSettled repeats a call until its outcome is known.
func untilSettled(ctx context.Context, call func() error) error {
	for {
		err := call()
		isUnsettled := errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown)
		if !isUnsettled || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}

// settle makes a write. After an unknown outcome it repeats the write until the result shows whether
// the first one was carried out: the repeated one then fails with the error taken.
func (s settling) settle(ctx context.Context, taken error, write func() error) (carriedOut bool, err error) {
	err = write()
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return false, err
	}
	err = untilSettled(ctx, write)
	switch {
	case errors.Is(err, taken):
		s.tally.carriedOut.Add(1)
		return true, nil
	case err == nil:
		s.tally.notCarriedOut.Add(1)
	}
	return false, err
}

// Create repeats the same create. If the ID is taken then, the first create was carried out:
// only one worker uses an ID.
func (s settling) Create(ctx context.Context, rec relayer.Record) (written relayer.Record, err error) {
	carriedOut, err := s.settle(ctx, relayer.ErrExists, func() (err error) {
		written, err = s.Store.Create(ctx, rec)
		return err
	})
	if carriedOut {
		written, err = s.read(ctx, rec.ID)
		if err == nil && !bytes.Equal(written.Document, rec.Document) {
			return written, errors.New("a create of unknown outcome stored another record")
		}
	}
	return written, err
}

// Update repeats the same compare-and-swap. A read is not enough: the server may
// still carry out the first one after it. A write waits for the first one.
func (s settling) Update(ctx context.Context, rec relayer.Record) (written relayer.Record, err error) {
	carriedOut, err := s.settle(ctx, relayer.ErrConflict, func() (err error) {
		written, err = s.Store.Update(ctx, rec)
		return err
	})
	if carriedOut {
		return s.read(ctx, rec.ID)
	}
	return written, err
}

// Delete repeats the same delete.
func (s settling) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	_, err := s.settle(ctx, relayer.ErrNotFound, func() error { return s.Store.Delete(ctx, id, revision, note) })
	return err
}

func (s settling) read(ctx context.Context, id string) (found relayer.Record, err error) {
	err = untilSettled(ctx, func() (err error) {
		found, err = s.Get(ctx, id)
		return err
	})
	return found, err
}
