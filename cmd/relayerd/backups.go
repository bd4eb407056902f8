package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"

	"github.com/go-relayer/relayer/store/bolt"
)

// backupConfig holds the flags --backup, --backup-every and --backup-keep.
type backupConfig struct {
	directory string // empty: no backups
	every     time.Duration
	keep      int
}

func (c backupConfig) check(database string) error {
	switch {
	case c.directory == "":
		return nil
	case database == inMemory || isPostgres(database):
		return errors.New("--backup requires a file in --db: use pg_dump for PostgreSQL")
	case c.every < time.Second:
		return errors.New("--backup-every must be at least 1s")
	case c.keep < 1:
		return errors.New("--backup-keep must be at least 1")
	}
	if !isFilePath(c.directory) {
		return fmt.Errorf("--backup must be a directory: %s", filePathRule)
	}
	return nil
}

// lockDirectory checks that this process can create files in the directory, and locks it
// until unlock is called. It does not create the directory, which may be a file system
// that is not mounted.
func (c backupConfig) lockDirectory(database string, logger *slog.Logger) (unlock func(), err error) {
	if c.directory == "" {
		return func() {}, nil
	}
	probe, err := os.CreateTemp(c.directory, "probe")
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("cannot create a file in %s: %w", c.directory, failed.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("--backup: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("--backup: %w", err)
	}
	warnIfReadable(logger, "backup directory", c.directory)
	unlock, err = c.lock(database, logger)
	if err != nil {
		return nil, fmt.Errorf("--backup: %w", err)
	}
	return unlock, nil
}

// lock excludes the server of another database with the same file name: both would
// remove backups of the other. The lock file contains the path of the database.
func (c backupConfig) lock(database string, logger *slog.Logger) (unlock func(), err error) {
	database, err = filepath.Abs(database)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.directory, filepath.Base(database)+".lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(file)
	if err != nil {
		logger.Warn("backup directory not locked: no other server may use it", "error", err.Error())
	}
	owner, err := io.ReadAll(file)
	if err == nil && taken {
		err = fmt.Errorf("%s is in use by the server of %s: use another directory", c.directory, owner)
	}
	if err == nil && string(owner) != database {
		if len(owner) > 0 {
			logger.Warn("the backup directory contains backups of another database, and will lose them: use another directory, unless this is the same database at a new path",
				"directory", c.directory, "other", string(owner), "database", database)
		}
		_, err = file.WriteAt([]byte(database), 0)
		err = errors.Join(err, file.Truncate(int64(len(database))))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// backups writes backups of a store to a directory and removes old ones.
type backups struct {
	backupConfig
	source  *bolt.Store
	prefix  string // of the file names
	logger  *slog.Logger
	metrics backupMetrics
}

func newBackups(c config, source *bolt.Store, registry promclient.Registerer, logger *slog.Logger) *backups {
	return &backups{
		backupConfig: c.backup,
		source:       source,
		prefix:       filepath.Base(c.database) + ".",
		logger:       logger,
		metrics:      newBackupMetrics(registry),
	}
}

// prepare removes what a crash left behind, and returns the wait until the first backup.
func (b *backups) prepare() (wait time.Duration, err error) {
	if err := b.removeTempFiles(); err != nil {
		return 0, err
	}
	names, err := b.names()
	return b.untilDue(names), err
}

// run writes a backup after the wait, then at every interval, and at every request, until
// ctx is done.
func (b *backups) run(ctx context.Context, wait time.Duration, requests <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-requests:
		}
		b.backUp(ctx)
		wait = b.every
	}
}

// untilDue returns the wait until the first backup. It counts from the last backup
// of an earlier run, so that frequent restarts neither prevent nor multiply backups.
func (b *backups) untilDue(names []string) time.Duration {
	if len(names) == 0 {
		return 0
	}
	last, _ := b.writtenAt(names[len(names)-1])
	b.metrics.lastSuccess.Set(float64(last.UnixMilli()) / 1000)
	return min(b.every, max(0, time.Until(last.Add(b.every))))
}

// backUp writes a backup, and reports the outcome in the log and the metrics.
func (b *backups) backUp(ctx context.Context) {
	began := time.Now()
	name := b.prefix + began.UTC().Format(backupTime)
	path := filepath.Join(b.directory, name)
	err := backUpTo(ctx, b.source, path)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		b.logger.Info("backup canceled: the server is stopping")
		return
	default:
		b.metrics.total.WithLabelValues("failure").Inc()
		b.logger.Error("backup failed", "error", err.Error())
		return
	}
	took, size := time.Since(began), fileSize(path)
	b.metrics.total.WithLabelValues("success").Inc()
	b.metrics.duration.Set(took.Seconds())
	b.metrics.size.Set(size)
	b.metrics.lastSuccess.Set(float64(began.UnixMilli()) / 1000)
	b.logger.Info("backup written", "path", path, "bytes", int64(size), "took", took)
	if err := b.prune(name); err != nil {
		b.logger.Error("old backups not removed", "error", err.Error())
	}
}

// prune removes the oldest backups, and never the one written last: the clock may
// have been set back.
func (b *backups) prune(written string) error {
	names, err := b.names()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == written })
	for _, name := range names[:max(0, len(names)+1-b.keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(b.directory, name)))
	}
	return err
}

// backupTime is the part of a file name after the prefix. The order of the names is
// the order of the times.
const backupTime = "20060102T150405.000Z"

// writtenAt returns the time in the name of a backup.
func (b *backups) writtenAt(name string) (time.Time, bool) {
	text, ok := strings.CutPrefix(name, b.prefix)
	if !ok {
		return time.Time{}, false
	}
	written, err := time.Parse(backupTime, text)
	return written, err == nil
}

// names returns the names of all backups, oldest first.
func (b *backups) names() (names []string, err error) {
	entries, err := os.ReadDir(b.directory)
	for _, entry := range entries {
		if _, ok := b.writtenAt(entry.Name()); ok {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// tempSuffix follows the name of a file that bolt has not completed.
const tempSuffix = ".tmp"

// removeTempFiles removes incomplete backups that a crash left behind.
func (b *backups) removeTempFiles() error {
	entries, err := os.ReadDir(b.directory)
	for _, entry := range entries {
		end := strings.LastIndex(entry.Name(), tempSuffix)
		if end < 0 {
			continue
		}
		if _, ok := b.writtenAt(entry.Name()[:end]); ok {
			err = errors.Join(err, os.Remove(filepath.Join(b.directory, entry.Name())))
		}
	}
	return err
}
