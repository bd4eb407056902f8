package relayer

import (
	"context"
	"encoding/json"
	"fmt"
)

// The limits of records. A [Store] must accept records up to these limits; the
// [Manager] never exceeds them.
const (
	// MaxIDLength is the maximum length of an ID in bytes.
	MaxIDLength = 64

	// MaxClaimLength is the maximum length of a claim in bytes.
	MaxClaimLength = 128
)

// MaxRevision is the greatest [Record.Revision] that an [ImportStore] must accept. It is
// half of what 63 bits can count, so that a store has 2^62 revisions left after an import.
const MaxRevision uint64 = 1 << 62

// Record is one stored relayer. Only the [Manager] interprets Document and Private; to
// a [Store] they are opaque.
//
// Private is masked if a Record is printed by package fmt, logged by log/slog or
// encoded as JSON. A store that keeps records as JSON therefore copies the fields
// into a separate type; decoding the masked form is an error. The verbs %p and
// %w, unexported fields of other structs, encoding/gob and encoding/xml bypass the
// mask.
type Record struct {
	// ID identifies the record: 1 to [MaxIDLength] bytes, compared byte by byte.
	ID string

	// Revision is set by the store on every write. It is at least 1, grows with every
	// write of the ID, and is never reused for the ID, not even after a delete and a
	// create. Only imported records bring their own: see [ImportStore].
	Revision uint64

	// Claim is a unique key: two records never hold the same claim. It has at most
	// [MaxClaimLength] bytes, compared byte by byte. Any number of records may have the
	// empty claim. A delete frees the claim.
	Claim string

	// Document is the document of the relayer: the JSON of its responses, ready to
	// serve, without secrets.
	Document []byte

	// Private is the part that no response shows: JSON, or JSON that a [Sealer] has sealed.
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

// Format prints the record with Private masked, for every verb.
func (r Record) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), r.printed())
}

// MarshalJSON encodes the record with Private masked. The result is for logs and
// cannot be decoded into a Record.
func (r Record) MarshalJSON() ([]byte, error) { return json.Marshal(r.printed()) }

// Store stores records. A host that has a storage engine implements these five methods
// and tests them with storetest.Run.
//
// Every method is safe for concurrent use, and every write is atomic: another call sees
// all of it or nothing. A write that returns nil is durable if the store is.
// A write that returns an error has changed nothing, unless the error matches
// [ErrOutcomeUnknown]. Callers ignore the other results of a method that returns an
// error.
//
// A store shares no memory with its callers: Document and Private are copied on the way
// in and out.
//
// If ctx is done before a write has started, nothing is written and the error of ctx is
// returned. Once started, a write returns its real result, even if ctx is canceled. A
// store that is closed or not reachable returns [ErrUnavailable].
type Store interface {
	// Create adds a record and returns it with its Revision; the Revision given is
	// ignored. It returns [ErrExists] if the ID is taken, and otherwise [ErrClaimed] if
	// another record holds the claim. Of any number of concurrent creates of one ID,
	// exactly one succeeds.
	Create(ctx context.Context, rec Record) (Record, error)

	// Get returns the record, or [ErrNotFound].
	Get(ctx context.Context, id string) (Record, error)

	// List returns up to limit records from offset on, in creation order, oldest first,
	// and the number of all records in the same snapshot. An offset past the end, or a
	// limit of 0, returns no records and the correct total. Offset and limit are never
	// negative. An update keeps the position of a record; a record that is deleted and
	// created again is last.
	List(ctx context.Context, offset, limit int) ([]Record, int, error)

	// Update is a compare-and-swap: it replaces Claim, Document and Private if the
	// current revision is rec.Revision, and returns the record with its new Revision. It
	// returns [ErrNotFound] if there is no such record, [ErrConflict] if the current
	// revision is another, and otherwise [ErrClaimed] if another record holds the claim.
	Update(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record and frees its claim if the current revision is revision.
	// It returns [ErrNotFound] if there is no such record, and [ErrConflict] if the
	// current revision is another. A store may remove a record for which Get returns
	// [ErrCorrupt] under any revision.
	Delete(ctx context.Context, id string, revision uint64) error
}

// DocumentStore is an optional capability of a [Store]: it appends documents to a buffer
// of the caller, so that a response costs one copy. The [Manager] detects it with a type
// assertion.
//
// Both methods append to dst and return the extended slice, as the built-in append does.
// If they fail they return dst unchanged.
type DocumentStore interface {
	// AppendDocument appends the Document that Get would return, and returns its
	// Revision.
	AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error)

	// AppendDocuments appends the Documents that List would return, separated by commas,
	// and returns the number of all records in the same snapshot.
	AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error)
}

// ImportStore is an optional capability of a [Store]: it adds records with their
// revisions. The copy of store/transfer detects it with a type assertion. With it, the
// ETags that clients hold stay valid after a move to another store.
type ImportStore interface {
	// Import adds the records after all others, in the order given: all of them or none,
	// so that no other call sees a part. Each keeps its Revision, which is from 1 to
	// [MaxRevision] and need not grow along the order. Every later write, of any ID, gets
	// a greater revision than all imported ones. An import of no records succeeds.
	//
	// It is safe for concurrent use and atomic, like every write of a [Store], and it
	// copies Document and Private. It returns an error if a revision is out of range. It
	// returns [ErrExists] if an ID is taken or occurs twice, and otherwise [ErrClaimed] if
	// a claim is held or occurs twice. Its other errors are those of Create. If several
	// records are rejected, the error is that of one of them.
	Import(ctx context.Context, records []Record) error
}

// CheckStore is an optional capability of a [Store]: it reads all stored data and
// verifies that its parts agree. The copy of store/transfer detects it with a type
// assertion, and checks the source before it copies anything.
type CheckStore interface {
	// Check returns an error that matches [ErrCorrupt] and describes what is damaged
	// without quoting stored data. It returns the error of ctx or [ErrUnavailable] if it
	// could not finish. Reads continue during a check; writes may have to wait. A check
	// takes as long as reading all data. It is safe for concurrent use.
	Check(ctx context.Context) error
}
