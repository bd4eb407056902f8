package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// smallDisk returns the directory of a file system of a size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a file system needs privileges: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	return dir
}

// The disk of the file is probed, and not the one of a link to it.
func TestReady_LinkedFile(t *testing.T) {
	small, target := smallDisk(t, "64k"), filepath.Join(t.TempDir(), "relayers.db")
	must(t, open(t, target).Close())
	link := filepath.Join(small, "relayers.db")
	must(t, os.Symlink(target, link))
	store := open(t, link)
	fill(t, filepath.Join(small, "ballast"), 60<<10)
	failCommit(store, 1, func(func() error) error { return errDisk })
	wantCreateUnavailable(t, store)
	must(t, store.Ready(t.Context()))
	must(t, create(t, store, relayer.Record{ID: "after"})())
}

// While the disk is full, a write fails before the file is verified: with a large file, writes and
// checks would wait for seconds otherwise.
func TestWrite_FullDiskIsNotVerified(t *testing.T) {
	dir := smallDisk(t, "12m")
	path, ballast := filepath.Join(dir, "relayers.db"), filepath.Join(dir, "ballast")
	store := open(t, path)
	createAll(t, store, 0, 2000)
	size := int64(len(read(t, path)))
	file, err := os.Create(ballast)
	must(t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 512))
	}
	_ = file.Close()
	refuse := func() {
		t.Helper()
		rec := relayer.Record{ID: "refused", Document: make([]byte, 1<<20)}
		wantError(t, create(t, store, rec)(), relayer.ErrUnavailable)
	}
	refuse()
	before := bytesRead(t)
	for range 10 {
		refuse()
	}
	if count := bytesRead(t) - before; count > size {
		t.Errorf("10 writes have read %d bytes of a file of %d", count, size)
	}
	must(t, os.Remove(ballast))
	must(t, create(t, store, relayer.Record{ID: "room"})())
	wantSound(t, store)
}

// bytesRead returns the number of bytes that this process has read with system calls.
func bytesRead(t *testing.T) (count int64) {
	t.Helper()
	must(t, errorOf(fmt.Sscanf(string(read(t, "/proc/self/io")), "rchar: %d", &count)))
	return count
}

// The file system of the test is filled, has room again, and is filled again.
func TestWrite_FullDisk(t *testing.T) {
	dir := smallDisk(t, "5m")
	ballast := filepath.Join(dir, "ballast")
	path := filepath.Join(dir, "relayers.db")
	fill(t, ballast, 2<<20)
	writeToFullDisk(t, path, func(store *bolt.Store) {
		wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable)
	}, func(store *bolt.Store) {
		must(t, os.Remove(ballast))
		must(t, store.Ready(t.Context()))
	})
}

// The error names the path of the caller and not that of the temporary file.
func TestOpen_FullDisk(t *testing.T) {
	dir := smallDisk(t, "8k")
	path := filepath.Join(dir, "relayers.db")
	_, err := bolt.Open(t.Context(), path)
	if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), ".unfinished") {
		t.Errorf("error is %v", err)
	}
	wantNoOtherFiles(t, path)
}

// Only the file is writable, and not its directory: writes succeed, also after a failed commit.
func TestReady_DirectoryNotWritable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relayers.db")
	store := open(t, path)
	failCommit(store, 2, func(func() error) error { return errDisk })
	must(t, create(t, store, relayer.Record{ID: "before"})())
	must(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	if os.Getuid() == 0 {
		const nobody = 65534
		must(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chown(path, nobody, nobody)))
		runtime.LockOSThread() // the user is that of the thread
		defer runtime.UnlockOSThread()
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); failed != 0 {
			t.Fatal(failed)
		}
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the directory is closed to other users: %v", err)
		}
	}
	wantCreateUnavailable(t, store)
	must(t, store.Ready(t.Context()))
	must(t, create(t, store, relayer.Record{ID: "after"})())
	wantIDs(t, store, []string{"before", "after"})
}

func TestOpen_RefusedFileIsClosed(t *testing.T) {
	path := writeTemp(t, edited(t, wholeFile(t), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("state"), make([]byte, 24))
	}))
	wantError(t, errorOf(bolt.Open(t.Context(), path)), relayer.ErrCorrupt)
	wantNoHandle(t, path)
}

// The file is closed too if it changes between its verification and the start of the engine.
func TestOpen_ChangedFileIsClosed(t *testing.T) {
	whole := wholeFile(t)
	path := writeTemp(t, whole)
	damage := func() { flipBits(t, path, whole, newerHeader(whole)+60, 1) }
	wantError(t, bolt.OpenAndCloseEngine(path, func() {}, damage), bolt.ErrLocked)
	wantNoHandle(t, path)
}

func wantNoHandle(t *testing.T, path string) {
	t.Helper()
	handles, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open files cannot be listed: %v", err)
	}
	for _, handle := range handles {
		if name, _ := os.Readlink(filepath.Join("/proc/self/fd", handle.Name())); name == path {
			t.Errorf("the file is still open as handle %s", handle.Name())
		}
	}
}

func fill(t *testing.T, path string, size int) {
	t.Helper()
	write(t, path, make([]byte, size))
}

// limitedRun names the file for the child process of TestWrite_FileSizeLimit.
const limitedRun = "BOLT_TEST_LIMITED_FILE"

// A child process cannot write beyond a few megabytes until the limit is lifted, and then
// cannot write at all.
func TestWrite_FileSizeLimit(t *testing.T) {
	if path := os.Getenv(limitedRun); path != "" {
		limitedChild(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "relayers.db")
	child := exec.Command(os.Args[0], "-test.run=^TestWrite_FileSizeLimit$", "-test.v")
	child.Env = append(os.Environ(), limitedRun+"="+path)
	output, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: TestWrite_FileSizeLimit") {
		t.Fatalf("%v\n%s", err, output)
	}
	store := open(t, path)
	wantSound(t, store)
}

func limitedChild(t *testing.T, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = 6 << 20
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	writeToFullDisk(t, path, func(*bolt.Store) {}, func(*bolt.Store) {
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	})
	store := open(t, path)
	must(t, store.Ready(t.Context()))
	limit.Cur = 2 * uint64(os.Getpagesize()) // the headers
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	wantCreateUnavailable(t, store)
	wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable) // just after a commit failed
	must(t, store.Close())
	limit.Cur = 1
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	wantError(t, errorOf(bolt.Open(t.Context(), path)), syscall.EFBIG)
}

// writeToFullDisk writes until the disk is full and for some time after that, makes room
// and writes again. At every stage, exactly the acknowledged records are in the store.
func writeToFullDisk(t *testing.T, path string, whileFull, makeRoom func(*bolt.Store)) {
	t.Helper()
	store := open(t, path)
	kept := &ledger{docs: make(map[string][]byte)}
	for round := range 10 {
		kept.writeConcurrently(t, store, fmt.Sprintf("full-%d", round), 400)
	}
	if kept.refused == 0 {
		t.Fatal("the disk never got full")
	}
	if len(kept.docs) == 0 {
		t.Fatal("nothing was written before the disk got full")
	}
	t.Logf("%d acknowledged, %d refused", len(kept.docs), kept.refused)
	kept.compare(t, store)
	wantSound(t, store)
	whileFull(store)

	makeRoom(store)
	refused := kept.refused
	kept.writeConcurrently(t, store, "room", 200)
	if kept.refused != refused {
		t.Errorf("%d writes refused with room on the disk", kept.refused-refused)
	}
	kept.compare(t, store)
	wantSound(t, store)
	must(t, store.Close())
	store = open(t, path)
	kept.compare(t, store)
	wantSound(t, store)
	must(t, store.Close())
}

// ledger records which writes were acknowledged.
type ledger struct {
	mu      sync.Mutex
	docs    map[string][]byte
	refused int
}

func (l *ledger) writeConcurrently(t *testing.T, store *bolt.Store, prefix string, n int) {
	t.Helper()
	concurrently(t, 8, 0, n, func(i int) error {
		id := fmt.Sprintf("%s-%d", prefix, i)
		document := bytes.Repeat([]byte("secret"), 200+i)
		_, err := store.Create(t.Context(), relayer.Record{ID: id, Document: document})
		l.record(t, id, document, err)
		return nil
	})
}

func (l *ledger) record(t *testing.T, id string, document []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.docs[id] = document
		return
	}
	l.refused++
	wantError(t, err, relayer.ErrUnavailable)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q shows the document", err)
	}
}

func (l *ledger) compare(t *testing.T, store *bolt.Store) {
	t.Helper()
	recs, total, err := list(t.Context(), store, page(0, len(l.docs)+1))
	if err != nil || total != len(l.docs) || len(recs) != total {
		t.Fatalf("%d records, total %d, %d acknowledged; error %v", len(recs), total, len(l.docs), err)
	}
	for _, rec := range recs {
		if !bytes.Equal(rec.Document, l.docs[rec.ID]) {
			t.Errorf("%s is not as it was acknowledged", rec.ID)
		}
	}
}

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
	must(t, mustGet(bolt.Open(t.Context(), path))(t).Close())
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
