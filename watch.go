package relayer

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"
)

// Change is one change of one relayer in a change feed or a history, or a heartbeat of a feed.
type Change struct {
	Kind ChangeKind

	// ID is the ID of the relayer.
	ID string

	// Relayer is a copy of the relayer after the change or, for a delete, of its last state with
	// the revision of the delete. A relayer that the query of the watch ceases to select is
	// reported as deleted, with only ID and Revision. The RPC URLs are masked ([RPCURL.IsMasked])
	// if they are sealed or the store is an [Opener], and can be masked after a delete or when a
	// later change follows: a store need not retain the URLs of earlier revisions. Relayer is nil
	// in a heartbeat. For a history see [Manager.History].
	Relayer *Relayer

	// Document is the relayer in JSON, in changes of [Documents.Watch] and [Documents.History]. It
	// has no JSON if Relayer would be nil, or would have only ID and Revision.
	Document Document

	// Info says who made the change, when and why. Info has only the revision if the watch ceases
	// to select the relayer.
	Info ChangeInfo

	// Position is the point of the feed after the change, for [WatchQuery.After]. It is opaque, and
	// empty if the feed cannot resume, and in a history.
	Position string

	// Time is the time up to which the consumer has all changes: every change of the
	// selection that was acknowledged before, on any instance, has been returned. It has a
	// monotonic clock reading of this process. It is zero if it is unknown, and in a history.
	Time time.Time
}

// WatchQuery selects changes.
type WatchQuery struct {
	// Selector selects the relayers.
	Selector Selector

	// After is the position at which the watch resumes: the [Change.Position] of a watch or the
	// [Page.Position] of a list, with the same selector and of the same store or server. If it is
	// empty, the changes from the call on follow.
	After string

	// Heartbeats adds heartbeats to the sequence: once it has caught up, there is a change or a
	// [ChangeHeartbeat] at least every 5 seconds while the store is reachable.
	Heartbeats bool
}

// Watch returns the changes of all writers to the store from the call on, or after a
// position, until ctx is done. The changes are in the order in which they were made.
//
// A relayer that begins to match the selector is reported as created, and one that ceases to
// match it as deleted. So a consumer has exactly the selection.
//
// Any error ends the sequence: the error of ctx too, and a [*CorruptError] for a relayer that
// cannot be decoded. Writers never wait for a consumer. A consumer gets [ErrGap] if the store no
// longer has its next change, or if its position is of another selector. After ErrGap or a
// CorruptError, it reads all relayers again. If the store has been unreachable for 15 seconds, the
// sequence ends with [ErrUnavailable]. The sequence can be ranged over once; a second range gets an
// error.
//
// To follow all relayers without a gap, read them by cursors, then watch after the
// [Page.Position] of the first page: the watch has exactly the changes since, in order. Package
// mirror does this.
//
// The feeds of store/memory and store/bolt are in memory. They retain at most 1,024 changes and
// at most 16 MiB, and their positions are invalid after a restart. Positions of store/postgres
// are valid on every instance and after a restart.
func (m *Manager) Watch(ctx context.Context, query WatchQuery) iter.Seq2[Change, error] {
	return watch(ctx, m, query, func(c RecordChange, change *Change) error { return m.decodeChange(ctx, c, change) })
}

// watch returns the changes of a selection. Complete sets what a change has besides its kind, ID,
// position and time.
func watch(ctx context.Context, m *Manager, query WatchQuery, complete func(RecordChange, *Change) error) iter.Seq2[Change, error] {
	changes := within(m.store, query.Selector, false).Watch(ctx, query.After)
	var isRanged atomic.Bool
	return func(yield func(Change, error) bool) {
		if isRanged.Swap(true) {
			yield(Change{}, operationError(ActionWatch, "", errors.New("relayer: the changes can be ranged over once: call Watch again")))
			return
		}
		for c, err := range changes {
			change := Change{Kind: c.Kind, ID: c.Record.ID, Position: c.Position, Time: c.Time}
			switch {
			case err != nil:
			case c.Kind != ChangeHeartbeat:
				err = complete(c, &change)
			case !query.Heartbeats:
				continue
			}
			if err != nil {
				change = Change{}
			}
			if !yield(change, operationError(ActionWatch, "", err)) || err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Change{}, operationError(ActionWatch, "", err))
		}
	}
}

func (m *Manager) decodeChange(ctx context.Context, c RecordChange, change *Change) (err error) {
	change.Info = changeInfoOf(c.Record)
	switch {
	case c.Record.Document == nil:
		change.Relayer = &Relayer{ID: c.Record.ID, Revision: c.Record.Revision}
	case len(c.Record.Private) == 0: // a later change has replaced the URLs, or there are none
		change.Relayer, err = maskedRelayerOf(c.Record)
	default:
		change.Relayer, err = m.relayerOf(ctx, c.Record)
	}
	return err
}
