package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-relayer/relayer"
)

// MarkPrimary marks a connection as one that led to a primary when it was asked.
func MarkPrimary(conn *pgconn.PgConn) { conn.CustomData()[primaryKey] = timeline{} }

// Queued returns how many writes wait to be sent.
func (s *Store) Queued() int { return s.queue.Len() }

// IsPrimaryAway reports whether one caller connects for all others, because no host leads to a primary.
func (s *Store) IsPrimaryAway() bool { return s.writer.prober.lastFailure() != nil }

// PruneAll prunes all changes, however new they are.
func (s *Store) PruneAll() error {
	shift := func(by int64) error {
		_, err := s.pool.Exec(s.ended, inSchema(s.opts.schema, `UPDATE $schema.pruning SET feed_age = feed_age + $1`), by)
		return err
	}
	const years = 1e15
	if err := shift(-years); err != nil {
		return err
	}
	s.pruneOldChanges()
	return shift(years)
}

// PruneEach makes the Store prune at an interval too.
func (s *Store) PruneEach(interval time.Duration) {
	s.background.Go(func() { s.pruneChanges(interval) })
	s.background.Go(func() { s.checkServers(interval) })
}

// SetQueueFull sets what is known of the queue of notifications until the servers are checked.
func (s *Store) SetQueueFull() { s.isQueueFull.Store(true) }

// IsQueueFull reports whether no notifications are sent.
func (s *Store) IsQueueFull() bool { return s.isQueueFull.Load() }

// PruneSoon makes the feed lose changes after a tenth of a second, and the Store prune as often.
func (s *Store) PruneSoon() error {
	const tenth = 100 * time.Millisecond
	defer s.PruneEach(tenth)
	conn, err := s.acquire(s.ended)
	if err != nil {
		return err
	}
	defer conn.Release()
	return transact(s.ended, conn, s.opts, func(tx pgx.Tx) error {
		_, err := tx.Exec(s.ended, s.in(`UPDATE $schema.pruning SET feed_age = $1`), tenth.Microseconds())
		return err
	})
}

// LastPosition returns the position of the last change.
func (s *Store) LastPosition(ctx context.Context) (string, error) { return s.lastPosition(ctx) }

// ReadChanges reads the changes after a position from the database.
func (s *Store) ReadChanges(ctx context.Context, after string) error {
	_, err := s.changesAfter(ctx, after)
	return err
}

// CauseOf returns the error of a call that ends with err when ctx may be done.
func CauseOf(ctx context.Context, err error) error { return new(Store).causeOf(ctx, err) }

var ErrNoSchema = errNoSchema

// ExpectCluster replaces the system identifier that the Store has seen.
func (s *Store) ExpectCluster(system string) { s.known.highest.system = system }

// Survey asks all servers for their timelines.
func (s *Store) Survey() { s.survey(s.ended) }

// ConnectTimeout sets how long an operation waits for a connection.
func ConnectTimeout(timeout time.Duration) Option {
	return Option{func(o *options) error { o.connectTimeout = timeout; return nil }}
}

// Options applies several options, in order.
func Options(all ...Option) Option {
	return Option{func(o *options) error {
		for _, option := range all {
			if err := option.apply(o); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Feed is the memory of the changes.
type Feed = feed

// Add adds changes that were read.
func (f *Feed) Add(changes ...relayer.RecordChange) { f.add(batch{changes: changes}) }

// SizeInFeed returns what a change counts in the memory of the feed.
func SizeInFeed(change relayer.RecordChange) int { return feedSize(change) }
