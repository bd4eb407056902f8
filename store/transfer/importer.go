package transfer

import (
	"context"

	"github.com/go-relayer/relayer"
)

// MaxRevision is the greatest [relayer.Record.Revision] that an [Importer] must accept. A
// store that counts to 2^63 has as many revisions left for writes after an import.
const MaxRevision uint64 = 1 << 62

// Importer is a [relayer.Store] that can add records with their revisions, so that the
// ETags that clients have stay valid after a [Copy]. Copy detects it with a type assertion.
// All stores of this repository are importers.
type Importer interface {
	// Import adds the records after all others, in the order given: all of them or none,
	// so that no other call sees a part. Each keeps its Revision, which is from 1 to
	// [MaxRevision] and need not grow along the order. Every later write, of any ID, gets
	// a greater revision than all imported ones. An import of no records succeeds.
	//
	// It is safe for concurrent use and atomic, like every write of a store. It returns an
	// error if a revision is out of range. It returns [relayer.ErrExists] if an ID is taken
	// or occurs twice, and otherwise [relayer.ErrClaimed] if a claim is held or occurs
	// twice. Its other errors are those of Create. If several records are rejected, the
	// error is that of one of them.
	Import(ctx context.Context, records []relayer.Record) error
}

// HistoryImporter is a [relayer.Store] that can add the changes of another store to its
// history. [Copy] detects it with a type assertion. All stores of this repository are
// history importers.
type HistoryImporter interface {
	// ImportHistory adds changes that [relayer.Store.History] of another store has returned:
	// all of them or none. They are in ascending order of their revisions. Each keeps its
	// revision, and every later write gets a greater one. The private parts of their records
	// are not stored. Their retention begins with the import. Watch does not return them; it
	// may end with [relayer.ErrGap].
	//
	// It is safe for concurrent use and atomic. It returns [relayer.ErrConflict] unless each
	// revision is greater than the one before, and than all that the store has assigned or
	// imported. The error matches [errors.ErrUnsupported] if the store retains no history.
	// Its other errors are those of Create.
	ImportHistory(ctx context.Context, changes []relayer.RecordChange) error
}

// Checker is a [relayer.Store] that can read all stored data and verify that its parts
// agree. [Copy] detects it with a type assertion, and checks the source before it copies
// anything.
type Checker interface {
	// Check returns an error that matches [relayer.ErrCorrupt] and describes what is
	// damaged without quoting stored data. It returns the error of ctx or
	// [relayer.ErrUnavailable] if it could not finish. Reads continue during a check;
	// writes may have to wait. A check takes as long as reading all data. It is safe for
	// concurrent use.
	Check(ctx context.Context) error
}
