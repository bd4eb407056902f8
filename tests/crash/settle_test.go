package crash

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
)

// settling is a store whose writes are carried out or not. Where one had an
// unknown outcome, it is made again until the answer tells which.
type settling struct {
	relayer.Store
	tally *tally
}

// tally counts the writes by what was found out about them.
type tally struct {
	unavailable, carriedOut, notCarriedOut atomic.Int64
}

// retryPause keeps those who wait for a server from asking it all the time.
const retryPause = 5 * time.Millisecond

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
	}
}

func isUnanswered(err error) bool {
	return errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown)
}

// untilAnswered makes a call again for as long as it gets no answer.
func untilAnswered(ctx context.Context, call func() error) error {
	for {
		err := call()
		if !isUnanswered(err) || ctx.Err() != nil {
			return err
		}
		pause(ctx)
	}
}

// Create makes the same create again, which has to succeed either way. What is
// there before was carried out, and has to be what is returned.
func (s settling) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	made, err := s.Store.Create(ctx, rec)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return made, err
	}
	var found relayer.Record
	err = untilAnswered(ctx, func() (err error) {
		found, err = s.Store.Get(ctx, rec.ID)
		return err
	})
	if err != nil && !errors.Is(err, relayer.ErrNotFound) {
		return found, err
	}
	s.count(err == nil)
	err = untilAnswered(ctx, func() (err error) {
		made, err = s.Store.Create(ctx, rec)
		return err
	})
	if err == nil && found.Revision != 0 && found.Revision != made.Revision {
		return made, errors.New("a create made again wrote a second time")
	}
	return made, err
}

// Update makes the same compare-and-swap again. A read right away would not do:
// the server may not have come to the first one yet. A write waits until it has.
func (s settling) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	made, err := s.Store.Update(ctx, rec)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return made, err
	}
	err = untilAnswered(ctx, func() (err error) {
		made, err = s.Store.Update(ctx, rec)
		return err
	})
	if err == nil {
		s.count(false)
		return made, nil
	}
	if !errors.Is(err, relayer.ErrConflict) {
		return made, err
	}
	s.count(true)
	err = untilAnswered(ctx, func() (err error) {
		made, err = s.Store.Get(ctx, rec.ID)
		return err
	})
	return made, err
}

// Delete makes the same delete again.
func (s settling) Delete(ctx context.Context, id string, revision uint64) error {
	err := s.Store.Delete(ctx, id, revision)
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		return err
	}
	err = untilAnswered(ctx, func() error { return s.Store.Delete(ctx, id, revision) })
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
