package bolt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/osfile"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
	"github.com/go-relayer/relayer/store/storeutil"
)

const fileMode = 0o600

// Open opens the file at path, and verifies and reads all of it: some seconds for a million
// relayers. It creates the file if it does not exist, readable by its owner alone. Open succeeds
// with a damaged record whose ID is known: see [Store].
//
// It returns [ErrLocked] if another process, or another Store of this process, has
// the file open and does not close it within a second, and [relayer.ErrUnknownFormat],
// [relayer.ErrNewerFormat] or [relayer.ErrCorrupt] if the file cannot be used. Such a file is not
// changed. If ctx ends while Open waits for the lock or reads the file, Open returns its error.
func Open(ctx context.Context, path string, opts ...Option) (*Store, error) {
	if path == "" {
		return nil, errors.New("bolt: open: the path is empty")
	}
	collected, err := collect(opts)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	s, err := openStore(ctx, path, collected)
	if err != nil {
		return nil, fmt.Errorf("bolt: open %s: %w", path, err)
	}
	return s, nil
}

// openStore makes the path absolute: each write looks it up, and the process may have changed its
// directory by then.
func openStore(ctx context.Context, path string, opts options) (*Store, error) {
	if os.IsPathSeparator(path[len(path)-1]) {
		return nil, fmt.Errorf("%w: it is the name of a directory: choose another path", relayer.ErrUnknownFormat)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // before it creates a file
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		err = createFile(ctx, path, path, table.New(table.Counters{NextSequence: 1, NextRevision: 1}, 0), nil)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file: choose another path", relayer.ErrUnknownFormat)
	}
	s := &Store{
		path:      path,
		opts:      opts,
		writeLock: make(chan struct{}, 1),
		commit:    (*bbolt.Tx).Commit,
	}
	s.queue = storeutil.NewQueue[table.Write](s.writeLock, maxBatchWrites, maxBatchBytes, s.writeBatch)
	s.file, s.engine, err = openEngine(ctx, path, func(file *os.File) (_ pages.Header, err error) {
		s.content, err = load(ctx, file, opts)
		return s.header, err
	})
	if err != nil {
		return nil, err
	}
	s.records = table.NewStore(s.table, s.queue.Do)
	// The process that created the file may have been killed before it synced the
	// directory: a power cut would then remove the name of the file.
	err = osfile.SyncDirectory(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, errors.Join(err, s.engine.close(), closeLocked(s.file))
	}
	removeTempFiles(resolved(path))
	s.closing, s.cancelWork = context.WithCancel(context.Background())
	return s, nil
}

// content is the file after the last commit, and the table of its records.
type content struct {
	info    fs.FileInfo
	header  pages.Header
	state   state
	table   *table.Table
	history history
}

// loader reads a file. On Unix no process writes to it meanwhile.
type loader struct {
	ctx  context.Context
	file *os.File
	opts options

	content
	next           uint64 // lowest sequence number that the next record can have
	records        tally  // that were read
	changes        tally
	damaged        int // records
	damagedChanges int
}

// load verifies that this package created the file and that it is whole, and reads all records.
func load(ctx context.Context, file *os.File, opts options) (content, error) {
	l := &loader{ctx: ctx, file: file, opts: opts}
	err := l.read()
	if errors.Is(err, pages.ErrDamaged) {
		err = corruptFile(err)
	}
	return l.content, err
}

func (l *loader) read() (err error) {
	if l.info, err = l.file.Stat(); err != nil {
		return err
	}
	if l.info.Size() == 0 {
		return fmt.Errorf("%w: it is empty: remove it, or choose another path", relayer.ErrUnknownFormat)
	}
	header, both, err := pages.ReadHeaders(l.file)
	l.header = header
	if errors.Is(err, pages.ErrNoHeader) {
		return fmt.Errorf("%w: choose another path, or %s", relayer.ErrUnknownFormat, restoreRemedy)
	}
	if err != nil {
		return err
	}
	if l.info.Size() < l.header.Size() {
		return corruptFile(fmt.Sprintf("it ends after %d of %d bytes", l.info.Size(), l.header.Size()))
	}
	file := pages.NewFile(l.file, l.header)
	err = l.readState(file)
	if err == nil {
		err = l.readRecords(file)
	}
	if err == nil && !both {
		l.opts.logger.Warn("a header of the file is invalid: the last commit is lost if that header was damaged "+
			"after it was written; a power cut during a commit that was not acknowledged leaves such a header too", "path", l.file.Name())
	}
	return err
}

// readState checks the format before the state: a file of another format has another one.
func (l *loader) readState(file *pages.File) error {
	entries, err := readMeta(file)
	if errors.Is(err, pages.ErrNoBucket) {
		return errUnknownFormat
	}
	if err != nil {
		return err
	}
	if err := checkFormat(entries[formatKey]); err != nil {
		return err
	}
	if l.state, err = decodeState(entries[stateKey]); err != nil {
		return corruptFile(err)
	}
	return nil
}

func (l *loader) readRecords(file *pages.File) error {
	// A damaged total must not reserve more memory than the file can need.
	most := uint64(l.info.Size() / (partsAt + numberSize + sumSize))
	l.table = table.New(l.state.counters, int(min(l.state.records.total, most)))
	l.history = history{of: make(map[string]*changes), keep: l.opts.historyChanges}
	err := file.Entries(recordsBucket, l.add)
	if err == nil {
		err = file.Entries(historyBucket, l.addPast)
	}
	if err == nil {
		err = file.Freelist()
	}
	if err != nil {
		return err
	}
	known := l.state
	l.state.records, l.state.changes = l.records, l.changes
	return cmp.Or(known.records.compare(l.records, l.damaged, "records"),
		known.changes.compare(l.changes, l.damagedChanges, "changes of the history"))
}

func (l *loader) add(key, value []byte) (bool, error) {
	r, ok := decodeEntry(key, value)
	if !ok {
		return false, corruptFile("a record has no ID")
	}
	if r.Sequence < l.next {
		return false, corruptFile(fmt.Sprintf("two records have the number %d", r.Sequence))
	}
	l.next = r.Sequence + 1
	loaded := table.NewRecord(r.Record)
	loaded.Checksum, loaded.IsDamaged = r.Checksum, r.IsDamaged
	if !l.table.Load(loaded) {
		return false, corruptFile(fmt.Sprintf("record %d contradicts others", r.Sequence))
	}
	l.records.add(r.Checksum)
	if r.IsDamaged {
		l.damaged++
		l.opts.logger.Error("a record is damaged: delete it, or "+restoreRemedy, "id", loaded.ID)
	}
	return true, l.ctx.Err()
}

// addPast reads an entry of the history. A damaged one is not served, and counts as too old.
func (l *loader) addPast(key, value []byte) (bool, error) {
	e, p, ok := decodePast(key, value)
	if !ok || p.revision >= l.state.counters.NextRevision {
		return false, corruptFile("a change of the history has no ID, or a wrong revision")
	}
	l.history.add(e.ID, p)
	l.changes.add(p.checksum)
	if p.time == 0 {
		l.damagedChanges++
		l.opts.logger.Error("a change of the history is damaged: it is left out", "id", strings.Clone(e.ID), "revision", p.revision)
	}
	return true, l.ctx.Err()
}
