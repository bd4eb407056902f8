package relayer

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// Record is one stored relayer. A [Store] must accept records up to the limits of the fields, and
// the [Manager] never exceeds them. Document and Private have no limit of their own: see
// [WithMaxRelayerSize]. Only the Manager interprets Document, Private and Note; to a Store they are
// opaque.
//
// The bytes, terms and text of a Record are read-only: a store may share them with its callers,
// and callers with the store.
//
// Private is masked if a Record is printed by package fmt, logged by log/slog or encoded as JSON.
// A store that keeps records as JSON therefore copies the fields into a separate type; decoding
// the masked form is an error. The verbs %p and %w, fields that are unexported or below a pointer
// in a value, encoding/gob and encoding/xml bypass the mask.
type Record struct {
	// ID identifies the record: 1 to 64 bytes of UTF-8 without NUL, compared byte by byte.
	ID string

	// Revision is set by the store on every write. It is at least 1, grows with every
	// write of the store, and is never reused, not even after a delete and a create. Only
	// imported records bring their own: see store/transfer.
	Revision uint64

	// Sequence is set by the store when the record is created or imported: its position in
	// the creation order. It is at least 1 and greater than that of every earlier record,
	// and is never reused. An update keeps it.
	Sequence uint64

	// Claim is a unique key: two records never hold the same claim. It has at most
	// 128 bytes, compared byte by byte. Any number of records may have the
	// empty claim. A delete frees the claim.
	Claim string

	// Terms are the texts by which [Store.List] selects: 0 to 64 distinct texts of
	// 1 to 256 bytes of UTF-8 without NUL, in ascending order, compared byte by
	// byte. Only the Manager interprets them.
	Terms []string

	// Text is what [Store.List] searches in: at most 1,024 bytes of UTF-8 without
	// NUL. It is searched byte by byte; the Manager folds its letter case.
	Text string

	// Document is the document of the relayer: the JSON of its responses, ready to
	// serve, without secrets.
	Document []byte

	// Private has the full RPC URLs: a JSON object, or anything else if it is sealed (see
	// [Opener]).
	Private []byte

	// Note describes the last change of the relayer: who made it, when and why. It has no secrets
	// and at most 16,384 bytes.
	Note []byte
}

// Format prints the JSON form of the record, with Private masked, for every verb except %p, %T and %w.
func (r Record) Format(state fmt.State, _ rune) { strictjson.Print(state, r) }

// MarshalJSON encodes the record with Private masked. The result is for logs and
// cannot be decoded into a Record.
func (r Record) MarshalJSON() ([]byte, error) {
	type plain Record // without this method
	masked := struct {
		plain
		Document, Private, Note string
	}{plain: plain(r), Document: string(r.Document), Note: string(r.Note)}
	if len(r.Private) > 0 {
		masked.Private = mask.Hidden
	}
	return json.Marshal(masked)
}

// StoreQuery selects records, and the page of them to return. A record is selected if Terms,
// Contains and IDs all select it. A store does not modify the query.
type StoreQuery struct {
	// Terms selects a record if every element contains a term of the record. An element without
	// terms selects nothing. Empty Terms select all records.
	Terms [][]string

	// Contains, unless it is empty, selects records whose Text contains at least one of these
	// texts, byte by byte.
	Contains []string

	// IDs selects records with these IDs, unless it is empty.
	IDs []string

	// After restricts the page, and not the total, to records with a larger Sequence.
	After uint64

	// Offset is the number of selected records to skip beyond After, and Limit is the maximum
	// number of records to return. Neither is negative.
	Offset, Limit int

	// DocumentsOnly is a hint: the caller uses only ID, Revision, Sequence, Document and
	// Note of the records, so that the store need not return their other fields.
	DocumentsOnly bool
}

// Listing is a page of records and what was read together with it, in one snapshot.
type Listing struct {
	// Records are the records of the page, in the order of their Sequence. The slice belongs to
	// the caller.
	Records []Record

	// Total is the number of selected records, on all pages.
	Total int

	// Position is the point of the change feed at which the page was read:
	// [Store.Watch] from it returns exactly the changes after this snapshot.
	Position string
}

// HistoryQuery selects changes of the past, for [Store.History] and [Manager.History].
type HistoryQuery struct {
	// ID selects the changes of one record. If it is empty, the changes of all records are
	// selected.
	ID string

	// Actor and Action, unless empty, must both equal the values in the [ChangeInfo]. Since and
	// Until, unless zero, select changes from Since on and before Until. A Store ignores these
	// four fields.
	Actor        string
	Action       Action
	Since, Until time.Time

	// Before selects changes with a smaller revision, unless it is 0.
	Before uint64

	// Limit is the maximum number of changes to return. For a Manager, 0 is
	// 20; a Store gets at least 1.
	Limit int
}

// Store stores records. A host that has a storage engine implements these methods and tests them
// with storetest.Run. Package store/storeutil has a change feed and a filtered scan for stores
// that have neither.
//
// Every method is safe for concurrent use, and every write is atomic: another call sees
// all of it or nothing. A write that returns nil is durable if the store is.
// A write that returns an error has changed nothing, unless the error matches
// [ErrOutcomeUnknown]; the methods that may return one say so. Callers ignore the other
// results of a method that returns an error, unless the method says otherwise.
//
// It is an interface for implementations: later versions add no methods to it. A new
// capability is an optional interface.
//
// If ctx is done before a write has started, nothing is written and the error of ctx is
// returned. Once started, a write returns its real result, even if ctx is canceled. A
// store that is closed or not reachable returns [ErrUnavailable].
type Store interface {
	// Create adds a record and returns it with its Revision and Sequence; those given are
	// ignored. It returns [ErrExists] if the ID is taken, and otherwise [ErrClaimed] if
	// another record holds the claim. Of any number of concurrent creates of one ID,
	// exactly one succeeds. Its error may match [ErrOutcomeUnknown].
	Create(ctx context.Context, rec Record) (Record, error)

	// Get returns the record, [ErrNotFound], or a [*CorruptError] if it is damaged.
	Get(ctx context.Context, id string) (Record, error)

	// List returns the selected records of the page in the order of their Sequence, the
	// number of all selected records, and the position of the feed, in one snapshot. An
	// offset past the end, or a limit of 0, returns no records and the correct total.
	//
	// If a record of the page is damaged, List returns the records before it and a
	// [*CorruptError] with its sequence, so that a caller can continue behind it. A record whose
	// terms cannot be read is in every selection without IDs.
	List(ctx context.Context, query StoreQuery) (Listing, error)

	// Update is a compare-and-swap: it replaces Claim, Terms, Text, Document, Private and
	// Note if the current revision is rec.Revision, and returns the record with its new
	// Revision. It returns [ErrNotFound] if there is no such record, [ErrConflict] if the
	// current revision is another, and otherwise [ErrClaimed] if another record holds the
	// claim. Its error may match [ErrOutcomeUnknown].
	Update(ctx context.Context, rec Record) (Record, error)

	// Delete removes the record and frees its claim if revision is the current one. The change of
	// the delete has the next revision, and the note. It returns [ErrNotFound] if there is no
	// such record, and [ErrConflict] if the current revision is another. Whatever the revision, a
	// store may remove a record for which Get returns [ErrCorrupt]. Its error may match
	// [ErrOutcomeUnknown].
	Delete(ctx context.Context, id string, revision uint64, note []byte) error

	// Watch returns the changes of all writers in the order in which they were made, until ctx is
	// done; it then ends without an error. If after is empty, it returns the changes from the
	// call on. Otherwise after is the position of a change, a heartbeat or a [Listing] to
	// continue from. Positions come from clients: after may be any text.
	//
	// While the store is reachable, the sequence has a change or a [ChangeHeartbeat] at
	// least every 5 seconds. If it has been unreachable for 15 seconds, the sequence ends
	// with [ErrUnavailable].
	//
	// No writer waits for a consumer. If the store cannot return all changes, because the
	// position is unknown or too old or the consumer too slow, the sequence ends with
	// [ErrGap]. Any error is the last. Imported records are reported as created, or by
	// ErrGap. The sequence can be ranged over once.
	Watch(ctx context.Context, after string) iter.Seq2[RecordChange, error]

	// History returns changes that were made, newest first, without the private parts of their
	// records. How many changes a store retains is its own choice; storetest.Run requires the last
	// 100. A history has no imports of records. For an ID without changes it returns no changes and
	// no error. If the store retains no history, the error matches [errors.ErrUnsupported].
	History(ctx context.Context, query HistoryQuery) ([]RecordChange, error)
}

// Opener is an optional interface of a [Store] that seals [Record.Private], such as a store of
// package store/sealed. The [Manager] detects it with a type assertion.
//
// [Manager.RPCURLs], [Manager.Get], [Manager.Check] and [Documents.WithFullURLs] open the URLs,
// as do [Manager.Update] and a patch of the URLs. Update and Patch return masked URLs
// ([RPCURL.IsMasked]), as all methods not named here do, even if the URLs are not sealed yet.
// Other changes need no keys. A Manager on a store that is no Opener reads sealed relayers with
// masked URLs too. It can remove their URLs; RPCURLs and a change that replaces them return an
// error that matches [ErrSealed].
type Opener interface {
	// Open returns the record with its private part in clear. If it cannot be opened, the error
	// matches [ErrSealed] and [ErrUnavailable]; without keys, [errors.ErrUnsupported] too. A part
	// in clear that must be sealed is a [*CorruptError].
	Open(ctx context.Context, rec Record) (Record, error)
}

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of change.
const (
	ChangeCreated ChangeKind = "created"
	ChangeUpdated ChangeKind = "updated"
	ChangeDeleted ChangeKind = "deleted"

	// ChangeHeartbeat is no change: it has no relayer, and reports up to when the consumer
	// has all changes ([Change.Time]).
	ChangeHeartbeat ChangeKind = "heartbeat"
)

// RecordChange is one change of a record, or a heartbeat of the feed.
type RecordChange struct {
	// Kind is the kind of change. A heartbeat has Position and Time only.
	Kind ChangeKind

	// Record is the record after the change. After a delete it is the last state, with the revision
	// and the note of the delete. Private may be empty if a later change has replaced or deleted
	// the record: a store needs to retain only the current private part.
	Record Record

	// OldTerms and OldText are the terms and the text before an update or a delete: they
	// show which selections the record has left.
	OldTerms []string
	OldText  string

	// Position identifies the point of the feed after this change. It is opaque to callers: 1 to
	// 128 bytes of visible ASCII. It has no meaning in a history.
	Position string

	// Time is the time up to which the feed is complete: the consumer has every change that was
	// acknowledged before, on any instance. It has a monotonic clock reading of this process. It
	// is zero for the first changes after an old position if the store does not know it yet. In a
	// history, Time is when the store recorded the change, or zero if it does not retain that. If
	// it is zero, a [Manager] also reads the changes before [HistoryQuery.Since].
	Time time.Time
}

// Format prints the change with [Record.Private] masked, as [Record.Format] does.
func (c RecordChange) Format(state fmt.State, verb rune) {
	// Without this method, fmt prints Private in full for a pointer to a change in a struct or
	// slice, if the verb is wrong for pointers, such as %s.
	type plain RecordChange
	fmt.Fprintf(state, fmt.FormatString(state, verb), plain(c))
}
