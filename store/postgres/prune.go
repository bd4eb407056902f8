package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Old changes are pruned in small steps with pauses between them, so that writers
// never wait for more than a small part of the disk's time.
const (
	pruneInterval = time.Minute
	pruneStep     = 500
	prunePause    = 20 * time.Millisecond
)

// pruneChanges deletes old changes in the background until the Store is closed: first the feed
// loses them, then the history. Only [Store.ImportHistory] waits for its lock.
func (s *Store) pruneChanges(interval time.Duration) {
	for s.sleep(interval) {
		s.pruneOldChanges()
	}
}

// checkServers checks at an interval, until the Store is closed, whether another server is the primary
// now. It lets the next commit try whether the queue of notifications is still full.
func (s *Store) checkServers(interval time.Duration) {
	for s.sleep(interval) {
		s.survey(s.ended)
		s.isQueueFull.Store(false)
	}
}

// sleep returns false if the Store is closed.
func (s *Store) sleep(pause time.Duration) bool {
	select {
	case <-s.ended.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// pruneOldChanges repeats steps until one prunes nothing. An error or Close ends it.
func (s *Store) pruneOldChanges() {
	for {
		if more, err := s.pruneOnce(); err != nil || !more || !s.sleep(prunePause) {
			return
		}
	}
}

// pruneOnce prunes the oldest changes of the feed and of the history, up to pruneStep of each,
// in one transaction. If another instance prunes now, it does nothing.
func (s *Store) pruneOnce() (more bool, err error) {
	ctx, cancel := context.WithTimeout(s.ended, s.opts.timeout)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	err = transact(ctx, conn, s.opts, func(tx pgx.Tx) error {
		var ofFeed, ofHistory, displaced, feedAge, historyAge, historyChanges int64
		err := tx.QueryRow(ctx, s.in(sqlLockPruning)).Scan(&ofFeed, &ofHistory, &displaced, &feedAge, &historyAge, &historyChanges)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		step := func(sql string, after, limit int64) {
			if err == nil {
				var tag pgconn.CommandTag
				tag, err = tx.Exec(ctx, s.in(sql), after, pruneStep, limit, schemaVersion)
				more = more || tag.RowsAffected() > 0
			}
		}
		step(sqlPrune, ofFeed, feedAge)
		if historyAge > 0 {
			step(sqlDisplace, displaced, historyChanges)
		}
		step(sqlPruneHistory, ofHistory, historyAge)
		return err
	})
	return more, err
}
