package table

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/go-relayer/relayer"
)

// MaxSize is the limit of the document and the private part together, in bytes. It is far
// above any relayer, and the same for every store on a table, so that each record can be moved.
const MaxSize = 1 << 30

// Record is one record. In a table, an update changes all of it under the lock of the table.
// Its parts share one allocation, which halves the work of the garbage collector.
type Record struct {
	// What a page reads comes first, so that it is in one line of the cache.
	parts     string // ID, claim, document, private part
	revision  uint64
	privateAt uint32 // offset of the private part
	idSize    uint8
	claimSize uint8
	isDamaged bool

	sequence uint64
	terms    []string // share their memory with the index

	// Checksum is that of a durable store, which sets it before the record is applied.
	Checksum uint32
}

// NewRecord copies a record that is within the limits of package relayer, into as little
// memory as it needs. A [Batch] sets its position and, unless it is imported, its revision.
func NewRecord(rec relayer.Record) *Record {
	var parts strings.Builder
	parts.Grow(len(rec.ID) + len(rec.Claim) + len(rec.Document) + len(rec.Private))
	parts.WriteString(rec.ID)
	parts.WriteString(rec.Claim)
	parts.Write(rec.Document)
	parts.Write(rec.Private)
	return &Record{
		parts: parts.String(), terms: slices.Clone(rec.Terms), revision: rec.Revision, privateAt: uint32(parts.Len() - len(rec.Private)),
		idSize: uint8(len(rec.ID)), claimSize: uint8(len(rec.Claim)),
	}
}

// Stored describes a record that a durable store has read.
type Stored struct {
	Parts              []byte // ID, claim, document, private part
	IDSize, ClaimSize  uint8
	DocumentSize       uint32
	Sequence, Revision uint64
	Checksum           uint32
	IsDamaged          bool // its content is not what was stored, but its ID is
}

// ID returns the ID.
func (s Stored) ID() []byte { return s.Parts[:s.IDSize] }

// Record copies the record for [Table.Load]. It keeps the terms, which any number of records
// can have. The terms of a damaged record are not known.
func (s Stored) Record(terms []string) Record {
	if s.IsDamaged {
		terms = nil
	}
	return Record{
		Checksum: s.Checksum, parts: string(s.Parts), terms: terms, revision: s.Revision, sequence: s.Sequence,
		privateAt: uint32(s.IDSize) + uint32(s.ClaimSize) + s.DocumentSize,
		idSize:    s.IDSize, claimSize: s.ClaimSize, isDamaged: s.IsDamaged,
	}
}

// Parts returns the ID, the claim, the document and the private part, one after the other.
func (r *Record) Parts() string { return r.parts }

// ID returns the ID.
func (r *Record) ID() string { return r.parts[:r.idSize] }

// Claim returns the claim. It is empty if there is none.
func (r *Record) Claim() string { return r.parts[r.idSize:][:r.claimSize] }

// Terms returns the terms.
func (r *Record) Terms() []string { return r.terms }

// Revision returns the revision.
func (r *Record) Revision() uint64 { return r.revision }

// Sequence returns the position in the creation order. It is never reused.
func (r *Record) Sequence() uint64 { return r.sequence }

// IsDamaged reports whether the content is not what was stored.
func (r *Record) IsDamaged() bool { return r.isDamaged }

// Document returns the document.
func (r *Record) Document() string { return r.parts[int(r.idSize)+int(r.claimSize) : r.privateAt] }

// Err returns an error if the record is damaged.
func (r *Record) Err() error {
	if !r.isDamaged {
		return nil
	}
	return fmt.Errorf("%w: %w: the record of ID %q does not match its checksum: delete it, or restore the file from a backup",
		relayer.ErrUnavailable, relayer.ErrCorrupt, r.ID())
}

// Record returns the record as a caller of a store gets it. The bytes are shared.
func (r *Record) Record() relayer.Record {
	return relayer.Record{
		ID: r.ID(), Revision: r.revision, Claim: r.Claim(), Terms: r.terms,
		Document: readOnly(r.Document()), Private: readOnly(r.parts[r.privateAt:]),
	}
}

// readOnly returns the bytes of a text without a copy. Nobody may write to them, which is
// the contract of [relayer.Record].
func readOnly(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
