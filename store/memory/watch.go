package memory

import (
	"context"
	"iter"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/table"
)

var _ relayer.WatchStore = (*Store)(nil)

// Watch returns the changes in the order in which they were made, until ctx is done:
// from the call on, or after a position. The store retains the last 1,024 changes or
// 16 MiB. It yields [relayer.ErrGap] in place of dropped changes to a consumer that is
// further behind, or resumes at an earlier position or one of another store. The sequence
// can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return table.Watch(ctx, s.changes, after)
}
