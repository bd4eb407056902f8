package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// content is what a file holds after a commit.
type content struct {
	header pages.Header
	state  state
	table  *table.Table
}

// loadFile locks the file against writers, verifies that this package created it and that
// it is whole, and reads all records. It changes nothing.
func loadFile(ctx context.Context, path string, logger *slog.Logger) (*content, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: it is not a regular file: choose another path", relayer.ErrUnknownFormat)
	}
	if info.Size() == 0 {
		return nil, nil, fmt.Errorf("%w: it is empty: remove it, or choose another path", relayer.ErrUnknownFormat)
	}
	e, err := openEngine(path, readOptions(), nil)
	if err != nil {
		return nil, nil, inspectionError(err)
	}
	defer func() { _ = e.close() }()
	if info, err = e.file.Stat(); err != nil {
		return nil, nil, err
	}
	loaded, err := (&loader{ctx: ctx, file: e.file, size: info.Size(), logger: logger}).load()
	return loaded, info, err
}

// inspectionError separates a damaged file from one that is no database, and from one
// that the operating system cannot open now.
func inspectionError(err error) error {
	_, isOfSystem := errors.AsType[syscall.Errno](err)
	switch {
	case isOfSystem, errors.Is(err, ErrLocked), errors.Is(err, errReplaced):
		return err
	case errors.Is(err, berrors.ErrChecksum), errors.Is(err, errPage):
		return corruptFile(err)
	}
	return fmt.Errorf("%w: %v: choose another path, or %s", relayer.ErrUnknownFormat, err, restoreRemedy)
}

// Files with more relayers than this report the progress of their load.
const (
	longLoad         = 100_000
	progressInterval = time.Second
)

type loader struct {
	ctx    context.Context
	file   *os.File
	size   int64
	logger *slog.Logger

	content
	sum      uint64
	damaged  int
	reported time.Time
}

func (l *loader) load() (*content, error) {
	err := l.read()
	switch {
	case err == nil:
		return &l.content, nil
	case errors.Is(err, pages.ErrDamaged), errors.Is(err, pages.ErrNoHeader):
		return nil, corruptFile(err)
	}
	return nil, err
}

func (l *loader) read() (err error) {
	if l.header, _, err = pages.ReadHeaders(l.file); err != nil {
		return err
	}
	if l.size < l.header.Size() {
		return corruptFile(fmt.Sprintf("it ends after %d of %d bytes", l.size, l.header.Size()))
	}
	file := pages.NewFile(l.file, l.header)
	trees, err := file.Trees()
	if err != nil {
		return err
	}
	walk := file.NewWalk()
	if err := l.readMeta(walk, trees); err != nil {
		return err
	}
	records, found := trees[recordsBucket]
	if !found {
		return corruptFile(fmt.Sprintf("bucket %s is missing", recordsBucket))
	}
	if err := l.readRecords(walk, records); err != nil {
		return err
	}
	return walk.Freelist()
}

// readMeta reads the format before the state: a file of another format has another one.
func (l *loader) readMeta(walk *pages.Walk, trees map[string]pages.Tree) error {
	meta, found := trees[metaBucket]
	if !found {
		return unknownFormat()
	}
	entries := make(map[string][]byte)
	err := walk.Entries(meta, nil, func(key, value []byte) (bool, error) {
		entries[string(key)] = append([]byte(nil), value...)
		return true, nil
	})
	if err != nil {
		return err
	}
	if err := checkFormat(entries[string(formatKey)]); err != nil {
		return err
	}
	if l.state, err = decodeState(entries[string(stateKey)]); err != nil {
		return corruptFile(err)
	}
	return nil
}

func (l *loader) readRecords(walk *pages.Walk, records pages.Tree) error {
	// A damaged total must not reserve more memory than the file can need.
	l.table = table.New(int(min(l.state.total, uint64(l.size/(partsAt+sequenceSize)))))
	l.table.SetCounters(l.state.counters)
	l.reported = time.Now()
	if err := walk.Entries(records, nil, l.add); err != nil {
		return err
	}
	if got := l.table.Len(); uint64(got) != l.state.total {
		return corruptFile(fmt.Sprintf("it has %d of %d records", got, l.state.total))
	}
	if l.sum != l.state.sum && l.damaged == 0 {
		return corruptFile("records are missing or are old versions")
	}
	l.state.correction = l.sum - l.state.sum
	l.report(l.table.Len())
	return nil
}

func (l *loader) add(key, value []byte) (bool, error) {
	r, ok := decodeRecord(key, value)
	if !ok {
		return false, corruptFile("a record has no ID")
	}
	if !l.table.Load(r) {
		return false, corruptFile(fmt.Sprintf("record %d contradicts others", r.Sequence()))
	}
	l.sum += uint64(r.Checksum)
	if r.IsDamaged() {
		l.damaged++
		l.logger.Error("a record is damaged: delete it, or restore the file from a backup", "id", r.ID())
	}
	if done := l.table.Len(); done%1024 == 0 {
		if time.Since(l.reported) >= progressInterval {
			l.report(done)
		}
		return true, l.ctx.Err()
	}
	return true, nil
}

func (l *loader) report(done int) {
	if l.state.total > longLoad {
		l.reported = time.Now()
		l.logger.Info("loading relayers", "done", done, "total", l.state.total)
	}
}
