package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
)

// checkInterval is the time between two examinations of files.
const checkInterval = time.Second

// versionOf returns a text that changes when a file is replaced, written or gets another mode, and
// whether all files are regular.
func versionOf(paths []string) (version string, isRegular bool) {
	isRegular = true
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			version += fmt.Sprintln(info.ModTime().UnixNano(), info.Size(), info.Mode())
			isRegular = isRegular && info.Mode().IsRegular()
		}
	}
	return version, isRegular
}

// reloading loads the files of a flag, and again after SIGHUP and when one has changed: in a
// container nothing may be able to send a signal. If that fails, load must keep what is in use,
// and the log has a line. If the store is unavailable, it is tried again. Pipes are read once.
func (s *server) reloading(ctx context.Context, flag string, load func(context.Context) error, paths ...string) error {
	used, isRegular := versionOf(paths)
	if err := load(ctx); err != nil || !isRegular {
		return err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	s.onClose(func() { signal.Stop(signals) })
	s.inBackground(ctx, func(ctx context.Context) {
		ticker := time.NewTicker(checkInterval)
		defer ticker.Stop()
		for failure := ""; ; {
			isSignaled := false
			select {
			case <-ctx.Done():
				return
			case <-signals:
				isSignaled = true
			case <-ticker.C:
			}
			version, _ := versionOf(paths)
			if version == used && !isSignaled {
				continue
			}
			err := load(ctx)
			if !errors.Is(err, relayer.ErrUnavailable) {
				used = version
			}
			switch {
			case err == nil:
				failure = ""
				s.logger.Info("file reloaded", "flag", flag)
			case err.Error() != failure || isSignaled:
				failure = err.Error()
				s.logger.Error("file not reloaded: what was read before stays in use", "flag", flag, "error", failure)
			}
		}
	})
	return nil
}
