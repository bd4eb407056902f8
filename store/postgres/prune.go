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

// pruneChanges deletes old changes in the background until the Store is closed: first the
// feed loses them, then the history. It holds no lock that a writer or a reader waits for.
func (s *Store) pruneChanges() {
	interval := pruneInterval
	if given := s.opts.retention.feedAge; given != nil {
		interval = min(microseconds(*given), pruneInterval)
	}
	for {
		select {
		case <-s.ended.Done():
			return
		case <-time.After(interval):
		}
		s.survey(s.ended)
		s.isQueueFull.Store(false)
		interval = min(s.pruneOldChanges(), pruneInterval)
	}
}

func microseconds(count int64) time.Duration { return time.Duration(count) * time.Microsecond }

// pruneOldChanges repeats steps until no old change is left. It returns how long the feed keeps
// changes, or pruneInterval if the server does not respond or another instance prunes. An error
// ends it: the next tick goes on. The history is not searched again for changes that are old by
// age once there was none: rows that were displaced can be in the way until a vacuum.
func (s *Store) pruneOldChanges() (feedAge time.Duration) {
	feedAge = pruneInterval
	byAge := true
	for {
		done, err := s.pruneOnce(byAge)
		if done.feedAge > 0 {
			feedAge = microseconds(done.feedAge)
		}
		if err != nil || !done.pruned && !done.prunedByAge {
			return feedAge
		}
		byAge = done.prunedByAge
		select {
		case <-s.ended.Done():
			return feedAge
		case <-time.After(prunePause):
		}
	}
}

// pruning is the result of a step.
type pruning struct {
	feedAge             int64 // in microseconds; 0 if another instance prunes
	pruned, prunedByAge bool
}

// pruneOnce prunes the oldest changes of the feed and of the history, up to pruneStep of each,
// in one transaction. If another instance prunes now, it does nothing.
func (s *Store) pruneOnce(byAge bool) (done pruning, err error) {
	ctx, cancel := context.WithTimeout(s.ended, s.opts.timeout)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return pruning{}, err
	}
	defer conn.Release()
	err = transact(ctx, conn, s.opts, func(tx pgx.Tx) error {
		var ofFeed, ofHistory, displaced, historyAge, historyChanges int64
		err := tx.QueryRow(ctx, s.in(sqlLockPruning)).Scan(&ofFeed, &ofHistory, &displaced, &done.feedAge, &historyAge, &historyChanges)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		step := func(sql string, after, limit int64) bool {
			if err != nil {
				return false
			}
			var tag pgconn.CommandTag
			tag, err = tx.Exec(ctx, sql, after, pruneStep, limit, schemaVersion)
			return tag.RowsAffected() > 0
		}
		done.pruned = step(s.in(sqlPrune), ofFeed, done.feedAge)
		if historyAge > 0 {
			done.pruned = step(s.in(sqlDisplace), displaced, historyChanges) || done.pruned
		}
		if byAge {
			done.prunedByAge = step(s.in(sqlPruneHistory), ofHistory, historyAge)
		}
		return err
	})
	return done, err
}
