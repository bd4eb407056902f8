package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-relayer/relayer/store/bolt"
)

// backupConfig holds the flags --backup, --backup-every and --backup-keep.
type backupConfig struct {
	directory string // empty: no backups
	every     time.Duration
	keep      int
}

var defaultBackups = backupConfig{every: time.Hour, keep: 24}

func (c backupConfig) check(database string) error {
	switch {
	case c.directory == "" && c != defaultBackups:
		return errors.New("--backup-every and --backup-keep require --backup, the directory for backups")
	case c.directory == "":
		return nil
	case database == inMemory || isPostgres(database):
		return errors.New("--backup requires a file in --db: use pg_dump for PostgreSQL")
	case c.every < time.Second:
		return errors.New("--backup-every must be at least 1s")
	case c.keep < 1:
		return errors.New("--backup-keep must be at least 1")
	case !isFilePath(c.directory):
		return fmt.Errorf("--backup must be a directory: %s", filePathRule)
	}
	return nil
}

// backups writes backups of a store to a directory and removes old ones.
type backups struct {
	backupConfig
	source  *bolt.Store
	prefix  string // of the file names
	logger  *slog.Logger
	metrics backupMetrics
}

// run writes a backup at every interval until ctx is done. The first interval begins with the
// last backup, so that frequent restarts neither prevent nor multiply backups.
func (b *backups) run(ctx context.Context, last time.Time) {
	if !last.IsZero() {
		b.metrics.lastSuccess.Set(float64(last.UnixMilli()) / 1000)
	}
	for wait := time.Until(last.Add(b.every)); ; wait = b.every {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
			b.backUp(ctx, time.Now())
		}
	}
}

// backUp writes a backup, and reports the outcome in the log and the metrics.
func (b *backups) backUp(ctx context.Context, began time.Time) {
	path := filepath.Join(b.directory, b.prefix+began.UTC().Format(backupTime))
	err := checkNotWritable(b.directory)
	if err == nil {
		err = b.source.Backup(ctx, path)
	}
	if ctx.Err() != nil {
		return // the server is stopping
	}
	if err != nil {
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
	if _, err := b.prune(began); err != nil {
		b.logger.Error("old backups not removed", "error", err.Error())
	}
}

// backupTime is the part of a file name after the prefix. The order of the names is
// the order of the times.
const backupTime = "20060102T150405.000Z"

// prune removes all but the newest backups, and returns the time of the newest. Backups with a
// later time than now, of a clock that was wrong, are neither counted nor removed.
func (b *backups) prune(now time.Time) (newest time.Time, err error) {
	entries, err := os.ReadDir(b.directory)
	var names []string
	for _, entry := range entries {
		text, isOurs := strings.CutPrefix(entry.Name(), b.prefix)
		written, notTime := time.Parse(backupTime, text)
		if isOurs && notTime == nil && !written.After(now) {
			names, newest = append(names, entry.Name()), written
		}
	}
	for _, name := range names[:max(0, len(names)-b.keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(b.directory, name)))
	}
	return newest, err
}
