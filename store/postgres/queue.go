package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/groupcommit"
)

// A batch is bounded, so that many waiting writes neither delay the first of them
// nor keep other instances waiting for the write lock.
const (
	maxBatchWrites = 256
	maxBatchBytes  = 8 << 20
)

// write is one change of a caller.
type write struct {
	size int

	// ask adds the statement of the write to a message, and read reads its result.
	// The error of read is that of the whole transaction.
	ask  func(*pgx.Batch)
	read func(pgx.BatchResults) (outcome, error)
}

type batch []*groupcommit.Write[write]

func newQueue() *groupcommit.Queue[write] {
	return groupcommit.New[write](groupcommit.Limits{Writes: maxBatchWrites, Bytes: maxBatchBytes})
}

// do queues a write and waits for its result. A write that is not taken from the
// queue within the timeout of the Store is not made.
func (s *Store) do(ctx context.Context, w write) error {
	limited, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	err := s.queue.Do(limited, w.size, w)
	switch {
	case errors.Is(err, groupcommit.ErrClosed):
		return errClosed
	case err == context.DeadlineExceeded && ctx.Err() == nil: // and not an error that wraps it
		return fmt.Errorf("%w: the write waited longer than %v for earlier writes", relayer.ErrUnavailable, s.opts.timeout)
	}
	return err
}
