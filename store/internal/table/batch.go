package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
	"github.com/go-relayer/relayer/store/storeutil"
)

// Change is one validated write: Old is nil for a create, and New for a delete.
type Change struct {
	Old, New *Record

	// Revision and Note are those of a delete.
	Revision uint64
	Note     []byte

	// IsImport is true for an import, which has the revision that it had elsewhere.
	IsImport bool
}

// Record returns the record that the change is about: the new one, or the deleted one.
func (c Change) Record() *Record { return cmp.Or(c.New, c.Old) }

// Batch validates writes against a table and against earlier writes of the batch. A rejected
// write does not affect the others. Nothing changes in the table before [Table.Apply].
type Batch struct {
	// Changes are the accepted writes in order, and Counters are those after them.
	Changes  []Change
	Counters Counters

	// Past are changes of another store that are only for the history.
	Past []relayer.RecordChange

	table     *Table
	published []relayer.RecordChange // of Changes, as far as they were asked for

	// What the batch changes: nil if nothing has the ID or the claim any more.
	byID    map[string]*Record
	byClaim map[string]*Record
}

// Begin returns an empty batch.
func (t *Table) Begin() *Batch { return &Batch{Counters: t.counters, table: t} }

// record returns a record, or nil.
func (b *Batch) record(id string) *Record {
	if found, isChanged := b.byID[id]; isChanged {
		return found
	}
	return b.table.byID[id]
}

// holder returns the record that holds a claim. The empty claim has no holder.
func (b *Batch) holder(claim string) *Record {
	if found, isChanged := b.byClaim[claim]; isChanged {
		return found
	}
	return b.table.byClaim[claim]
}

// Create adds a record. It sets the revision and the sequence number.
func (b *Batch) Create(added *Record) error {
	if err := b.checkFree(added); err != nil {
		return err
	}
	added.Revision = b.Counters.NextRevision
	b.append(Change{New: added})
	return nil
}

func (b *Batch) checkFree(added *Record) error {
	if b.record(added.ID) != nil {
		return relayer.ErrExists
	}
	if b.holder(added.Claim) != nil {
		return relayer.ErrClaimed
	}
	return nil
}

// Import adds records with the revisions that they have, all or none.
func (b *Batch) Import(added []*Record) error {
	// The records are added to a copy, so that a rejected one leaves no others behind.
	all := &Batch{
		Changes: slices.Clone(b.Changes), Counters: b.Counters, Past: b.Past, table: b.table,
		byID: maps.Clone(b.byID), byClaim: maps.Clone(b.byClaim),
	}
	for _, r := range added {
		if err := all.checkFree(r); err != nil {
			return importError(r.ID, err)
		}
		all.append(Change{New: r, IsImport: true})
	}
	*b = *all
	return nil
}

// CheckImport returns an error that names the record if it cannot be imported.
func CheckImport(rec relayer.Record) error {
	err := storeutil.Check(rec, MaxSize)
	if rec.Revision < 1 || rec.Revision > limits.Revision {
		err = &relayer.ValidationError{Fields: []relayer.FieldError{{
			Field: "revision", Message: fmt.Sprintf("must be from 1 to %d", limits.Revision),
		}}}
	}
	if err != nil {
		return importError(rec.ID, err)
	}
	return nil
}

// importError names the record that was rejected.
func importError(id string, err error) error { return fmt.Errorf("import %q: %w", id, err) }

// ImportHistory adds changes of another store to Past. Their revisions must grow from the next
// one on.
func (b *Batch) ImportHistory(changes []relayer.RecordChange) error {
	next := b.Counters.NextRevision
	for _, c := range changes {
		before := relayer.Record{ID: c.Record.ID, Terms: c.OldTerms, Text: c.OldText}
		if err := cmp.Or(CheckImport(c.Record), storeutil.Check(before, MaxSize)); err != nil {
			return err
		}
		switch c.Kind {
		case relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted:
		default:
			return importError(c.Record.ID, fmt.Errorf("%q is not a kind of change", c.Kind))
		}
		if c.Record.Revision < next {
			return relayer.ErrConflict
		}
		next = c.Record.Revision + 1
	}
	b.Counters.NextRevision = next
	b.Past = append(b.Past, changes...)
	return nil
}

func (b *Batch) append(c Change) {
	c.New.Sequence = b.Counters.NextSequence
	b.Counters.NextSequence++
	b.change(c)
}

// Update replaces the record with the same ID and revision. It sets the next revision.
func (b *Batch) Update(changed *Record) error {
	current := b.record(changed.ID)
	if current == nil {
		return relayer.ErrNotFound
	}
	if err := current.Err(); err != nil {
		return err
	}
	if current.Revision != changed.Revision {
		return relayer.ErrConflict
	}
	if holder := b.holder(changed.Claim); holder != nil && holder.Sequence != current.Sequence {
		return relayer.ErrClaimed
	}
	changed.Revision, changed.Sequence = b.Counters.NextRevision, current.Sequence
	b.change(Change{Old: current, New: changed})
	return nil
}

// Delete removes a record if its revision is the given one. The revision of a damaged
// record is not known, so that any one matches. The delete takes the next revision.
func (b *Batch) Delete(id string, revision uint64, note []byte) error {
	if err := storeutil.Check(relayer.Record{ID: "any", Note: note}, MaxSize); err != nil {
		return err
	}
	current := b.record(id)
	if current == nil {
		return relayer.ErrNotFound
	}
	if current.Revision != revision && !current.IsDamaged {
		return relayer.ErrConflict
	}
	b.change(Change{Old: current, Revision: b.Counters.NextRevision, Note: note})
	b.Counters.NextRevision++
	return nil
}

// change records an accepted write. The claim of the old record is released before the
// new one holds its own: the two can be the same.
func (b *Batch) change(c Change) {
	if b.byID == nil {
		b.byID, b.byClaim = make(map[string]*Record), make(map[string]*Record)
	}
	b.Changes = append(b.Changes, c)
	b.byID[c.Record().ID] = c.New
	if c.Old != nil {
		if holder := b.holder(c.Old.Claim); holder != nil && holder.Sequence == c.Old.Sequence {
			b.byClaim[c.Old.Claim] = nil
		}
	}
	if c.New != nil {
		b.Counters.NextRevision = max(b.Counters.NextRevision, c.New.Revision+1)
		if c.New.Claim != "" {
			b.byClaim[c.New.Claim] = c.New
		}
	}
}

// Apply makes all changes of a batch visible at once, and publishes them under the same
// lock, so that a list and the position of the feed agree. No other batch may have been
// applied since the batch began.
func (t *Table) Apply(b *Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, change := range b.RecordChanges() {
		t.apply(b.Changes[i])
		t.changes.Publish(change)
	}
	t.counters = b.Counters
}

func (t *Table) apply(c Change) {
	old := cmp.Or(c.Old, &Record{})
	if holder := t.byClaim[old.Claim]; holder != nil && holder.Sequence == old.Sequence {
		delete(t.byClaim, old.Claim)
	}
	if c.New != nil {
		t.put(old, c.New)
		if c.New.Claim != "" { // the empty claim has no holder
			t.byClaim[c.New.Claim] = c.New
		}
		return
	}
	delete(t.byID, old.ID)
	t.order.remove(old)
	t.byTerm.move(old, &Record{})
	if old.IsDamaged {
		t.damaged.remove(old)
	}
}

// History returns what the batch adds to a history. Imported records have the revisions that they
// had elsewhere, and are in none.
func (b *Batch) History() []relayer.RecordChange {
	added := make([]relayer.RecordChange, 0, len(b.Changes)+len(b.Past))
	for i, change := range b.RecordChanges() {
		if !b.Changes[i].IsImport {
			added = append(added, change)
		}
	}
	return append(added, b.Past...)
}

// RecordChanges returns Changes as the consumers of a feed get them, without positions and times.
func (b *Batch) RecordChanges() []relayer.RecordChange {
	b.published = slices.Grow(b.published, len(b.Changes)-len(b.published))
	for _, c := range b.Changes[len(b.published):] {
		b.published = append(b.published, c.recordChange())
	}
	return b.published
}

func (c Change) recordChange() relayer.RecordChange {
	change := relayer.RecordChange{Kind: relayer.ChangeCreated, Record: c.Record().Record}
	if c.Old != nil {
		change.Kind, change.OldTerms, change.OldText = relayer.ChangeUpdated, c.Old.Terms, c.Old.Text
	}
	if c.New == nil {
		change.Kind = relayer.ChangeDeleted
		change.Record.Revision, change.Record.Note = c.Revision, c.Note
	}
	return change
}
