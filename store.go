package relayer

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
)

// The limits of records. A [Store] must accept records up to these limits; the
// [Manager] never exceeds them.
const (
	// MaxIDLength is the maximum length of an ID in bytes.
	MaxIDLength = 64

	// MaxClaimLength is the maximum length of a claim in bytes.
	MaxClaimLength = 128

	// MaxTerms is the maximum number of terms of a record.
	MaxTerms = 64

	// MaxTermLength is the maximum length of a term in bytes.
	MaxTermLength = 256
)

// Record is one stored relayer. Only the [Manager] interprets Document and Private; to
// a [Store] they are opaque.
//
// The bytes and terms of a Record are read-only: a store may share them with its callers,
// and callers with the store.
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
	// create. Only imported records bring their own: see store/transfer.
	Revision uint64

	// Claim is a unique key: two records never hold the same claim. It has at most
	// [MaxClaimLength] bytes, compared byte by byte. Any number of records may have the
	// empty claim. A delete frees the claim.
	Claim string

	// Terms are the texts by which [Store.List] selects: 0 to [MaxTerms] distinct texts of
	// 1 to [MaxTermLength] bytes of UTF-8 without NUL, in ascending order, compared byte by
	// byte. Only the Manager interprets them.
	Terms []string

	// Document is the document of the relayer: the JSON of its responses, ready to
	// serve, without secrets.
	Document []byte

	// Private is the part that no response shows: JSON, or JSON that a [Sealer] has sealed.
	Private []byte
}

type printedRecord struct {
	ID       string
	Revision uint64
	Claim    string
	Terms    []string
	Document string
	Private  string // masked, and empty if there is none
}

func (r Record) printed() printedRecord {
	masked := printedRecord{ID: r.ID, Revision: r.Revision, Claim: r.Claim, Terms: r.Terms, Document: string(r.Document)}
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

// StoreQuery selects records, and the page of them to return. A store does not modify it.
type StoreQuery struct {
	// Terms restricts the selection to records that have, for every element, at least one
	// of its terms. An element without terms selects nothing. No element selects all.
	Terms [][]string

	// IDs restricts the selection to records with these IDs, unless it is empty.
	IDs []string

	// Offset is the number of selected records before the page, and Limit the maximum
	// number of records to return. Neither is negative.
	Offset, Limit int
}

// Store stores records. A host that has a storage engine implements these six methods
// and tests them with storetest.Run. Package store/storeutil has a change feed and a
// selecting scan for stores that have neither.
//
// Every method is safe for concurrent use, and every write is atomic: another call sees
// all of it or nothing. A write that returns nil is durable if the store is.
// A write that returns an error has changed nothing, unless the error matches
// [ErrOutcomeUnknown]. Callers ignore the other results of a method that returns an
// error.
//
// The bytes and terms of a [Record] are read-only for both sides: a store may keep what it
// is given, and return what it keeps.
//
// If ctx is done before a write has started, nothing is written and the error of ctx is
// returned. Once started, a write returns its real result, even if ctx is canceled. A
// store that is closed or not reachable returns [ErrUnavailable].
type Store interface {
	// Create adds a record and returns it with its Revision; the Revision given is
	// ignored. It returns [ErrExists] if the ID is taken, and otherwise [ErrClaimed] if
	// another record holds the claim. Of any number of concurrent creates of one ID,
	// exactly one succeeds. Its error may match [ErrOutcomeUnknown].
	Create(ctx context.Context, rec Record) (Record, error)

	// Get returns the record, or [ErrNotFound].
	Get(ctx context.Context, id string) (Record, error)

	// List returns the selected records of the page, in creation order, oldest first, and
	// the number of all selected records in the same snapshot. An offset past the end, or
	// a limit of 0, returns no records and the correct total. An update keeps the position
	// of a record; a record that is deleted and created again is last.
	List(ctx context.Context, query StoreQuery) (records []Record, total int, err error)

	// Update is a compare-and-swap: it replaces Claim, Terms, Document and Private if the
	// current revision is rec.Revision, and returns the record with its new Revision. It
	// returns [ErrNotFound] if there is no such record, [ErrConflict] if the current
	// revision is another, and otherwise [ErrClaimed] if another record holds the claim.
	// Its error may match [ErrOutcomeUnknown].
	Update(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record and frees its claim if the current revision is revision.
	// It returns [ErrNotFound] if there is no such record, and [ErrConflict] if the
	// current revision is another. A store may remove a record for which Get returns
	// [ErrCorrupt] under any revision. Its error may match [ErrOutcomeUnknown].
	Delete(ctx context.Context, id string, revision uint64) error

	// Watch returns the changes of all writers in the order in which they were made, until
	// ctx is done; it then ends without an error. It returns those from the call on if
	// after is empty, and otherwise those after that position. Positions come from
	// clients: after may be any text.
	//
	// No writer waits for a consumer. If the store cannot return all changes, because the
	// position is unknown or too old or the consumer too slow, the sequence ends with
	// [ErrGap]. Any error is the last. Imported records are reported as created, or by
	// ErrGap. The sequence can be ranged over once.
	Watch(ctx context.Context, after string) iter.Seq2[RecordChange, error]
}

// RecordChange is one change of a record: the record after it, or its last state if
// it was deleted.
type RecordChange struct {
	Kind   ChangeKind
	Record Record

	// OldTerms are the terms before an update or a delete: they show which selections the
	// record has left.
	OldTerms []string

	// Position identifies the change in the feed. It is opaque to callers: 1 to
	// [MaxPositionLength] bytes of visible ASCII, or empty if the feed cannot resume.
	Position string
}

// MaxPositionLength is the maximum length of [RecordChange.Position] in bytes.
const MaxPositionLength = 128

// Format prints the change with [Record.Private] masked, as [Record.Format] does.
// Without it fmt calls no method below a pointer if the verb is wrong for pointers.
func (c RecordChange) Format(state fmt.State, verb rune) {
	type plain RecordChange // without this method
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(c))
}
