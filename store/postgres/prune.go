package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Old changes are pruned in small steps with pauses between them, so that writers
// never wait for more than a small part of the disk's time.
const (
	pruneInterval = time.Minute
	pruneStep     = 500
	prunePause    = 20 * time.Millisecond
)

// pruneChanges deletes old changes in the background until the Store is closed.
// It holds no lock that a writer or a reader waits for.
func (s *Store) pruneChanges() {
	ticker := time.NewTicker(min(s.opts.changeRetention, pruneInterval))
	defer ticker.Stop()
	for {
		select {
		case <-s.ended.Done():
			return
		case <-ticker.C:
			s.pruneOldChanges()
		}
	}
}

// pruneOldChanges repeats steps until no old change is left. An error ends it:
// the next tick goes on.
func (s *Store) pruneOldChanges() {
	for {
		pruned, err := s.pruneOnce()
		if err != nil || !pruned {
			return
		}
		select {
		case <-s.ended.Done():
			return
		case <-time.After(prunePause):
		}
	}
}

// pruneOnce deletes the oldest changes, up to pruneStep, in one transaction. It
// reports whether there were any. If another instance prunes now, it does nothing.
func (s *Store) pruneOnce() (pruned bool, err error) {
	ctx, cancel := context.WithTimeout(s.ended, s.opts.timeout)
	defer cancel()
	err = transact(ctx, s.pool, s.opts, func(tx pgx.Tx) error {
		var last int64
		err := tx.QueryRow(ctx, s.sql.lockPruning).Scan(&last)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, s.sql.prune, last, pruneStep, s.opts.changeRetention.Microseconds(), s.opts.version())
		pruned = tag.RowsAffected() > 0
		return err
	})
	return pruned, err
}
