package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// The feed keeps this much in memory at most, and drops the older half of it when
// it is full.
const (
	maxFeedChanges = 2048
	maxFeedBytes   = 16 << 20
)

// feed reads the changes once for all watchers of a Store, while there are any, and
// keeps the latest in memory. A watcher that is further behind reads from the
// database.
type feed struct {
	store *Store

	mu       sync.Mutex
	watching int
	stop     context.CancelFunc
	wake     context.CancelFunc // ends the wait for a notification; nil before the first one
	closed   bool
	running  sync.WaitGroup
	base     *mark // of the change before the first of recent; nil if unknown
	recent   []storedChange
	bytes    int
	complete time.Time // recent has all changes that were acknowledged before
	failing  time.Time // when the first of the reads began that have failed since the last success
	updated  broadcast // when recent has changed
}

type storedChange struct {
	mark
	relayer.RecordChange
}

// size returns roughly the memory of a change.
func (c storedChange) size() int {
	size := sizeOf(c.Record) + len(c.OldText)
	for _, terms := range [][]string{c.Record.Terms, c.OldTerms} {
		for _, term := range terms {
			size += 16 + len(term) // with its header
		}
	}
	return size
}

// batch is what a read of the feed has found.
type batch struct {
	changes []storedChange

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
	number, at, _ := strings.Cut(position, ".")
	var errs [2]error
	m.number, errs[0] = strconv.ParseInt(number, 10, 64)
	m.at, errs[1] = strconv.ParseInt(at, 10, 64)
	return m, errors.Join(errs[:]...) == nil && m.number >= 0 && m.position() == position
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

// after returns the changes after one that was seen. It returns false if the buffer
// no longer has all of them.
func (f *feed) after(seen mark) (batch, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.base == nil {
		return batch{}, false
	}
	if seen == *f.base {
		return batch{slices.Clip(f.recent), f.complete}, true
	}
	i, found := slices.BinarySearchFunc(f.recent, seen.number, func(c storedChange, number int64) int {
		return cmp.Compare(c.number, number)
	})
	if !found || seen != f.recent[i].mark {
		return batch{}, false
	}
	return batch{slices.Clip(f.recent[i+1:]), f.complete}, true
}

// failingSince returns when the first read of the feed began that has failed since the last
// success. It is zero if the last read has succeeded.
func (f *feed) failingSince() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing
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
	var begin mark
	var found batch
	var err error
	last := f.last()
	if last == nil {
		begin, err = f.store.lastChange(reading)
	} else {
		found, err = f.store.changesAfter(reading, *last)
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
	case isGap || last != nil && err != nil && isPermanent(err):
		f.reset() // each watcher reads from the database, and gets the gap or the error there
	case err != nil:
		return false
	case last == nil:
		f.base, f.complete = &begin, begun
	case len(found.changes) == 0:
		f.complete = found.complete // heartbeats have time: no watcher is woken
		return false
	default:
		f.add(found)
	}
	f.updated.wake()
	return err == nil || isGap
}

func (f *feed) last() *mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recent) > 0 {
		last := f.recent[len(f.recent)-1].mark
		return &last
	}
	return f.base
}

func (f *feed) reset() {
	f.base, f.recent, f.bytes, f.complete, f.failing = nil, nil, 0, time.Time{}, time.Time{}
}

func (f *feed) add(found batch) {
	f.complete = found.date(f.complete)
	for _, c := range found.changes {
		f.bytes += c.size()
	}
	// Slices that were handed out stay as they are: append writes behind their ends,
	// and what is dropped is not overwritten.
	f.recent = append(f.recent, found.changes...)
	if len(f.recent) <= maxFeedChanges && f.bytes <= maxFeedBytes {
		return
	}
	dropped := 0
	for len(f.recent)-dropped > maxFeedChanges/2 || f.bytes > maxFeedBytes/2 {
		f.bytes -= f.recent[dropped].size()
		dropped++
	}
	base := f.recent[dropped-1].mark
	f.base = &base
	f.recent = slices.Clone(f.recent[dropped:])
}

func (s *Store) lastChange(ctx context.Context) (last mark, err error) {
	seen := s.seen.Load()
	err = s.tryRead(ctx, s.sql.lastChange, nil, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&last.number, &last.at); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err == nil {
		s.see(seen, last.number)
	}
	return last, err
}

// changesAfter returns the next changes, or ErrGap if there is a gap before them. They are
// complete up to the time of the call: a write that was acknowledged before is visible.
func (s *Store) changesAfter(ctx context.Context, seen mark) (found batch, err error) {
	begun := time.Now()
	var isCut, isLast bool
	err = s.tryRead(ctx, s.sql.changes, []any{seen.number, seen.at}, func(rows pgx.Rows) (err error) {
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

func readChanges(rows pgx.Rows) (found []storedChange, isCut, isLast bool, err error) {
	isLast = true // if there is none
	for rows.Next() {
		var number, at pgtype.Int8
		var last pgtype.Bool
		change, err := scanChange(rows, &isCut, &last, &number, &at)
		if err != nil {
			return nil, false, false, err
		}
		if number.Valid {
			at := mark{number.Int64, at.Int64}
			change.Position = at.position()
			found = append(found, storedChange{at, change})
		}
		isLast = last.Bool
	}
	return found, isCut, isLast, rows.Err()
}

// scanChange reads a change behind other columns.
func scanChange(rows pgx.Rows, others ...any) (change relayer.RecordChange, err error) {
	var row row
	var kind, oldText pgtype.Text
	err = rows.Scan(append(append(others, &kind, &change.OldTerms, &oldText), row.columns()...)...)
	change.Kind, change.Record, change.OldText = relayer.ChangeKind(kind.String), row.record(), oldText.String
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

// broadcast wakes all goroutines that wait for an event. The zero value is ready to use.
type broadcast struct {
	mu   sync.Mutex
	done chan struct{} // nil without a waiter
}

// next returns a channel that is closed at the next wake.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
	}
	return b.done
}

func (b *broadcast) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		close(b.done)
		b.done = nil
	}
}
