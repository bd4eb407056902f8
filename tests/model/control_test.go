package model

import (
	"bytes"
	"context"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// faultOfChild is the environment variable with the fault of the store that a child process
// checks.
const faultOfChild = "MODEL_FAULT"

// TestControl_FaultyStores proves that the check can fail: it does so for a store with a fault.
func TestControl_FaultyStores(t *testing.T) {
	if name := os.Getenv(faultOfChild); name != "" {
		rapid.Check(t, func(t *rapid.T) {
			store := faults[name]
			store.Store = memory.New()
			checkSubjects(t, []*subject{{name: name, instances: []relayer.Store{store}}})
		})
		return
	}
	for name := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestControl_FaultyStores$", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
			child.Env = append(os.Environ(), faultOfChild+"="+name)
			output, err := child.CombinedOutput()
			isFound := err != nil && bytes.Contains(output, []byte("--- FAIL"))
			if isFound == strings.HasPrefix(name, "none") {
				t.Errorf("found: %t\n%s", isFound, output)
			}
		})
	}
}

// faulty is a store in memory that asks and returns other things.
type faulty struct {
	*memory.Store
	query   func(*relayer.StoreQuery)
	listing func(*relayer.Listing)
	change  func(*relayer.RecordChange)
	past    func(*relayer.RecordChange)
}

var faults = map[string]faulty{
	"none":                             {},
	"after is ignored":                 {query: func(query *relayer.StoreQuery) { query.After = 0 }},
	"only the first part is searched":  {query: func(query *relayer.StoreQuery) { query.Contains = query.Contains[:min(1, len(query.Contains))] }},
	"lists have no notes":              {listing: func(page *relayer.Listing) { eachOf(page, func(rec *relayer.Record) { rec.Note = nil }) }},
	"lists have other sequences":       {listing: func(page *relayer.Listing) { eachOf(page, func(rec *relayer.Record) { rec.Sequence++ }) }},
	"positions are those of the watch": {listing: func(page *relayer.Listing) { page.Position = "" }},
	"times are those of the delivery":  {change: func(c *relayer.RecordChange) { c.Time = time.Now() }},
	"changes have no old text":         {change: func(c *relayer.RecordChange) { c.OldText = "" }},
	"a delete has an old revision": {change: func(c *relayer.RecordChange) {
		if c.Kind == relayer.ChangeDeleted {
			c.Record.Revision--
		}
	}},
	"histories have private parts": {past: func(c *relayer.RecordChange) { c.Record.Private = []byte("private") }},
	"histories have no notes":      {past: func(c *relayer.RecordChange) { c.Record.Note = nil }},
}

func eachOf(page *relayer.Listing, change func(*relayer.Record)) {
	page.Records = slices.Clone(page.Records)
	for i := range page.Records {
		change(&page.Records[i])
	}
}

func (f faulty) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	if f.query != nil {
		f.query(&query)
	}
	page, err := f.Store.List(ctx, query)
	if f.listing != nil {
		f.listing(&page)
	}
	return page, err
}

func (f faulty) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	changes := f.Store.Watch(ctx, after)
	return func(yield func(relayer.RecordChange, error) bool) {
		for change, err := range changes {
			if f.change != nil {
				f.change(&change)
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

func (f faulty) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	past, err := f.Store.History(ctx, query)
	for i := range past {
		if f.past != nil {
			f.past(&past[i])
		}
	}
	return past, err
}
