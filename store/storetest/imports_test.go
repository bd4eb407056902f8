package storetest_test

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// faultyImport has an Import of its own beside the five methods.
type faultyImport struct {
	*faulty
	load func(context.Context, []relayer.Record) error
}

func (f *faultyImport) Import(ctx context.Context, records []relayer.Record) error {
	return f.load(ctx, records)
}

// brokenImport makes the Import of a right store wrong.
func brokenImport(spoil func(f *faultyImport, right *memory.Store)) func() relayer.Store {
	return func() relayer.Store {
		right := memory.New()
		f := &faultyImport{&faulty{right, right.Create, right.Get, right.List, right.Update, right.Delete}, right.Import}
		spoil(f, right)
		return f
	}
}

// changedImport hands over records that are not quite those it was given.
func changedImport(change func(records []relayer.Record) []relayer.Record) func() relayer.Store {
	return brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			return right.Import(ctx, change(slices.Clone(records)))
		}
	})
}

// miscounting is right but for the revisions that creates get after an import:
// they go on above what count makes of the last revision and the records, as far
// as an import can give them one.
func miscounting(count func(counted uint64, records []relayer.Record) uint64) func() relayer.Store {
	return brokenImport(func(f *faultyImport, right *memory.Store) {
		var mu sync.Mutex
		var counted uint64
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			if counted >= relayer.MaxRevision {
				return right.Create(ctx, rec)
			}
			rec.Revision = counted + 1
			if err := right.Import(ctx, []relayer.Record{rec}); err != nil {
				return relayer.Record{}, err
			}
			counted++
			return rec, nil
		}
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			mu.Lock()
			defer mu.Unlock()
			rec, err := right.Update(ctx, rec)
			counted = max(counted, rec.Revision)
			return rec, err
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

// wrongImports are stores whose Import breaks the contract.
var wrongImports = map[string]func() relayer.Store{
	"right import": brokenImport(func(*faultyImport, *memory.Store) {}),

	"import loses the revision": brokenImport(func(f *faultyImport, right *memory.Store) {
		var revision atomic.Uint64
		f.load = func(ctx context.Context, records []relayer.Record) error {
			records = slices.Clone(records)
			for i := range records {
				if records[i].Revision > 0 && records[i].Revision <= relayer.MaxRevision {
					records[i].Revision = revision.Add(1)
				}
			}
			return right.Import(ctx, records)
		}
	}),
	"right counts": miscounting(func(counted uint64, records []relayer.Record) uint64 {
		return max(counted, greatestRevision(records))
	}),
	"import is not atomic": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			for i := range records {
				if err := right.Import(ctx, records[i:i+1]); err != nil {
					return err
				}
			}
			return ctx.Err()
		}
	}),
	"import takes back what others can see": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			for i := range records {
				if err := right.Import(ctx, records[i:i+1]); err != nil {
					for _, gone := range records[:i] {
						_ = right.Delete(ctx, gone.ID, gone.Revision)
					}
					return err
				}
				runtime.Gosched()
			}
			return ctx.Err()
		}
	}),
	"writes do not go on above an import": miscounting(func(uint64, []relayer.Record) uint64 { return 0 }),
	"an import sets revisions back": miscounting(func(_ uint64, records []relayer.Record) uint64 {
		return greatestRevision(records)
	}),
	"creates go on at the last one imported": miscounting(func(counted uint64, records []relayer.Record) uint64 {
		return max(counted, records[len(records)-1].Revision)
	}),
	"import turns the order around": changedImport(func(records []relayer.Record) []relayer.Record {
		slices.Reverse(records)
		return records
	}),
	"import sorts": changedImport(func(records []relayer.Record) []relayer.Record {
		slices.SortStableFunc(records, func(a, b relayer.Record) int { return cmp.Compare(a.Revision, b.Revision) })
		return records
	}),
	"import leaves claims behind": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Claim = ""
		}
		return records
	}),
	"import leaves private parts behind": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Private = nil
		}
		return records
	}),
	"import takes one record of an id that comes twice": changedImport(func(records []relayer.Record) []relayer.Record {
		seen := make(map[string]bool)
		return slices.DeleteFunc(records, func(rec relayer.Record) bool {
			again := seen[rec.ID]
			seen[rec.ID] = true
			return again
		})
	}),
	"import takes any revision": changedImport(func(records []relayer.Record) []relayer.Record {
		for i := range records {
			records[i].Revision = min(max(1, records[i].Revision), relayer.MaxRevision)
		}
		return records
	}),
	"import leaves out what is there": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			return right.Import(ctx, slices.DeleteFunc(slices.Clone(records), func(rec relayer.Record) bool {
				_, err := right.Get(ctx, rec.ID)
				return err == nil
			}))
		}
	}),
	"import overwrites": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			for _, rec := range records {
				if stands, err := right.Get(ctx, rec.ID); err == nil {
					_ = right.Delete(ctx, stands.ID, stands.Revision)
				}
			}
			return right.Import(ctx, records)
		}
	}),
	"import ignores its context": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(_ context.Context, records []relayer.Record) error {
			return right.Import(context.Background(), records)
		}
	}),
	"import of nothing is refused": brokenImport(func(f *faultyImport, right *memory.Store) {
		f.load = func(ctx context.Context, records []relayer.Record) error {
			if len(records) == 0 {
				return relayer.ErrInvalid
			}
			return right.Import(ctx, records)
		}
	}),
	"import keeps the caller's bytes": func() relayer.Store {
		var kept sync.Map
		return brokenImport(func(f *faultyImport, right *memory.Store) {
			f.load = func(ctx context.Context, records []relayer.Record) error {
				err := right.Import(ctx, records)
				for _, rec := range records {
					kept.Store(rec.ID, rec)
				}
				return err
			}
			f.get = func(ctx context.Context, id string) (relayer.Record, error) {
				rec, err := right.Get(ctx, id)
				if shared, ok := kept.Load(id); ok && err == nil && rec.Revision == shared.(relayer.Record).Revision {
					return shared.(relayer.Record), nil
				}
				return rec, err
			}
		})()
	},
}
