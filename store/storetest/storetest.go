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
// The cases for [transfer.Importer] and [transfer.Checker] are skipped if the store is not
// one, and those for histories if the error of History matches [errors.ErrUnsupported]; any
// other store must retain at least 100 changes. A case waits for a heartbeat, which takes up
// to 5 seconds. Minor versions may add cases.
//
// Every case gets an empty store. A store with a Close() error method is closed when
// its case ends. After Close, every method must return [relayer.ErrUnavailable], and
// Close again must return nil. The largest record has 2 MiB. Run the cases with the race detector too.
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

// RunDurable runs the cases of [Run], and those that close a store and open it again.
// Each call of place creates an empty location, such as a directory or a schema, and
// returns the function that opens a store in it: the data written by one store must be in the
// next one. Two stores of one location are never open at the same time.
func RunDurable(t *testing.T, place func(t *testing.T) func(t *testing.T) relayer.Store) {
	Run(t, func(t *testing.T) relayer.Store { return place(t)(t) })
	for _, c := range durableCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, place(t)) })
	}
}

type testCase struct {
	name string
	run  func(t *testing.T, store relayer.Store)
}

var cases = []testCase{
	{"create returns the record with a revision", createReturnsRecord},
	{"create of a taken ID", createTaken},
	{"create ignores the revision given", createIgnoresRevision},
	{"get of an unknown ID", getUnknown},
	{"IDs at the limits", idsAtLimits},
	{"list of an empty store", listEmpty},
	{"list in creation order", listOrder},
	{"list pages with totals", listPages},
	{"list pages after deletes", listPagesAfterDeletes},
	{"list selects among writes", listAmongWrites},
	{"list selects by any terms", termsAtLimits},
	{"list past the end", listPastEnd},
	{"list after a sequence", listAfter},
	{"list by parts of the text", listContains},
	{"list of documents only", listDocumentsOnly},
	{"update replaces the record", updateReplaces},
	{"update keeps the position", updateKeepsPosition},
	{"update at another revision", updateConflict},
	{"update of an unknown ID", updateUnknown},
	{"delete removes the record", deleteRemoves},
	{"delete at another revision", deleteConflict},
	{"delete of an unknown ID", deleteUnknown},
	{"create after delete comes last", createAfterDelete},
	{"revisions are never reused", revisionsNeverReused},
	{"sequences grow and are kept by updates", sequencesGrow},
	{"sequences are never reused", sequencesNeverReused},
	{"a sequence that is given is ignored", givenSequenceIgnored},
	{"parts at the limits", partsAtLimits},
	{"notes belong to revisions", notesBelongToRevisions},
	{"create rejects a held claim", claimRejected},
	{"a taken ID precedes a held claim", existsBeforeClaimed},
	{"a stale revision precedes a held claim", conflictBeforeClaimed},
	{"update moves a claim", claimMoves},
	{"update keeps its own claim, and delete frees it", claimKept},
	{"update rejects a held claim", claimRejectedOnUpdate},
	{"claims at the limit", claimAtLimit},
	{"large documents", largeDocuments},
	{"nil and empty documents", emptyDocuments},
	{"canceled context writes nothing", canceledContext},
	{"racing creates of one ID", racingCreates},
	{"racing creates with one claim", racingClaims},
	{"racing updates of one revision", racingUpdates},
	{"racing deletes of one revision", racingDeletes},
	{"racing update and delete", racingUpdateAndDelete},
	{"concurrent creates are all stored", concurrentCreates},
	{"use after close", useAfterClose},
	{"check of an undamaged store", checkOfUndamaged},
	{"import keeps records unchanged", importKeepsRecords},
	{"import of nothing", importNothing},
	{"imports between other writes", importBetweenWrites},
	{"imported records can be changed", importedChange},
	{"writes after an import get greater revisions", writesAfterImport},
	{"import does not lower revisions", importOfLower},
	{"a rejected import stores nothing", importRejected},
	{"import rejects revisions out of range", importRevisionOutOfRange},
	{"import of thousands", importLarge},
	{"canceled context imports nothing", importCanceled},
	{"racing imports and creates of one ID", racingImports},
	{"concurrent imports are not interleaved", concurrentImports},
	{"import after close", importAfterClose},
	{"sequences of imports", sequencesOfImports},
	{"history of writes", historyOfWrites},
	{"history without imports", historyWithoutImports},
	{"history of another store", historyImported},
	{"a rejected history stores nothing", historyRejected},
	{"watch reports every write in order", watchReportsWrites},
	{"watch begins with the call", watchBeginsWithCall},
	{"watch follows selections", watchFollowsSelections},
	{"watch reports an import", watchReportsImports},
	{"watch ends with its context", watchEndsWithContext},
	{"watch resumes after each position", watchResumes},
	{"watch after an unknown position", watchAfterUnknown},
	{"watch of a closed store", watchAfterClose},
	{"watch from the position of a list", listPositions},
	{"watch has times", watchTimes},
	// Last, because these take the longest, also for a store that fails another case.
	{"readers see complete snapshots", readersSeeSnapshots},
	{"readers see selections of one snapshot", readersSeeSelections},
	{"readers see complete imports", readersSeeImportsWhole},
	{"walk during concurrent writes", walkDuringWrites},
	{"list and then watch during concurrent writes", listThenWatch},
	{"watch has heartbeats", watchHeartbeats},
}

func openUntilEnd(t *testing.T, open opener) relayer.Store {
	t.Helper()
	store := open(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

// mustClose closes a store, or skips the case if it has no Close method.
func mustClose(t *testing.T, store relayer.Store) io.Closer {
	t.Helper()
	closer, ok := store.(io.Closer)
	if !ok {
		t.Skip("the store has no Close")
	}
	if err := closer.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	return closer
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
