package bolt_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// A file that cannot be opened for lack of file descriptors is not of an unknown format:
// the file is whole, and the next Open can succeed.
func TestOpen_NoFileDescriptors(t *testing.T) {
	store, path := openTemp(t)
	must(t, store.Close())
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}))
	_, err := bolt.Open(t.Context(), path)
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, syscall.EMFILE) || errors.Is(err, relayer.ErrUnknownFormat) {
		t.Errorf("error %v, want EMFILE", err)
	}
	must(t, open(t, path).Close())
}

// A page that is damaged after its verification makes the engine panic while it opens the
// file. The file stays mapped, but it must not stay locked.
func TestOpen_EnginePanics(t *testing.T) {
	whole := wholeFile(t)
	path := writeTemp(t, whole)
	kind := pageOfKind(t, whole, pageKinds["freelist"]) + 8
	err := bolt.OpenAndCloseEngine(path, func() {}, func() { flipBits(t, path, whole, kind, 0xFF) })
	if err == nil || errors.Is(err, bolt.ErrLocked) {
		t.Fatalf("error %v, want that of a damaged page", err)
	}
	flipBits(t, path, whole, kind, 0)
	store, err := bolt.Open(t.Context(), path)
	must(t, err)
	must(t, store.Close())
}

// A file that another process has open is not read, because that process may be writing it.
func TestOpen_LockedFileNotRead(t *testing.T) {
	store, path := openTemp(t)
	must(t, create(t, store, relayer.Record{ID: "a"})())
	overwrite(t, path, 0, make([]byte, 2*os.Getpagesize()))
	wantError(t, errorOf(bolt.Open(t.Context(), path)), bolt.ErrLocked)
}

// A compaction can replace the file after Open has opened it and before Open has locked it. A
// store of the old file would refuse every write until a restart.
func TestOpen_FileReplacedBeforeLock(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	err := bolt.OpenAndCloseEngine(path, func() {
		if _, _, err := bolt.Compact(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}, func() {})
	if !errors.Is(err, bolt.ErrLocked) {
		t.Errorf("error %v, want %v, after which Open tries again", err, bolt.ErrLocked)
	}
	must(t, bolt.OpenAndCloseEngine(path, func() {}, func() {}))
}

// The file stays open for writes, like on a disk that the kernel has made read-only.
func TestReady_ReadOnlyFileSystem(t *testing.T) {
	directory := t.TempDir()
	store := open(t, filepath.Join(directory, "relayers.db"))
	err := unix.Mount(directory, directory, "", unix.MS_BIND, "")
	if errors.Is(err, unix.EPERM) {
		t.Skip("a mount needs root")
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(directory, unix.MNT_DETACH)) })
	must(t, unix.Mount("", directory, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable)
}
