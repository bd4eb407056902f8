package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/go-relayer/relayer"
)

// pollInterval is how often the feed looks for changes without a notification,
// which can be lost: a pooler in transaction mode passes on none. If it could not listen for
// notifications, it tries again after listenPause.
const (
	pollInterval = time.Second
	listenPause  = 5 * time.Second
)

// A Watch that has nothing to yield yields a heartbeat after heartbeatInterval: with the next
// read of the feed, it is at most 5 seconds after the last element. A server is unreachable if
// no read has succeeded for unreachableLimit.
const (
	heartbeatInterval = 3 * time.Second
	unreachableLimit  = 15 * time.Second
)

// The feed keeps this much in memory at most.
const (
	maxFeedChanges = 2048
	maxFeedBytes   = 16 << 20
)

// A watcher takes this much at once, and holds it while its consumer is slow. The function
// changes_after of the schema has the same limits, and counts the bytes of documents and private
// parts only.
const (
	maxReadChanges = 128
	maxReadBytes   = 256 << 10
)

// feed reads the changes once for all watchers of a Store, while there are any, and keeps the
// latest in memory. A watcher that is further behind reads from the database.
type feed struct {
	store *Store

	mu       sync.Mutex
	watching int
	stop     context.CancelFunc
	wake     context.CancelFunc // ends the wait for a notification; nil before the first one
	closed   bool
	running  sync.WaitGroup
	base     string // the position before recent; empty if unknown
	recent   []relayer.RecordChange
	bytes    int
	complete time.Time     // recent has all changes that were acknowledged before
	failing  time.Time     // when the first of the reads began that have failed since the last success
	updated  chan struct{} // closed when recent changes; nil without a watcher that waits
}

// feedSize returns roughly the memory of a change.
func feedSize(c relayer.RecordChange) int {
	size := sizeOf(c.Record) + len(c.OldText)
	for _, term := range slices.Concat(c.Record.Terms, c.OldTerms) {
		size += 16 + len(term) // with its header
	}
	return size
}

// batch is what a read of the feed has found.
type batch struct {
	changes []relayer.RecordChange

	// complete is the time up to which the changes are complete behind the last one. It is
	// zero if the read does not show it.
	complete time.Time
}

// mark identifies a change, and the point of the feed behind it. Its number alone does not, because a restored backup
// and a failover that loses commits give numbers again.
type mark struct {
	number int64
	at     int64 // in microseconds since 1970; 0 if there has been no change
}

func (m mark) position() string { return fmt.Sprintf("%d.%d", m.number, m.at) }

// parseMark parses a position, which can be any text.
func parseMark(position string) (m mark, ok bool) {
	_, err := fmt.Sscanf(position, "%d.%d", &m.number, &m.at)
	return m, err == nil && m.number >= 0 && m.position() == position
}

// join counts one more watcher, until leave is called.
func (f *feed) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watching++
	if f.watching > 1 || f.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	f.running.Go(func() { f.run(ctx) })
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watching--; f.watching == 0 {
		f.end()
	}
}

// end stops the reader. The caller holds f.mu.
func (f *feed) end() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	f.reset()
}

func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	f.end()
	f.mu.Unlock()
	f.running.Wait()
}

// after returns the next changes after a position, and when the first read of the feed began that
// has failed since the last success: zero if the last one has succeeded. It returns false if the
// buffer does not have the position.
func (f *feed) after(position string) (found batch, failing time.Time, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, isKept := 0, f.base == position
	for i := len(f.recent); i > 0 && !isKept; i-- {
		next, isKept = i, f.recent[i-1].Position == position
	}
	if f.base == "" || !isKept {
		return batch{}, time.Time{}, false
	}
	end, size := next, 0
	for ; end < len(f.recent) && end < next+maxReadChanges && size <= maxReadBytes; end++ {
		size += feedSize(f.recent[end])
	}
	found = batch{slices.Clone(f.recent[next:end]), f.complete} // a slice of the buffer would keep all of it in memory
	if end < len(f.recent) {
		found.complete = f.recent[end-1].Time
	}
	return found, f.failing, true
}

// next returns a channel that is closed when the buffer changes.
func (f *feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.updated == nil {
		f.updated = make(chan struct{})
	}
	return f.updated
}

// run reads until ctx is done, after each notification of an instance and each pollInterval.
func (f *feed) run(ctx context.Context) {
	var conn *pgx.Conn
	var failed time.Time // to listen
	for ctx.Err() == nil {
		if conn == nil && time.Since(failed) >= listenPause {
			if conn = f.listen(ctx); conn == nil {
				failed = time.Now()
			}
		}
		// Before the read, so that what is written after it is noticed.
		waiting := f.beginWait(ctx)
		for f.readOnce(ctx) {
		}
		if conn == nil {
			<-waiting.Done()
			continue
		}
		if _, err := conn.WaitForNotification(waiting); err == nil {
			dropNotifications(ctx, conn)
		}
		if conn.IsClosed() || f.store.known.requirePrimary(ctx, conn.PgConn()) != nil {
			closeSoon(conn)
			conn = nil
		}
	}
	if conn != nil {
		closeSoon(conn)
	}
}

// beginWait returns a context that ends at the next poll or write of this Store.
func (f *feed) beginWait(ctx context.Context) context.Context {
	waiting, wake := context.WithTimeout(ctx, pollInterval)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake != nil {
		f.wake()
	}
	f.wake = wake
	return waiting
}

// written makes the feed read what this Store has written.
func (f *feed) written() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wake != nil {
		f.wake()
	}
}

// channel is the name of the channel on which instances notify each other.
func (o options) channel() string { return o.schema + "_changes" }

// listen returns a connection that receives the notifications of all instances, or nil. It has
// the settings of the pool, but is outside of it: it would occupy a connection all the time.
func (f *feed) listen(ctx context.Context) *pgx.Conn {
	ctx, cancel := context.WithTimeout(ctx, min(f.store.opts.timeout, pollInterval)) // meanwhile the feed is not read
	defer cancel()
	config, err := f.store.connConfig(ctx)
	if err != nil {
		return nil
	}
	// A pool may send a cancel request instead, each time that no notification arrives.
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil
	}
	if err = f.store.known.requirePrimary(ctx, conn.PgConn()); err == nil {
		_, err = conn.Exec(ctx, `LISTEN `+pgx.Identifier{f.store.opts.channel()}.Sanitize())
	}
	if err != nil {
		closeSoon(conn)
		return nil
	}
	return conn
}

// dropNotifications receives what is notified within some milliseconds: the next read reads all of
// it, and one read for each notification could be slower than the writers.
func dropNotifications(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	for err := error(nil); err == nil; {
		_, err = conn.WaitForNotification(ctx)
	}
}

func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// readOnce reports whether there may be more to read.
func (f *feed) readOnce(ctx context.Context) bool {
	begun := time.Now()
	reading, cancel := context.WithTimeout(ctx, unreachableLimit)
	defer cancel()
	var found batch
	last, err := f.last(), error(nil)
	isFirst := last == ""
	if isFirst {
		last, err = f.store.lastPosition(reading)
	} else {
		found, err = f.store.changesAfter(reading, last)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	isGap := errors.Is(err, relayer.ErrGap)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil || isGap:
		f.failing = time.Time{}
	case f.failing.IsZero():
		f.failing = begun
	}
	switch {
	case isGap || !isFirst && err != nil && isPermanent(err):
		f.reset() // each watcher reads from the database, and gets the gap or the error there
	case err != nil:
		return false
	case isFirst:
		f.base, f.complete = last, begun
	case len(found.changes) == 0:
		f.complete = found.complete // heartbeats have time: no watcher is woken
		return false
	default:
		f.add(found)
	}
	if f.updated != nil {
		close(f.updated)
		f.updated = nil
	}
	return err == nil
}

// last returns the position of the last change, or nothing if it is unknown.
func (f *feed) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) > 0 {
		return f.recent[len(f.recent)-1].Position
	}
	return f.base
}

func (f *feed) reset() {
	f.base, f.recent, f.bytes, f.complete, f.failing = "", nil, 0, time.Time{}, time.Time{}
}

// add adds changes, and drops the oldest ones.
func (f *feed) add(found batch) {
	f.complete = found.date(f.complete)
	f.recent = append(f.recent, found.changes...)
	for _, c := range found.changes {
		f.bytes += feedSize(c)
	}
	for ; len(f.recent) > maxFeedChanges || f.bytes > maxFeedBytes; f.recent = f.recent[1:] {
		f.bytes -= feedSize(f.recent[0])
		f.base, f.recent[0] = f.recent[0].Position, relayer.RecordChange{} // frees its memory
	}
}

// lastPosition returns the position of the last change.
func (s *Store) lastPosition(ctx context.Context) (string, error) {
	found, err := s.List(ctx, relayer.StoreQuery{})
	if err != nil {
		return "", err
	}
	return found.Position, nil
}

// changesAfter returns the next changes. It returns ErrGap if there is a gap before them. The
// last are complete up to the time of the call: a write that was acknowledged before is visible.
func (s *Store) changesAfter(ctx context.Context, position string) (found batch, err error) {
	seen, ok := parseMark(position)
	if !ok {
		seen = mark{number: -1} // which no feed reaches back to
	}
	begun := time.Now()
	var isCut, isLast bool
	err = s.tryRead(ctx, s.in(sqlChanges), []any{seen.number, seen.at}, func(rows pgx.Rows) (err error) {
		found.changes, isCut, isLast, err = readChanges(rows)
		return err
	})
	if err == nil && isCut {
		err = relayer.ErrGap
	}
	if isLast {
		found.complete = begun
	}
	return found, err
}

func readChanges(rows pgx.Rows) (found []relayer.RecordChange, isCut, isLast bool, err error) {
	isLast = true // if there is none
	for rows.Next() {
		var number, at pgtype.Int8
		var last pgtype.Bool
		change, err := scanChange(rows, &isCut, &last, &number, &at)
		if err != nil {
			return nil, false, false, err
		}
		if number.Valid {
			change.Position = mark{number.Int64, at.Int64}.position()
			found = append(found, change)
		}
		isLast = last.Bool
	}
	return found, isCut, isLast, rows.Err()
}

// scanChange reads a change behind other columns.
func scanChange(from pgx.CollectableRow, others ...any) (change relayer.RecordChange, err error) {
	var row row
	var kind, oldText pgtype.Text
	err = from.Scan(append(append(others, &kind, &change.OldTerms, &oldText), row.columns()...)...)
	change.Kind, change.Record, change.OldText = relayer.ChangeKind(kind.String), row.record(), oldText.String
	if len(row.private) == 0 {
		change.Record.Private = nil // of a history, and of a change that is not the last of its record
	}
	return change, err
}

// date sets the times of the changes, and returns the time up to which the feed is complete
// behind them. Before them it is complete up to a time: so it is between two changes that one
// read has found, because writes may have been acknowledged between them.
func (b batch) date(before time.Time) time.Time {
	for i := range b.changes {
		b.changes[i].Time = before
	}
	if b.complete.IsZero() {
		return before
	}
	if last := len(b.changes) - 1; last >= 0 {
		b.changes[last].Time = b.complete
	}
	return b.complete
}
