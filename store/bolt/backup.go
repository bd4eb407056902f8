package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Backup writes a copy of the current state of the file and returns the number
// of bytes written. Reads and writes go on meanwhile. The file can grow more than
// usual, because pages of the copied state are not reused before the copy ends.
// [Open] opens the copy. It is durable after the caller has synced it.
//
// It returns the error of ctx if ctx ends, and [relayer.ErrUnavailable] if the store
// is closed. If the file was truncated or overwritten, the error matches
// [relayer.ErrCorrupt]. Any other error is that of the writer.
func (s *Store) Backup(ctx context.Context, w io.Writer) (written int64, err error) {
	snap, err := s.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer snap.release()
	s.backups.Add(1)
	defer s.backups.Add(-1)
	if err := guard(snap.writable); err != nil && s.current.Load() == snap {
		return 0, corruptData(err)
	}
	// A panic of the caller's writer is not recovered. Nothing else can panic: the
	// engine copies the file and does not read the mapping.
	target := &target{ctx: ctx, writer: w}
	written, err = snap.tx.WriteTo(target)
	switch {
	case target.err != nil:
		err = target.err
	case errors.Is(err, io.EOF):
		err = corruptData(errors.New("the file was truncated"))
	}
	if err != nil {
		return written, fmt.Errorf("bolt: back up %s: %w", s.path, err)
	}
	// The file may have been overwritten while it was copied.
	err = guard(func() error {
		if s.overwritten(snap) {
			return errOverwritten
		}
		return nil
	})
	if err != nil {
		return written, corruptData(err)
	}
	return written, nil
}

// target is the writer of a backup. It fails after ctx has ended, and keeps the
// first error, because the engine returns only the text of some.
type target struct {
	ctx    context.Context
	writer io.Writer
	err    error
}

func (t *target) Write(part []byte) (written int, err error) {
	if err = t.ctx.Err(); err == nil {
		written, err = t.writer.Write(part)
	}
	t.err = err
	return written, err
}
