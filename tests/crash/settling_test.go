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

func isUnsettled(err error) bool {
	return errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown)
}

// untilSettled repeats a call until its outcome is known.
func untilSettled(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !isUnsettled(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}

// Create repeats the same create. If the ID is taken then, the first create was carried out:
// only one worker uses an ID.
func (s settling) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	written, err := s.Store.Create(ctx, rec)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return written, err
	}
	err = untilSettled(ctx, func() (err error) {
		written, err = s.Store.Create(ctx, rec)
		return err
	})
	if err == nil || !errors.Is(err, relayer.ErrExists) {
		s.count(false)
		return written, err
	}
	s.count(true)
	err = untilSettled(ctx, func() (err error) {
		written, err = s.Store.Get(ctx, rec.ID)
		return err
	})
	if err == nil && !bytes.Equal(written.Document, rec.Document) {
		return written, errors.New("a create of unknown outcome stored another record")
	}
	return written, err
}

// Update repeats the same compare-and-swap. A read is not enough: the server may
// still carry out the first one after it. A write waits for the first one.
func (s settling) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	written, err := s.Store.Update(ctx, rec)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return written, err
	}
	err = untilSettled(ctx, func() (err error) {
		written, err = s.Store.Update(ctx, rec)
		return err
	})
	if err == nil {
		s.count(false)
		return written, nil
	}
	if !errors.Is(err, relayer.ErrConflict) {
		return written, err
	}
	s.count(true)
	err = untilSettled(ctx, func() (err error) {
		written, err = s.Store.Get(ctx, rec.ID)
		return err
	})
	return written, err
}

// Delete repeats the same delete.
func (s settling) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	err := s.Store.Delete(ctx, id, revision, note)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return err
	}
	err = untilSettled(ctx, func() error { return s.Store.Delete(ctx, id, revision, note) })
	if err == nil {
		s.count(false)
		return nil
	}
	if !errors.Is(err, relayer.ErrNotFound) {
		return err
	}
	s.count(true)
	return nil
}

func (s settling) count(carriedOut bool) {
	if carriedOut {
		s.tally.carriedOut.Add(1)
	} else {
		s.tally.notCarriedOut.Add(1)
	}
}
