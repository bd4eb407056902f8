package bolt

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

var errOverwritten = errors.New("another program has changed the file (stop both programs first)")

// snapshot is the state after one durable commit. All reads of that state share
// one read transaction, which keeps its pages from being reused.
type snapshot struct {
	tx       *bbolt.Tx
	engine   *engine
	counts   blockCounts
	file     pages.File
	root     pages.Tree
	relayers pages.Tree
	ids      pages.Tree
	claims   pages.Tree
	blocks   pages.Tree
	meta     pages.Tree

	// mapped is the header page that the next commit does not write, and content is
	// what it held when the snapshot was taken. If they differ while the snapshot is
	// current, another program has overwritten the file.
	mapped  []byte
	content []byte
	header  pages.Header

	// readers counts the reads that use the snapshot, plus one while it is
	// current. At zero, drained is closed, and no read can start any more.
	readers atomic.Int64
	drained chan struct{}
}

// takeSnapshot opens the state after the last commit. The caller holds the write
// lock.
func takeSnapshot(e *engine) (*snapshot, error) {
	s := &snapshot{engine: e, drained: make(chan struct{})}
	s.readers.Store(1)
	err := e.callLocking(func() (err error) {
		s.tx, err = e.db.Begin(false)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := guard(s.open); err != nil {
		e.rollback(s.tx)
		return nil, err
	}
	return s, nil
}

func (s *snapshot) open() error {
	size := s.engine.pageSize
	mapped := s.engine.mapped(s.tx.Size())
	var err error
	if s.file, err = pages.NewFile(mapped, size); err != nil {
		return err
	}
	if s.header, err = s.file.Header(uint64(s.tx.ID())); err != nil {
		return err
	}
	kept := s.tx.ID() % 2 * size
	s.mapped = mapped[kept : kept+pages.HeaderEnd]
	s.content = bytes.Clone(s.mapped)
	if s.root, err = s.file.Tree(s.header.Root); err != nil {
		return err
	}
	for i, bucket := range []*pages.Tree{&s.relayers, &s.ids, &s.claims, &s.blocks, &s.meta} {
		if *bucket, err = s.root.Bucket(buckets[i]); err != nil {
			return err
		}
	}
	return nil
}

// retain registers a read. It returns false if the snapshot is no longer in use.
func (s *snapshot) retain() bool {
	for {
		readers := s.readers.Load()
		if readers == 0 {
			return false
		}
		if s.readers.CompareAndSwap(readers, readers+1) {
			return true
		}
	}
}

func (s *snapshot) release() {
	if s.readers.Add(-1) == 0 {
		close(s.drained)
	}
}

// await returns false if the deadline passes before the snapshot is drained.
func (s *snapshot) await(deadline <-chan struct{}) bool {
	select {
	case <-s.drained:
		return true
	case <-deadline:
		return false
	}
}

// intact reports whether the header is unchanged.
func (s *snapshot) intact() bool { return bytes.Equal(s.mapped, s.content) }

// acquire returns the current snapshot. The caller releases it.
func (s *Store) acquire(ctx context.Context) (*snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var err error
	for {
		if snap := s.retainCurrent(); snap != nil {
			return snap, nil
		}
		if err != nil {
			return nil, err
		}
		// A recovery runs, or has closed the file and could not open it again. The
		// next write tries again, even one that changes nothing.
		err = withoutOutcome(s.do(ctx, 0, func(*batchTx) error { return nil }))
	}
}

func (s *Store) retainCurrent() *snapshot {
	for {
		snap := s.current.Load()
		if snap == nil || snap.retain() {
			return snap
		}
	}
}

// read runs a function on the current snapshot. The function returns
// [relayer.ErrNotFound], the error of ctx, or what it found damaged.
func (s *Store) read(ctx context.Context, run func(*snapshot) error) error {
	snap, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.release()
	err = guard(func() error {
		if s.overwritten(snap) {
			return errOverwritten
		}
		err := run(snap)
		// The file may have been overwritten while the function read it.
		if s.overwritten(snap) {
			return errOverwritten
		}
		return err
	})
	if err == nil || errors.Is(err, relayer.ErrNotFound) || err == ctx.Err() {
		return err
	}
	return corruptData(err)
}

// overwritten reports whether another program has changed the header of the last
// commit. The caller uses a snapshot, which keeps the file mapped.
func (s *Store) overwritten(used *snapshot) bool {
	for {
		last := s.current.Load()
		if last == nil { // a recovery waits for the snapshot that is in use
			return !used.intact()
		}
		if last.intact() {
			return false
		}
		if s.current.Load() == last {
			return true
		}
	}
}

// publish makes a snapshot the current one. The caller holds the write lock.
func (s *Store) publish(next *snapshot) {
	if next != nil {
		s.publishedTx = next.tx.ID()
	}
	if last := s.current.Swap(next); last != nil {
		last.release()
		s.retired = append(s.retired, last)
	}
}

// releaseRetired ends the transactions of snapshots that no read uses any more,
// so that the engine can reuse their pages. The caller holds the write lock.
func (s *Store) releaseRetired() {
	kept := s.retired[:0]
	for _, snap := range s.retired {
		select {
		case <-snap.drained:
			s.engine.rollback(snap.tx)
		default:
			kept = append(kept, snap)
		}
	}
	clear(s.retired[len(kept):])
	s.retired = kept
}
