package storetest_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// faulty calls functions that a fault may replace. Those of a conforming store are the methods of
// watched.
type faulty struct {
	create      func(context.Context, relayer.Record) (relayer.Record, error)
	get         func(context.Context, string) (relayer.Record, error)
	list        func(context.Context, relayer.StoreQuery) (relayer.Listing, error)
	update      func(context.Context, relayer.Record) (relayer.Record, error)
	remove      func(context.Context, string, uint64, []byte) error
	watch       func(context.Context, string) iter.Seq2[relayer.RecordChange, error]
	history     func(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error)
	load        func(context.Context, []relayer.Record) error
	loadHistory func(context.Context, []relayer.RecordChange) error
	check       func(context.Context) error
}

// fault changes a conforming store.
type fault func(f *faulty, right *watched)

// apply returns a store with the fault.
func (change fault) apply() relayer.Store {
	right := newWatched()
	f := &faulty{
		right.Create, right.Get, right.List, right.Update, right.Delete, right.Watch, right.History,
		right.Import, right.ImportHistory, func(ctx context.Context) error { return ctx.Err() },
	}
	change(f, right)
	return f
}

func (f *faulty) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return f.create(ctx, rec)
}

func (f *faulty) Get(ctx context.Context, id string) (relayer.Record, error) { return f.get(ctx, id) }

func (f *faulty) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return f.list(ctx, query)
}

func (f *faulty) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return f.update(ctx, rec)
}

func (f *faulty) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return f.remove(ctx, id, revision, note)
}

func (f *faulty) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return f.watch(ctx, after)
}

func (f *faulty) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return f.history(ctx, query)
}

func (f *faulty) Import(ctx context.Context, records []relayer.Record) error {
	return f.load(ctx, records)
}

func (f *faulty) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	return f.loadHistory(ctx, changes)
}

func (f *faulty) Check(ctx context.Context) error { return f.check(ctx) }

// watched is a store with a change feed that may be faulty.
type watched struct {
	*memory.Store
	record func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange

	fromTheStart bool
	goesOn       bool // after a gap
	position     func(number int) string
	resume       func(after string, last int) (seen int, isGap bool)
	heartbeat    time.Duration

	mu   sync.Mutex
	log  []relayer.RecordChange
	more chan struct{}
}

func newWatched() *watched {
	return &watched{
		Store: memory.New(), record: logAll, more: make(chan struct{}), position: positionOf, resume: resumeRight, heartbeat: 20 * time.Millisecond,
	}
}

func logAll(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
	return append(log, change)
}

// positionOf returns the position behind a number of changes.
func positionOf(number int) string { return "after-" + strconv.Itoa(number) }

// resumeRight returns how many changes are before the next one.
func resumeRight(after string, last int) (seen int, isGap bool) {
	seen, err := strconv.Atoi(strings.TrimPrefix(after, "after-"))
	if err != nil || seen < 0 || seen > last || positionOf(seen) != after {
		return last, true
	}
	return seen, false
}

// write performs one write at a time and logs the change.
func (w *watched) write(ctx context.Context, kind relayer.ChangeKind, id string, write func() (relayer.Record, error)) (relayer.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old, _ := w.Store.Get(ctx, id)
	rec, err := write()
	if err == nil {
		w.add(kind, rec, old)
	}
	return rec, err
}

// add logs a change. It requires the lock.
func (w *watched) add(kind relayer.ChangeKind, rec, old relayer.Record) {
	change := relayer.RecordChange{Kind: kind, Record: rec, OldTerms: old.Terms, OldText: old.Text, Time: time.Now()}
	switch kind {
	case relayer.ChangeCreated:
		change.OldTerms, change.OldText = nil, ""
	case relayer.ChangeDeleted:
		change.Record = old
		change.Record.Revision, change.Record.Note = rec.Revision, rec.Note
	}
	w.log = w.record(w.log, change)
	close(w.more)
	w.more = make(chan struct{})
}

func (w *watched) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return w.write(ctx, relayer.ChangeCreated, rec.ID, func() (relayer.Record, error) { return w.Store.Create(ctx, rec) })
}

func (w *watched) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return w.write(ctx, relayer.ChangeUpdated, rec.ID, func() (relayer.Record, error) { return w.Store.Update(ctx, rec) })
}

func (w *watched) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	_, err := w.write(ctx, relayer.ChangeDeleted, id, func() (relayer.Record, error) {
		if err := w.Store.Delete(ctx, id, revision, note); err != nil {
			return relayer.Record{}, err
		}
		// The write has its effect, even if ctx is done now.
		past, err := w.Store.History(context.WithoutCancel(ctx), relayer.HistoryQuery{ID: id, Limit: 1})
		if err != nil {
			return relayer.Record{}, err
		}
		return past[0].Record, nil
	})
	return err
}

func (w *watched) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	page, err := w.Store.List(ctx, query)
	page.Position = w.position(len(w.log))
	return page, err
}

func (w *watched) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	w.mu.Lock()
	seen, isGap := len(w.log), false
	if after != "" {
		seen, isGap = w.resume(after, seen)
	}
	w.mu.Unlock()
	if w.fromTheStart {
		seen = 0
	}
	return func(yield func(relayer.RecordChange, error) bool) {
		if isGap && (!yield(relayer.RecordChange{}, relayer.ErrGap) || !w.goesOn) {
			return
		}
		for ctx.Err() == nil {
			w.mu.Lock()
			number := seen
			unseen, more := w.log[seen:], w.more
			w.mu.Unlock()
			seen += len(unseen)
			for _, change := range unseen {
				number++
				change.Position = w.position(number)
				if !yield(change, nil) {
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
			case <-time.After(w.heartbeat):
				w.mu.Lock()
				isIdle := seen == len(w.log)
				beat := relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: w.position(seen), Time: time.Now()}
				w.mu.Unlock()
				if isIdle && !yield(beat, nil) {
					return
				}
			}
		}
	}
}

// Import logs each record as created.
func (w *watched) Import(ctx context.Context, records []relayer.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Store.Import(ctx, records); err != nil {
		return err
	}
	for _, rec := range records {
		imported, _ := w.Store.Get(context.WithoutCancel(ctx), rec.ID)
		w.add(relayer.ChangeCreated, imported, relayer.Record{})
	}
	return nil
}

// A fault of one method gets the conforming store.

func creating(create func(context.Context, *watched, relayer.Record) (relayer.Record, error)) fault {
	return func(f *faulty, right *watched) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) { return create(ctx, right, rec) }
	}
}

func updating(update func(context.Context, *watched, relayer.Record) (relayer.Record, error)) fault {
	return func(f *faulty, right *watched) {
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) { return update(ctx, right, rec) }
	}
}

func deleting(remove func(context.Context, *watched, string, uint64, []byte) error) fault {
	return func(f *faulty, right *watched) {
		f.remove = func(ctx context.Context, id string, revision uint64, note []byte) error {
			return remove(ctx, right, id, revision, note)
		}
	}
}

func listing(list func(context.Context, *watched, relayer.StoreQuery) (relayer.Listing, error)) fault {
	return func(f *faulty, right *watched) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			return list(ctx, right, query)
		}
	}
}

func importing(load func(context.Context, *watched, []relayer.Record) error) fault {
	return func(f *faulty, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error { return load(ctx, right, records) }
	}
}

func logging(record func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange) fault {
	return func(_ *faulty, right *watched) { right.record = record }
}

func resuming(resume func(after string, last int) (seen int, isGap bool)) fault {
	return func(_ *faulty, right *watched) { right.resume = resume }
}

// changedQuery returns a store that executes another query.
func changedQuery(change func(query *relayer.StoreQuery)) fault {
	return listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
		change(&query)
		return right.List(ctx, query)
	})
}

// withCreated returns a store whose create returns another record. Change gets the record
// that was given, and those that were stored before.
func withCreated(change func(made *relayer.Record, given relayer.Record, before []relayer.Record)) fault {
	return creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
		before, _ := right.List(ctx, relayer.StoreQuery{Limit: math.MaxInt})
		made, err := right.Create(ctx, rec)
		change(&made, rec, before.Records)
		return made, err
	})
}

// withStored returns a store that stores another record than the one that it returns.
func withStored(change func(rec *relayer.Record)) fault {
	return creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
		stored := rec
		change(&stored)
		made, err := right.Create(ctx, stored)
		rec.Revision, rec.Sequence = made.Revision, made.Sequence
		return rec, err
	})
}

// changedList returns a store that returns other pages.
func changedList(change func(ctx context.Context, right relayer.Store, query relayer.StoreQuery, page *relayer.Listing)) fault {
	return listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
		page, err := right.List(ctx, query)
		change(ctx, right, query, &page)
		return page, err
	})
}

// changedListed returns a store that changes the records of its pages.
func changedListed(change func(query relayer.StoreQuery, rec *relayer.Record)) fault {
	return changedList(func(_ context.Context, _ relayer.Store, query relayer.StoreQuery, page *relayer.Listing) {
		for i := range page.Records {
			change(query, &page.Records[i])
		}
	})
}

func documentsWithout(change func(rec *relayer.Record)) fault {
	return changedListed(func(query relayer.StoreQuery, rec *relayer.Record) {
		if query.DocumentsOnly {
			change(rec)
		}
	})
}

// searching returns a store with another meaning of [relayer.StoreQuery.Contains].
func searching(contains func(text, part string) bool) fault {
	return listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
		return scan(ctx, right, query, func(rec relayer.Record) bool {
			return len(query.Contains) == 0 || slices.ContainsFunc(query.Contains, func(part string) bool { return contains(rec.Text, part) })
		})
	})
}

// scan executes a query with a function in place of its texts.
func scan(ctx context.Context, store relayer.Store, query relayer.StoreQuery, isFound func(relayer.Record) bool) (relayer.Listing, error) {
	all, err := store.List(ctx, relayer.StoreQuery{Limit: math.MaxInt})
	if err != nil {
		return relayer.Listing{}, err
	}
	query.Contains = nil
	page, err := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
		for _, rec := range all.Records {
			if isFound(rec) && !yield(rec, nil) {
				return
			}
		}
	}, query)
	page.Position = all.Position
	return page, err
}

// isLike is a search by LIKE of SQL whose special characters are not escaped.
func isLike(text, part string) bool {
	var pattern strings.Builder
	for _, r := range strings.ReplaceAll(part, `\`, "") {
		switch r {
		case '%':
			pattern.WriteString("(?s:.*)")
		case '_':
			pattern.WriteString("(?s:.)")
		default:
			pattern.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return regexp.MustCompile(pattern.String()).MatchString(text)
}

// elements returns a Watch method with other elements.
func elements(right relayer.Store, change func(*relayer.RecordChange)) func(context.Context, string) iter.Seq2[relayer.RecordChange, error] {
	return func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
		changes := right.Watch(ctx, after)
		return func(yield func(relayer.RecordChange, error) bool) {
			for got, err := range changes {
				change(&got)
				if !yield(got, err) {
					return
				}
			}
		}
	}
}

type feed = iter.Seq2[relayer.RecordChange, error]

// passing returns a store whose watches get the changes of the right store, and yield others.
func passing(pass func(ctx context.Context, after string, changes feed, yield func(relayer.RecordChange, error) bool)) fault {
	return func(f *faulty, right *watched) {
		f.watch = func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
			changes := right.Watch(ctx, after)
			return func(yield func(relayer.RecordChange, error) bool) { pass(ctx, after, changes, yield) }
		}
	}
}

func changedElements(change func(*relayer.RecordChange)) fault {
	return func(f *faulty, right *watched) { f.watch = elements(right, change) }
}

func changedHeartbeats(change func(*relayer.RecordChange)) fault {
	return changedElements(func(element *relayer.RecordChange) {
		if element.Kind == relayer.ChangeHeartbeat {
			change(element)
		}
	})
}

func changedHistory(ask func(*relayer.HistoryQuery), change func(relayer.HistoryQuery, []relayer.RecordChange) []relayer.RecordChange) fault {
	return func(f *faulty, right *watched) {
		f.history = func(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
			if ask != nil {
				ask(&query)
			}
			past, err := right.History(ctx, query)
			if change != nil {
				past = change(query, past)
			}
			return past, err
		}
	}
}

func selectingHistory(isSelected func(relayer.HistoryQuery, relayer.RecordChange) bool) fault {
	return changedHistory(nil, func(query relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
		return slices.DeleteFunc(past, func(change relayer.RecordChange) bool { return !isSelected(query, change) })
	})
}

func changedPast(change func(*relayer.RecordChange)) fault {
	return changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
		for i := range past {
			change(&past[i])
		}
		return past
	})
}

// withPosition returns a store whose lists have another position.
func withPosition(position func(last int, query relayer.StoreQuery, w *watched) string) fault {
	return listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
		page, err := right.List(ctx, query)
		page.Position = position(len(right.log), query, right)
		return page, err
	})
}

// racingPosition returns a store that reads a page and the position at different moments.
func racingPosition(read func(list func() relayer.Listing, position func() string) relayer.Listing) fault {
	return listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
		list := func() relayer.Listing { page, _ := right.List(ctx, query); return page }
		position := func() string { page, _ := right.List(ctx, relayer.StoreQuery{}); return page.Position }
		return read(list, position), nil
	})
}

// changedImport returns a store that imports changed records.
func changedImport(change func(records []relayer.Record) []relayer.Record) fault {
	return importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
		return right.Import(ctx, change(slices.Clone(records)))
	})
}

// changedRecords returns a store that changes the records that it imports.
func changedRecords(change func(*relayer.Record)) fault {
	return changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			change(&records[i])
		}
		return records
	})
}

// miscounting returns a store whose creates get revisions above the result of count,
// which gets the last revision and the imported records. It conforms otherwise, up to
// the greatest revision of an import.
func miscounting(count func(counted uint64, records []relayer.Record) uint64) fault {
	return func(f *faulty, right *watched) {
		// What it creates by an import is not in the history of the right store.
		f.history = func(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
			return nil, errors.ErrUnsupported
		}
		var mu sync.Mutex
		var counted uint64
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			if counted >= transfer.MaxRevision {
				return right.Create(ctx, rec)
			}
			rec.Revision = counted + 1
			if err := right.Import(ctx, []relayer.Record{rec}); err != nil {
				return relayer.Record{}, err
			}
			counted++
			return right.Get(context.WithoutCancel(ctx), rec.ID)
		}
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			rec, err := right.Update(ctx, rec)
			counted = max(counted, rec.Revision)
			return rec, err
		}
		f.remove = func(ctx context.Context, id string, revision uint64, note []byte) error {
			mu.Lock()
			defer mu.Unlock()
			err := right.Delete(ctx, id, revision, note)
			if err == nil {
				counted++
			}
			return err
		}
		f.load = func(ctx context.Context, records []relayer.Record) error {
			mu.Lock()
			defer mu.Unlock()
			err := right.Import(ctx, records)
			if err == nil && len(records) > 0 {
				counted = count(counted, records)
			}
			return err
		}
	}
}

func greatestRevision(records []relayer.Record) uint64 {
	greatest := uint64(0)
	for _, rec := range records {
		greatest = max(greatest, rec.Revision)
	}
	return greatest
}

// pastOf returns the history of a store, newest first.
func pastOf(store relayer.Store) []relayer.RecordChange {
	past, _ := store.History(context.Background(), relayer.HistoryQuery{Limit: math.MaxInt})
	return past
}

// brokenHistory imports other changes into its history than it is given.
func brokenHistory(change func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange) fault {
	return func(f *faulty, right *watched) {
		f.loadHistory = func(ctx context.Context, changes []relayer.RecordChange) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return right.ImportHistory(ctx, change(right, changes))
		}
	}
}
