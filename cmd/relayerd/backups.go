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

	promclient "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// backupConfig holds the flags --backup, --backup-every and --backup-keep.
type backupConfig struct {
	directory string // empty: no backups
	every     time.Duration
	keep      int
}

var defaultBackups = backupConfig{every: time.Hour, keep: 24}

// backups writes backups of a store to a directory and removes old ones.
type backups struct {
	backupConfig
	source            *bolt.Store
	prefix            string // of the file names
	logger            *slog.Logger
	succeeded, failed promclient.Counter
	lastSuccess       promclient.Gauge
}

// startBackups writes a backup at every interval until ctx is done. The first interval begins with the
// last backup, so that frequent restarts neither prevent nor multiply backups.
func (s *server) startBackups(ctx context.Context, source *bolt.Store) error {
	factory := promauto.With(s.metrics)
	total := factory.NewCounterVec(promclient.CounterOpts{Name: "relayerd_backups_total", Help: "Backups by outcome: success or failure."}, []string{"outcome"})
	b := &backups{s.backup, source, filepath.Base(s.database) + ".", s.logger, total.WithLabelValues("success"), total.WithLabelValues("failure"),
		factory.NewGauge(promclient.GaugeOpts{Name: "relayerd_backup_last_success_timestamp_seconds", Help: "Unix time of the last successful backup, or 0."})}
	// It removes no backup yet: after a restore, only old backups may have the history that the
	// file has lost.
	_, last, err := b.list(time.Now())
	if err != nil {
		return fmt.Errorf("--backup: %w", err)
	}
	b.lastSuccess.Set(max(0, float64(last.UnixMilli())/1000)) // 0 without a backup: the zero time is negative
	s.inBackground(ctx, func(ctx context.Context) {
		for wait := time.Until(last.Add(b.every)); sleep(ctx, wait); wait = b.every {
			b.backUp(ctx, time.Now())
		}
	})
	return nil
}

// backUp writes a backup, and logs and counts it unless the server stops.
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
		b.failed.Inc()
		b.logger.Error("backup failed", "error", err.Error())
		return
	}
	b.succeeded.Inc()
	b.lastSuccess.Set(float64(began.UnixMilli()) / 1000)
	b.logger.Info("backup written", "path", path, "took", time.Since(began))
	// A new backup of a damaged file may lack history, which the old ones have.
	err = b.source.Ready(ctx)
	if !errors.Is(err, relayer.ErrCorrupt) {
		err = b.prune(began)
	}
	if err != nil {
		b.logger.Error("old backups not removed", "error", err.Error())
	}
}

// backupTime is the part of a file name after the prefix. The order of the names is
// the order of the times.
const backupTime = "20060102T150405.000Z"

// list returns the names of the backups, oldest first, and the time of the newest. It leaves out
// backups with a later time than now, of a clock that was wrong.
func (b *backups) list(now time.Time) (names []string, newest time.Time, err error) {
	entries, err := os.ReadDir(b.directory)
	for _, entry := range entries {
		text, isOurs := strings.CutPrefix(entry.Name(), b.prefix)
		written, notTime := time.Parse(backupTime, text)
		if isOurs && notTime == nil && !written.After(now) {
			names, newest = append(names, entry.Name()), written
		}
	}
	return names, newest, err
}

// prune keeps the newest b.keep listed backups.
func (b *backups) prune(now time.Time) error {
	names, _, err := b.list(now)
	for _, name := range names[:max(0, len(names)-b.keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(b.directory, name)))
	}
	return err
}
