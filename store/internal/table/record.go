package table

import (
	"fmt"
	"strings"

	"github.com/go-relayer/relayer"
)

// Record is one record. It is immutable once it is in a table: an update replaces it.
// Its parts share one allocation, which halves the work of the garbage collector.
type Record struct {
	// Checksum is that of a durable store, which sets it before the record is applied.
	Checksum uint32

	parts     string // ID, claim, document, private part
	revision  uint64
	sequence  uint64
	privateAt int // offset of the private part
	idSize    uint8
	claimSize uint8
	isDamaged bool
}

// NewRecord copies a record whose ID and claim are within the limits of package
// relayer. A [Batch] sets its position and, unless it is imported, its revision.
func NewRecord(rec relayer.Record) *Record {
	var parts strings.Builder
	parts.Grow(len(rec.ID) + len(rec.Claim) + len(rec.Document) + len(rec.Private))
	parts.WriteString(rec.ID)
	parts.WriteString(rec.Claim)
	parts.Write(rec.Document)
	parts.Write(rec.Private)
	return &Record{
		parts: parts.String(), revision: rec.Revision, privateAt: parts.Len() - len(rec.Private),
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

// Record copies the record for [Table.Load].
func (s Stored) Record() *Record {
	return &Record{
		Checksum: s.Checksum, parts: string(s.Parts), revision: s.Revision, sequence: s.Sequence,
		privateAt: int(s.IDSize) + int(s.ClaimSize) + int(s.DocumentSize),
		idSize:    s.IDSize, claimSize: s.ClaimSize, isDamaged: s.IsDamaged,
	}
}

// Parts returns the ID, the claim, the document and the private part, one after the other.
func (r *Record) Parts() string { return r.parts }

// ID returns the ID.
func (r *Record) ID() string { return r.parts[:r.idSize] }

// Claim returns the claim. It is empty if there is none.
func (r *Record) Claim() string { return r.parts[r.idSize:][:r.claimSize] }

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

// Copy returns a copy of the record. Its Document and Private share one allocation.
func (r *Record) Copy() relayer.Record {
	rec, _ := r.copyInto(make([]byte, 0, len(r.parts)))
	return rec
}

// copyAll copies records, with one allocation for all of their bytes.
func copyAll(records []*Record) []relayer.Record {
	size := 0
	for _, r := range records {
		size += len(r.parts)
	}
	room := make([]byte, 0, size)
	copies := make([]relayer.Record, len(records))
	for i, r := range records {
		copies[i], room = r.copyInto(room)
	}
	return copies
}

// copyInto copies the bytes of the record into room and returns the rest of it. The
// capacity of each part ends with it, so that an append does not overwrite the next.
func (r *Record) copyInto(room []byte) (rec relayer.Record, rest []byte) {
	rec = relayer.Record{ID: r.ID(), Revision: r.revision, Claim: r.Claim()}
	document, private := r.Document(), r.parts[r.privateAt:]
	size, end := len(document), len(document)+len(private)
	rec.Document = append(room[:0:size], document...)
	rec.Private = append(room[size:size:end], private...)
	return rec, room[end:end:cap(room)]
}
