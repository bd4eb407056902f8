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
type unconfirmed struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

func (u *unconfirmed) add(ids ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = make(map[string]struct{})
	}
	for _, id := range ids {
		u.ids[id] = struct{}{}
	}
}

func (u *unconfirmed) has(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, found := u.ids[id]
	return found
}

func (u *unconfirmed) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.ids) > 0
}

func (u *unconfirmed) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ids = nil
}

// write queues a write that concerns the ids, and waits for its result.
func (s *Store) write(ctx context.Context, size int, c change, ids ...string) error {
	err := s.do(ctx, size, c)
	if errors.Is(err, relayer.ErrOutcomeUnknown) {
		s.unconfirmed.add(ids...)
	}
	return err
}

// confirm waits until an unconfirmed write of the id is confirmed. A change that
// finds nothing left to do relies on it: it reads the record and writes nothing.
func (s *Store) confirm(ctx context.Context, id string) error {
	if !s.unconfirmed.has(id) {
		return nil
	}
	err := s.do(ctx, 0, change{
		ask:  func(*pgx.Batch) {},
		read: func(pgx.BatchResults) (outcome, error) { return outcome{}, nil },
	})
	if errors.Is(err, relayer.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: an earlier write of this relayer is not confirmed: %w", relayer.ErrUnavailable, withoutDriver(err))
	}
	return err
}
