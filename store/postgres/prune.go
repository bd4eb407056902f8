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
	var seen sighting
	var old int64
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
		age := s.feedAge(s.ended)
		interval = min(age, pruneInterval)
		s.survey(s.ended)
		s.lookAtQueue(s.ended)
		last, err := s.lastChange(s.ended)
		switch now := time.Now(); {
		case err != nil:
			continue
		case last.number < seen.number: // as after the restore of a backup
			old, seen = 0, sighting{now, last.number}
		case now.Sub(seen.at) > age:
			old, seen = seen.number, sighting{now, last.number}
		}
		s.pruneOldChanges(old)
	}
}

// feedAge returns how long the feed keeps changes, or pruneInterval if the server does not
// respond.
func (s *Store) feedAge(ctx context.Context) time.Duration {
	var age int64
	err := s.tryRead(ctx, s.sql.feedAge, nil, func(rows pgx.Rows) (err error) {
		age, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		return err
	})
	if err != nil {
		return pruneInterval
	}
	return microseconds(age)
}

func microseconds(count int64) time.Duration { return time.Duration(count) * time.Microsecond }

// lookAtQueue asks how full the queue of notifications is. This also deletes what no listener
// needs any more, which can take many seconds, so that it is not asked under the write lock.
func (s *Store) lookAtQueue(ctx context.Context) {
	var isFull bool
	err := s.tryRead(ctx, `SELECT pg_notification_queue_usage() >= 0.5`, nil, func(rows pgx.Rows) (err error) {
		isFull, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		return err
	})
	if err == nil {
		s.isQueueFull.Store(isFull)
	}
}

// sighting is the number of the last change at a time of the Store's own clock. The times
// of the changes are those of the server: if its clock was ahead, they alone would keep
// changes for too long. With it, a change is kept for at most twice the retention.
type sighting struct {
	at     time.Time
	number int64
}

// pruneOldChanges repeats steps until no old change is left. Changes up to the number
// are old, whatever their time is. An error ends it: the next tick goes on. The history is not
// searched again for changes that are old by age once there was none: rows that were
// displaced can be in the way until a vacuum.
func (s *Store) pruneOldChanges(old int64) {
	byAge := true
	for {
		pruned, prunedByAge, err := s.pruneOnce(old, byAge)
		if err != nil || !pruned && !prunedByAge {
			return
		}
		byAge = prunedByAge
		select {
		case <-s.ended.Done():
			return
		case <-time.After(prunePause):
		}
	}
}

// pruneOnce prunes the oldest changes of the feed and of the history, up to pruneStep of each,
// in one transaction. It reports whether there were any. If another instance prunes now, it does nothing.
func (s *Store) pruneOnce(old int64, byAge bool) (pruned, prunedByAge bool, err error) {
	ctx, cancel := context.WithTimeout(s.ended, s.opts.timeout)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return false, false, err
	}
	defer conn.Release()
	err = transact(ctx, conn, s.opts, func(tx pgx.Tx) error {
		var ofFeed, ofHistory, displaced, feedAge, historyAge, historyChanges int64
		err := tx.QueryRow(ctx, s.sql.lockPruning).Scan(&ofFeed, &ofHistory, &displaced, &feedAge, &historyAge, &historyChanges)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		step := func(sql string, after, limit int64, more ...any) bool {
			if err != nil {
				return false
			}
			var tag pgconn.CommandTag
			tag, err = tx.Exec(ctx, sql, append([]any{after, pruneStep, limit, schemaVersion}, more...)...)
			return tag.RowsAffected() > 0
		}
		pruned = step(s.sql.prune, ofFeed, feedAge, old)
		if historyAge > 0 {
			pruned = step(s.sql.displace, displaced, historyChanges) || pruned
		}
		if byAge {
			prunedByAge = step(s.sql.pruneHistory, ofHistory, historyAge)
		}
		return err
	})
	return pruned, prunedByAge, err
}
