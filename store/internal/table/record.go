package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// MaxSize is the limit of the document and the private part together, in bytes. It is far
// above any relayer, and the same for every store on a table, so that each record can be moved.
const MaxSize = 1 << 30

// Record is one record. In a table it is immutable: an update replaces it.
type Record struct {
	relayer.Record

	// Checksum is that of a durable store, which sets it before the record is applied.
	Checksum uint32

	// IsDamaged is true if the content is not what was stored. Its ID is.
	IsDamaged bool
}

// NewRecord copies a record that is within the limits of package relayer. A [Batch] sets its
// position and, unless it is imported, its revision. All but its terms share two allocations,
// which is less work for the garbage collector.
func NewRecord(rec relayer.Record) *Record {
	r := &Record{Record: rec}
	// Unlike an addition of texts, Join copies if all but one are empty.
	texts, data := strings.Join([]string{rec.ID, rec.Claim, rec.Text}, ""), slices.Concat(rec.Document, rec.Private, rec.Note)
	r.ID, texts = texts[:len(rec.ID)], texts[len(rec.ID):]
	r.Claim, r.Text = texts[:len(rec.Claim)], texts[len(rec.Claim):]
	next := func(size int) (part []byte) {
		part, data = data[:size:size], data[size:]
		return part
	}
	r.Document, r.Private, r.Note = next(len(rec.Document)), next(len(rec.Private)), next(len(rec.Note))
	r.Terms = slices.Clone(rec.Terms)
	return r
}

// Size returns the length of all parts together, except the terms.
func (r *Record) Size() int {
	return len(r.ID) + len(r.Claim) + len(r.Text) + len(r.Document) + len(r.Private) + len(r.Note)
}

// Err returns an error if the record is damaged.
func (r *Record) Err() error {
	if !r.IsDamaged {
		return nil
	}
	return &relayer.CorruptError{ID: r.ID, Sequence: r.Sequence, Err: fmt.Errorf(
		"%w: %w: the record of ID %q does not match its checksum: delete it, or restore the file from a backup",
		relayer.ErrUnavailable, relayer.ErrCorrupt, r.ID)}
}
