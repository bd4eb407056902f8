package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/storetest"
)

// TestRun_RightStores runs the suite with stores that conform to the contract. A store that is
// wrapped in a struct has no other methods.
func TestRun_RightStores(t *testing.T) {
	for name, open := range map[string]func() relayer.Store{
		"alone":                       func() relayer.Store { return struct{ relayer.Store }{newWatched()} },
		"with records next to errors": fault(nextToErrors).apply,
		"without replaced private parts": fault(func(f *faulty, right *watched) {
			f.watch = elements(right, func(change *relayer.RecordChange) {
				if rec, err := right.Get(context.Background(), change.Record.ID); err != nil || rec.Revision != change.Record.Revision {
					change.Record.Private = nil
				}
			})
		}).apply,
		"counting for itself": miscounting(func(counted uint64, records []relayer.Record) uint64 {
			return max(counted, greatestRevision(records))
		}).apply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(*testing.T) relayer.Store { return open() })
		})
	}
}

// nextToErrors returns records with errors, which callers ignore.
func nextToErrors(f *faulty, right *watched) {
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
}

// ofFaults is the environment variable of the child process whose tests must fail.
const ofFaults = "STORETEST_FAULTS"

// patienceOfControls replaces 10 seconds.
const patienceOfControls = 500 * time.Millisecond

// TestRun_Faults runs single cases with stores that violate what the case tests. Every case must
// fail. It does so in a child process, whose result is a failure.
func TestRun_Faults(t *testing.T) {
	if os.Getenv(ofFaults) != "" {
		storetest.SetPatience(patienceOfControls)
		for name, of := range faults {
			for label, change := range of {
				t.Run(name+"/"+label, func(t *testing.T) {
					t.Parallel()
					storetest.RunCase(t, name, func(*testing.T) relayer.Store { return change.apply() })
				})
			}
		}
		t.Run("reopened", func(t *testing.T) { storetest.RunReopened(t, forgetfulPlace) })
		t.Run("not woken", func(t *testing.T) {
			storetest.RunCase(t, "use after close", func(t *testing.T) relayer.Store { return unwoken{openBolt(t)} })
		})
		t.Run("imports after close", func(t *testing.T) {
			storetest.RunCase(t, "use after close", func(t *testing.T) relayer.Store { return unclosed{openBolt(t)} })
		})
		return
	}
	t.Parallel()
	child := exec.Command(os.Args[0], "-test.run=^TestRun_Faults$")
	child.Env = append(os.Environ(), ofFaults+"=1", "STORETEST_SEED=1")
	output, _ := child.CombinedOutput()
	wantFailed := func(name string) {
		subtest := strings.ReplaceAll("TestRun_Faults/"+name, " ", "_")
		if !regexp.MustCompile(`(?m)^ *--- FAIL: ` + regexp.QuoteMeta(subtest) + ` \(`).Match(output) {
			t.Errorf("the case passes for the fault %q", name)
		}
	}
	for name, of := range faults {
		for label := range of {
			wantFailed(name + "/" + label)
		}
	}
	wantFailed("reopened")
	wantFailed("not woken")
	wantFailed("imports after close")
	if t.Failed() || bytes.Contains(output, []byte("panic:")) {
		t.Errorf("%s", output)
	}
}

// forgetfulPlace returns the opener of stores that keep their records, and no counters.
func forgetfulPlace(*testing.T) func(t *testing.T) relayer.Store {
	var stored []relayer.Record
	return func(t *testing.T) relayer.Store {
		store := &forgetful{watched: newWatched(), stored: &stored}
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

// History is not supported, so that the counters are what fails.
func (f *forgetful) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, errors.ErrUnsupported
}

func (f *forgetful) Close() error {
	page, err := f.List(context.Background(), relayer.StoreQuery{Limit: math.MaxInt})
	*f.stored = page.Records
	return err
}

func openBolt(t *testing.T) *bolt.Store {
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// unclosed imports a history also after it is closed.
type unclosed struct{ *bolt.Store }

func (unclosed) ImportHistory(context.Context, []relayer.RecordChange) error { return nil }

// unwoken has watches that do not notice that it is closed while they wait.
type unwoken struct{ *bolt.Store }

func (u unwoken) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	changes := u.Store.Watch(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		hasWaited := false
		for change, err := range changes {
			if err != nil && hasWaited {
				<-ctx.Done()
				return
			}
			if hasWaited = true; !yield(change, err) {
				return
			}
		}
	}
}
