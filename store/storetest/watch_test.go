package storetest_test

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// watched is a store with a change feed that may be faulty.
type watched struct {
	*memory.Store
	record func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange

	fromTheStart bool
	goesOn       bool // after a gap
	position     func(number int) string
	noPositions  bool // of changes and heartbeats
	resume       func(after string, last int) (seen int, isGap bool)
	heartbeat    time.Duration

	mu   sync.Mutex
	log  []relayer.RecordChange
	more chan struct{}
}

func newWatched(record func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange) *watched {
	return &watched{Store: memory.New(), record: record, more: make(chan struct{}), position: positionOf, resume: resumeRight, heartbeat: 20 * time.Millisecond}
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

func resuming(resume func(after string, last int) (seen int, isGap bool)) func() relayer.Store {
	return func() relayer.Store {
		store := newWatched(logAll)
		store.resume = resume
		return store
	}
}

func logging(record func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange) func() relayer.Store {
	return func() relayer.Store { return newWatched(record) }
}

func logAll(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
	return append(log, change)
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
				change.Position = w.changePosition(number)
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
				beat := relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: w.changePosition(seen), Time: time.Now()}
				w.mu.Unlock()
				if isIdle && !yield(beat, nil) {
					return
				}
			}
		}
	}
}

func (w *watched) changePosition(number int) string {
	if w.noPositions {
		return ""
	}
	return w.position(number)
}

// Import logs each record as created.
func (w *watched) Import(ctx context.Context, records []relayer.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Store.Import(ctx, records); err != nil {
		return err
	}
	for _, rec := range records {
		imported, _ := w.Store.Get(ctx, rec.ID)
		w.add(relayer.ChangeCreated, imported, relayer.Record{})
	}
	return nil
}

// silentImport does not log imported records.
type silentImport struct{ *watched }

func (s silentImport) Import(ctx context.Context, records []relayer.Record) error {
	return s.watched.Store.Import(ctx, records)
}

// sparingImport logs only the first record of an import.
type sparingImport struct{ *watched }

func (s sparingImport) Import(ctx context.Context, records []relayer.Record) error {
	if err := s.watched.Store.Import(ctx, records); err != nil {
		return err
	}
	_, _ = s.write(ctx, relayer.ChangeCreated, records[0].ID, func() (relayer.Record, error) { return s.Get(ctx, records[0].ID) })
	return nil
}

// wrongWatches are stores whose Watch violates the contract.
var wrongWatches = map[string]func() relayer.Store{
	"right watch": logging(logAll),

	"deletes are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		if change.Kind == relayer.ChangeDeleted {
			return log
		}
		return append(log, change)
	}),
	"private parts are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		change.Record.Private = nil
		return append(log, change)
	}),
	"old texts are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		change.OldText = ""
		return append(log, change)
	}),
	"old texts are the new ones": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		if change.Kind == relayer.ChangeUpdated {
			change.OldText = change.Record.Text
		}
		return append(log, change)
	}),
	"notes are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		change.Record.Note = nil
		return append(log, change)
	}),
	"old terms are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		change.OldTerms = nil
		return append(log, change)
	}),
	"old terms are the new ones": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		change.OldTerms = change.Record.Terms
		return append(log, change)
	}),
	"an update is reported before the change before it": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
		if n := len(log); n > 0 && change.Kind == relayer.ChangeUpdated {
			return append(log[:n-1:n-1], change, log[n-1])
		}
		return append(log, change)
	}),
	"watch begins at the start": func() relayer.Store {
		store := newWatched(logAll)
		store.fromTheStart = true
		return store
	},
	"watch goes on after a gap": func() relayer.Store {
		store := newWatched(logAll)
		store.goesOn = true
		return store
	},
	"a watch never resumes": resuming(func(_ string, last int) (int, bool) { return last, true }),
	"right watch without positions": func() relayer.Store {
		store := newWatched(logAll)
		store.noPositions = true
		return store
	},
	"a resumed watch skips a change": resuming(func(after string, last int) (int, bool) {
		seen, isGap := resumeRight(after, last)
		return min(seen+1, last), isGap
	}),
	"a resumed watch repeats a change": resuming(func(after string, last int) (int, bool) {
		seen, isGap := resumeRight(after, last)
		if !isGap {
			seen--
		}
		return seen, isGap
	}),
	"a resumed watch begins with the call": resuming(func(after string, last int) (int, bool) {
		_, isGap := resumeRight(after, last)
		return last, isGap
	}),
	"a watch after an unknown position reports no gap": resuming(func(after string, last int) (int, bool) {
		seen, _ := resumeRight(after, last)
		return seen, false
	}),
	"a position is parsed loosely": resuming(func(after string, last int) (int, bool) {
		if seen, err := strconv.Atoi(strings.Trim(after, "-aefrt ")); err == nil && seen > 0 && seen <= last {
			return seen, false
		}
		return last, true
	}),
	"a position has a line break": func() relayer.Store {
		store := newWatched(logAll)
		store.position = func(number int) string { return positionOf(number) + "\n" }
		return store
	},
	"positions repeat": func() relayer.Store {
		store := newWatched(logAll)
		store.position = func(number int) string { return positionOf(max(1, number&^1)) }
		return store
	},
	"one imported record of many is reported": func() relayer.Store { return sparingImport{newWatched(logAll)} },
	"imports are not reported":                func() relayer.Store { return silentImport{newWatched(logAll)} },
}
