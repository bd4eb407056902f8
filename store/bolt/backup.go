package bolt

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// Backup writes a file with the current records, and returns the number of bytes written.
// It is written from memory: it is consistent, it is sound even if the file of the store
// is not, and neither reads nor writes wait for it. [Open] opens it. It is durable after
// the caller has synced it.
//
// It returns the error of ctx if ctx ends, and [relayer.ErrUnavailable] if the store is
// closed. If a record was damaged when the file was opened, the error matches
// [relayer.ErrCorrupt] and names it. Any other error is that of the writer.
func (s *Store) Backup(ctx context.Context, w io.Writer) (written int64, err error) {
	if s.isClosed.Load() {
		return 0, errClosed
	}
	target := &target{ctx: ctx, writer: w}
	if err := writeFile(target, s.table); err != nil {
		return target.written, fmt.Errorf("bolt: back up %s: %w", s.path, err)
	}
	return target.written, nil
}

// writeFile writes a file with the records of a table.
func writeFile(to io.Writer, from *table.Table) error {
	records, counters := from.Snapshot()
	for _, r := range records {
		if err := r.Err(); err != nil {
			return err
		}
	}
	meta, bucket := fileContent(records, counters)
	return pages.Write(to, os.Getpagesize(), meta, bucket)
}

// target is the writer of a backup. It fails after ctx has ended.
type target struct {
	ctx     context.Context
	writer  io.Writer
	written int64
}

func (t *target) Write(part []byte) (n int, err error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	n, err = t.writer.Write(part)
	t.written += int64(n)
	return n, err
}
