package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/go-relayer/relayer"
)

// unconfirmed are the ids of writes of unknown outcome. Such a write may be visible
// and yet be lost in a failover, because its commit did not wait for the synchronous
// standby. The next commit that succeeds confirms all of them: it waits for the
// write-ahead log up to its own record, which comes after theirs.
//
// Until then a write does not return without a commit, even if it is refused. Otherwise a
// client that repeats a write would take for done what a failover can undo.
type unconfirmed struct{ ids sync.Map }

func (u *unconfirmed) any() (found bool) {
	u.ids.Range(func(any, any) bool { found = true; return false })
	return found
}

// write queues a write that concerns the ids, and waits for its result.
func (s *Store) write(ctx context.Context, size int, c change, ids ...string) error {
	err := s.do(ctx, size, c)
	if errors.Is(err, relayer.ErrOutcomeUnknown) {
		for _, id := range ids {
			s.unconfirmed.ids.Store(id, true)
		}
	}
	return err
}

// confirm waits until all unconfirmed writes are confirmed.
func (s *Store) confirm(ctx context.Context) error {
	if !s.unconfirmed.any() {
		return nil
	}
	err := s.do(ctx, 0, change{
		ask:  func(*pgx.Batch) {},
		read: func(pgx.BatchResults) (outcome, error) { return outcome{}, nil },
	})
	if errors.Is(err, relayer.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: an earlier write is not confirmed: %w", relayer.ErrUnavailable, withoutDriver(err))
	}
	return err
}
