package bolt

import (
	"context"
	"fmt"
	"io"

	"go.etcd.io/bbolt"
)

// WriteTo writes a copy of the file as it stands at this moment, and returns
// the number of bytes written. Reads and writes go on meanwhile; the file may
// grow more than usual, because what the copy still has to read is not used
// again before it ends. The copy is a file that [Open] opens: it is durable
// once the caller has synced it.
//
// A closed store returns [relayer.ErrUnavailable]; a failing writer, its error.
func (s *Store) WriteTo(w io.Writer) (written int64, err error) {
	err = s.read(context.Background(), func(tx *bbolt.Tx) error {
		var err error
		if written, err = tx.WriteTo(w); err != nil {
			return fmt.Errorf("bolt: back up %s: %w", s.path, err)
		}
		return nil
	})
	return written, err
}
