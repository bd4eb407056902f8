package memory

import (
	"context"
	"iter"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// Watch returns the changes in the order in which they were made, until ctx is done:
// from the call on, or after a position. The store retains the last 1,024 changes or
// 16 MiB. It yields [relayer.ErrGap] in place of dropped changes to a consumer that is
// further behind, or resumes at an earlier position or one of another store. The sequence
// can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Subscribe(ctx, after)
}

func delivered(change relayer.RecordChange, position string) relayer.RecordChange {
	change.Record = copyOf(change.Record)
	change.Position = position
	return change
}

// publish is called with the lock held, so that changes are published in the order in
// which they are made. It shares the bytes of the record with the store.
func (s *Store) publish(kind relayer.ChangeKind, rec relayer.Record) {
	s.changes.Publish(relayer.RecordChange{Kind: kind, Record: rec}, len(rec.Document)+len(rec.Private))
}
