package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/feed"
	"github.com/go-relayer/relayer/internal/groupcommit"
	"github.com/go-relayer/relayer/store/internal/limits"
)

// A batch is bounded, so that many waiting writes neither delay the first of them
// nor hold all their bytes in memory at once.
const (
	maxBatchWrites = 1024
	maxBatchBytes  = 8 << 20
)

// drainTimeout is how long a recovery and Close wait for running reads. Only a
// backup to a slow writer runs for longer than some milliseconds.
const drainTimeout = time.Second

// Store is a [relayer.Store] in one file. [Open] returns one, and
// [Store.Close] closes it. All methods are safe for concurrent use.
type Store struct {
	path       string
	opts       options
	queue      *groupcommit.Queue[write]
	current    atomic.Pointer[snapshot]
	cache      *cache
	changes    *feed.Feed[relayer.RecordChange]
	backups    atomic.Int64    // running now
	alone      atomic.Bool     // the last batch was a single write
	closing    context.Context // ends when Close begins
	cancelWork context.CancelFunc

	// writeLock is held by the goroutine that writes, checks, recovers or closes.
	// It guards the fields below.
	writeLock        chan struct{}
	engine           *engine
	identity         *os.File    // stays open across recoveries
	known            fs.FileInfo // of identity
	retired          []*snapshot // still used by reads
	publishedTx      int         // ID of the transaction of the last published snapshot
	needsRecovery    bool        // a commit failed: recover before the next write
	lastCommitFailed bool        // no commit has succeeded since
	probed           time.Time   // when the disk last had room
	pagesDamaged     bool        // found by a check
	closed           bool
	commit           func(*bbolt.Tx) error

	writing   sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// write is applied to the transaction of its batch by the writer. It is applied again if
// the file has to grow, so that it must not change what it reads.
type write func(*batchTx) error

var _ relayer.Store = (*Store)(nil)

// do queues a write for the writer and returns its result.
func (s *Store) do(ctx context.Context, size int, apply write) error {
	err := s.queue.DoLeading(ctx, size, apply, s.lead)
	if errors.Is(err, groupcommit.ErrClosed) {
		return errClosed
	}
	return err
}

// Create adds a record and returns it with its revision after the commit is
// synced. It returns [relayer.ErrExists] if the ID is taken, and
// [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := limits.Check(rec, maxRecordSize); err != nil {
		return relayer.Record{}, err
	}
	value := encode(rec)
	err := s.do(ctx, len(value.value), func(b *batchTx) (err error) {
		rec.Revision, err = b.create(rec.ID, rec.Claim, value)
		return err
	})
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Update replaces the record if its current revision is rec.Revision, and returns
// it with its new revision after the commit is synced. It returns
// [relayer.ErrNotFound], [relayer.ErrConflict] if the current revision is another
// one, and [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := limits.Check(rec, maxRecordSize); err != nil {
		return relayer.Record{}, err
	}
	value := encode(rec)
	var revision uint64
	err := s.do(ctx, len(value.value), func(b *batchTx) (err error) {
		revision, err = b.update(rec.ID, rec.Revision, rec.Claim, value)
		return err
	})
	if err != nil {
		return relayer.Record{}, err
	}
	rec.Revision = revision
	return rec, nil
}

// Delete removes the record if its current revision is the given one. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is
// another one.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	return s.do(ctx, 0, func(b *batchTx) error { return b.delete(id, revision) })
}

// Get returns the record, or [relayer.ErrNotFound]. If the record fails its
// checksum, the error matches [relayer.ErrCorrupt] and names the ID; other
// records stay readable.
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	var rec relayer.Record
	err := s.read(ctx, func(snap *snapshot) error {
		found, err := snap.lookup(id)
		if err != nil {
			return err
		}
		rec = found.copyRecord(id)
		return nil
	})
	return rec, err
}

// List returns up to limit records from offset on, oldest first, and the total
// number of records.
func (s *Store) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	var recs []relayer.Record
	var total int
	err := s.read(ctx, func(snap *snapshot) error {
		total = snap.counts.total()
		page := make([]stored, 0, onPage(total, offset, limit))
		err := snap.walkPage(ctx, offset, limit, func(rec stored) { page = append(page, rec) })
		recs = copyPage(page)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return recs, total, nil
}

// lookup finds a record by its ID.
func (s *snapshot) lookup(id string) (stored, error) {
	key, err := s.ids.Get([]byte(id))
	if err != nil {
		return stored{}, err
	}
	if key == nil {
		return stored{}, relayer.ErrNotFound
	}
	value, err := s.relayers.Get(key)
	if err != nil {
		return stored{}, err
	}
	rec, err := decodeOf(id, value)
	rec.sequence, _ = sequenceOf(key)
	return rec, err
}

// onPage returns how many of all records are on a page: the limit can be far
// above the total.
func onPage(total, offset, limit int) int {
	if offset < 0 || offset >= total {
		return 0
	}
	return max(0, min(limit, total-offset))
}

// walkPage visits up to limit records from offset on, oldest first. It compares
// their sequence numbers with the bitmaps, so that a damaged page cannot hide
// records.
func (s *snapshot) walkPage(ctx context.Context, offset, limit int, visit func(stored)) error {
	left := onPage(s.counts.total(), offset, limit)
	if left == 0 {
		return nil
	}
	next := s.counts.sequencesFrom(offset)
	cursor, err := s.relayers.Seek(numberKey(next.sequence()))
	if err != nil {
		return err
	}
	for ; left > 0; left-- {
		if left%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key, value, err := cursor.Entry()
		if err != nil {
			return err
		}
		if sequence, ok := sequenceOf(key); !ok || sequence != next.sequence() {
			return errBlocks
		}
		rec, err := decode(value)
		if err != nil {
			return fmt.Errorf("%w: %s", err, s.describe(key, rec))
		}
		rec.sequence = next.sequence()
		visit(rec)
		cursor.Next()
		if left > 1 {
			next.advance()
		}
	}
	return nil
}

// describe names a damaged record. What the record holds as its ID can be any part
// of it, even a secret one, unless the index has the same ID.
func (s *snapshot) describe(key []byte, rec stored) string {
	sequence, _ := sequenceOf(key)
	if !leadsTo(s.ids, rec.id, key) {
		return fmt.Sprintf("record %d", sequence)
	}
	return fmt.Sprintf("record %d, ID %q", sequence, rec.id)
}

// Close waits for the accepted writes and for running reads, and closes the
// file. A check that runs is canceled. After Close every method returns
// [relayer.ErrUnavailable]. If a backup still runs after a second, Close returns
// an error, and the backup fails. Closing again returns the same result.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.cancelWork()
		s.queue.Close()
		s.writing.Wait()
		s.writeLock <- struct{}{} // a caller can still be committing
		defer func() { <-s.writeLock }()
		s.changes.Close(errClosed)
		s.closed = true
		if err := s.closeAll(); err != nil {
			s.closeErr = fmt.Errorf("bolt: close %s: %w", s.path, err)
		}
	})
	return s.closeErr
}

// closeAll closes everything that is open.
func (s *Store) closeAll() error {
	err := s.identity.Close()
	if s.engine == nil {
		return err
	}
	if !s.drain(context.Background()) {
		s.publish(nil)
		return errors.Join(err, errInterrupted, s.engine.abandon())
	}
	return errors.Join(err, s.engine.close())
}

func sequenceOf(value []byte) (uint64, bool) {
	if len(value) != numberSize {
		return 0, false
	}
	return binary.BigEndian.Uint64(value), true
}
