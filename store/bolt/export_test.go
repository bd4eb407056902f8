package bolt

import "go.etcd.io/bbolt"

// InterceptCommits has every later commit go through a function of the test's,
// which stands for what a disk can do. It must be called before the first write.
func (s *Store) InterceptCommits(through func(commit func() error) error) {
	s.commit = func(tx *bbolt.Tx) error {
		return through(tx.Commit)
	}
}

// Waiting is the number of writes that no batch has taken yet.
func (s *Store) Waiting() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.waiting)
}
