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

// Record is one record. In a table it is immutable: an update replaces it. Its parts share one
// allocation, which halves the work of the garbage collector.
type Record struct {
	// What a page reads comes first, so that it is in one line of the cache.
	parts      string // ID, text, claim, note, document, private part
	revision   uint64
	privateAt  uint32 // offset of the private part
	documentAt uint16 // offset of the document
	textSize   uint16
	textAt     uint8 // offset of the text: 0 if it begins with the ID, which is then stored once
	idSize     uint8
	claimSize  uint8
	isDamaged  bool

	// Checksum is that of a durable store, which sets it before the record is applied.
	Checksum uint32

	sequence  uint64
	signature signature // of the text
	terms     Terms
}

// Terms are the terms of a record, half the size of strings. Those of the records of a table
// are in its index.
type Terms []*string

// NewTerms returns terms that any number of records can have.
func NewTerms(texts []string) Terms {
	terms := make(Terms, len(texts))
	for i := range texts {
		terms[i] = &texts[i]
	}
	return terms
}

func (t Terms) texts() []string {
	if len(t) == 0 {
		return nil
	}
	texts := make([]string, len(t))
	for i, term := range t {
		texts[i] = *term
	}
	return texts
}

func (t Terms) equal(other Terms) bool {
	return slices.EqualFunc(t, other, func(a, b *string) bool { return *a == *b })
}

func (t Terms) contains(term string) bool {
	_, found := slices.BinarySearchFunc(t, term, func(a *string, b string) int { return strings.Compare(*a, b) })
	return found
}

// NewRecord copies a record that is within the limits of package relayer, into as little
// memory as it needs. A [Batch] sets its position and, unless it is imported, its revision.
func NewRecord(rec relayer.Record) *Record {
	r := pack(rec.ID, rec.Claim, rec.Text, view(rec.Note), view(rec.Document), view(rec.Private))
	r.terms, r.revision = NewTerms(slices.Clone(rec.Terms)), rec.Revision
	return r
}

// pack copies parts into one allocation.
func pack(id, claim, text, note, document, private string) *Record {
	r := &Record{idSize: uint8(len(id)), claimSize: uint8(len(claim)), textSize: uint16(len(text)), signature: signatureOf(text)}
	rest, beginsWithID := strings.CutPrefix(text, id)
	if !beginsWithID {
		r.textAt = r.idSize
	}
	var parts strings.Builder
	parts.Grow(len(id) + len(rest) + len(claim) + len(note) + len(document) + len(private))
	for _, part := range [...]string{id, rest, claim, note} {
		parts.WriteString(part)
	}
	r.documentAt = uint16(parts.Len())
	parts.WriteString(document)
	r.privateAt = uint32(parts.Len())
	parts.WriteString(private)
	r.parts = parts.String()
	return r
}

// Stored describes a record that a durable store has read.
type Stored struct {
	Parts              []byte // ID, claim, text, note, document, private part
	IDSize, ClaimSize  uint8
	TextSize, NoteSize uint16
	DocumentSize       uint32
	Sequence, Revision uint64
	Checksum           uint32
	IsDamaged          bool // its content is not what was stored, but its ID is
}

// ID returns the ID.
func (s Stored) ID() []byte { return s.Parts[:s.IDSize] }

// Record copies the record for [Table.Load]. The terms of a damaged record are not known.
func (s Stored) Record(terms Terms) *Record {
	if s.IsDamaged {
		terms = nil
	}
	rest := view(s.Parts)
	next := func(size int) (part string) {
		part, rest = rest[:size], rest[size:]
		return part
	}
	id, claim, text := next(int(s.IDSize)), next(int(s.ClaimSize)), next(int(s.TextSize))
	note, document := next(int(s.NoteSize)), next(int(s.DocumentSize))
	r := pack(id, claim, text, note, document, rest)
	r.terms, r.sequence, r.revision, r.Checksum, r.isDamaged = terms, s.Sequence, s.Revision, s.Checksum, s.IsDamaged
	return r
}

// Size returns the length of all parts together.
func (r *Record) Size() int { return int(r.idSize-r.textAt) + len(r.parts) }

// ID returns the ID.
func (r *Record) ID() string { return r.parts[:r.idSize] }

// Claim returns the claim. It is empty if there is none.
func (r *Record) Claim() string { return r.parts[r.claimAt():][:r.claimSize] }

// claimAt returns the end of the ID and the text. A damaged record has no text.
func (r *Record) claimAt() int { return max(int(r.idSize), int(r.textAt)+int(r.textSize)) }

func (r *Record) noteAt() int { return r.claimAt() + int(r.claimSize) }

// Text returns the text.
func (r *Record) Text() string { return r.parts[r.textAt:][:r.textSize] }

// Note returns the note.
func (r *Record) Note() string { return r.parts[r.noteAt():r.documentAt] }

// Terms returns the terms.
func (r *Record) Terms() []string { return r.terms.texts() }

// Revision returns the revision.
func (r *Record) Revision() uint64 { return r.revision }

// Sequence returns the position in the creation order. It is never reused.
func (r *Record) Sequence() uint64 { return r.sequence }

// IsDamaged reports whether the content is not what was stored.
func (r *Record) IsDamaged() bool { return r.isDamaged }

// Document returns the document.
func (r *Record) Document() string { return r.parts[r.documentAt:r.privateAt] }

// Err returns an error if the record is damaged.
func (r *Record) Err() error {
	if !r.isDamaged {
		return nil
	}
	return &relayer.CorruptError{ID: r.ID(), Sequence: r.sequence, Err: fmt.Errorf(
		"%w: %w: the record of ID %q does not match its checksum: delete it, or restore the file from a backup",
		relayer.ErrUnavailable, relayer.ErrCorrupt, r.ID())}
}

// Record returns the record as a caller of a store gets it. The bytes are shared.
func (r *Record) Record() relayer.Record {
	return relayer.Record{
		ID: r.ID(), Revision: r.revision, Sequence: r.sequence, Claim: r.Claim(), Terms: r.Terms(), Text: r.Text(),
		Document: readOnly(r.Document()), Private: readOnly(r.parts[r.privateAt:]), Note: readOnly(r.Note()),
	}
}

// document returns the parts of the record that a document needs. A page of them needs no
// other part, and the other parts make it more expensive.
func (r *Record) document() relayer.Record {
	return relayer.Record{
		ID: r.ID(), Revision: r.revision, Sequence: r.sequence, Document: readOnly(r.Document()), Note: readOnly(r.Note()),
	}
}

// view returns bytes as a text without a copy.
func view(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// readOnly returns the bytes of a text without a copy. Nobody may write to them, which is
// the contract of [relayer.Record].
func readOnly(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }
