package bolt

import (
	"bytes"
	"context"
	"iter"

	"github.com/go-relayer/relayer"
)

var _ relayer.WatchStore = (*Store)(nil)

// Watch returns the changes in commit order and after each commit is durable, until
// ctx is done: from the call on, or after a position. The store retains the last 1,024
// changes or 16 MiB in memory. It yields [relayer.ErrGap] in place of dropped changes
// and continues. Changes are dropped if the consumer is further behind, or resumes at an
// earlier position or one from before the file was opened. They are also dropped if the
// outcome of a commit is unknown. After Close the sequence ends with [relayer.ErrUnavailable]. It
// can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.changes.Subscribe(ctx, after)
}

func delivered(change relayer.RecordChange, position string) relayer.RecordChange {
	change.Record.Document = bytes.Clone(change.Record.Document)
	change.Record.Private = bytes.Clone(change.Record.Private)
	change.Position = position
	return change
}
