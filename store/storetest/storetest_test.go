package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storetest"
	"github.com/go-relayer/relayer/store/storeutil"
)

// wrongStore is the environment variable with the name of the store that a child
// process tests.
const wrongStore = "STORETEST_WRONG_STORE"

// TestRun_FaultyStores runs the suite with stores that violate the contract in one
// point each, and with conforming ones.
func TestRun_FaultyStores(t *testing.T) {
	stores := maps.Clone(wrong)
	maps.Copy(stores, wrongImports)
	maps.Copy(stores, wrongWatches)
	if name := os.Getenv(wrongStore); name != "" {
		storetest.Run(t, func(*testing.T) relayer.Store { return stores[name]() })
		return
	}
	for name := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestRun_FaultyStores$", "-test.failfast")
			child.Env = append(os.Environ(), wrongStore+"="+name)
			output, err := child.CombinedOutput()
			if found := err != nil && bytes.Contains(output, []byte("--- FAIL")); found == strings.HasPrefix(name, "right") {
				t.Errorf("found wrong: %t\n%s", found, output)
			}
		})
	}
}

// A store that is wrapped in a struct keeps all methods.
func TestRun_WrappedStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) relayer.Store { return struct{ relayer.Store }{newWatched(logAll)} })
}

// faulty overrides the methods of a conforming store. It has no other methods.
type faulty struct {
	create  func(context.Context, relayer.Record) (relayer.Record, error)
	get     func(context.Context, string) (relayer.Record, error)
	list    func(context.Context, relayer.StoreQuery) (relayer.Listing, error)
	update  func(context.Context, relayer.Record) (relayer.Record, error)
	remove  func(context.Context, string, uint64, []byte) error
	watch   func(context.Context, string) iter.Seq2[relayer.RecordChange, error]
	history func(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error)
}

func newFaulty(right relayer.Store) *faulty {
	return &faulty{right.Create, right.Get, right.List, right.Update, right.Delete, right.Watch, right.History}
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

// broken returns a store with a fault.
func broken(apply func(f *faulty, right relayer.Store)) func() relayer.Store {
	return func() relayer.Store {
		right := newWatched(logAll)
		f := newFaulty(right)
		apply(f, right)
		return f
	}
}

// changedQuery returns a store that executes another query.
func changedQuery(change func(query *relayer.StoreQuery)) func() relayer.Store {
	return broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			change(&query)
			return right.List(ctx, query)
		}
	})
}

// alarmed reports damage of an undamaged store.
type alarmed struct{ *watched }

func (alarmed) Check(context.Context) error { return errors.New("damaged") }

var wrong = map[string]func() relayer.Store{
	"right": broken(func(*faulty, relayer.Store) {}),

	"create overwrites": broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			if current, err := right.Get(ctx, rec.ID); err == nil {
				_ = right.Delete(ctx, current.ID, current.Revision, nil)
			}
			return right.Create(ctx, rec)
		}
	}),
	"claims are not enforced": broken(func(f *faulty, right relayer.Store) {
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
	}),
	"update ignores the revision": broken(func(f *faulty, right relayer.Store) {
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			if current, err := right.Get(ctx, rec.ID); err == nil {
				rec.Revision = current.Revision
			}
			return right.Update(ctx, rec)
		}
	}),
	"delete ignores the revision": broken(func(f *faulty, right relayer.Store) {
		f.remove = func(ctx context.Context, id string, revision uint64, note []byte) error {
			if current, err := right.Get(ctx, id); err == nil {
				revision = current.Revision
			}
			return right.Delete(ctx, id, revision, note)
		}
	}),
	"delete refuses an impossible ID": broken(func(f *faulty, right relayer.Store) {
		f.remove = func(ctx context.Context, id string, revision uint64, note []byte) error {
			if id == "" || len(id) > 64 {
				return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "id", Message: "must be 1 to 64 bytes long"}}}
			}
			return right.Delete(ctx, id, revision, note)
		}
	}),
	"update moves to the end": broken(func(f *faulty, right relayer.Store) {
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			if err := right.Delete(ctx, rec.ID, rec.Revision, nil); err != nil {
				return relayer.Record{}, err
			}
			return right.Create(ctx, rec)
		}
	}),
	"total is that of the page": broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			page, err := right.List(ctx, query)
			page.Total = len(page.Records)
			return page, err
		}
	}),
	"pages skip one": broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			if query.Offset > 20 {
				query.Offset++
			}
			return right.List(ctx, query)
		}
	}),
	"total of another moment": broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			before, _ := right.List(ctx, relayer.StoreQuery{Terms: query.Terms, IDs: query.IDs})
			runtime.Gosched()
			page, err := right.List(ctx, query)
			page.Total = before.Total
			return page, err
		}
	}),
	"contexts are ignored": broken(func(f *faulty, right relayer.Store) {
		f.create = func(_ context.Context, rec relayer.Record) (relayer.Record, error) {
			return right.Create(context.Background(), rec)
		}
	}),
	"check reports damage of an undamaged store": func() relayer.Store { return alarmed{newWatched(logAll)} },
	"right, with records next to errors": broken(func(f *faulty, right relayer.Store) {
		leftover := relayer.Record{ID: "leftover", Revision: 99, Claim: "c", Document: []byte("{}"), Private: []byte("{}")}
		orLeftover := func(rec relayer.Record, err error) (relayer.Record, error) {
			if err != nil {
				return leftover, err
			}
			return rec, nil
		}
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			return orLeftover(right.Create(ctx, rec))
		}
		f.get = func(ctx context.Context, id string) (relayer.Record, error) { return orLeftover(right.Get(ctx, id)) }
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			return orLeftover(right.Update(ctx, rec))
		}
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
			page, err := right.List(ctx, query)
			if err != nil {
				return relayer.Listing{Records: []relayer.Record{leftover}, Total: 99}, err
			}
			return page, nil
		}
	}),
	"an update overwrites the memory of the old document": broken(func(f *faulty, right relayer.Store) {
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
	}),
	"a create sorts the memory of the terms given": broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			made := rec
			made.Terms = slices.Clone(rec.Terms)
			made, err := right.Create(ctx, made)
			slices.Reverse(rec.Terms)
			return made, err
		}
	}),
	"terms are not stored": broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			terms := rec.Terms
			rec.Terms = nil
			rec, err := right.Create(ctx, rec)
			rec.Terms = terms
			return rec, err
		}
	}),
	"an update keeps the terms": broken(func(f *faulty, right relayer.Store) {
		f.update = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			old, _ := right.Get(ctx, rec.ID)
			rec.Terms = old.Terms
			return right.Update(ctx, rec)
		}
	}),
	"terms are ignored": changedQuery(func(query *relayer.StoreQuery) { query.Terms = nil }),
	"IDs are ignored":   changedQuery(func(query *relayer.StoreQuery) { query.IDs = nil }),
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
	"a selection of another moment": broken(func(f *faulty, right relayer.Store) {
		f.list = func(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
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
		}
	}),
	"many creates of one ID win": broken(func(f *faulty, right relayer.Store) {
		f.create = func(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
			if _, err := right.Get(ctx, rec.ID); err == nil {
				return relayer.Record{}, relayer.ErrExists
			}
			runtime.Gosched()
			made, err := right.Create(ctx, rec)
			if errors.Is(err, relayer.ErrExists) {
				return right.Get(ctx, rec.ID)
			}
			return made, err
		}
	}),
}
