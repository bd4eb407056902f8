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

	"github.com/go-relayer/relayer"
)

// pollInterval is how often the feed looks for changes without a notification,
// which can be lost: a pooler in transaction mode passes on none.
const pollInterval = time.Second

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
	store    *Store
	listener *listener

	mu       sync.Mutex
	watching int
	stop     context.CancelFunc
	closed   bool
	running  sync.WaitGroup
	base     *mark // of the change before the first of recent; nil if unknown
	recent   []storedChange
	bytes    int
	updated  chan struct{} // closed and replaced when recent changes
}

type storedChange struct {
	mark
	relayer.RecordChange
}

func (c storedChange) size() int { return len(c.Record.Document) + len(c.Record.Private) }

// mark identifies a change. Its number alone does not, because a restored backup
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
	return m, errors.Join(errs[:]...) == nil && m.number > 0 && m.position() == position
}

func newFeed(s *Store) *feed {
	return &feed{store: s, listener: &listener{store: s, awake: make(chan struct{})}, updated: make(chan struct{})}
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
	f.running.Go(func() { f.listener.listen(ctx) })
	f.running.Go(func() { f.run(ctx) })
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watching--; f.watching == 0 {
		f.end()
	}
}

// end stops the reader and the listener. The caller holds f.mu.
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

// next returns a channel that is closed when there is more to read.
func (f *feed) next() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.updated
}

// after returns the changes after one that was seen. It returns false if the buffer
// no longer has all of them.
func (f *feed) after(seen mark) ([]storedChange, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.base == nil {
		return nil, false
	}
	if seen == *f.base {
		return slices.Clip(f.recent), true
	}
	i, found := slices.BinarySearchFunc(f.recent, seen.number, func(c storedChange, number int64) int {
		return cmp.Compare(c.number, number)
	})
	if !found || seen != f.recent[i].mark {
		return nil, false
	}
	return slices.Clip(f.recent[i+1:]), true
}

// run reads until ctx is done. Of several feeds of a Store, one after the other,
// only the latest has a context that is not.
func (f *feed) run(ctx context.Context) {
	for ctx.Err() == nil {
		// Before the read, so that what is written after it is noticed.
		written := f.listener.next()
		if f.readOnce(ctx) {
			continue
		}
		select {
		case <-written:
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
}

// readOnce reports whether there may be more to read.
func (f *feed) readOnce(ctx context.Context) bool {
	last := f.last()
	if last == nil {
		begin, err := f.store.lastChange(ctx)
		if err == nil {
			f.update(ctx, func() { f.base = &begin })
		}
		return err == nil
	}
	found, err := f.store.changesAfter(ctx, *last)
	switch {
	case errors.Is(err, relayer.ErrGap) || err != nil && isPermanent(err):
		// Each watcher reads from the database, and gets the gap or the error there.
		f.update(ctx, f.reset)
		return errors.Is(err, relayer.ErrGap)
	case err != nil || len(found) == 0:
		return false
	}
	f.update(ctx, func() { f.add(found) })
	return true
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

// update changes what is in memory, unless the reader has been stopped.
func (f *feed) update(ctx context.Context, change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	change()
	close(f.updated)
	f.updated = make(chan struct{})
}

func (f *feed) reset() { f.base, f.recent, f.bytes = nil, nil, 0 }

func (f *feed) add(changes []storedChange) {
	for _, c := range changes {
		f.bytes += c.size()
	}
	// Slices that were handed out stay as they are: append writes behind their ends,
	// and what is dropped is not overwritten.
	f.recent = append(f.recent, changes...)
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
	err = s.tryRead(ctx, s.sql.lastChange, nil, func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(&last.number, &last.at); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return last, err
}

// changesAfter returns the next changes, or ErrGap if there is a gap before them.
func (s *Store) changesAfter(ctx context.Context, seen mark) (found []storedChange, err error) {
	var isCut bool
	err = s.tryRead(ctx, s.sql.changes, []any{seen.number, seen.at}, func(rows pgx.Rows) (err error) {
		found, isCut, err = readChanges(rows)
		return err
	})
	if err == nil && isCut {
		err = relayer.ErrGap
	}
	return found, err
}

func readChanges(rows pgx.Rows) (found []storedChange, isCut bool, err error) {
	for rows.Next() {
		var row row
		var number, at *int64
		var kind *string
		var oldTerms []string
		if err := rows.Scan(append([]any{&isCut, &number, &at, &kind, &oldTerms}, row.columns()...)...); err != nil {
			return nil, false, err
		}
		if number != nil {
			at := mark{*number, *at}
			change := relayer.RecordChange{Kind: relayer.ChangeKind(*kind), Record: row.record(), OldTerms: oldTerms, Position: at.position()}
			found = append(found, storedChange{at, change})
		}
	}
	return found, isCut, rows.Err()
}
