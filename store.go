package relayer

import (
	"context"
	"encoding/json"
	"fmt"
)

// Limits that every [Store] keeps to. The [Manager] never exceeds them.
const (
	// MaxIDLength is the length in bytes of the longest id a store must take.
	MaxIDLength = 64

	// MaxClaimLength is the length in bytes of the longest claim a store must
	// take.
	MaxClaimLength = 128
)

// MaxRevision is the greatest [Record.Revision] that an [ImportStore] must
// take. It leaves a store that counts in 63 bits as much room above it as below.
const MaxRevision uint64 = 1 << 62

// Record is one relayer as a [Store] keeps it. A store never looks inside
// Document and Private: only the [Manager] interprets them.
//
// Private is masked if a Record is printed by package fmt, logged by log/slog or
// encoded as JSON. A store that keeps records as JSON therefore copies the fields
// into a type of its own; decoding the masked form is an error. The verbs %p and
// %w, unexported fields of other structs, encoding/gob and encoding/xml bypass the
// mask.
type Record struct {
	// ID identifies the record: 1 to [MaxIDLength] bytes, compared byte by byte.
	ID string

	// Revision is set by the store at every write. It is at least 1, grows with
	// every write of this id, and is never used again for the same id, not even
	// after a delete and a create. Only an import brings its own: see
	// [ImportStore].
	Revision uint64

	// Claim is what no two records may hold at the same time: at most
	// [MaxClaimLength] bytes, compared byte by byte. The empty claim claims
	// nothing. A delete frees it.
	Claim string

	// Document is the relayer's response form: JSON, ready to serve, without a
	// secret in it.
	Document []byte

	// Private is what a response never shows: JSON.
	Private []byte
}

// printedRecord is a [Record] as it is printed and encoded.
type printedRecord struct {
	ID       string
	Revision uint64
	Claim    string
	Document string
	Private  string // masked, and empty if there is none
}

func (r Record) printed() printedRecord {
	masked := printedRecord{ID: r.ID, Revision: r.Revision, Claim: r.Claim, Document: string(r.Document)}
	if len(r.Private) > 0 {
		masked.Private = "***"
	}
	return masked
}

// Format prints the record with Private masked, whatever the verb.
func (r Record) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), r.printed())
}

// MarshalJSON encodes the record with Private masked. The result is for logs and
// cannot be decoded into a Record.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(r.printed()) }

// Store keeps records. It is the whole of what a host must write to keep
// relayers in an engine of its own; storetest.Run proves that it did.
//
// Every method is safe for concurrent use, and every write is atomic: another
// call sees all of it or nothing. When a write returns nil it is as durable as
// the store ever makes it. When it returns an error nothing has been written,
// except with [ErrOutcomeUnknown]. Callers ignore the other results of a method
// that returns an error.
//
// A store keeps nothing that the caller can change afterwards, and hands out
// nothing through which a caller could change what is stored: Document and
// Private are copied where the engine does not copy them anyway.
//
// A context that is done before a write has begun means that nothing is
// written and that its error is returned. A write that has begun is told as it
// ended. A store that is closed or out of reach returns [ErrUnavailable].
type Store interface {
	// Create adds a record and returns it with its Revision; the Revision given
	// is ignored. It returns [ErrExists] where the id is taken, and otherwise
	// [ErrClaimed] where another record holds the claim. Of any number of
	// concurrent creates of one id, exactly one succeeds.
	Create(ctx context.Context, rec Record) (Record, error)

	// Get returns the record, or [ErrNotFound].
	Get(ctx context.Context, id string) (Record, error)

	// List returns up to limit records from offset on, in creation order, oldest
	// first, and the number of all records in the same snapshot. An offset past
	// the end, or a limit of 0, gives no records and the right total. Neither
	// is ever negative. An update does not move a record; a record deleted and
	// created again comes last.
	List(ctx context.Context, offset, limit int) ([]Record, int, error)

	// Update replaces Claim, Document and Private of the record that stands at
	// exactly rec.Revision and returns it with its new Revision. It returns
	// [ErrNotFound] where there is none, [ErrConflict] where it stands at
	// another revision, and otherwise [ErrClaimed] where another record holds
	// the claim.
	Update(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record that stands at exactly this revision, with its
	// claim. It returns [ErrNotFound] where there is none, and [ErrConflict]
	// where it stands at another revision.
	Delete(ctx context.Context, id string, revision uint64) error
}

// DocumentStore is what a [Store] may offer beside its five methods: reads of
// documents alone, straight into the caller's buffer. The [Manager] finds out
// by itself and makes do without it; with it a response costs one copy.
//
// Both methods append to dst and return the extended slice, as the built-in
// append does. With an error they return dst as it was given.
type DocumentStore interface {
	// AppendDocument appends the Document that Get would return, and returns its
	// Revision.
	AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error)

	// AppendDocuments appends the Documents of the records that List would
	// return, with a comma between each two, and returns the number of all
	// records in the same snapshot.
	AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error)
}

// ImportStore is what a [Store] may offer beside its five methods: taking over
// the records of another store as they stand, revisions included. store/transfer finds
// out by itself and makes do without it; with it the revisions survive a move,
// and with them the ETags that clients hold.
type ImportStore interface {
	// Import adds the records after all others, in the order given: all of them
	// or none, so that no other call sees a part. Each keeps the Revision given,
	// which is from 1 to [MaxRevision] and need not grow along the order. Every
	// write that comes after, of whatever id, gets a greater revision than any
	// imported. No records are imported without an error.
	//
	// It is safe for concurrent use and atomic, as every write of a [Store] is,
	// and it copies Document and Private. It returns an error that changes nothing
	// where a revision is out of range, [ErrExists] where an id is taken or comes
	// twice, otherwise [ErrClaimed] where a claim is held or comes twice, and else
	// what Create returns. Where several records are refused, the error is that of
	// one of them.
	Import(ctx context.Context, records []Record) error
}

// CheckStore is an optional capability of a [Store]: it reads all stored data
// and verifies that its parts agree. Callers detect it with a type assertion.
// The transfer of relayers to another store uses it to find damage in the source
// before anything is copied.
type CheckStore interface {
	// Check returns an error that matches [ErrCorrupt] and describes what is
	// damaged without quoting stored data. Reads continue during a check; writes
	// may have to wait. A check takes as long as reading all data. It returns the
	// error of ctx or [ErrUnavailable] if it could not finish. It is safe for
	// concurrent use.
	Check(ctx context.Context) error
}
