package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
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

// reloading returns what load reads from the files of a flag. It is loaded again after SIGHUP and when
// a file has changed: in a container nothing may be able to send a signal. If that fails, the log has a
// line, and what was loaded stays in use. If the store is unavailable, or a file cannot be read, it is
// tried again. Pipes are read once.
func reloading[T any](ctx context.Context, s *server, flag string, load func(context.Context) (T, error), paths ...string) (*atomic.Pointer[T], error) {
	var current atomic.Pointer[T]
	used, isRegular := versionOf(paths)
	first, err := load(ctx)
	if current.Store(&first); err != nil || !isRegular {
		return &current, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	s.onClose(func() { signal.Stop(signals) })
	// While the server stops, its requests go on.
	s.inBackground(context.WithoutCancel(ctx), func(ctx context.Context) {
		for failure := ""; ; {
			isSignaled := false
			select {
			case <-ctx.Done():
				return
			case <-signals:
				isSignaled = true
			case <-time.After(checkInterval):
			}
			version, isRegular := versionOf(paths)
			if version == used && !isSignaled {
				failure = "" // the file is back: its next failure is another one
				continue
			}
			next, err := *new(T), errors.New("it is no longer a regular file") // opening a pipe could wait for ever
			if isRegular {
				next, err = load(ctx)
			}
			// The cause can pass without another version: another owner, too many open files.
			_, isUnread := errors.AsType[*fs.PathError](err)
			if !errors.Is(err, relayer.ErrUnavailable) && !isUnread {
				used = version
			}
			if err == nil {
				current.Store(&next)
				failure = ""
				s.logger.Info("file reloaded", "flag", flag)
			} else if err.Error() != failure || isSignaled {
				failure = err.Error()
				s.logger.Error("file not reloaded: what was read before stays in use", "flag", flag, "error", failure)
			}
		}
	})
	return &current, nil
}

const newFileHint = "name an existing file, and for a new one an existing directory"

// fileError adds the flag to an error about a file, and to some errors what to do.
func fileError(flag string, err error, ifMissing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bolt.ErrLocked):
		return fmt.Errorf("%s: %w: stop the server that has it open", flag, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: move it to another name first", flag, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: %s", flag, err, ifMissing)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// isFilePath rejects every path that could be a malformed connection string, so
// that errors may contain the path.
func isFilePath(path string) bool {
	volume := filepath.VolumeName(path) // on Windows it can be a host with user information
	return !strings.Contains(volume, "@") && !strings.ContainsAny(path[len(volume):], "@=:")
}

func checkFile(flag, path string) error {
	if !isFilePath(path) {
		return fmt.Errorf("%s must be a file: %s", flag, filePathRule)
	}
	return nil
}

// readFile reads the file of a flag. If it is missing, the error says what to do.
func readFile(flag, path, ifMissing string) ([]byte, error) {
	if err := checkFile(flag, path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	return data, fileError(flag, err, ifMissing)
}

// warnIfReadable logs a warning if users outside of its group may access a file or directory with
// secrets. A database may have full RPC URLs.
func warnIfReadable(logger *slog.Logger, what, path string) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o007 != 0 && runtime.GOOS != "windows" {
		logger.Warn("other users can read the "+what+": run chmod o-rwx", "path", path, "mode", info.Mode().Perm().String())
	}
}

// checkNotWritable returns an error if every user can write a file or directory.
func checkNotWritable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o002 == 0 || runtime.GOOS == "windows" {
		return err
	}
	return fmt.Errorf("other users can write %s, which has the mode %#o: run chmod o-w", path, info.Mode().Perm())
}
