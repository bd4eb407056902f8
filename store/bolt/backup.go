package bolt

import (
	"context"
	"fmt"
	"io"
)

// WriteTo writes a copy of the file as it stands at this moment, and returns
// the number of bytes written. Reads and writes go on meanwhile; the file may
// grow more than usual, because what the copy still has to read is not used
// again before it ends. The copy is a file that [Open] opens: it is durable
// once the caller has synced it.
//
// A closed store returns [relayer.ErrUnavailable]; a failing writer, its error.
func (s *Store) WriteTo(w io.Writer) (written int64, err error) {
	tx, err := s.beginRead(context.Background())
	if err != nil {
		return 0, err
	}
	// Nothing is recovered here, as in other reads: no page is looked at, and what
	// panics is the caller's writer.
	defer func() { _ = tx.Rollback() }()
	if written, err = tx.WriteTo(w); err != nil {
		return written, fmt.Errorf("bolt: back up %s: %w", s.path, err)
	}
	return written, nil
}
