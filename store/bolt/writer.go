package bolt

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

var errStuck = errors.New("the writer failed in the middle of a transaction: the process must open the file anew")

// run is the one goroutine that writes. It ends once the queue is closed and
// everything in it is answered.
func (s *Store) run() {
	debug.SetPanicOnFault(true)
	for s.queue.wait() {
		if s.writeBatch() > 1 {
			// The callers just answered are about to come back with their next
			// write: let them, and the next sync is shared again.
			runtime.Gosched()
		}
	}
}

// writeBatch applies the writes that wait in one transaction, answers each of
// them, and returns how many they were. It takes them when the engine is ready
// and no sooner: a check or a recovery can be long, and until it is over their
// callers are free to go.
func (s *Store) writeBatch() int {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	tx, err := s.beginWrite()
	batch := begin(s.queue.take())
	answers := make([]error, len(batch))
	if err == nil {
		err = s.transact(tx, batch, answers)
	}
	if err != nil {
		failAll(answers, err)
	}
	for i, w := range batch {
		w.answer(answers[i])
	}
	return len(batch)
}

// begin leaves out the writes whose callers have gone or are about to.
func begin(batch []*write) []*write {
	begun := batch[:0]
	for _, w := range batch {
		if !w.begin() {
			continue
		}
		if err := w.ctx.Err(); err != nil {
			w.answer(err)
			continue
		}
		begun = append(begun, w)
	}
	return begun
}

// failAll puts the failure of the whole batch in the place of its answers. A
// write that was refused has certainly not been written, but why it was refused
// may be a write of the same batch, so that it has to be asked again.
func failAll(answers []error, failure error) {
	for i, answer := range answers {
		if answer == nil {
			answers[i] = failure
			continue
		}
		answers[i] = unavailable("the write was not tried")
	}
}

// transact fills in the answers. The error it returns is that of all writes.
func (s *Store) transact(tx *bbolt.Tx, batch []*write, answers []error) error {
	if s.unsound {
		s.abandon(tx)
		return damagedRead("a check has found damaged pages")
	}
	changed, err := s.apply(tx, batch, answers)
	if err != nil || changed == nil {
		s.abandon(tx)
		return err
	}
	return s.finish(tx, *changed)
}

// beginWrite is for whoever has the turn. An engine that panics here keeps its
// locks.
func (s *Store) beginWrite() (tx *bbolt.Tx, err error) {
	if s.closed {
		return nil, errClosed
	}
	if err := s.recovered(); err != nil {
		return nil, unavailable(err)
	}
	defer func() {
		if cause := recover(); cause != nil {
			s.stuck = true
			err = damagedRead(cause)
		}
	}()
	tx, err = s.db.Load().Begin(true)
	if err != nil {
		s.suspect = true
		return nil, unavailable(err)
	}
	return tx, nil
}

// apply runs every write of the batch and returns the blocks as they will be,
// or nil where nothing changes.
func (s *Store) apply(tx *bbolt.Tx, batch []*write, answers []error) (next *live, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.suspect = true
			err = damagedRead(cause)
		}
	}()
	c, err := newChange(tx)
	if err != nil {
		return nil, damagedRead(err)
	}
	for i, w := range batch {
		answers[i] = w.apply(c)
		if c.broken != nil {
			return nil, unavailable(c.broken)
		}
	}
	if c.writes == 0 {
		return nil, nil
	}
	shifts, err := c.finish()
	if err != nil {
		return nil, unavailable(err)
	}
	before := s.views.Load().current
	if before.txid != tx.ID()-1 {
		return nil, unavailable(fmt.Errorf("transaction %d follows %d", tx.ID(), before.txid))
	}
	after := before.after(tx.ID(), shifts)
	if after.total() != int(c.state.total) {
		return nil, damagedRead(errBlocks)
	}
	return &after, nil
}

// finish commits, and shows readers the new blocks. They can see the
// transaction before the commit is done, so both views stand until then.
func (s *Store) finish(tx *bbolt.Tx, next live) error {
	s.views.Store(&views{current: s.views.Load().current, coming: next})
	if err := s.tryCommit(tx); err != nil {
		return s.failed(next.txid, err)
	}
	s.views.Store(&views{current: next, coming: next})
	if total := next.total(); s.places.Load().crowded(total) {
		s.places.Store(placesFor(total))
	}
	return nil
}

func (s *Store) tryCommit(tx *bbolt.Tx) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.suspect = true
			err = fmt.Errorf("commit: %v", cause)
			s.abandon(tx)
		}
	}()
	return s.commit(tx)
}

// abandon ends a transaction without a commit. Where even that fails the engine
// keeps its lock for good, and all that is left is to say so.
func (s *Store) abandon(tx *bbolt.Tx) {
	defer func() {
		if recover() != nil {
			s.stuck = true
		}
	}()
	_ = tx.Rollback()
}
