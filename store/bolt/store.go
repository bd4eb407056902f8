package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// A batch is bounded, so that many waiting writes neither delay the first of them
// nor hold all their bytes in memory at once.
const (
	maxBatchWrites = 1024
	maxBatchBytes  = 8 << 20
)

// Store is a [relayer.Store] with all records in memory and one file as its durable
// log. [Open] returns one, and [Store.Close] closes it. All methods are safe for
// concurrent use.
type Store struct {
	path       string
	opts       options
	queue      *storeutil.Queue[write]
	closing    context.Context // ends when Close begins
	cancelWork context.CancelFunc

	// writeLock is held by the goroutine that writes, checks, recovers or closes.
	// It guards the fields below, except the table.
	writeLock chan struct{}
	content
	file          *os.File   // stays open and locked across recoveries
	engine        *engine    // nil if a recovery could not open the file
	pages         pages.File // for the verification before a write
	inDoubt       *commit    // failed after its header was written
	needsRecovery bool       // a commit failed: recover before the next write
	damage        error      // found in the file: no writes until a check finds none
	probed        time.Time  // when the disk last had room; zero after a failed commit
	commit        func(*bbolt.Tx) error

	closeOnce sync.Once
	closeErr  error
}

// write validates a write and adds it to a batch.
type write func(*table.Batch) error

var (
	_ relayer.Store            = (*Store)(nil)
	_ transfer.Importer        = (*Store)(nil)
	_ transfer.HistoryImporter = (*Store)(nil)
	_ transfer.Checker         = (*Store)(nil)
)

// Create adds a record and returns it with its revision and sequence after the commit is
// synced. It returns [relayer.ErrExists] if the ID is taken, and
// [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*table.Batch).Create)
}

// Update replaces the record if its current revision is rec.Revision, and returns
// it with its new revision after the commit is synced. It returns
// [relayer.ErrNotFound], [relayer.ErrConflict] if the current revision is another
// one, and [relayer.ErrClaimed] if another record holds the claim.
func (s *Store) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	return s.put(ctx, rec, (*table.Batch).Update)
}

// put creates or updates a record and returns it with its revision and sequence.
func (s *Store) put(ctx context.Context, rec relayer.Record, validate func(*table.Batch, *table.Record) error) (relayer.Record, error) {
	if err := storeutil.Check(rec, table.MaxSize); err != nil {
		return relayer.Record{}, err
	}
	r := newRecord(rec)
	if err := s.queue.Do(ctx, r.Size(), func(b *table.Batch) error { return validate(b, r) }); err != nil {
		return relayer.Record{}, err
	}
	rec.Revision, rec.Sequence = r.Revision, r.Sequence
	return rec, nil
}

// Delete removes the record if its current revision is the given one. It returns
// [relayer.ErrNotFound], or [relayer.ErrConflict] if the current revision is
// another one. A damaged record is removed whatever the revision.
func (s *Store) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	return s.queue.Do(ctx, len(note), func(b *table.Batch) error { return b.Delete(id, revision, note) })
}

// Import adds the records after all others, with the given revisions: all of them
// or none, with one sync. It returns [relayer.ErrExists] if an ID is taken or
// occurs twice, and [relayer.ErrClaimed] if a claim is held or occurs twice.
//
// All records are one transaction. Other writes wait for it, and its pages stay
// in memory until it ends: import some thousands of records at a time.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	added := make([]*table.Record, len(records))
	size := 0
	for i, rec := range records {
		if err := table.CheckImport(rec); err != nil {
			return err
		}
		added[i] = newRecord(rec)
		size += added[i].Size()
	}
	return s.queue.Do(ctx, size, func(b *table.Batch) error { return b.Import(added) })
}

// ImportHistory adds changes of another store to the history, in ascending order of their
// revisions: all of them or none, with one sync. It returns [relayer.ErrConflict] if a
// revision is not greater than all before. The error matches [errors.ErrUnsupported] if the
// store retains no history.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	if s.opts.historyChanges == 0 {
		return errNoHistory
	}
	size := 0
	for _, c := range changes {
		size += len(c.Record.Document) + len(c.Record.Note)
	}
	return s.queue.Do(ctx, size, func(b *table.Batch) error { return b.ImportHistory(changes) })
}

// Get returns the record, or [relayer.ErrNotFound]. If the record did not match its
// checksum when the file was opened, the error matches [relayer.ErrCorrupt] and names
// the ID. Such a record can only be deleted. Other records stay usable.
func (s *Store) Get(ctx context.Context, id string) (relayer.Record, error) {
	return s.table.Get(ctx, id)
}

// List returns the selected records of the page, oldest first, the number of all selected
// records, and the position of the feed, in one snapshot. A page of one term costs as much
// as one of all records. For several terms, the cost grows with the number of records that
// have the rarer ones. A search reads the text of every record that the terms select.
func (s *Store) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return s.table.List(ctx, query)
}

// Watch returns the changes in commit order and after each commit is durable, until
// ctx is done: from the call on, or after a position. The store retains the last 1,024
// changes or 16 MiB in memory. It ends with [relayer.ErrGap] for a consumer that is further
// behind, or resumes at an earlier position or one from before the file was opened. After
// Close the sequence ends with [relayer.ErrUnavailable]. It can be ranged over once.
func (s *Store) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return s.table.Watch(ctx, after)
}

// lock acquires the write lock for a call that is not a write.
func (s *Store) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.writeLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing.Done():
		return errClosed
	}
	if s.closing.Err() != nil {
		s.unlock()
		return errClosed
	}
	return nil
}

func (s *Store) unlock() { <-s.writeLock }

// Close waits for the accepted writes and closes the file. A check that runs is canceled, and
// so is a backup that has not read all of the history yet; later, a backup completes. After
// Close every method returns [relayer.ErrUnavailable]. Closing again returns the same result.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.cancelWork()
		s.queue.Close()
		s.writeLock <- struct{}{}
		defer s.unlock()
		s.table.Close(errClosed)
		var err error
		if s.engine != nil {
			err = s.engine.close()
		}
		if err := errors.Join(err, closeLocked(s.file)); err != nil {
			s.closeErr = fmt.Errorf("bolt: close %s: %w", s.path, err)
		}
	})
	return s.closeErr
}

// ErrLocked reports that another process, or another Store of this process, has
// the file open and did not close it within the lock timeout.
var ErrLocked = errors.New("file is in use")

var errInUse = fmt.Errorf("%w: another process, or another Store of this process, has it open", ErrLocked)

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// unavailable keeps the text of the engine's error and hides its type. The type
// of our own errors stays.
func unavailable(cause any) error {
	if err, ok := cause.(error); ok && errors.Is(err, relayer.ErrCorrupt) {
		return fmt.Errorf("%w: %w", relayer.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %v", relayer.ErrUnavailable, cause)
}

// restoreRemedy is what to do about damage.
const restoreRemedy = "restore the file from a backup"

// corruptData returns the error of a read or a write that meets damaged data.
func corruptData(cause error) error {
	return unavailable(corruptFile(cause))
}

// corruptFile returns the error of Open for a damaged file.
func corruptFile(cause any) error {
	return fmt.Errorf("%w: %v: %s", relayer.ErrCorrupt, cause, restoreRemedy)
}
