package bolt

import (
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// InterceptCommits passes every later commit through a function that simulates a
// fault of the disk. It must not be called during a write.
func (s *Store) InterceptCommits(through func(commit func() error) error) {
	s.commit = func(tx *bbolt.Tx) error {
		return through(tx.Commit)
	}
}

// Waiting returns the number of writes in the queue.
func (s *Store) Waiting() int { return s.queue.Len() }

// MakeUnreadable lets reads of the file fail, as on a disk with an unreadable sector, until the
// returned function is called.
func (s *Store) MakeUnreadable(directory string) (restore func()) {
	file := s.file
	s.file, _ = os.Open(directory)
	return func() {
		_ = s.file.Close()
		s.file = file
	}
}

// OpenAndCloseEngine opens a file as Open does and closes it. It calls opened before it locks
// the file, and verified before the engine reads the file.
func OpenAndCloseEngine(path string, opened, verified func()) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	opened()
	e, err := tryEngine(file, path, func(file *os.File) (pages.Header, error) {
		header, _, err := pages.ReadHeaders(file)
		verified()
		return header, err
	})
	if err != nil {
		return err
	}
	return errors.Join(e.close(), closeLocked(file))
}
