package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// forgetOldChanges ends what is kept for those who watch once it is old enough.
func (s *Store) forgetOldChanges() {
	ticker := time.NewTicker(min(s.opts.changeRetention, time.Minute))
	defer ticker.Stop()
	for {
		select {
		case <-s.ended.Done():
			return
		case <-ticker.C:
			s.forgetOnce()
		}
	}
}

// forgetOnce leaves the rest for the next time where it fails: somebody is told
// of changes a little longer.
func (s *Store) forgetOnce() {
	for {
		ctx, cancel := context.WithTimeout(s.ended, s.opts.timeout)
		var tag pgconn.CommandTag
		err := writeAlone(ctx, s.pool, s.opts, func(tx pgx.Tx) (err error) {
			tag, err = tx.Exec(ctx, s.sql.forget, s.opts.changeRetention.Microseconds())
			return err
		})
		cancel()
		if err != nil || tag.RowsAffected() == 0 {
			return
		}
	}
}
