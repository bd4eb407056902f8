package bolt

import (
	"context"
	"errors"
	"math"
	"runtime"
	"runtime/debug"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer/internal/groupcommit"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

type batch []*groupcommit.Write[write]

// run is the writer goroutine. It ends after the queue is closed and empty.
func (s *Store) run() {
	debug.SetPanicOnFault(true)
	for s.queue.Wait() {
		if s.writeBatch() > 1 {
			// The callers that just got their results are about to write again. If
			// they run first, their next writes share a sync.
			runtime.Gosched()
		}
	}
}

// writeBatch commits the waiting writes in one transaction and returns their
// number. It takes them from the queue only when the engine is ready: a check or
// a recovery can be long, and until then their callers can give up.
func (s *Store) writeBatch() int {
	s.writeLock <- struct{}{}
	defer func() { <-s.writeLock }()
	tx, err := s.beginWrite(s.closing)
	taken := batch(s.queue.Take())
	results := make([]error, len(taken))
	if err == nil {
		err = s.transact(tx, taken, results)
	}
	if errors.Is(err, errMappingFull) {
		err = s.transactAgain(taken, results)
	}
	if err != nil {
		failAll(results, err)
	}
	for i, w := range taken {
		w.Finish(results[i])
	}
	return len(taken)
}

// failAll makes the failure of the batch the result of its writes. A write that
// was refused may have been refused because of another write of the batch, which
// did not take effect: it can be tried again.
func failAll(results []error, failure error) {
	for i, result := range results {
		if result == nil {
			results[i] = failure
			continue
		}
		results[i] = unavailable("the write was not tried")
	}
}

// transact fills in the results. The error it returns is that of all writes.
func (s *Store) transact(tx *bbolt.Tx, taken batch, results []error) error {
	if s.unsound {
		s.engine.rollback(tx)
		return corrupt(errors.New("a check has found damaged pages"))
	}
	c, err := s.apply(tx, taken, results)
	if err != nil || c.writes == 0 {
		s.engine.rollback(tx)
		return err
	}
	return s.finish(tx, c)
}

// transactAgain runs the writes with a larger mapping of the file.
func (s *Store) transactAgain(taken batch, results []error) error {
	before := s.opts.mapping
	for {
		size := mappingFor(s.path, s.opts.mapping)
		if size > math.MaxInt/2 {
			return errMappingFull
		}
		s.opts.mapping = 2 * size
		tx, err := s.beginWrite(s.closing)
		if err != nil {
			s.opts.mapping = before
			return err
		}
		clear(results)
		if err := s.transact(tx, taken, results); !errors.Is(err, errMappingFull) {
			return err
		}
	}
}

// errMappingFull reports that a transaction needs more than the address space
// reserved for the file.
var errMappingFull = unavailable("the file outgrows its mapping")

// beginWrite starts a write transaction. The caller holds the write lock.
func (s *Store) beginWrite(ctx context.Context) (*bbolt.Tx, error) {
	if s.closed {
		return nil, errClosed
	}
	if err := s.recover(ctx); err != nil {
		return nil, unavailable(err)
	}
	if _, err := s.inPlace(); err != nil {
		return nil, unavailable(err)
	}
	if err := guard(s.current.Load().writable); err != nil {
		return nil, corrupt(err)
	}
	s.releaseRetired()
	var tx *bbolt.Tx
	err := s.engine.enter(func() (err error) {
		tx, err = s.engine.db.Begin(true)
		return err
	})
	if err != nil {
		s.suspect = true
		return nil, unavailable(err)
	}
	return tx, nil
}

// writable verifies the pages that every commit reads.
func (s *snapshot) writable() error {
	if !s.intact() {
		return errOverwritten
	}
	if !s.file.IsFreelist(s.header.Freelist) {
		return pages.ErrDamaged
	}
	return s.root.VerifyPath(nil, 0, make(map[uint64]bool))
}

// apply runs every write of the batch and returns what they change.
func (s *Store) apply(tx *bbolt.Tx, taken batch, results []error) (c *change, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.suspect = true
			err = corrupt(pageError(cause))
		}
	}()
	base := s.current.Load()
	if tx.ID() != base.tx.ID()+1 {
		return nil, corrupt(errOverwritten)
	}
	if c, err = newChange(tx, base); err != nil {
		return nil, corrupt(err)
	}
	for i, w := range taken {
		results[i] = w.Value(c)
		if c.broken != nil {
			return nil, unavailable(c.broken)
		}
	}
	if c.writes == 0 {
		return c, nil
	}
	return c, c.finish()
}

// finish commits, and then publishes the snapshot for reads and the changes for
// watchers: neither is seen before it is durable.
func (s *Store) finish(tx *bbolt.Tx, c *change) error {
	txid := tx.ID()
	if err := guard(func() error { return s.commit(tx) }); err != nil {
		s.engine.rollback(tx) // if a panic has left it open
		if errors.Is(err, berrors.ErrMaxSizeReached) {
			s.suspect = true
			return errMappingFull
		}
		return s.failed(txid, err)
	}
	s.failing = false
	snap, err := takeSnapshot(s.engine)
	if err == nil {
		snap.live = c.live
	} else {
		// The writes are durable, but a recovery has to make them readable.
		s.suspect, snap = true, nil
	}
	s.publish(snap)
	for _, each := range c.changes {
		s.changes.Publish(each, len(each.Record.Document)+len(each.Record.Private))
	}
	return nil
}
