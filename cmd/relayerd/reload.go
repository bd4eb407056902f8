package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
)

// checkInterval is the time between two examinations of files.
const checkInterval = time.Second

// fileVersion changes when a file is replaced or written.
type fileVersion struct {
	modified  time.Time
	size      int64
	isRegular bool
}

// versionsOf returns the zero version of a file that cannot be examined.
func versionsOf(paths []string) []fileVersion {
	versions := make([]fileVersion, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			versions[i] = fileVersion{info.ModTime(), info.Size(), info.Mode().IsRegular()}
		}
	}
	return versions
}

// reloading loads the files of a flag, and again after SIGHUP and when one has changed: in a
// container nothing may be able to send a signal. If that fails, load must keep what is in use,
// and the log has a line. If the store is unavailable, it is tried again. Pipes are read once.
func (s *server) reloading(ctx context.Context, flag string, load func(context.Context) error, paths ...string) error {
	versions := versionsOf(paths)
	if err := load(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(versions, func(v fileVersion) bool { return !v.isRegular }) {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	s.onClose(func() { signal.Stop(signals) })
	s.inBackground(ctx, func(ctx context.Context) {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for isRetry := false; ; {
			isSignaled := false
			select {
			case <-ctx.Done():
				return
			case <-signals:
				isSignaled = true
			case <-ticker.C:
			}
			before := versions
			versions = versionsOf(paths)
			if !isSignaled && !isRetry && slices.Equal(versions, before) {
				continue
			}
			err := load(ctx)
			switch {
			case err == nil:
				s.logger.Info("file reloaded", "flag", flag)
			case !isRetry || isSignaled:
				s.logger.Error("file not reloaded: what was read before stays in use", "flag", flag, "error", err.Error())
			}
			isRetry = errors.Is(err, relayer.ErrUnavailable)
		}
	})
	return nil
}
