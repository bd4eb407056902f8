package memory

import (
	"context"
	"iter"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// Watch returns the changes from the call on, in the order in which they were made,
// until ctx is done. A consumer that is behind by more than 1,024 changes or 16 MiB gets
// [relayer.ErrGap] in place of the dropped changes. The sequence can be ranged over
// once.
func (s *Store) Watch(ctx context.Context) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Subscribe(ctx)
}

func cloneChange(change relayer.RecordChange) relayer.RecordChange {
	change.Record = copyOf(change.Record)
	return change
}

// publish is called with the lock held, so that changes are published in the order in
// which they are made. It shares the bytes of the record with the store.
func (s *Store) publish(kind relayer.ChangeKind, rec relayer.Record) {
	s.changes.Publish(relayer.RecordChange{Kind: kind, Record: rec}, len(rec.Document)+len(rec.Private))
}
