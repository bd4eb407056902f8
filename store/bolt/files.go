package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer/internal/osfile"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// Backup writes the current records to a new file, which appears at path when it is complete and
// durable. Records are written from memory: they are consistent, and sound even if the file of
// the store is not. The history is copied from the file. Only a write and History wait, while the
// next 256 changes of the history are read. Until Backup returns, writes delete no changes of the
// history. Copy or upload the new file, and never the file of a running store.
//
// It returns [fs.ErrExist] if the path is taken, the error of ctx if ctx ends, and
// [relayer.ErrUnavailable] if the store is closed. If a record was damaged when the file was
// opened, the error matches [relayer.ErrCorrupt] and names it. An error leaves no partial file
// at path.
func (s *Store) Backup(ctx context.Context, path string) error {
	s.backups.Add(1)
	defer s.backups.Add(-1)
	// The temporary file has the name of the store: a later backup to the directory has another
	// name, and removes what a killed process has left.
	temp := filepath.Join(filepath.Dir(path), filepath.Base(s.path))
	removeTempFiles(temp)
	if err := createFile(ctx, path, temp, s.table, s.copyReadable); err != nil {
		return fmt.Errorf("bolt: back up to %s: %w", path, err)
	}
	return nil
}

// Compact checks a file that no server has open, replaces it by a compact one, and returns the
// sizes of both in bytes. It keeps records, order and revisions, and the owner and the mode of
// the file. The directory needs room for the new file. Its errors are the errors of [Open],
// [Store.Check] and [Store.Backup], and [fs.ErrNotExist] if there is no file.
func Compact(ctx context.Context, path string, options ...Option) (before, after int64, err error) {
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, 0, err
	}
	s, err := Open(ctx, path, options...)
	if err != nil {
		return 0, 0, err
	}
	// The lock is held until the new file has its name.
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Check(ctx); err != nil {
		return 0, 0, err
	}
	temp, err := writeTempFile(ctx, path, s.table, s.copyHistory)
	if err == nil {
		defer os.Remove(temp)
		err = osfile.CopyOwner(temp, s.info)
	}
	if err == nil {
		err = cmp.Or(os.Rename(temp, path), osfile.SyncDirectory(filepath.Dir(path)))
	}
	if err != nil {
		return 0, 0, fmt.Errorf("bolt: compact %s: %w", path, withoutPath(err))
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return s.info.Size(), info.Size(), nil
}

// copyHistory passes the entries of a history before a revision to put. It is nil without a history.
type copyHistory func(ctx context.Context, before uint64, put func([]entry) error) error

// createFile creates a file with the records of a table and a history. It writes and syncs a temporary
// file, whose name begins with temp, and then links it to path, so that no crash leaves half a file
// at path. If the path is taken, it returns [fs.ErrExist] and changes nothing.
func createFile(ctx context.Context, path, temp string, from *table.Table, history copyHistory) error {
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	temp, err := writeTempFile(ctx, temp, from, history)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links leaves a short gap between the test and the rename.
		if _, err := os.Lstat(path); err == nil {
			return fs.ErrExist
		}
		err = os.Rename(temp, path)
	}
	return cmp.Or(withoutPath(err), osfile.SyncDirectory(filepath.Dir(path)))
}

const (
	// tempSuffix is followed by a number. A start removes such files: it must not be a usual name.
	tempSuffix = ".unfinished-"

	// tempAge is the age from which a temporary file is a leftover.
	tempAge = time.Hour

	// tempBatch is the number of bytes after which a transaction is synced, which cannot be
	// canceled.
	tempBatch = 4 << 20
)

// writeTempFile writes and syncs a temporary file whose name begins with path, and returns its name.
func writeTempFile(ctx context.Context, path string, from *table.Table, history copyHistory) (name string, err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tempSuffix+"*")
	if err != nil {
		return "", fmt.Errorf("cannot create a file in %s: %w", filepath.Dir(path), withoutPath(err))
	}
	name = temp.Name()
	records, counters, err := from.Snapshot()
	var written state
	if err == nil {
		written, err = writeAll(ctx, name, records, counters, history)
	}
	if err == nil {
		err = verifyAll(ctx, temp, records, written)
	}
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		_ = os.Remove(name)
		return "", withoutPath(err)
	}
	return name, nil
}

// verifyAll verifies that a file has the state, the records and no other ones, and as many changes
// of the history, and removes what follows its last page.
func verifyAll(ctx context.Context, file *os.File, records []*table.Record, written state) error {
	header, _, err := pages.ReadHeaders(file)
	if err != nil {
		return err
	}
	c := &comparison{ctx: ctx, closing: context.Background(), state: written, want: records}
	if err := c.compareFile(pages.NewFile(file, header)); err != nil {
		return err
	}
	if c.damagedChanges > 0 {
		c.found("the history differs from what was written")
	}
	return errors.Join(errors.Join(c.problems...), file.Truncate(header.Size()))
}

// writeAll writes a history and records to an empty file, and returns its state.
func writeAll(ctx context.Context, name string, records []*table.Record, counters table.Counters, history copyHistory) (now state, err error) {
	now.counters = counters
	for _, r := range records {
		if err := r.Err(); err != nil {
			return now, err
		}
		now.records.add(r.Checksum)
	}
	db, err := bbolt.Open(name, fileMode, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		return now, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte(recordsBucket))
		_, historyErr := tx.CreateBucket([]byte(historyBucket))
		return cmp.Or(err, historyErr)
	})
	if err == nil && history != nil {
		now.changes, err = writeHistory(ctx, db, counters.NextRevision, history)
	}
	for len(records) > 0 && err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte(recordsBucket))
			bucket.FillPercent = appendFill
			for size := 0; size < tempBatch && len(records) > 0; records = records[1:] {
				size += records[0].Size()
				if err := bucket.Put(recordKey(records[0]), recordValue(records[0])); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	now.stored = now.encoded()
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			meta, err := tx.CreateBucket([]byte(metaBucket))
			if err != nil {
				return err
			}
			return errors.Join(meta.Put([]byte(formatKey), format()), meta.Put([]byte(stateKey), now.stored))
		})
	}
	return now, err
}

// writeHistory writes tempBatch bytes or more at a time, and returns the tally of all.
func writeHistory(ctx context.Context, db *bbolt.DB, before uint64, history copyHistory) (written tally, err error) {
	var waiting []entry
	size := 0
	put := func(tx *bbolt.Tx) error { return putEntries(tx.Bucket([]byte(historyBucket)), waiting) }
	err = history(ctx, before, func(some []entry) error {
		waiting = append(waiting, some...)
		for _, e := range some {
			written.add(e.checksum)
			size += len(e.value)
		}
		if size < tempBatch {
			return nil
		}
		err := db.Update(put)
		waiting, size = nil, 0
		return err
	})
	if err == nil {
		err = db.Update(put)
	}
	return written, err
}

// withoutPath removes the name of a temporary file from an error.
func withoutPath(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	if failed, ok := errors.AsType[*os.LinkError](err); ok {
		return failed.Err
	}
	return err
}

// removeTempFiles removes the temporary files for a path that crashed processes left behind.
// Errors do not matter.
func removeTempFiles(path string) {
	dir, base := filepath.Split(path)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, entry := range entries {
		number, isTemp := strings.CutPrefix(entry.Name(), base+tempSuffix)
		if _, err := strconv.ParseUint(number, 10, 64); !isTemp || err != nil {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > tempAge {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
