// Package storetest proves that a [relayer.Store] keeps its contract.
//
// A host that writes a store calls [Run] from a test of its own, or
// [RunDurable] where what the store keeps outlives the store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) relayer.Store {
//			return mystore.New()
//		})
//	}
//
// A store that is a [relayer.DocumentStore], [relayer.CheckStore],
// [relayer.ImportStore] or [relayer.WatchStore] as well proves that too; otherwise
// the cases of these are skipped.
//
// Every case gets an empty store. A store that has a Close() error method is
// closed when its case ends. The cases are worth most under the race detector.
package storetest

import (
	"io"
	"testing"

	"github.com/go-relayer/relayer"
)

// An Opener opens a store, or fails the test. The suite closes what it opened
// where the store is an [io.Closer].
type Opener func(t *testing.T) relayer.Store

// Run runs every case that holds for any store as a subtest. Each call of open
// must return a store that holds nothing.
func Run(t *testing.T, open Opener) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, openUntilEnd(t, open))
		})
	}
}

// RunDurable runs every case of [Run], and those that close a store and open it
// again. Each call of place makes a new and empty place, such as a directory or
// a schema, and returns the opener of that place: what is written through one
// store of it must be there in the next. The suite never has two stores of one
// place open at a time.
func RunDurable(t *testing.T, place func(t *testing.T) Opener) {
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
	{"create of a taken id", createTaken},
	{"create ignores the revision given", createIgnoresRevision},
	{"get of an unknown id", getUnknown},
	{"ids at the limits", idsAtLimits},
	{"ids compare byte by byte", idsCompareExactly},
	{"list of an empty store", listEmpty},
	{"list in creation order", listOrder},
	{"list pages with totals", listPages},
	{"list pages after deletes", listPagesAfterDeletes},
	{"list past the end", listPastEnd},
	{"update replaces the record", updateReplaces},
	{"update keeps the place in the order", updateKeepsPlace},
	{"update at another revision", updateConflict},
	{"update of an unknown id", updateUnknown},
	{"delete removes the record", deleteRemoves},
	{"delete at another revision", deleteConflict},
	{"delete of an unknown id", deleteUnknown},
	{"create after delete comes last", createAfterDelete},
	{"revisions are never used again", revisionsNeverReused},
	{"create refuses a held claim", claimRefused},
	{"a taken id goes before a held claim", existsBeforeClaimed},
	{"a lost revision goes before a held claim", conflictBeforeClaimed},
	{"update moves a claim", claimMoves},
	{"update keeps its own claim", claimKept},
	{"update refuses a held claim", claimRefusedOnUpdate},
	{"delete frees a claim", claimFreed},
	{"the empty claim claims nothing", claimEmpty},
	{"claims at the limit", claimAtLimit},
	{"stored bytes are the store's own", bytesNotAliased},
	{"bytes handed out do not overlap", bytesDoNotOverlap},
	{"large documents", largeDocuments},
	{"nil and empty documents", emptyDocuments},
	{"any byte in a document", anyBytes},
	{"cancelled context writes nothing", cancelledContext},
	{"racing creates of one id", racingCreates},
	{"racing creates with one claim", racingClaims},
	{"racing updates of one revision", racingUpdates},
	{"racing deletes of one revision", racingDeletes},
	{"racing update and delete", racingUpdateAndDelete},
	{"concurrent creates all arrive", concurrentCreates},
	{"readers see complete snapshots", readersSeeSnapshots},
	{"use after close", useAfterClose},
	{"check of a sound store", checkOfSound},
	{"import keeps records as they are", importKeepsRecords},
	{"import of one record", importOne},
	{"import of nothing", importNothing},
	{"imports between other writes", importBetweenWrites},
	{"imported records take writes", importedTakeWrites},
	{"writes after an import get greater revisions", writesAfterImport},
	{"import sets no revision back", importOfLower},
	{"a refused import leaves nothing", importRefused},
	{"import refuses revisions out of range", importRevisionOutOfRange},
	{"imported bytes are the store's own", importedBytesNotAliased},
	{"import of thousands", importLarge},
	{"cancelled context imports nothing", importCancelled},
	{"racing imports and creates of one id", racingImports},
	{"concurrent imports arrive in one piece", concurrentImports},
	{"readers see imports whole", readersSeeImportsWhole},
	{"import after close", importAfterClose},
	{"watch tells every write in order", watchTellsWrites},
	{"watch begins with the call", watchBeginsWithCall},
	{"watch keeps the order of concurrent writes", watchKeepsOrder},
	{"watch does not pass over an import", watchTellsImports},
	{"watch ends with its context", watchEndsWithContext},
	{"watch of a closed store", watchAfterClose},
}

// openUntilEnd opens a store and has it closed when the case ends.
func openUntilEnd(t *testing.T, open Opener) relayer.Store {
	t.Helper()
	store := open(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

// closeStore closes the store where it can be closed. Closing twice is part of
// what it asks of a store.
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
