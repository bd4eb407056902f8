package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
)

// turnAttempts bounds how often a turn is tried that has not come to its commit.
const turnAttempts = 5

// runWriter is the one goroutine of the Store that writes. It ends once the queue is
// closed and everything in it is answered.
func (s *Store) runWriter() {
	for s.queue.wait() {
		s.takeTurn()
	}
}

// takeTurn carries out the writes that wait. They are taken when there is a
// connection and no sooner: until then their callers are free to go. Where there
// is none, that is nobody's fault more than another's.
func (s *Store) takeTurn() {
	conn, err := s.acquire(context.Background())
	if err != nil {
		answerAll(s.queue.takeAll(), unavailable(err))
		return
	}
	if batch := s.queue.take(); len(batch) > 0 {
		s.carryOut(conn, batch)
		return
	}
	conn.Release()
}

func answerAll(batch []*write, err error) {
	for _, w := range batch {
		w.answer(err)
	}
}

// carryOut tries the writes together. Where the server refuses what is in one of
// them, each is tried apart, so that it does not fail the others.
func (s *Store) carryOut(conn *pgxpool.Conn, batch []*write) {
	err := s.tryTurns(conn, batch)
	if len(batch) > 1 && isOfContent(err) {
		s.carryOutApart(batch)
		return
	}
	answerFailed(batch, s.explain(context.Background(), err))
}

// carryOutApart goes on for as long as it is a write of its own that fails.
func (s *Store) carryOutApart(batch []*write) {
	for i := range batch {
		conn, err := s.acquire(context.Background())
		if err == nil {
			err = s.tryTurns(conn, batch[i:i+1])
		}
		answerFailed(batch[i:i+1], err)
		if err != nil && !isOfContent(err) {
			answerAll(batch[i+1:], unavailable(err))
			return
		}
	}
}

// answerFailed answers the writes of a turn that has not answered them itself.
func answerFailed(batch []*write, err error) {
	switch {
	case err == nil:
	case errors.Is(err, relayer.ErrOutcomeUnknown):
		answerAll(batch, err)
	default:
		answerAll(batch, unavailable(err))
	}
}

// tryTurns tries again what fails for a passing reason before the commit.
func (s *Store) tryTurns(conn *pgxpool.Conn, batch []*write) error {
	for attempt := 1; ; attempt++ {
		err := s.tryTurn(conn, batch)
		release(conn, err)
		if err == nil || errors.Is(err, relayer.ErrOutcomeUnknown) || !isPassing(err) || attempt == turnAttempts {
			return err
		}
		time.Sleep(time.Millisecond << attempt)
		if conn, err = s.acquireAlive(context.Background()); err != nil {
			return err
		}
	}
}

// tryTurn asks for the turn and sends all writes at once, and then all that
// follows from their answers, the commit included: until the second message
// leaves nothing can have been committed. It answers the writes where it returns
// nil. An error that is not [relayer.ErrOutcomeUnknown] means that nothing has
// been written.
func (s *Store) tryTurn(conn *pgxpool.Conn, batch []*write) error {
	before, outcomes, err := s.sendWrites(conn, batch)
	if err == nil && (s.unconfirmed.any() || slices.ContainsFunc(outcomes, func(o outcome) bool { return o.changes })) {
		err = s.sendCommit(conn, before, outcomes)
	} else {
		s.abandon(conn)
	}
	if err != nil {
		return err
	}
	for i, w := range batch {
		w.answer(outcomes[i].refused)
	}
	return nil
}

// settings are those of a transaction that writes. The server stops waiting for the
// write lock before the Store stops waiting for the server, which would cost the
// connection. A client that holds the write lock and stalls loses it soon, so that
// other writers wait and do not fail. Commits are synced whatever the session is set
// to. The planner uses the indexes even if a plan was made for small tables.
const settings = `
	SELECT set_config('lock_timeout', $1::text, true),
		set_config('statement_timeout', $2::text, true),
		set_config('idle_in_transaction_session_timeout', $3::text, true),
		CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END,
		set_config('enable_seqscan', 'off', true),
		set_config('jit', 'off', true)`

// milliseconds is a time as the server takes it, which has an end.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, min(d.Milliseconds(), math.MaxInt32)), 10)
}

// minIdleTimeout is far above what a client takes between two messages of a
// transaction, which are microseconds.
const minIdleTimeout = 250 * time.Millisecond

// parameters are those of settings.
func (o options) parameters() []any {
	return []any{milliseconds(o.timeout / 4 * 3), milliseconds(o.timeout), milliseconds(max(o.timeout/10, minIdleTimeout))}
}

// writeAlone runs a transaction that is no turn, under the same settings and
// whatever the defaults of the session are.
func writeAlone(ctx context.Context, db interface {
	BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)
}, opts options, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings, opts.parameters()...); err != nil {
			return err
		}
		return do(tx)
	})
}

// counters are those of the table state.
type counters struct {
	position int64 // the last in the creation order
	revision int64 // the last revision, which is the number of the last change
}

// after returns the counters with what the outcomes have taken.
func (c counters) after(outcomes []outcome) counters {
	for _, o := range outcomes {
		if o.count > 0 {
			c.position = max(c.position, o.first+o.count-1)
		}
		c.revision = max(c.revision, o.number)
	}
	return c
}

// sendWrites returns the stored counters and what the writes have done.
func (s *Store) sendWrites(conn *pgxpool.Conn, batch []*write) (stored counters, outcomes []outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.timeout)
	defer cancel()
	asked := new(pgx.Batch)
	asked.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`)
	asked.Queue(settings, s.opts.parameters()...)
	asked.Queue(s.sql.lock)
	before := asked.Len()
	asked.Queue(s.sql.state)
	for _, w := range batch {
		w.ask(asked)
	}
	results := conn.SendBatch(ctx, asked)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
	}()
	if err := skip(results, before); err != nil {
		return stored, nil, err
	}
	// A newer version of this package may have upgraded the schema meanwhile.
	var found format
	if err := results.QueryRow().Scan(&found.version, &found.minWriter, &stored.position, &stored.revision); err != nil {
		return stored, nil, err
	}
	if err := found.permits(s.opts.version()); err != nil {
		return stored, nil, err
	}
	for _, w := range batch {
		made, err := w.read(results)
		if err != nil {
			return stored, nil, err
		}
		outcomes = append(outcomes, made)
	}
	return stored, outcomes, nil
}

// sendCommit makes the writes final. It has all the time there is, however long
// the turn was waited for: what is cut off here leaves an unknown outcome.
func (s *Store) sendCommit(conn *pgxpool.Conn, stored counters, outcomes []outcome) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.timeout)
	defer cancel()
	last := new(pgx.Batch)
	if shifts := shiftsOf(outcomes); len(shifts) > 0 {
		depths, nodes, by := columnsOf(shifts)
		last.Queue(s.sql.count, depths, nodes, by)
	}
	// Also if nothing has changed: a commit waits for the disk and the standby only
	// if it has written.
	raised := stored.after(outcomes)
	last.Queue(s.sql.advance, raised.position, raised.revision, stored.revision)
	last.Queue(s.sql.notify, s.feed.listener.channel)
	last.Queue(`COMMIT`)
	results := conn.SendBatch(ctx, last)
	// Once the answer to the commit is there, nothing that comes after it counts.
	err := skip(results, last.Len())
	_ = results.Close()
	if err == nil {
		s.unconfirmed.clear()
		s.feed.listener.wake()
		return nil
	}
	s.abandon(conn)
	// The driver reports if not a byte of the message has left. A session that ended
	// because it was idle has not read the message.
	if isRefusal(err) || pgconn.SafeToRetry(err) || hasCode(err, idleInTransaction) {
		return err
	}
	return outcomeUnknown(err)
}

// skip reads the answers of statements that say nothing but that they succeeded.
func skip(results pgx.BatchResults, count int) error {
	for range count {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return nil
}

// abandon ends a transaction without a commit. A connection on which even that
// fails is not used again.
func (s *Store) abandon(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.timeout)
	defer cancel()
	_, _ = conn.Exec(ctx, `ROLLBACK`)
}
