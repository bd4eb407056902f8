package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/transfer"
)

// faultyImport overrides the methods and Import of a conforming store.
type faultyImport struct {
	*faulty
	load func(context.Context, []relayer.Record) error
}

func (f *faultyImport) Import(ctx context.Context, records []relayer.Record) error {
	return f.load(ctx, records)
}

// brokenImport returns a store with a fault in Import.
func brokenImport(apply func(f *faultyImport, right *watched)) func() relayer.Store {
	return func() relayer.Store {
		right := newWatched(logAll)
		f := &faultyImport{newFaulty(right), right.Import}
		apply(f, right)
		return f
	}
}

// changedImport returns a store that imports changed records.
func changedImport(change func(records []relayer.Record) []relayer.Record) func() relayer.Store {
	return brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			return right.Import(ctx, change(slices.Clone(records)))
		}
	})
}

// miscounting returns a store whose creates get revisions above the result of count,
// which gets the last revision and the imported records. It conforms otherwise, up to
// the greatest revision of an import.
func miscounting(count func(counted uint64, records []relayer.Record) uint64) func() relayer.Store {
	return brokenImport(func(f *faultyImport, right *watched) {
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
			return right.Get(ctx, rec.ID)
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
	})
}

func greatestRevision(records []relayer.Record) uint64 {
	greatest := uint64(0)
	for _, rec := range records {
		greatest = max(greatest, rec.Revision)
	}
	return greatest
}

// wrongImports are stores whose Import violates the contract.
var wrongImports = map[string]func() relayer.Store{
	"right import": brokenImport(func(*faultyImport, *watched) {}),

	"import loses the revision": brokenImport(func(f *faultyImport, right *watched) {
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
	}),
	"right counts": miscounting(func(counted uint64, records []relayer.Record) uint64 {
		return max(counted, greatestRevision(records))
	}),
	"import is not atomic": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			for i := range records {
				if err := right.Import(ctx, records[i:i+1]); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
	}),
	"import removes records that were visible": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
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
		}
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
	"import drops claims": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Claim = ""
		}
		return records
	}),
	"import drops private parts": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Private = nil
		}
		return records
	}),
	"import drops a duplicate ID": changedImport(func(records []relayer.Record) []relayer.Record {
		seen := make(map[string]bool)
		return slices.DeleteFunc(records, func(rec relayer.Record) bool {
			again := seen[rec.ID]
			seen[rec.ID] = true
			return again
		})
	}),
	"import accepts any revision": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Revision = min(max(1, records[i].Revision), transfer.MaxRevision)
		}
		return records
	}),
	"import skips existing records": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			return right.Import(ctx, slices.DeleteFunc(slices.Clone(records), func(rec relayer.Record) bool {
				_, err := right.Get(ctx, rec.ID)
				return err == nil
			}))
		}
	}),
	"import overwrites": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			for _, rec := range records {
				if current, err := right.Get(ctx, rec.ID); err == nil {
					_ = right.Delete(ctx, current.ID, current.Revision, nil)
				}
			}
			return right.Import(ctx, records)
		}
	}),
	"import ignores its context": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(_ context.Context, records []relayer.Record) error {
			return right.Import(context.Background(), records)
		}
	}),
	"import of nothing is rejected": brokenImport(func(f *faultyImport, right *watched) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			if len(records) == 0 {
				return relayer.ErrInvalid
			}
			return right.Import(ctx, records)
		}
	}),
	"import drops terms": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Terms = nil
		}
		return records
	}),
}
