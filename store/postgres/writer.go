package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// A batch is bounded, so that many waiting writes neither delay the first of them nor keep other
// instances waiting for the write lock. A single write may exceed maxBatchBytes.
const (
	maxBatchWrites = 256
	maxBatchBytes  = 8 << 20
)

// write is one that waits for its transaction.
type write = storeutil.QueuedWrite[change]

type change struct {
	ids []string // of the records that it can change
	// ask adds the statement of the write to a message, and read reads its result.
	// The error of read is that of the whole transaction.
	ask  func(*pgx.Batch)
	read func(pgx.BatchResults) (outcome, error)
}

// do queues a write and waits for its result. A write that is not taken from the
// queue within the timeout of the Store is not made.
func (s *Store) do(ctx context.Context, size int, c change) error {
	limited, cancel := context.WithTimeout(ctx, s.opts.timeout)
	defer cancel()
	err := s.queue.Do(limited, size, c)
	if err == context.DeadlineExceeded && ctx.Err() == nil { // and not an error that wraps it
		return fmt.Errorf("%w: the write waited longer than %v for earlier writes", relayer.ErrUnavailable, s.opts.timeout)
	}
	return err
}

// writeBatch commits the waiting writes together. It takes them from the queue only
// when it has a connection: until then their callers can give up. If there is no
// connection, all waiting writes fail, also those beyond one batch.
func (s *Store) writeBatch(ctx context.Context) {
	conn, err := s.writer.acquire(ctx)
	if err != nil && ctx.Err() != nil {
		return // it is the reason, and only for this caller
	}
	if err != nil {
		for s.queue.Len() > 0 {
			finishAll(s.queue.Take(), failed(err))
		}
		return
	}
	if taken := s.queue.Take(); len(taken) > 0 {
		s.commit(conn, taken)
		return
	}
	conn.Release()
}

func finishAll(taken []*write, err error) {
	for _, w := range taken {
		w.Finish(err)
	}
}

// commit tries the writes together. If the server refuses one of them for ever, each is tried
// in a separate transaction, so that it does not fail the others.
func (s *Store) commit(conn *conn, taken []*write) {
	err := s.tryTransactions(conn, taken)
	if len(taken) > 1 && isRefusedForEver(err) {
		s.commitSeparately(taken)
		return
	}
	s.finishFailed(taken, err)
	// Before the next write goes to the same server.
	if errors.Is(err, relayer.ErrOutcomeUnknown) || hasCode(err, lockNotAvailable) {
		s.survey(s.ended)
	}
}

// commitSeparately stops at the first error that concerns all writes.
func (s *Store) commitSeparately(taken []*write) {
	for i := range taken {
		conn, err := s.writer.acquire(context.Background())
		if err == nil {
			err = s.tryTransactions(conn, taken[i:i+1])
		}
		s.finishFailed(taken[i:i+1], err)
		if err != nil && !isRefusedForEver(err) {
			finishAll(taken[i+1:], failed(err))
			return
		}
	}
}

func (s *Store) finishFailed(taken []*write, err error) {
	if err == nil {
		return
	}
	if !errors.Is(err, relayer.ErrOutcomeUnknown) {
		finishAll(taken, failed(err))
		return
	}
	// Before the next write, which can be a repetition of one of these.
	for _, w := range taken {
		for _, id := range w.Value.ids {
			s.unconfirmed.Store(id, true)
		}
	}
	finishAll(taken, err)
}

// tryTransactions repeats a transaction that fails for a transient reason before its commit.
func (s *Store) tryTransactions(conn *conn, taken []*write) error {
	for attempt := 1; ; attempt++ {
		err := s.tryTransaction(conn, taken)
		release(conn, err)
		if err == nil || errors.Is(err, relayer.ErrOutcomeUnknown) || !isTransient(err) || attempt == s.attempts {
			return err
		}
		// If no notification was sent, it is another limit. The next check of the servers resets it.
		if hasCode(err, programLimitExceeded) && s.isQueueFull.Swap(true) {
			return err
		}
		time.Sleep(time.Millisecond << min(attempt, 5))
		if conn, err = s.writer.acquire(context.Background()); err != nil {
			return err
		}
	}
}

// tryTransaction sends two messages: first the write lock and all writes, then what
// follows from their results, with the commit. Nothing can be committed before the
// second message is sent. It finishes the writes if it returns nil. An error other
// than [relayer.ErrOutcomeUnknown] means that nothing was written.
func (s *Store) tryTransaction(conn *conn, taken []*write) error {
	stored, outcomes, err := s.sendWrites(conn, taken)
	if err == nil && (s.hasUnconfirmed() || slices.ContainsFunc(outcomes, func(o outcome) bool { return o.number > 0 })) {
		err = s.sendCommit(conn, stored, outcomes)
	} else {
		s.rollBack(conn)
	}
	if err != nil {
		return err
	}
	for i, w := range taken {
		w.Finish(outcomes[i].refused)
	}
	return nil
}

// settings apply to a transaction that writes. The server stops waiting for the write
// lock before the Store stops waiting for the server, which would cost the
// connection. A client that holds the write lock and stalls loses it soon, so that
// other writers wait and do not fail. Commits are synced even if the session turns that
// off. Warnings are sent, because a canceled wait for the standby is only reported by
// one. The planner uses the indexes even if a plan was made for small tables.
const settings = `
	SELECT set_config('lock_timeout', $1::text, true),
		set_config('statement_timeout', $2::text, true),
		set_config('idle_in_transaction_session_timeout', $3::text, true),
		CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END,
		set_config('client_min_messages', 'warning', true),
		set_config('enable_seqscan', 'off', true),
		set_config('enable_tidscan', 'on', true),
		set_config('jit', 'off', true)`

// transactionLimit ends a transaction whose client stalls in the middle of a message, while the
// server does not count it as idle. Versions before 17 do not have this limit.
const transactionLimit = `SELECT CASE WHEN current_setting('server_version_num')::int >= 170000 THEN set_config('transaction_timeout', $1::text, true) END`

// milliseconds returns a duration within the range of a setting.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(1, min(d.Milliseconds(), math.MaxInt32)), 10)
}

// stallTimeout is how long a client may stall in a transaction, and after which a slow server is
// suspected. It is far above the microseconds that a client needs between two messages.
func (o options) stallTimeout() time.Duration { return max(o.timeout/10, 250*time.Millisecond) }

// parameters returns those of settings. The server ends the transaction after the client was
// idle for so long.
func (o options) parameters(idle time.Duration) []any {
	return []any{milliseconds(o.timeout / 4 * 3), milliseconds(o.timeout), milliseconds(idle)}
}

// transact runs a transaction outside of the writer. Its settings do not depend on the
// defaults of the session. It does not hold the write lock, so that its client may stall for
// longer, but less than others wait for its own locks.
func transact(ctx context.Context, conn *conn, opts options, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, settings, opts.parameters(opts.timeout/2)...); err != nil {
			return err
		}
		return do(tx)
	})
}

// counters are two counters of the table state.
type counters struct {
	sequence int64 // the last sequence number
	revision int64 // the last revision, which is the number of the last change
}

// sendWrites sends the first message. It returns the stored counters and the results
// of the writes.
func (s *Store) sendWrites(conn *conn, taken []*write) (stored counters, outcomes []outcome, err error) {
	ctx, stop := s.whilePrimary(conn.Conn().PgConn(), s.opts.timeout, s.opts.stallTimeout())
	defer stop()
	seen := s.seen.Load()
	message := new(pgx.Batch)
	message.Queue(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`)
	message.Queue(settings, s.opts.parameters(s.opts.stallTimeout())...)
	message.Queue(transactionLimit, milliseconds(2*min(s.opts.timeout, math.MaxInt64/2)))
	message.Queue(s.in(sqlLock))
	preamble := message.Len()
	message.Queue(s.in(sqlState))
	for _, w := range taken {
		w.Value.ask(message)
	}
	results := conn.SendBatch(ctx, message)
	defer func() { err = s.causeOf(ctx, cmp.Or(err, results.Close())) }()
	if err := skip(results, preamble); err != nil {
		return stored, nil, err
	}
	// A newer version of this package may have upgraded the schema.
	var found format
	if err := results.QueryRow().Scan(&found.version, &found.minWriter, &stored.sequence, &stored.revision, nil, nil); err != nil {
		return stored, nil, err
	}
	if err := found.permits(schemaVersion); err != nil {
		return stored, nil, err
	}
	s.see(seen, stored.revision)
	for _, w := range taken {
		o, err := w.Value.read(results)
		if err != nil {
			return stored, nil, err
		}
		outcomes = append(outcomes, o)
	}
	return stored, outcomes, nil
}

// sendCommit sends the second message. It has the whole timeout, however long the
// wait for the write lock was: a commit that is cut off has an unknown outcome.
func (s *Store) sendCommit(conn *conn, stored counters, outcomes []outcome) error {
	ctx, stop := s.whilePrimary(conn.Conn().PgConn(), s.opts.timeout, s.opts.stallTimeout())
	defer stop()
	message := new(pgx.Batch)
	// The counters are written also if nothing has changed: a commit waits for the
	// disk and the standby only if it has written.
	raised, total := stored, 0
	var flipped, lost entries
	for _, o := range outcomes {
		raised.sequence, raised.revision = max(raised.sequence, o.sequence), max(raised.revision, o.number)
		total += o.total
		flipped.add(o.gained)
		flipped.add(o.lost)
		lost.add(o.lost)
	}
	message.Queue(s.in(sqlFinish), flipped.terms, flipped.of, total, raised.sequence, raised.revision, stored.revision, s.opts.channel(), !s.isQueueFull.Load())
	if len(lost.terms) > 0 {
		message.Queue(s.in(sqlDropEmpty), lost.terms, lost.of)
	}
	message.Queue(`COMMIT`)
	takeWarning(conn.Conn().PgConn())
	results := conn.SendBatch(ctx, message)
	err := skip(results, message.Len())
	_ = results.Close() // what follows the result of COMMIT does not matter
	// A commit that was canceled while it waited for the standby succeeds locally.
	// The driver of a host may cancel it when ctx ends.
	if err == nil && (takeWarning(conn.Conn().PgConn()) || ctx.Err() != nil) {
		return outcomeUnknown(errors.New("the commit did not wait for the standby"))
	}
	if err == nil {
		s.unconfirmed.Clear()
		s.see(stored.revision, raised.revision)
		s.feed.written()
		return nil
	}
	s.rollBack(conn)
	if hasCode(err, divisionByZero) { // by the number of rows of state that were changed
		return errDropped
	}
	// The driver reports if not a byte of the message was sent, and prepares its statements
	// before it sends it. A session that ended because it was idle has not read the message.
	_, isUnsent := errors.AsType[pgx.ErrPreprocessingBatch](err)
	if isUnsent || isRefusal(err) || pgconn.SafeToRetry(err) || hasCode(err, idleInTransaction) {
		return err
	}
	return outcomeUnknown(s.causeOf(ctx, err))
}

// skip reads results of which only the error matters.
func skip(results pgx.BatchResults, count int) error {
	for range count {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	return nil
}

// rollBack ends a transaction without a commit. If that fails, the driver closes the connection.
func (s *Store) rollBack(conn *conn) {
	if conn.Conn().IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.timeout)
	defer cancel()
	_, _ = conn.Exec(ctx, `ROLLBACK`)
}

// hasUnconfirmed reports whether there are writes of unknown outcome. Such a write may be visible
// and yet be lost in a failover, because its commit did not wait for the synchronous
// standby. The next commit that succeeds confirms all of them: it waits for the
// write-ahead log up to its own record, which comes after theirs.
//
// Until then no write succeeds or is refused without a commit. Otherwise a client that repeats a
// write would take for done what a failover can undo.
func (s *Store) hasUnconfirmed() (found bool) {
	s.unconfirmed.Range(func(any, any) bool { found = true; return false })
	return found
}

// confirm waits until all unconfirmed writes are confirmed.
func (s *Store) confirm(ctx context.Context) error {
	if !s.hasUnconfirmed() {
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
