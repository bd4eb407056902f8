// Package storetest tests that a [relayer.Store] conforms to its contract.
//
// The test of a store calls [Run], or [RunDurable] if the store is durable:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) relayer.Store {
//			return mystore.New()
//		})
//	}
//
// The tests of [transfer.Importer], [transfer.HistoryImporter] and [transfer.Checker] are left
// out if the store is not one, and the tests of histories if the error of History matches
// [errors.ErrUnsupported]; any other store must retain at least its last 100 changes. A case
// waits for a heartbeat, which takes up to 5 seconds. Minor versions may add cases. The
// environment variable STORETEST_SEED repeats the random choices of a failed case that logs it.
// STORETEST_STEPS is the number of steps of the random calls, without it 800.
//
// Every case gets an empty store. A store with a Close() error method is closed when its case ends.
// After Close, a second Close must return nil, and every other method [relayer.ErrUnavailable]; an
// unsupported History may return its own error. The largest record has 2 MiB. Run the cases with
// the race detector too.
//
// The suite cannot cause faults. Test of a store of your own that a watch ends with
// [relayer.ErrUnavailable] if its data is unreachable for 15 seconds, that a failed write of
// unknown outcome returns [relayer.ErrOutcomeUnknown], and that a damaged record is an error that
// matches [relayer.ErrCorrupt], also in a page, and leaves the others readable.
package storetest

import (
	"io"
	"testing"

	"github.com/go-relayer/relayer"
)

// opener opens a store, or fails the test.
type opener = func(t *testing.T) relayer.Store

// Run runs the cases for all stores as subtests. Each call of open must return an empty
// store, or fail the test. The suite closes the store if it is an [io.Closer].
func Run(t *testing.T, open func(t *testing.T) relayer.Store) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, openUntilEnd(t, open))
		})
	}
}

// RunDurable runs the cases of [Run]. The random calls close the store and open it again at times.
// Each call of place creates an empty location, such as a directory or a schema, and
// returns the function that opens a store in it: the data written by one store must be in the
// next one. Two stores of one location are never open at the same time if they have a Close method.
func RunDurable(t *testing.T, place func(t *testing.T) func(t *testing.T) relayer.Store) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			open := place(t)
			if c.name == randomName {
				randomCallsReopened(t, open)
				return
			}
			c.run(t, openUntilEnd(t, open))
		})
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, store relayer.Store)
}

const randomName = "random calls"

var cases = []testCase{
	{randomName, randomCalls},
	{"IDs at the limits", idsAtLimits},
	{"claims at the limits", claimsAtLimits},
	{"parts at the limits", partsAtLimits},
	{"terms are compared byte by byte", termsAtLimits},
	{"texts are searched byte by byte", listContains},
	{"large documents", largeDocuments},
	{"canceled context", canceledContext},
	{"use after close", useAfterClose},
	{"racing writes", racingWrites},
	{"revisions of imports at the limits", importRevisions},
	{"import of thousands", importLarge},
	{"history of another store", historyImported},
	{"a rejected history stores nothing", historyRejected},
	{"watch ends with its context", watchEndsWithContext},
	{"watch is not read", watchUnread},
	{"watch after an unknown position", watchAfterUnknown},
	{"watch has times", watchTimes},
	// Last, because some of these take long, also for a store that fails another case.
	{"readers see complete snapshots", readersSeeSnapshots},
	{"readers see complete imports", readersSeeImportsWhole},
	{"list and then watch during concurrent writes", listThenWatch},
	{"watch has heartbeats", watchHeartbeats},
}

func openUntilEnd(t *testing.T, open opener) relayer.Store {
	t.Helper()
	store := open(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

// closeStore closes a store that has a Close method. A second Close must succeed too.
func closeStore(t *testing.T, store relayer.Store) {
	t.Helper()
	closer, ok := store.(io.Closer)
	if !ok {
		return
	}
	if err := closer.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
