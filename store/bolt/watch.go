package bolt

import (
	"bytes"
	"context"
	"iter"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// Watch returns the changes from the call on, in commit order and after each commit
// is durable, until ctx is done. It yields [relayer.ErrGap] in place of dropped
// changes and continues: a consumer may be behind by up to 1,024 changes or 16 MiB,
// and changes are also dropped if the outcome of a commit is unknown. After Close
// the sequence ends with [relayer.ErrUnavailable]. It can be ranged over once.
func (s *Store) Watch(ctx context.Context) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Subscribe(ctx)
}

func cloneChange(change relayer.RecordChange) relayer.RecordChange {
	change.Record.Document = bytes.Clone(change.Record.Document)
	change.Record.Private = bytes.Clone(change.Record.Private)
	return change
}
