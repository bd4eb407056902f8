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

// lead commits a batch on the goroutine of a caller if that caller is likely to write
// alone. It saves two switches of goroutines, which take longer than a write without its
// sync. A recovery is
// left to the writer, because the caller could not give up while it runs.
func (s *Store) lead() {
	if !s.alone.Load() {
		return
	}
	select {
	case s.writeLock <- struct{}{}:
	default:
		return
	}
	defer func() { <-s.writeLock }()
	if s.needsRecovery {
		return
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	s.writeLocked()
}

// writeBatch commits the waiting writes and returns their number.
func (s *Store) writeBatch() int {
	s.writeLock <- struct{}{}
	defer func() { <-s.writeLock }()
	return s.writeLocked()
}

// writeLocked commits the waiting writes in one transaction and returns their
// number. It takes them from the queue only when the engine is ready: a check or
// a recovery can be long, and until then their callers can give up. The caller holds
// the write lock.
func (s *Store) writeLocked() int {
	tx, err := s.beginWrite(s.closing)
	taken := batch(s.queue.Take())
	s.alone.Store(len(taken) == 1)
	results := make([]error, len(taken))
	if err == nil {
		err = s.transact(tx, taken, results)
	}
	if errors.Is(err, errMappingFull) {
		err = s.growAndRetry(taken, results)
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
// was rejected may have been rejected because of another write of the batch, which
// did not take effect: it can be tried again.
func failAll(results []error, failure error) {
	for i, result := range results {
		if result == nil {
			results[i] = failure
			continue
		}
		results[i] = unavailable("another write of the same commit failed: try again")
	}
}

// transact fills in the results. The error it returns is that of all writes.
func (s *Store) transact(tx *bbolt.Tx, taken batch, results []error) error {
	if s.pagesDamaged {
		s.engine.rollback(tx)
		return corruptData(errors.New("a check has found damaged pages"))
	}
	b, err := s.apply(tx, taken, results)
	if err != nil || b.writes == 0 {
		s.engine.rollback(tx)
		return err
	}
	return s.finish(tx, b)
}

// growAndRetry runs the writes with a larger mapping of the file.
func (s *Store) growAndRetry(taken batch, results []error) error {
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
var errMappingFull = unavailable("the file is larger than its reserved address space: restart the process")

// beginWrite starts a write transaction. The caller holds the write lock.
func (s *Store) beginWrite(ctx context.Context) (*bbolt.Tx, error) {
	if s.closed {
		return nil, errClosed
	}
	if err := s.recoverFile(ctx); err != nil {
		return nil, unavailable(err)
	}
	if _, err := s.checkPath(); err != nil {
		return nil, unavailable(err)
	}
	if err := guard(s.current.Load().writable); err != nil {
		return nil, corruptData(err)
	}
	s.releaseRetired()
	var tx *bbolt.Tx
	err := s.engine.callLocking(func() (err error) {
		tx, err = s.engine.db.Begin(true)
		return err
	})
	if err != nil {
		s.needsRecovery = true
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
func (s *Store) apply(tx *bbolt.Tx, taken batch, results []error) (b *batchTx, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.needsRecovery = true
			err = corruptData(pageError(cause))
		}
	}()
	base := s.current.Load()
	if tx.ID() != base.tx.ID()+1 {
		return nil, corruptData(errOverwritten)
	}
	if b, err = newBatchTx(tx, base); err != nil {
		return nil, corruptData(err)
	}
	for i, w := range taken {
		results[i] = w.Value(b)
		if b.failed != nil {
			return nil, unavailable(b.failed)
		}
	}
	if b.writes == 0 {
		return b, nil
	}
	return b, b.finish()
}

// finish commits, and then publishes the snapshot for reads and the changes for
// watchers: neither is seen before it is durable.
func (s *Store) finish(tx *bbolt.Tx, b *batchTx) error {
	txid := tx.ID()
	if err := guard(func() error { return s.commit(tx) }); err != nil {
		s.engine.rollback(tx) // if a panic has left it open
		if errors.Is(err, berrors.ErrMaxSizeReached) {
			s.needsRecovery = true
			return errMappingFull
		}
		return s.commitFailed(txid, err)
	}
	s.lastCommitFailed = false
	snap, err := takeSnapshot(s.engine)
	if err == nil {
		snap.counts = b.counts
		s.cache.advance(snap, b.changes)
	} else {
		// The writes are durable, but a recovery has to make them readable.
		s.needsRecovery, snap = true, nil
	}
	s.publish(snap)
	for _, each := range b.changes {
		s.changes.Publish(each, len(each.Record.Document)+len(each.Record.Private))
	}
	return nil
}
