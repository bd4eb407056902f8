package relayer

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// ChangeKind is the kind of a [Change].
type ChangeKind string

// The kinds of change.
const (
	Created ChangeKind = "created"
	Updated ChangeKind = "updated"
	Deleted ChangeKind = "deleted"
)

// Change is one change of one relayer.
type Change struct {
	Kind ChangeKind

	// Relayer is the relayer after the change, or its last state if it was deleted.
	// It is a copy for the consumer.
	Relayer *Relayer

	// Position is the position of the change in the feed, for [Manager.WatchAfter]. It
	// is opaque, and empty if the feed cannot resume.
	Position string
}

// DocumentChange is a [Change] without decoding: the document after it, or the last one
// if the relayer was deleted. It contains no secret.
type DocumentChange struct {
	Kind     ChangeKind
	Document Document
	Position string // as in [Change]
}

// RecordChange is one change of a record: the record after it, or its last state if
// it was deleted.
type RecordChange struct {
	Kind   ChangeKind
	Record Record

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

// WatchStore is an optional capability of a [Store]: a change feed of all writers to the
// store. The [Manager] detects it with a type assertion. Without it [Manager.Watch] returns
// an error.
type WatchStore interface {
	// Watch returns the changes in the order in which they were made, until ctx is done.
	// It returns those from the call on if after is empty, and otherwise those after that
	// position. If the store cannot return all of them, [ErrGap] comes first, and then the changes
	// from the call on. Positions come from clients: after may be any text.
	//
	// No writer waits for a consumer. The sequence yields ErrGap in place of dropped
	// changes and continues; any other error is the last. Imported records are reported
	// as created, or by ErrGap. The bytes of a change belong to its consumer. The
	// sequence can be ranged over once.
	Watch(ctx context.Context, after string) iter.Seq2[RecordChange, error]
}

// Watch returns the changes of all writers to the store from the call on, until ctx is
// done; it then ends without an error. Changes of one relayer are in the order of their
// revisions; those of different relayers may be in any order. All stores of
// this repository are a [WatchStore]. If the store is not, Watch yields one error, which
// matches [errors.ErrUnsupported].
//
// A writer never waits for a consumer. A consumer that falls too far behind gets
// [ErrGap] in place of the dropped changes, and then the later ones. The limit is
// 1,024 changes or 16 MiB, or what the store retains. After ErrGap, and after the
// error of a record that cannot be decoded, the sequence continues; any other error
// is the last. It can be ranged over once.
//
// To follow all relayers without a gap, call Watch first, then read [Manager.All],
// then range over the changes. Skip a relayer that was created or updated to a
// revision that is not above the one already known. Apply every deletion: it has the
// last revision of the relayer.
func (m *Manager) Watch(ctx context.Context) iter.Seq2[Change, error] {
	return m.WatchAfter(ctx, "")
}

// WatchAfter resumes [Manager.Watch] after the [Change.Position] of an earlier change.
// If the feed no longer has all changes after the position, or the position is of another
// feed, [ErrGap] comes first. The changes from the call on follow it. With the empty
// position it is [Manager.Watch].
//
// The feeds of store/memory and store/bolt are in memory. They retain up to 1,024 changes
// or 16 MiB, and their positions are invalid after a restart. Positions of store/postgres
// are valid on every instance and after a restart.
func (m *Manager) WatchAfter(ctx context.Context, position string) iter.Seq2[Change, error] {
	return convertChanges(m.watch(ctx, position), m.decodeChange)
}

// WatchDocuments is [Manager.WatchAfter] without decoding.
func (m *Manager) WatchDocuments(ctx context.Context, after string) iter.Seq2[DocumentChange, error] {
	return convertChanges(m.watch(ctx, after), func(c RecordChange) (DocumentChange, error) {
		return DocumentChange{c.Kind, documentOf(c.Record), c.Position}, nil
	})
}

func (m *Manager) watch(ctx context.Context, after string) iter.Seq2[RecordChange, error] {
	if store, ok := m.store.(WatchStore); ok {
		return store.Watch(ctx, after)
	}
	return func(yield func(RecordChange, error) bool) {
		yield(RecordChange{}, fmt.Errorf("relayer: the store has no change feed: %w", errors.ErrUnsupported))
	}
}

// convertChanges converts each change. An error of a conversion takes the place of the
// change.
func convertChanges[T any](changes iter.Seq2[RecordChange, error], convert func(RecordChange) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for change, err := range changes {
			var converted T
			if err == nil {
				converted, err = convert(change)
			}
			if !yield(converted, err) {
				return
			}
		}
	}
}

func (m *Manager) decodeChange(c RecordChange) (Change, error) {
	r, err := m.relayerOf(c.Record)
	if err != nil {
		return Change{}, err
	}
	return Change{c.Kind, r, c.Position}, nil
}
