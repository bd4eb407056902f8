package bolt

import "go.etcd.io/bbolt"

// InterceptCommits passes every later commit through a function that simulates a
// fault of the disk. It must not be called during a write.
func (s *Store) InterceptCommits(through func(commit func() error) error) {
	s.commit = func(tx *bbolt.Tx) error {
		return through(tx.Commit)
	}
}

// Waiting returns the number of writes in the queue.
func (s *Store) Waiting() int { return s.queue.Len() }
