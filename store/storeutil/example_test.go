package storeutil_test

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// List the records of a storage engine that can only read all of them.
func ExampleScan() {
	all := func(yield func(relayer.Record, error) bool) {
		_ = yield(relayer.Record{ID: "one", Sequence: 1, Terms: []string{"network=sepolia", "paused=false"}}, nil) &&
			yield(relayer.Record{ID: "two", Sequence: 2, Terms: []string{"network=mainnet", "paused=false"}}, nil) &&
			yield(relayer.Record{ID: "three", Sequence: 3, Terms: []string{"network=sepolia", "paused=false"}}, nil)
	}
	page, err := storeutil.Scan(all, relayer.StoreQuery{
		Terms: [][]string{{"network=sepolia", "network=holesky"}, {"paused=false"}},
		Limit: 1,
	})
	fmt.Println(page.Records[0].ID, page.Total, err)
	// Output: one 2 <nil>
}

// Publish the writes of a store to the callers of its Watch method.
func ExampleFeed() {
	var changes storeutil.Feed // a field of the store
	followed := changes.Watch(context.Background(), "")

	changes.Publish(relayer.RecordChange{
		Kind:     relayer.ChangeUpdated,
		Record:   relayer.Record{ID: "one", Revision: 7, Terms: []string{"paused=true"}},
		OldTerms: []string{"paused=false"},
	})
	for change, err := range followed {
		fmt.Println(change.Kind, change.Record.ID, change.OldTerms, change.Record.Terms, err)
		break
	}
	// Output: updated one [paused=false] [paused=true] <nil>
}

// Commit the writes of concurrent callers together, for example in one transaction.
func ExampleQueue() {
	var writes *storeutil.Queue[string] // a field of the store
	lock := make(chan struct{}, 1)      // held by the goroutine that writes
	commit := func(context.Context) {
		batch := writes.Take()
		for _, w := range batch {
			fmt.Println("write", w.Value)
		}
		// Sync the batch here, and only then report it.
		for _, w := range batch {
			w.Finish(nil)
		}
	}
	writes = storeutil.NewQueue[string](lock, 256, 8<<20, commit)

	record := "the record of one"
	err := writes.Do(context.Background(), len(record), record)
	fmt.Println(err)

	writes.Close()
	fmt.Println(writes.Do(context.Background(), len(record), record))
	// Output:
	// write the record of one
	// <nil>
	// store unavailable: the store is closed
}
