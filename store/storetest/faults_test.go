package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// faults are violations of the contract by the case that must find them.
var faults = map[string]map[string]fault{
	"random calls": {
		"a cursor is an offset": func(f *faulty, right *watched) {
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
		},
		"create overwrites": creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if current, err := right.Get(ctx, rec.ID); err == nil {
				_ = right.Delete(ctx, current.ID, current.Revision, nil)
			}
			return right.Create(ctx, rec)
		}),
		"claims are not enforced": func(f *faulty, right *watched) {
			var claims sync.Map
			f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				claims.Store(rec.ID, rec.Claim)
				claim := rec.Claim
				rec.Claim = ""
				rec, err := right.Create(ctx, rec)
				if err == nil {
					rec.Claim = claim
				}
				return rec, err
			}
			f.get = func(ctx context.Context, id string) (relayer.Record, error) {
				rec, err := right.Get(ctx, id)
				if claim, ok := claims.Load(id); ok && err == nil {
					rec.Claim = claim.(string)
				}
				return rec, err
			}
		},
		"update ignores the revision": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if current, err := right.Get(ctx, rec.ID); err == nil {
				rec.Revision = current.Revision
			}
			return right.Update(ctx, rec)
		}),
		"delete ignores the revision": deleting(func(ctx context.Context, right *watched, id string, revision uint64, note []byte) error {
			if current, err := right.Get(ctx, id); err == nil {
				revision = current.Revision
			}
			return right.Delete(ctx, id, revision, note)
		}),
		"update moves to the end": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if err := right.Delete(ctx, rec.ID, rec.Revision, nil); err != nil {
				return relayer.Record{}, err
			}
			return right.Create(ctx, rec)
		}),
		"the total counts only the page": changedList(func(_ context.Context, _ relayer.Store, _ relayer.StoreQuery, page *relayer.Listing) {
			page.Total = len(page.Records)
		}),
		"pages skip one": listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
			if query.Offset > 20 {
				query.Offset++
			}
			return right.List(ctx, query)
		}),
		"check reports damage of an undamaged store": func(f *faulty, _ *watched) { f.check = func(context.Context) error { return errors.New("damaged") } },
		"an update overwrites the memory of the old document": func(f *faulty, right *watched) {
			var returned sync.Map
			f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				made, err := right.Update(ctx, rec)
				if err != nil {
					return made, err
				}
				made.Document = bytes.Clone(made.Document)
				if old, ok := returned.Swap(rec.ID, made.Document); ok {
					clear(old.([]byte))
				}
				return made, nil
			}
		},
		"a create sorts the memory of the terms given": creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			made := rec
			made.Terms = slices.Clone(rec.Terms)
			made, err := right.Create(ctx, made)
			slices.Reverse(rec.Terms)
			return made, err
		}),
		"terms are not stored": withStored(func(rec *relayer.Record) { rec.Terms = nil }),
		"an update keeps the terms": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			old, _ := right.Get(ctx, rec.ID)
			rec.Terms = old.Terms
			return right.Update(ctx, rec)
		}),
		"terms are ignored": changedQuery(func(query *relayer.StoreQuery) { query.Terms = nil }),
		"IDs are ignored":   changedQuery(func(query *relayer.StoreQuery) { query.IDs = nil }),
		"the terms of the query are sorted": changedQuery(func(query *relayer.StoreQuery) {
			for _, terms := range query.Terms {
				slices.Sort(terms)
			}
		}),
		"the texts of the query are cleared": changedQuery(func(query *relayer.StoreQuery) {
			texts := query.Contains
			query.Contains = slices.Clone(texts)
			clear(texts)
		}),
		"the IDs of the query are sorted": changedQuery(func(query *relayer.StoreQuery) { slices.Sort(query.IDs) }),
		"an element without terms is ignored": changedQuery(func(query *relayer.StoreQuery) {
			query.Terms = slices.DeleteFunc(slices.Clone(query.Terms), func(terms []string) bool { return len(terms) == 0 })
		}),
		"all elements need only one match": changedQuery(func(query *relayer.StoreQuery) {
			if len(query.Terms) > 0 {
				query.Terms = [][]string{slices.Concat(query.Terms...)}
			}
		}),
		"only the first term of an element counts": changedQuery(func(query *relayer.StoreQuery) {
			query.Terms = slices.Clone(query.Terms)
			for i, terms := range query.Terms {
				query.Terms[i] = terms[:min(1, len(terms))]
			}
		}),
		"terms are trimmed": changedQuery(func(query *relayer.StoreQuery) {
			query.Terms = slices.Clone(query.Terms)
			for i, terms := range query.Terms {
				query.Terms[i] = strings.Fields(strings.Join(terms, "\t"))
			}
		}),
		"import loses the revision": func(f *faulty, right *watched) {
			var revision atomic.Uint64
			f.load = func(ctx context.Context, records []relayer.Record) error {
				records = slices.Clone(records)
				for i := range records {
					if records[i].Revision > 0 && records[i].Revision <= transfer.MaxRevision {
						records[i].Revision = revision.Add(1)
					}
				}
				return right.Import(ctx, records)
			}
		},
		"import is not atomic": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			for i := range records {
				if err := right.Import(ctx, records[i:i+1]); err != nil {
					return err
				}
			}
			return ctx.Err()
		}),
		"writes get revisions below an import": miscounting(func(uint64, []relayer.Record) uint64 { return 0 }),
		"an import lowers revisions": miscounting(func(_ uint64, records []relayer.Record) uint64 {
			return greatestRevision(records)
		}),
		"creates get revisions above the last record imported only": miscounting(func(counted uint64, records []relayer.Record) uint64 {
			return max(counted, records[len(records)-1].Revision)
		}),
		"import reverses the order": changedImport(func(records []relayer.Record) []relayer.Record {
			slices.Reverse(records)
			return records
		}),
		"import sorts": changedImport(func(records []relayer.Record) []relayer.Record {
			slices.SortStableFunc(records, func(a, b relayer.Record) int { return cmp.Compare(a.Revision, b.Revision) })
			return records
		}),
		"import drops claims":        changedRecords(func(rec *relayer.Record) { rec.Claim = "" }),
		"import drops private parts": changedRecords(func(rec *relayer.Record) { rec.Private = nil }),
		"import drops a duplicate ID": changedImport(func(records []relayer.Record) []relayer.Record {
			seen := make(map[string]bool)
			return slices.DeleteFunc(records, func(rec relayer.Record) bool {
				again := seen[rec.ID]
				seen[rec.ID] = true
				return again
			})
		}),
		"import skips existing records": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			return right.Import(ctx, slices.DeleteFunc(slices.Clone(records), func(rec relayer.Record) bool {
				_, err := right.Get(ctx, rec.ID)
				return err == nil
			}))
		}),
		"import overwrites": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			for _, rec := range records {
				if current, err := right.Get(ctx, rec.ID); err == nil {
					_ = right.Delete(ctx, current.ID, current.Revision, nil)
				}
			}
			return right.Import(ctx, records)
		}),
		"import of nothing is rejected": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			if len(records) == 0 {
				return relayer.ErrInvalid
			}
			return right.Import(ctx, records)
		}),
		"import drops terms": changedRecords(func(rec *relayer.Record) { rec.Terms = nil }),
		"deletes are not reported": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
			if change.Kind == relayer.ChangeDeleted {
				return log
			}
			return append(log, change)
		}),
		"an update is reported as a create": changedElements(func(change *relayer.RecordChange) {
			if change.Kind == relayer.ChangeUpdated {
				change.Kind = relayer.ChangeCreated
			}
		}),
		"private parts are not reported": changedElements(func(change *relayer.RecordChange) { change.Record.Private = nil }),
		"old texts are not reported":     changedElements(func(change *relayer.RecordChange) { change.OldText = "" }),
		"old texts are the new ones": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
			if change.Kind == relayer.ChangeUpdated {
				change.OldText = change.Record.Text
			}
			return append(log, change)
		}),
		"notes are not reported":     changedElements(func(change *relayer.RecordChange) { change.Record.Note = nil }),
		"old terms are not reported": changedElements(func(change *relayer.RecordChange) { change.OldTerms = nil }),
		"old terms are the new ones": changedElements(func(change *relayer.RecordChange) { change.OldTerms = change.Record.Terms }),
		"an update is reported before the change before it": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
			if n := len(log); n > 0 && change.Kind == relayer.ChangeUpdated {
				return append(log[:n-1:n-1], change, log[n-1])
			}
			return append(log, change)
		}),
		"watch begins at the start": func(_ *faulty, right *watched) { right.fromTheStart = true },
		"a watch never resumes":     resuming(func(_ string, last int) (int, bool) { return last, true }),
		"a resumed watch skips a change": resuming(func(after string, last int) (int, bool) {
			seen, isGap := resumeRight(after, last)
			return min(seen+1, last), isGap
		}),
		"a resumed watch repeats a change": resuming(func(after string, last int) (int, bool) {
			seen, isGap := resumeRight(after, last)
			return max(0, seen-1), isGap
		}),
		"a resumed watch begins with the call": resuming(func(after string, last int) (int, bool) {
			_, isGap := resumeRight(after, last)
			return last, isGap
		}),
		"changes have no position": changedElements(func(change *relayer.RecordChange) { change.Position = "" }),
		"a position has a line break": func(_ *faulty, right *watched) {
			right.position = func(number int) string { return positionOf(number) + "\n" }
		},
		"positions repeat": func(_ *faulty, right *watched) {
			right.position = func(number int) string { return positionOf(max(1, number&^1)) }
		},
		"one imported record of many is reported": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			err := right.Store.Import(ctx, records)
			if err == nil && len(records) > 0 {
				_, err = right.write(ctx, relayer.ChangeCreated, records[0].ID, func() (relayer.Record, error) { return right.Get(ctx, records[0].ID) })
			}
			return err
		}),
		"imports are not reported": func(f *faulty, right *watched) { f.load = right.Store.Import },
		"sequences: they fall":     withCreated(func(made *relayer.Record, _ relayer.Record, _ []relayer.Record) { made.Sequence = 1000 - made.Sequence }),
		"sequences: they are zero": withCreated(func(made *relayer.Record, _ relayer.Record, _ []relayer.Record) { made.Sequence = 0 }),
		"sequences: an update takes a new one": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			made, err := right.Update(ctx, rec)
			made.Sequence = made.Revision
			return made, err
		}),
		"sequences: one more than the last record": withCreated(func(made *relayer.Record, _ relayer.Record, before []relayer.Record) {
			made.Sequence = 1
			if len(before) > 0 {
				made.Sequence = before[len(before)-1].Sequence + 1
			}
		}),
		"sequences: the number of records": withCreated(func(made *relayer.Record, _ relayer.Record, before []relayer.Record) {
			made.Sequence = uint64(len(before)) + 1
		}),
		"a given sequence: a create keeps it": withCreated(func(made *relayer.Record, given relayer.Record, _ []relayer.Record) { made.Sequence = given.Sequence }),
		"a given sequence: an update keeps it": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			made, err := right.Update(ctx, rec)
			made.Sequence = rec.Sequence
			return made, err
		}),
		"sequences: imports keep their own": func(f *faulty, right *watched) {
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
		},
		"sequences: imports have none": changedListed(func(_ relayer.StoreQuery, rec *relayer.Record) {
			if strings.HasPrefix(rec.ID, "m") {
				rec.Sequence = 0
			}
		}),
		"after: it is ignored":            changedQuery(func(query *relayer.StoreQuery) { query.After = 0 }),
		"after: it is included":           changedQuery(func(query *relayer.StoreQuery) { query.After = max(1, query.After) - 1 }),
		"after: it is signed":             changedQuery(func(query *relayer.StoreQuery) { query.After = uint64(max(0, int64(query.After))) }),
		"after: it is ignored with terms": changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.Terms))) }),
		"after: it is ignored with IDs":   changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.IDs))) }),
		"after: it is ignored with texts": changedQuery(func(query *relayer.StoreQuery) { query.After *= uint64(1 - min(1, len(query.Contains))) }),
		"after: the offset is ignored": changedQuery(func(query *relayer.StoreQuery) {
			if query.After > 0 {
				query.Offset = 0
			}
		}),
		"after: the total is of what follows": changedList(func(ctx context.Context, right relayer.Store, query relayer.StoreQuery, page *relayer.Listing) {
			query.Offset, query.Limit = 0, math.MaxInt
			rest, _ := right.List(ctx, query)
			page.Total = len(rest.Records)
		}),
		"after: the offset counts all records": listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
			after := query.After
			query.After = 0
			page, err := right.List(ctx, query)
			page.Records = slices.DeleteFunc(page.Records, func(rec relayer.Record) bool { return rec.Sequence <= after })
			return page, err
		}),
		"documents only: the note is missing":     documentsWithout(func(rec *relayer.Record) { rec.Note = nil }),
		"documents only: the sequence is missing": documentsWithout(func(rec *relayer.Record) { rec.Sequence = 0 }),
		"documents only: the revision is missing": documentsWithout(func(rec *relayer.Record) { rec.Revision = 0 }),
		"documents only: the document is missing": documentsWithout(func(rec *relayer.Record) { rec.Document = nil }),
		"documents only: the ID is missing":       documentsWithout(func(rec *relayer.Record) { rec.ID = "" }),
		"notes: a create loses it":                withStored(func(rec *relayer.Record) { rec.Note = nil }),
		"notes: an update keeps the old one": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			note := rec.Note
			if old, err := right.Get(ctx, rec.ID); err == nil {
				rec.Note = old.Note
			}
			rec, err := right.Update(ctx, rec)
			rec.Note = note
			return rec, err
		}),
		"notes: an update without one keeps the old one": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if old, err := right.Get(ctx, rec.ID); err == nil && rec.Note == nil {
				rec.Note = old.Note
			}
			return right.Update(ctx, rec)
		}),
		"notes: a delete loses it": deleting(func(ctx context.Context, right *watched, id string, revision uint64, _ []byte) error {
			return right.Delete(ctx, id, revision, nil)
		}),
		"notes: a delete has that of the record": deleting(func(ctx context.Context, right *watched, id string, revision uint64, _ []byte) error {
			rec, _ := right.Get(ctx, id)
			return right.Delete(ctx, id, revision, rec.Note)
		}),
		"notes: a delete has the revision of the record": changedElements(func(change *relayer.RecordChange) {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision--
			}
		}),
		"notes: a delete has the revision of the next write": changedElements(func(change *relayer.RecordChange) {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision++
			}
		}),
		"history: oldest first": changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
			slices.Reverse(past)
			return past
		}),
		"history: before is included": changedHistory(func(query *relayer.HistoryQuery) { query.Before += min(1, query.Before) }, nil),
		"history: before is ignored":  changedHistory(func(query *relayer.HistoryQuery) { query.Before = 0 }, nil),
		"history: before is signed": changedHistory(func(query *relayer.HistoryQuery) {
			query.Before = uint64(max(1, int64(query.Before))) * min(1, query.Before)
		}, nil),
		"history: the limit is ignored": changedHistory(func(query *relayer.HistoryQuery) { query.Limit = math.MaxInt }, nil),
		"history: the ID is ignored":    changedHistory(func(query *relayer.HistoryQuery) { query.ID = "" }, nil),
		"history: the actor selects":    selectingHistory(func(query relayer.HistoryQuery, _ relayer.RecordChange) bool { return query.Actor == "" }),
		"history: the action selects":   selectingHistory(func(query relayer.HistoryQuery, _ relayer.RecordChange) bool { return query.Action == "" }),
		"history: since selects": selectingHistory(func(query relayer.HistoryQuery, change relayer.RecordChange) bool {
			return !change.Time.Before(query.Since)
		}),
		"history: until selects": selectingHistory(func(query relayer.HistoryQuery, change relayer.RecordChange) bool {
			return query.Until.IsZero() || change.Time.Before(query.Until)
		}),
		"history: the ID is a prefix": changedHistory(func(query *relayer.HistoryQuery) {
			if query.ID == "id-" {
				query.ID = "id-1"
			}
		}, nil),
		"history: it has private parts": changedPast(func(change *relayer.RecordChange) { change.Record.Private = []byte("secret") }),
		"history: its times are early":  changedPast(func(change *relayer.RecordChange) { change.Time = time.Now().AddDate(0, 0, -1) }),
		"history: its times are late":   changedPast(func(change *relayer.RecordChange) { change.Time = time.Now().Add(time.Minute) }),
		"history: it has no notes":      changedPast(func(change *relayer.RecordChange) { change.Record.Note = nil }),
		"history: it has no old terms":  changedPast(func(change *relayer.RecordChange) { change.OldTerms = nil }),
		"history: it has no documents":  changedPast(func(change *relayer.RecordChange) { change.Record.Document = nil }),
		"history: a delete has the revision of the record": changedPast(func(change *relayer.RecordChange) {
			if change.Kind == relayer.ChangeDeleted {
				change.Record.Revision--
			}
		}),
		"history: deletes are missing": changedHistory(nil, func(_ relayer.HistoryQuery, past []relayer.RecordChange) []relayer.RecordChange {
			return slices.DeleteFunc(past, func(change relayer.RecordChange) bool { return change.Kind == relayer.ChangeDeleted })
		}),
		"history: deleted records are missing": func(f *faulty, right *watched) {
			f.history = func(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
				past, err := right.History(ctx, query)
				return slices.DeleteFunc(past, func(change relayer.RecordChange) bool {
					_, err := right.Get(ctx, change.Record.ID)
					return err != nil
				}), err
			}
		},
		"history: it has failed writes": func(f *faulty, right *watched) {
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
		},
		"history: imports are creates": func(f *faulty, right *watched) {
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
		},
		"list: the position is empty":             withPosition(func(_ int, _ relayer.StoreQuery, _ *watched) string { return "" }),
		"list: the position is unknown":           withPosition(func(_ int, _ relayer.StoreQuery, _ *watched) string { return "unknown" }),
		"list: the position is one change early":  withPosition(func(last int, _ relayer.StoreQuery, w *watched) string { return w.position(max(0, last-1)) }),
		"list: the position is that of the start": withPosition(func(_ int, _ relayer.StoreQuery, w *watched) string { return w.position(0) }),
		"list: a list without a page has no position": withPosition(func(last int, query relayer.StoreQuery, w *watched) string {
			if query.Limit == 0 {
				return ""
			}
			return w.position(last)
		}),
		"list: the position is that of the last selected record": withPosition(func(last int, query relayer.StoreQuery, w *watched) string {
			for last > 0 && !storeutil.Selects(query, w.log[last-1].Record) {
				last--
			}
			return w.position(last)
		}),
		"list: an empty store has no position": withPosition(func(last int, _ relayer.StoreQuery, w *watched) string {
			if last == 0 {
				return ""
			}
			return w.position(last)
		}),
		"list: the position is not visible ASCII": withPosition(func(last int, _ relayer.StoreQuery, w *watched) string { return w.position(last) + " " }),
		"list: a page is returned again": func(f *faulty, right *watched) {
			pages := make(map[string]relayer.Listing)
			f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
				key := fmt.Sprint(query, len(right.log))
				if page, ok := pages[key]; ok {
					return page, nil
				}
				page, err := right.List(ctx, query)
				pages[key] = page
				return page, err
			}
		},
		"list: it has no notes":        changedListed(func(_ relayer.StoreQuery, rec *relayer.Record) { rec.Note = nil }),
		"list: it has other sequences": changedListed(func(_ relayer.StoreQuery, rec *relayer.Record) { rec.Sequence++ }),
	},
	"readers see complete snapshots": {
		"a selection of another moment": listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
			if len(query.Terms) == 0 {
				return right.List(ctx, query)
			}
			all, _ := right.List(ctx, relayer.StoreQuery{Limit: math.MaxInt})
			page, err := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
				for _, rec := range all.Records {
					runtime.Gosched()
					rec, err := right.Get(ctx, rec.ID)
					if err == nil && !yield(rec, nil) {
						return
					}
				}
			}, query)
			page.Position = all.Position
			return page, err
		}),
		"total of another moment": listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
			before, _ := right.List(ctx, relayer.StoreQuery{Terms: query.Terms, IDs: query.IDs})
			runtime.Gosched()
			page, err := right.List(ctx, query)
			page.Total = before.Total
			return page, err
		}),
		"the second half of a page is of a later moment": changedList(func(ctx context.Context, right relayer.Store, _ relayer.StoreQuery, page *relayer.Listing) {
			runtime.Gosched()
			for i := len(page.Records) / 2; i < len(page.Records); i++ {
				if rec, err := right.Get(ctx, page.Records[i].ID); err == nil {
					page.Records[i] = rec
				}
			}
		}),
		"the total of a search is that before the last update": func(f *faulty, right *watched) {
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
		},
	},
	"IDs at the limits": {
		"get refuses an impossible ID": func(f *faulty, right *watched) {
			f.get = func(ctx context.Context, id string) (relayer.Record, error) {
				if id == "" || len(id) > 64 {
					return relayer.Record{}, relayer.ErrInvalid
				}
				return right.Get(ctx, id)
			}
		},
		"IDs are cut": withStored(func(rec *relayer.Record) { rec.ID = rec.ID[:min(63, len(rec.ID))] }),
		"delete refuses an impossible ID": deleting(func(ctx context.Context, right *watched, id string, revision uint64, note []byte) error {
			if id == "" || len(id) > 64 {
				return relayer.ErrInvalid
			}
			return right.Delete(ctx, id, revision, note)
		}),
	},
	"canceled context": {
		"contexts are ignored": creating(func(_ context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			return right.Create(context.Background(), rec)
		}),
		"a create that has started returns the error of its context": creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if err := ctx.Err(); err != nil {
				return relayer.Record{}, err
			}
			made, err := right.Create(context.WithoutCancel(ctx), rec)
			time.Sleep(100 * time.Microsecond)
			return made, cmp.Or(err, ctx.Err())
		}),
		"import ignores its context": importing(func(_ context.Context, right *watched, records []relayer.Record) error {
			return right.Import(context.Background(), records)
		}),
	},
	"racing writes": {
		"many creates of one ID win": creating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			if _, err := right.Get(ctx, rec.ID); err == nil {
				return relayer.Record{}, relayer.ErrExists
			}
			runtime.Gosched()
			made, err := right.Create(ctx, rec)
			if errors.Is(err, relayer.ErrExists) {
				return right.Get(ctx, rec.ID)
			}
			return made, err
		}),
		"many updates to one claim win": updating(func(ctx context.Context, right *watched, rec relayer.Record) (relayer.Record, error) {
			page, _ := right.List(ctx, relayer.StoreQuery{Limit: math.MaxInt})
			isHeld := slices.ContainsFunc(page.Records, func(other relayer.Record) bool { return other.Claim == rec.Claim })
			time.Sleep(time.Millisecond)
			made, err := right.Update(ctx, rec)
			if errors.Is(err, relayer.ErrClaimed) && !isHeld {
				rec.Claim = ""
				made, err = right.Update(ctx, rec)
				made.Claim = "one"
			}
			return made, err
		}),
	},
	"readers see complete imports": {
		"import removes records that were visible": importing(func(ctx context.Context, right *watched, records []relayer.Record) error {
			for i := range records {
				if err := right.Import(ctx, records[i:i+1]); err != nil {
					for _, gone := range records[:i] {
						_ = right.Delete(ctx, gone.ID, gone.Revision, nil)
					}
					return err
				}
				runtime.Gosched()
			}
			return ctx.Err()
		}),
	},
	"revisions of imports at the limits": {
		"import accepts any revision": changedImport(func(records []relayer.Record) []relayer.Record {
			for i := range records {
				records[i].Revision = min(max(1, records[i].Revision), transfer.MaxRevision)
			}
			return records
		}),
	},
	"watch after an unknown position": {
		"watch goes on after a gap": func(_ *faulty, right *watched) { right.goesOn = true },
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
	},
	"texts are searched byte by byte": {
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
		"all of them are needed": listing(func(ctx context.Context, right *watched, query relayer.StoreQuery) (relayer.Listing, error) {
			return scan(ctx, right, query, func(rec relayer.Record) bool {
				return !slices.ContainsFunc(query.Contains, func(part string) bool { return !strings.Contains(rec.Text, part) })
			})
		}),
		"an update keeps the old text": func(f *faulty, right *watched) {
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
		},
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
		"long notes of deletes are refused": deleting(func(ctx context.Context, right *watched, id string, revision uint64, note []byte) error {
			if len(note) > 4000 {
				return relayer.ErrInvalid
			}
			return right.Delete(ctx, id, revision, note)
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
		"what was imported is in the feed": func(f *faulty, right *watched) {
			f.loadHistory = func(ctx context.Context, changes []relayer.RecordChange) error {
				for _, change := range changes {
					_, err := right.write(ctx, change.Kind, change.Record.ID, func() (relayer.Record, error) {
						return change.Record, right.ImportHistory(ctx, []relayer.RecordChange{change})
					})
					if err != nil {
						return err
					}
				}
				return nil
			}
		},
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
		"a watch never resumes": resuming(func(_ string, last int) (int, bool) { return last, true }),
	},
	"watch ends with its context": {
		"it goes on": func(f *faulty, right *watched) {
			f.watch = func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
				return right.Watch(context.WithoutCancel(ctx), after)
			}
		},
		"it returns the error of the context": passing(func(ctx context.Context, _ string, changes feed, yield func(relayer.RecordChange, error) bool) {
			for change, err := range changes {
				if !yield(change, err) {
					return
				}
			}
			yield(relayer.RecordChange{}, ctx.Err())
		}),
	},
	"watch is not read": {
		"a write waits for the consumer": func(f *faulty, right *watched) {
			unread := make(chan struct{}, 1100)
			f.watch = elements(right, func(*relayer.RecordChange) {
				select {
				case <-unread:
				default:
				}
			})
			f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
				select {
				case unread <- struct{}{}:
					return right.Create(ctx, rec)
				case <-ctx.Done():
					return relayer.Record{}, ctx.Err()
				}
			}
		},
		"it skips changes": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
			return append(log, change)[:min(2000, len(log)+1)]
		}),
		"it skips one change": logging(func(log []relayer.RecordChange, change relayer.RecordChange) []relayer.RecordChange {
			if change.Record.ID == "9-50" {
				return log
			}
			return append(log, change)
		}),
	},
	"watch has times": {
		"the time is that of the delivery": changedElements(func(change *relayer.RecordChange) { change.Time = time.Now() }),
		"there is no time":                 changedElements(func(change *relayer.RecordChange) { change.Time = time.Time{} }),
		"there is no monotonic reading":    changedElements(func(change *relayer.RecordChange) { change.Time = change.Time.Round(0) }),
		"the time is in the future":        changedElements(func(change *relayer.RecordChange) { change.Time = change.Time.Add(time.Minute) }),
		"the time goes back": func(f *faulty, right *watched) {
			var mu sync.Mutex
			back := time.Duration(0)
			f.watch = elements(right, func(change *relayer.RecordChange) {
				mu.Lock()
				defer mu.Unlock()
				back += time.Second
				change.Time = change.Time.Add(-back)
			})
		},
		"a resumed watch begins with a heartbeat of now": passing(func(_ context.Context, after string, changes feed, yield func(relayer.RecordChange, error) bool) {
			if yield(relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: after, Time: time.Now()}, nil) {
				changes(yield)
			}
		}),
		// As of a store that reads its changes at intervals, and gives all that it has read the time
		// of the read.
		"the first change of a batch has its time": passing(func(_ context.Context, _ string, changes feed, yield func(relayer.RecordChange, error) bool) {
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
		}),
	},
	"watch has heartbeats": {
		"there are none":             func(_ *faulty, right *watched) { right.heartbeat = time.Hour },
		"they come every 12 seconds": func(_ *faulty, right *watched) { right.heartbeat = patienceOfControls * 12 / 10 },
		"they have a record":         changedHeartbeats(func(beat *relayer.RecordChange) { beat.Record.ID = "one" }),
		"they have the time of the last change": func(f *faulty, right *watched) {
			last := time.Now()
			var mu sync.Mutex
			f.watch = elements(right, func(change *relayer.RecordChange) {
				mu.Lock()
				defer mu.Unlock()
				if change.Kind == relayer.ChangeHeartbeat {
					change.Time = last
				}
				last = change.Time
			})
		},
		"they have no position":                       changedHeartbeats(func(beat *relayer.RecordChange) { beat.Position = "" }),
		"they have an unknown position":               changedHeartbeats(func(beat *relayer.RecordChange) { beat.Position += "0" }),
		"they have the position of an earlier change": changedHeartbeats(func(beat *relayer.RecordChange) { beat.Position = positionOf(0) }),
		"they take the place of a change": passing(func(_ context.Context, _ string, changes feed, yield func(relayer.RecordChange, error) bool) {
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
		}),
	},
}
