package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// WriteTo writes a copy of the current state of the file and returns the number
// of bytes written. Reads and writes go on meanwhile. The file can grow more than
// usual, because pages of the copied state are not reused before the copy ends.
// [Open] opens the copy. It is durable after the caller has synced it.
//
// It returns [relayer.ErrUnavailable] if the store is closed, an error that
// matches [relayer.ErrCorrupt] if the file was truncated or overwritten, and
// otherwise the error of the writer.
func (s *Store) WriteTo(w io.Writer) (written int64, err error) {
	snap, err := s.acquire(context.Background())
	if err != nil {
		return 0, err
	}
	defer snap.release()
	s.backups.Add(1)
	defer s.backups.Add(-1)
	if err := guard(snap.writable); err != nil && s.current.Load() == snap {
		return 0, corrupt(err)
	}
	// A panic of the caller's writer is not recovered. Nothing else can panic: the
	// pages are read from the file and not from where it is mapped.
	written, err = snap.tx.WriteTo(w)
	if errors.Is(err, io.EOF) {
		err = corrupt(errors.New("the file was truncated"))
	}
	if err != nil {
		return written, fmt.Errorf("bolt: back up %s: %w", s.path, err)
	}
	return written, nil
}
