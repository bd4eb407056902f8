package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

// Store is a [relayer.Store] in one file. Make one with [Open], and call
// [Store.Close] when done with it. All methods are safe for concurrent use.
type Store struct {
	path   string
	opts   options
	db     atomic.Pointer[engine]
	views  atomic.Pointer[views]
	places atomic.Pointer[places]
	queue  *queue

	// turn is held by the one who writes, checks, recovers or closes: a send
	// takes it, and a receive gives it back.
	turn chan struct{}

	// Of the one whose turn it is.
	suspect bool
	stuck   bool
	unsound bool
	closed  bool
	pin     *os.File
	commit  func(*bbolt.Tx) error

	writing  sync.WaitGroup
	close    sync.Once
	closeErr error
}

var _ relayer.Store = (*Store)(nil)

// Create adds a record and returns it with its revision once it is synced. It
// returns [relayer.ErrExists] where the id is taken and [relayer.ErrClaimed]
// where another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	value := encode(rec)
	err := s.queue.do(ctx, len(value.value), func(c *change) (err error) {
		rec.Revision, err = c.create(rec.ID, rec.Claim, value)
		return err
	})
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Update replaces the record that stands at rec.Revision and returns it with
// its new revision once it is synced. It returns [relayer.ErrNotFound],
// [relayer.ErrConflict] where it stands at another revision, and
// [relayer.ErrClaimed] where another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if err := keepsLimits(rec); err != nil {
		return relayer.Record{}, err
	}
	value := encode(rec)
	err := s.queue.do(ctx, len(value.value), func(c *change) (err error) {
		rec.Revision, err = c.update(rec.ID, rec.Revision, rec.Claim, value)
		return err
	})
	if err != nil {
		return relayer.Record{}, err
	}
	return rec, nil
}

// Delete removes the record that stands at the revision. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] where it stands at another.
func (s *Store) Delete(ctx context.Context, id string, revision uint64) error {
	return s.queue.do(ctx, 0, func(c *change) error { return c.delete(id, revision) })
}

// Get returns the record, or [relayer.ErrNotFound].
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	var rec relayer.Record
	err := s.read(ctx, func(tx *bbolt.Tx) error {
		found, err := s.lookup(tx, id)
		if err != nil {
			return err
		}
		rec = found.detached(id)
		return nil
	})
	return rec, err
}

// List returns up to limit records from offset on, oldest first, and the number
// of all.
func (s *Store) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	var recs []relayer.Record
	var total int
	err := s.read(ctx, func(tx *bbolt.Tx) error {
		alive, err := s.liveIn(tx)
		if err != nil {
			return damagedRead(err)
		}
		total = alive.total()
		page := make([]stored, 0, onPage(total, offset, limit))
		err = walkPage(tx, alive, offset, limit, func(rec stored) { page = append(page, rec) })
		recs = detachedAll(page)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return recs, total, nil
}

// onPage is how many of all records are on a page: a limit can be far more than
// there are.
func onPage(total, offset, limit int) int {
	if offset < 0 || offset >= total {
		return 0
	}
	return max(0, min(limit, total-offset))
}

// walkPage visits up to limit records from offset on, oldest first.
func walkPage(tx *bbolt.Tx, alive live, offset, limit int, visit func(stored)) error {
	left := onPage(alive.total(), offset, limit)
	if left == 0 {
		return nil
	}
	cursor := tx.Bucket(relayersBucket).Cursor()
	key, value, err := seekOffset(tx, cursor, alive, offset)
	for ; left > 0 && err == nil; left-- {
		if key == nil {
			return damagedRead(errors.New("fewer records than the blocks say"))
		}
		var rec stored
		if rec, err = decode(value); err == nil {
			visit(rec)
			key, value = cursor.Next()
		}
	}
	if err != nil {
		return damagedRead(err)
	}
	return nil
}

// seekOffset moves the cursor to the record at an offset that is below the
// total.
func seekOffset(tx *bbolt.Tx, cursor *bbolt.Cursor, alive live, offset int) (key, value []byte, err error) {
	number, rank := alive.find(offset)
	bitmap := tx.Bucket(blocksBucket).Get(numberKey(number))
	if len(bitmap) != bitmapSize {
		return nil, nil, errBlocks
	}
	bit, ok := nth(bitmap, rank)
	if !ok {
		return nil, nil, errBlocks
	}
	key, value = cursor.Seek(numberKey(number*blockSize + bit))
	return key, value, nil
}

// read runs a function in a transaction that only reads.
func (s *Store) read(ctx context.Context, run func(*bbolt.Tx) error) error {
	tx, err := s.beginRead(ctx)
	if err != nil {
		return err
	}
	return contained(tx, run, damagedRead)
}

func (s *Store) beginRead(ctx context.Context) (*bbolt.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if tx, err := s.db.Load().Begin(false); err == nil {
		return tx, nil
	}
	return s.beginLate(ctx)
}

// beginLate is for a read that has found no open file. A recovery has let go of
// it, and comes with the next write: so it is asked for with one that writes
// nothing.
func (s *Store) beginLate(ctx context.Context) (*bbolt.Tx, error) {
	asked := s.queue.do(ctx, 0, func(*change) error { return nil })
	tx, err := s.db.Load().Begin(false)
	if err == nil {
		return tx, nil
	}
	if asked != nil && !errors.Is(asked, relayer.ErrOutcomeUnknown) {
		return nil, asked
	}
	return nil, unavailable(err)
}

// Close waits for the writes that were accepted and for the reads that run,
// and closes the file. Whatever comes after it gets [relayer.ErrUnavailable].
// Closing again does nothing and returns the same.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.queue.close()
		s.writing.Wait()
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		s.closed = true
		if s.stuck {
			s.closeErr = fmt.Errorf("bolt: close %s: %w", s.path, errStuck)
			return
		}
		err := s.db.Load().Close()
		if s.pin != nil {
			err = errors.Join(err, s.pin.Close())
		}
		if err != nil {
			s.closeErr = fmt.Errorf("bolt: close %s: %w", s.path, err)
		}
	})
	return s.closeErr
}

func sequenceOf(value []byte) (uint64, bool) {
	if len(value) != numberSize {
		return 0, false
	}
	return binary.BigEndian.Uint64(value), true
}
