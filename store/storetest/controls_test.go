package storetest_test

import (
	"bytes"
	"context"
	"iter"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storetest"
	"github.com/go-relayer/relayer/store/storeutil"
)

// patienceOfControls replaces 10 seconds.
const patienceOfControls = 500 * time.Millisecond

// TestRun_Controls runs single cases with stores that break what the case tests. Every case
// must fail. It does so in a child process, whose result is a failure.
func TestRun_Controls(t *testing.T) {
	if os.Getenv(wrongStore) != "" {
		storetest.SetPatience(patienceOfControls)
		for name, stores := range controls {
			for fault, open := range stores {
				t.Run(name+"/"+fault, func(t *testing.T) {
					storetest.RunCase(t, name, func(*testing.T) relayer.Store { return open() })
				})
			}
		}
		for _, name := range durableControls {
			t.Run(name+"/counters are forgotten", func(t *testing.T) { storetest.RunDurableCase(t, name, forgetfulPlace) })
		}
		return
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^TestRun_Controls$")
	child.Env = append(os.Environ(), wrongStore+"=controls")
	output, _ := child.CombinedOutput()
	wantFailed := func(name, fault string) {
		subtest := strings.ReplaceAll("TestRun_Controls/"+name+"/"+fault, " ", "_")
		if !regexp.MustCompile(`(?m)^ *--- FAIL: ` + regexp.QuoteMeta(subtest) + ` \(`).Match(output) {
			t.Errorf("%q passes for a store with the fault %q", name, fault)
		}
	}
	for name, stores := range controls {
		for fault := range stores {
			wantFailed(name, fault)
		}
	}
	for _, name := range durableControls {
		wantFailed(name, "counters are forgotten")
	}
	if t.Failed() || bytes.Contains(output, []byte("panic:")) {
		t.Errorf("%s", output)
	}
}

// durableControls are cases that fail for a place whose stores forget their counters.
var durableControls = []string{"revisions are never reused after reopening", "sequences are never reused after reopening"}

// forgetfulPlace returns the opener of stores that keep their records only.
func forgetfulPlace(*testing.T) func(t *testing.T) relayer.Store {
	var stored []relayer.Record
	return func(t *testing.T) relayer.Store {
		store := &forgetful{watched: newWatched(logAll), stored: &stored}
		if err := store.Import(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		return store
	}
}

type forgetful struct {
	*watched
	stored *[]relayer.Record
}

func (f *forgetful) Close() error {
	page, err := f.List(context.Background(), relayer.StoreQuery{Limit: math.MaxInt})
	*f.stored = page.Records
	return err
}

// controls are faults by the case that must find them.
var controls = map[string]map[string]func() relayer.Store{
	"sequences grow and are kept by updates": {
		"they fall":     withCreated(func(made *relayer.Record, _ relayer.Record, _ []relayer.Record) { made.Sequence = 1000 - made.Sequence }),
		"they are zero": withCreated(func(made *relayer.Record, _ relayer.Record, _ []relayer.Record) { made.Sequence = 0 }),
		"an update takes a new one": broken(func(f *faulty, right relayer.Store) {
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				made, err := right.Update(ctx, rec)
				made.Sequence = made.Revision
				return made, err
			}
		}),
	},
	"sequences are never reused": {
		"one more than the last record": withCreated(func(made *relayer.Record, _ relayer.Record, before []relayer.Record) {
			made.Sequence = 1
			if len(before) > 0 {
				made.Sequence = before[len(before)-1].Sequence + 1
			}
		}),
		"the number of records": withCreated(func(made *relayer.Record, _ relayer.Record, before []relayer.Record) {
			made.Sequence = uint64(len(before)) + 1
		}),
	},
	"a sequence that is given is ignored": {
		"a create keeps it": withCreated(func(made *relayer.Record, given relayer.Record, _ []relayer.Record) { made.Sequence = given.Sequence }),
		"an update keeps it": broken(func(f *faulty, right relayer.Store) {
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				made, err := right.Update(ctx, rec)
				made.Sequence = rec.Sequence
				return made, err
			}
		}),
	},
	"sequences of imports": {
		"imports keep their own": brokenImport(func(f *faultyImport, right *watched) {
			own := make(map[string]uint64)
			f.load = func(ctx context.Context, records []relayer.Record) error {
				for _, rec := range records {
					own[rec.ID] = rec.Sequence
				}
				return right.Import(ctx, records)
			}
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				page, err := right.List(ctx, query)
				for i, rec := range page.Records {
					if sequence, ok := own[rec.ID]; ok {
						page.Records[i].Sequence = sequence
					}
				}
				return page, err
			}
		}),
		"imports have none": brokenImport(func(f *faultyImport, right *watched) {
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				page, err := right.List(ctx, query)
				for i, rec := range page.Records {
					if strings.HasPrefix(rec.ID, "m") {
						page.Records[i].Sequence = 0
					}
				}
				return page, err
			}
		}),
	},
	"list after a sequence": {
		"it is ignored":            changedQuery(func(query *relayer.StoreQuery) { query.After = 0 }),
		"it is included":           changedQuery(func(query *relayer.StoreQuery) { query.After = max(1, query.After) - 1 }),
		"it is signed":             changedQuery(func(query *relayer.StoreQuery) { query.After = uint64(max(0, int64(query.After))) }),
		"it is ignored with terms": changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.Terms))) }),
		"it is ignored with IDs":   changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.IDs))) }),
		"it is ignored with texts": changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.Contains))) }),
		"the offset is ignored": changedQuery(func(query *relayer.StoreQuery) {
			if query.After > 0 {
				query.Offset = 0
			}
		}),
		"the total is of what follows": changedList(func(ctx context.Context, right relayer.Store, query relayer.StoreQuery, page *relayer.Listing) {
			query.Offset, query.Limit = 0, math.MaxInt
			rest, _ := right.List(ctx, query)
			page.Total = len(rest.Records)
		}),
		"the offset counts all records": broken(func(f *faulty, right relayer.Store) {
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				after := query.After
				query.After = 0
				page, err := right.List(ctx, query)
				page.Records = slices.DeleteFunc(page.Records, func(rec relayer.Record) bool { return rec.Sequence <= after })
				return page, err
			}
		}),
	},
	"walk during concurrent writes": {
		"a cursor is an offset": broken(func(f *faulty, right relayer.Store) {
			offsets := make(map[uint64]int) // behind a record that was the last of a page
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				offset := offsets[query.After]
				query.After, query.Offset = 0, offset
				page, err := right.List(ctx, query)
				if n := len(page.Records); n > 0 {
					offsets[page.Records[n-1].Sequence] = offset + n
				}
				return page, err
			}
		}),
	},
	"list by parts of the text": {
		"they are ignored": changedQuery(func(query *relayer.StoreQuery) { query.Contains = nil }),
		"only the first counts": changedQuery(func(query *relayer.StoreQuery) {
			query.Contains = query.Contains[:min(1, len(query.Contains))]
		}),
		"letter case is ignored": searching(func(text, part string) bool {
			return strings.Contains(strings.ToLower(text), strings.ToLower(part))
		}),
		"they are patterns": searching(func(text, part string) bool { return isLike(text, part) }),
		"they are regular expressions": searching(func(text, part string) bool {
			pattern, err := regexp.Compile(part)
			return err == nil && pattern.MatchString(text)
		}),
		"they are words": searching(func(text, part string) bool {
			return slices.Contains(strings.Fields(text), part) || strings.TrimSpace(part) == ""
		}),
		"they begin the text":      searching(strings.HasPrefix),
		"they are trimmed":         searching(func(text, part string) bool { return strings.Contains(text, strings.TrimSpace(part)) }),
		"an empty part is in none": searching(func(text, part string) bool { return part != "" && strings.Contains(text, part) }),
		"long texts are cut":       searching(func(text, part string) bool { return strings.Contains(text[:min(1000, len(text))], part) }),
		"marks are ignored": searching(func(text, part string) bool {
			return strings.Contains(strings.ReplaceAll(text, "\u0301", ""), strings.ReplaceAll(part, "\u0301", ""))
		}),
		"all of them are needed": broken(func(f *faulty, right relayer.Store) {
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				return scan(ctx, right, query, func(rec relayer.Record) bool {
					return !slices.ContainsFunc(query.Contains, func(part string) bool { return !strings.Contains(rec.Text, part) })
				})
			}
		}),
		"an update keeps the old text": broken(func(f *faulty, right relayer.Store) {
			texts := make(map[string]string)
			f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				texts[rec.ID] = rec.Text
				return right.Create(ctx, rec)
			}
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				return scan(ctx, right, query, func(rec relayer.Record) bool {
					return len(query.Contains) == 0 || storeutil.Selects(relayer.StoreQuery{Contains: query.Contains}, relayer.Record{Text: texts[rec.ID]})
				})
			}
		}),
	},
	"list of documents only": {
		"the note is missing":     documentsWithout(func(rec *relayer.Record) { rec.Note = nil }),
		"the sequence is missing": documentsWithout(func(rec *relayer.Record) { rec.Sequence = 0 }),
		"the revision is missing": documentsWithout(func(rec *relayer.Record) { rec.Revision = 0 }),
		"the document is missing": documentsWithout(func(rec *relayer.Record) { rec.Document = nil }),
		"the ID is missing":       documentsWithout(func(rec *relayer.Record) { rec.ID = "" }),
	},
	"parts at the limits": {
		"texts are cut":     withStored(func(rec *relayer.Record) { rec.Text = rec.Text[:min(1000, len(rec.Text))] }),
		"notes are cut":     withStored(func(rec *relayer.Record) { rec.Note = rec.Note[:min(4000, len(rec.Note))] }),
		"terms are cut":     withStored(func(rec *relayer.Record) { rec.Terms = rec.Terms[:min(60, len(rec.Terms))] }),
		"notes are text":    withStored(func(rec *relayer.Record) { rec.Note = bytes.ToValidUTF8(rec.Note, []byte("?")) }),
		"a NUL ends a note": withStored(func(rec *relayer.Record) { rec.Note, _, _ = bytes.Cut(rec.Note, []byte{0}) }),
		"a note must be present": withStored(func(rec *relayer.Record) {
			if len(rec.Note) == 0 {
				rec.Note = []byte("{}")
			}
		}),
		"long notes of deletes are refused": broken(func(f *faulty, right relayer.Store) {
			f.remove = func(ctx context.Context, id string, revision uint64, note []byte) error {
				if len(note) > 4000 {
					return relayer.ErrInvalid
				}
				return right.Delete(ctx, id, revision, note)
			}
		}),
	},
	"notes belong to revisions": {
		"a create loses it": broken(func(f *faulty, right relayer.Store) {
			f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				note := rec.Note
				rec.Note = nil
				rec, err := right.Create(ctx, rec)
				rec.Note = note
				return rec, err
			}
		}),
		"an update keeps the old one": broken(func(f *faulty, right relayer.Store) {
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				note := rec.Note
				if old, err := right.Get(ctx, rec.ID); err == nil {
					rec.Note = old.Note
				}
				rec, err := right.Update(ctx, rec)
				rec.Note = note
				return rec, err
			}
		}),
		"an update without one keeps the old one": broken(func(f *faulty, right relayer.Store) {
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				if old, err := right.Get(ctx, rec.ID); err == nil && rec.Note == nil {
					rec.Note = old.Note
				}
				return right.Update(ctx, rec)
			}
		}),
		"a delete loses it": broken(func(f *faulty, right relayer.Store) {
			f.remove = func(ctx context.Context, id string, revision uint64, _ []byte) error {
				return right.Delete(ctx, id, revision, nil)
			}
		}),
		"a delete has that of the record": broken(func(f *faulty, right relayer.Store) {
			f.remove = func(ctx context.Context, id string, revision uint64, _ []byte) error {
				rec, _ := right.Get(ctx, id)
				return right.Delete(ctx, id, revision, rec.Note)
			}
		}),
		"a delete has the revision of the record": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision--
			}
			return change
		}),
		"a delete has the revision of the next write": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision++
			}
			return change
		}),
	},
	"history of writes": {
		"oldest first": changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
			slices.Reverse(past)
			return past
		}),
		"before is included": changedHistory(func(query *relayer.HistoryQuery) { query.Before += min(1, query.Before) }, nil),
		"before is ignored":  changedHistory(func(query *relayer.HistoryQuery) { query.Before = 0 }, nil),
		"before is signed": changedHistory(func(query *relayer.HistoryQuery) {
			query.Before = uint64(max(1, int64(query.Before))) * min(1, query.Before)
		}, nil),
		"the limit is ignored": changedHistory(func(query *relayer.HistoryQuery) { query.Limit = math.MaxInt }, nil),
		"the ID is ignored":    changedHistory(func(query *relayer.HistoryQuery) { query.ID = "" }, nil),
		"the ID is a prefix": changedHistory(func(query *relayer.HistoryQuery) {
			if query.ID == "id-" {
				query.ID = "id-0000"
			}
		}, nil),
		"it has private parts": changedPast(func(change *relayer.RecordChange) { change.Record.Private = []byte("secret") }),
		"it has times":         changedPast(func(change *relayer.RecordChange) { change.Time = time.Now() }),
		"it has no notes":      changedPast(func(change *relayer.RecordChange) { change.Record.Note = nil }),
		"it has no old terms":  changedPast(func(change *relayer.RecordChange) { change.OldTerms = nil }),
		"it has no documents":  changedPast(func(change *relayer.RecordChange) { change.Record.Document = nil }),
		"a delete has the revision of the record": changedPast(func(change *relayer.RecordChange) {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision--
			}
		}),
		"deletes are missing": changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
			return slices.DeleteFunc(past, func(change relayer.RecordChange) bool { return change.Kind == relayer.ChangeDeleted })
		}),
		"deleted records are missing": broken(func(f *faulty, right relayer.Store) {
			f.history = func(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
				past, err := right.History(ctx, query)
				return slices.DeleteFunc(past, func(change relayer.RecordChange) bool {
					_, err := right.Get(ctx, change.Record.ID)
					return err != nil
				}), err
			}
		}),
		"it has failed writes": broken(func(f *faulty, right relayer.Store) {
			failed := 0
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				rec, err := right.Update(ctx, rec)
				if err != nil {
					failed++
				}
				return rec, err
			}
			f.history = func(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
				past, err := right.History(ctx, query)
				return append(past, make([]relayer.RecordChange, failed)...), err
			}
		}),
	},
	"history without imports": {
		"imports are creates": brokenImport(func(f *faultyImport, right *watched) {
			f.history = func(_ context.Context, query relayer.HistoryQuery) (past []relayer.RecordChange, _ error) {
				right.mu.Lock()
				defer right.mu.Unlock()
				for _, change := range slices.Backward(right.log) {
					change.Time, change.Record.Private = time.Time{}, nil
					if query.ID == "" || change.Record.ID == query.ID {
						past = append(past, change)
					}
				}
				return past, nil
			}
		}),
	},
	"history of another store": {
		"revisions are assigned again": brokenHistory(func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange {
			past := slices.Clone(changes)
			for i := range past {
				past[i].Record.Revision = 1 + uint64(len(pastOf(right))+i)
			}
			return past
		}),
		"the last is missing": brokenHistory(func(_ *watched, changes []relayer.RecordChange) []relayer.RecordChange {
			return changes[:max(0, len(changes)-1)]
		}),
	},
	"a rejected history stores nothing": {
		"what comes before is stored": brokenHistory(func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange {
			if len(changes) > 1 {
				_ = right.Store.ImportHistory(context.Background(), changes[:1])
			}
			return changes
		}),
		"the others are stored": brokenHistory(func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange {
			last := pastOf(right)[0].Record.Revision
			return slices.DeleteFunc(slices.Clone(changes), func(c relayer.RecordChange) bool {
				isBehind := c.Record.Revision <= last
				last = max(last, c.Record.Revision)
				return isBehind
			})
		}),
	},
	"watch reports every write in order": {
		"old texts are not reported": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			change.OldText = ""
			return change
		}),
		"old texts are the new ones": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeUpdated {
				change.OldText = change.Record.Text
			}
			return change
		}),
	},
	"watch from the position of a list": {
		"the position is empty":             withPosition(func(_ int, _ relayer.StoreQuery, _ *watched) string { return "" }),
		"the position is unknown":           withPosition(func(_ int, _ relayer.StoreQuery, _ *watched) string { return "unknown" }),
		"the position is one change early":  withPosition(func(last int, _ relayer.StoreQuery, w *watched) string { return w.position(max(0, last-1)) }),
		"the position is that of the start": withPosition(func(_ int, _ relayer.StoreQuery, w *watched) string { return w.position(0) }),
		"a list without a page has no position": withPosition(func(last int, query relayer.StoreQuery, w *watched) string {
			if query.Limit == 0 {
				return ""
			}
			return w.position(last)
		}),
		"the position is that of the last selected record": withPosition(func(last int, query relayer.StoreQuery, w *watched) string {
			for last > 0 && !storeutil.Selects(query, w.log[last-1].Record) {
				last--
			}
			return w.position(last)
		}),
		"an empty store has no position": withPosition(func(last int, _ relayer.StoreQuery, w *watched) string {
			if last == 0 {
				return ""
			}
			return w.position(last)
		}),
		"the position is not visible ASCII":    withPosition(func(last int, _ relayer.StoreQuery, w *watched) string { return w.position(last) + " " }),
		"a watch never resumes":                resuming(func(_ string, last int) (int, bool) { return last, true }),
		"a resumed watch begins with the call": resuming(func(_ string, last int) (int, bool) { return last, false }),
	},
	"list and then watch during concurrent writes": {
		"the position is read after the page": racingPosition(func(list func() relayer.Listing, position func() string) relayer.Listing {
			page := list()
			runtime.Gosched()
			page.Position = position()
			return page
		}),
		"the position is read before the page": racingPosition(func(list func() relayer.Listing, position func() string) relayer.Listing {
			before := position()
			runtime.Gosched()
			page := list()
			page.Position = before
			return page
		}),
	},
	"watch has times": {
		"the time is that of the delivery": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			change.Time = time.Now()
			return change
		}),
		"there is no time": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			change.Time = time.Time{}
			return change
		}),
		"there is no monotonic reading": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			change.Time = change.Time.Round(0)
			return change
		}),
		"the time is in the future": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			change.Time = change.Time.Add(time.Minute)
			return change
		}),
		"the time goes back": broken(func(f *faulty, right relayer.Store) {
			var mu sync.Mutex
			back := time.Duration(0)
			f.watch = elements(right, func(change relayer.RecordChange) relayer.RecordChange {
				mu.Lock()
				defer mu.Unlock()
				back += time.Second
				change.Time = change.Time.Add(-back)
				return change
			})
		}),
		"a resumed watch begins with a heartbeat of now": broken(func(f *faulty, right relayer.Store) {
			f.watch = func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
				changes := right.Watch(ctx, after)
				return func(yield func(relayer.RecordChange, error) bool) {
					if yield(relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: after, Time: time.Now()}, nil) {
						changes(yield)
					}
				}
			}
		}),
		"the first change of a batch has its time": broken(func(f *faulty, right relayer.Store) {
			// As of a store that reads its changes at intervals, and gives all that it has read
			// the time of the read.
			f.watch = func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
				changes := right.Watch(ctx, after)
				return func(yield func(relayer.RecordChange, error) bool) {
					begin, isFirst := time.Time{}, true
					for change, err := range changes {
						if isFirst {
							begin, isFirst = time.Now(), false
						}
						if change.Time.Before(begin) {
							change.Time = begin
						}
						if !yield(change, err) {
							return
						}
					}
				}
			}
		}),
	},
	"readers see selections of one snapshot": {
		"the total of a search is that before the last update": broken(func(f *faulty, right relayer.Store) {
			search := relayer.StoreQuery{Contains: []string{"b"}}
			var before atomic.Int64
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				page, _ := right.List(ctx, search)
				before.Store(int64(page.Total))
				return right.Update(ctx, rec)
			}
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				page, err := right.List(ctx, query)
				if query.Terms == nil && slices.Equal(query.Contains, search.Contains) {
					page.Total = int(before.Load())
				}
				return page, err
			}
		}),
	},
	"watch has heartbeats": {
		"there are none": func() relayer.Store {
			store := newWatched(logAll)
			store.heartbeat = time.Hour
			return store
		},
		"they come every 12 seconds": func() relayer.Store {
			store := newWatched(logAll)
			store.heartbeat = patienceOfControls * 12 / 10
			return store
		},
		"they have a record": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeHeartbeat {
				change.Record.ID = "one"
			}
			return change
		}),
		"they have the time of the last change": broken(func(f *faulty, right relayer.Store) {
			last := time.Now()
			var mu sync.Mutex
			f.watch = elements(right, func(change relayer.RecordChange) relayer.RecordChange {
				mu.Lock()
				defer mu.Unlock()
				if change.Kind == relayer.ChangeHeartbeat {
					change.Time = last
				}
				last = change.Time
				return change
			})
		}),
		"they have an unknown position": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeHeartbeat {
				change.Position += "0"
			}
			return change
		}),
		"they have the position of an earlier change": changedElements(func(change relayer.RecordChange) relayer.RecordChange {
			if change.Kind == relayer.ChangeHeartbeat {
				change.Position = positionOf(0)
			}
			return change
		}),
		"they take the place of a change": broken(func(f *faulty, right relayer.Store) {
			f.watch = func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
				changes := right.Watch(ctx, after)
				return func(yield func(relayer.RecordChange, error) bool) {
					isIdle := false
					for change, err := range changes {
						wasIdle := isIdle
						if isIdle = change.Kind == relayer.ChangeHeartbeat; wasIdle && !isIdle {
							continue
						}
						if !yield(change, err) {
							return
						}
					}
				}
			}
		}),
	},
}

// withCreated returns a store whose create returns another record. Change gets the record
// that was given, and those that were stored before.
func withCreated(change func(made *relayer.Record, given relayer.Record, before []relayer.Record)) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			before, _ := f.list(ctx, relayer.StoreQuery{Limit: math.MaxInt})
			made, err := right.Create(ctx, rec)
			change(&made, rec, before.Records)
			return made, err
		}
	})
}

// withStored returns a store that stores another record than the one that it returns.
func withStored(change func(rec *relayer.Record)) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			stored := rec
			change(&stored)
			made, err := right.Create(ctx, stored)
			rec.Revision, rec.Sequence = made.Revision, made.Sequence
			return rec, err
		}
	})
}

// changedList returns a store that returns other pages.
func changedList(change func(ctx context.Context, right relayer.Store, query relayer.StoreQuery, page *relayer.Listing)) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			page, err := right.List(ctx, query)
			change(ctx, right, query, &page)
			return page, err
		}
	})
}

func documentsWithout(change func(rec *relayer.Record)) func() relayer.Store {
	return changedList(func(_ context.Context, _ relayer.Store, query relayer.StoreQuery, page *relayer.Listing) {
		for i := range page.Records {
			if query.DocumentsOnly {
				change(&page.Records[i])
			}
		}
	})
}

// searching returns a store with another meaning of [relayer.StoreQuery.Contains].
func searching(contains func(text, part string) bool) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			return scan(ctx, right, query, func(rec relayer.Record) bool {
				return len(query.Contains) == 0 || slices.ContainsFunc(query.Contains, func(part string) bool { return contains(rec.Text, part) })
			})
		}
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
func elements(right relayer.Store, change func(relayer.RecordChange) relayer.RecordChange) func(context.Context, string) iter.Seq2[relayer.RecordChange, error] {
	return func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
		changes := right.Watch(ctx, after)
		return func(yield func(relayer.RecordChange, error) bool) {
			for got, err := range changes {
				if !yield(change(got), err) {
					return
				}
			}
		}
	}
}

func changedElements(change func(relayer.RecordChange) relayer.RecordChange) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) { f.watch = elements(right, change) })
}

func changedHistory(ask func(*relayer.HistoryQuery), change func(relayer.HistoryQuery, []relayer.RecordChange) []relayer.RecordChange) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
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
	})
}

func changedPast(change func(*relayer.RecordChange)) func() relayer.Store {
	return changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
		for i := range past {
			change(&past[i])
		}
		return past
	})
}

// withPosition returns a store whose lists have another position.
func withPosition(position func(last int, query relayer.StoreQuery, w *watched) string) func() relayer.Store {
	return func() relayer.Store {
		right := newWatched(logAll)
		f := newFaulty(right)
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			page, err := right.List(ctx, query)
			page.Position = position(len(right.log), query, right)
			return page, err
		}
		return f
	}
}

// racingPosition returns a store that reads a page and the position at different moments.
func racingPosition(read func(list func() relayer.Listing, position func() string) relayer.Listing) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			list := func() relayer.Listing { page, _ := right.List(ctx, query); return page }
			position := func() string { page, _ := right.List(ctx, relayer.StoreQuery{}); return page.Position }
			return read(list, position), nil
		}
	})
}

// faultyHistory is a store that imports other changes into its history than it is given.
type faultyHistory struct {
	*watched
	change func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange
}

func (f *faultyHistory) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.watched.ImportHistory(ctx, f.change(f.watched, changes))
}

func brokenHistory(change func(right *watched, changes []relayer.RecordChange) []relayer.RecordChange) func() relayer.Store {
	return func() relayer.Store { return &faultyHistory{newWatched(logAll), change} }
}

// pastOf returns the history of a store, newest first.
func pastOf(store relayer.Store) []relayer.RecordChange {
	past, _ := store.History(context.Background(), relayer.HistoryQuery{Limit: math.MaxInt})
	return past
}
