package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/storeutil"
	"github.com/go-relayer/relayer/store/transfer"
)

// A batch is bounded, so many waiting writes do not delay the first of them or share one huge
// transaction.
const (
	maxBatchWrites = 1024
	maxBatchBytes  = 8 << 20
)

// Store is a [relayer.Store] with all records in memory and one file as its durable
// log. It is a [transfer.Importer], [transfer.HistoryImporter] and [transfer.Checker] too. [Open]
// returns one, and [Store.Close] closes it. All methods are safe for concurrent use.
//
// A write returns after its commit is synced, and Watch returns a change after that.
//
// If a record did not match its checksum when the file was opened, reads of it and of its page
// return an error that matches [relayer.ErrCorrupt] and names the ID. It can only be deleted,
// under any revision. Other records stay usable.
//
// A page of one term costs as much as a page of all. For several terms, the cost of List grows
// with the number of records of the rarest element of [relayer.StoreQuery.Terms]. A search reads
// the text of every record that the terms select. Watch has the last changes since the file was
// opened: at most 1,024, and at most 16 MiB.
//
// An import is one transaction. Other writes wait for it, and the changed pages of the file stay
// in memory until it ends: import some thousands of records at a time.
type Store struct {
	records
	path       string
	opts       options
	queue      *storeutil.Queue[table.Write]
	closing    context.Context // ends when Close begins
	cancelWork context.CancelFunc
	backups    atomic.Int32 // the number that run; meanwhile no write prunes the history

	// writeLock is held by the goroutine that uses or closes the file. It guards the fields
	// below, except the table.
	writeLock chan struct{}
	content
	file          *os.File   // stays open and locked across recoveries
	pages         pages.File // of verifyFile
	engine        *engine    // nil if a recovery could not open the file
	inDoubt       *commit    // failed after its header was written
	needsRecovery bool       // a commit failed: recover before the next write
	damage        error      // found in the file: no writes until a check finds none
	probed        time.Time  // when the disk last had room; zero after a failed commit
	commit        func(*bbolt.Tx) error

	closeOnce sync.Once
	closeErr  error
}

// records has the methods that need no more than a table.
type records = table.Store

var (
	_ relayer.Store            = (*Store)(nil)
	_ transfer.Importer        = (*Store)(nil)
	_ transfer.HistoryImporter = (*Store)(nil)
	_ transfer.Checker         = (*Store)(nil)
)

// ImportHistory implements [transfer.HistoryImporter]. The error matches [errors.ErrUnsupported] if
// the store retains no history.
func (s *Store) ImportHistory(ctx context.Context, changes []relayer.RecordChange) error {
	if s.opts.historyChanges == 0 {
		return errNoHistory
	}
	return s.records.ImportHistory(ctx, changes)
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

// Close waits for the accepted writes and closes the file. A running check is canceled. So is a
// running backup, unless it has read all of the history: then it completes. After Close reads and
// writes return [relayer.ErrUnavailable]. Closing again returns the same result.
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
// the file open and did not close it within a second.
var ErrLocked = errors.New("file is in use")

var errInUse = fmt.Errorf("%w: another process, or another Store of this process, has it open", ErrLocked)

var errClosed = fmt.Errorf("%w: the store is closed", relayer.ErrUnavailable)

// unavailable keeps the text of the engine's error and hides its type. [relayer.ErrCorrupt]
// stays.
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
