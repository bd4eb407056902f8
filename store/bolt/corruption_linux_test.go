package bolt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

var corruptions = flag.Int("corruptions", 30, "how many random damages TestCorruption_WhileOpen makes")

// corruptedRun makes the test binary the child process of TestCorruption_WhileOpen.
const corruptedRun = "BOLT_TEST_CORRUPTED"

// damage changes a file that a store has open. It returns a description.
type damage func(t *testing.T, path string, rng *rand.Rand) string

// Pages of trees are damaged between two writes: the engine follows a page that is
// damaged in the microseconds between its verification and its use.
var damages = []struct {
	name         string
	do           damage
	pausesWrites bool
}{
	{"truncate", truncateFile, false},
	{"copy a backup over it", copyBackupOver, false},
	{"overwrite headers", overwriteHeaders, false},
	{"unlink", unlinkFile, false},
	{"replace", replaceFile, false},
	{"flip bits in records", flipRecordBits, false},
	{"flip bits in pages", flipPageBits, true},
	{"overwrite a page", overwritePage, true},
}

// If the file is damaged while it is open, the process survives, no call outlasts its
// context, no wrong data is served, and Close returns within 5 seconds. Each damage is
// done in a child process, because a fault that is not caught ends the process.
func TestCorruption_WhileOpen(t *testing.T) {
	if run := os.Getenv(corruptedRun); run != "" {
		kind, seed, _ := strings.Cut(run, ":")
		corruptedChild(t, kind, seed)
		return
	}
	whole := filepath.Join(t.TempDir(), "whole.db")
	write(t, whole, corruptibleFile(t))
	perKind := max(1, *corruptions/len(damages))
	for _, kind := range damages {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for seed := range perKind {
				child := exec.Command(os.Args[0], "-test.run=^TestCorruption_WhileOpen$", "-test.v", "-test.timeout=60s")
				child.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d:%s", corruptedRun, kind.name, seed, whole))
				output, err := child.CombinedOutput()
				if err != nil || !strings.Contains(string(output), "--- PASS: TestCorruption_WhileOpen") {
					t.Fatalf("seed %d: %v\n%s", seed, err, output)
				}
			}
		})
	}
}

func corruptedChild(t *testing.T, kind, rest string) {
	number, whole, _ := strings.Cut(rest, ":")
	seed := mustGet(strconv.ParseUint(number, 10, 64))(t)
	path := writeTemp(t, read(t, whole))
	store, err := bolt.Open(t.Context(), path) // whose Close may fail
	must(t, err)
	load := startLoad(t, store, seed)
	time.Sleep(10 * time.Millisecond)
	var did string
	for _, each := range damages {
		if each.name != kind {
			continue
		}
		if each.pausesWrites {
			load.writes.Lock()
		}
		did = each.do(t, path, rand.New(rand.NewPCG(seed, 1)))
		if each.pausesWrites {
			load.writes.Unlock()
		}
	}
	time.Sleep(50 * time.Millisecond)
	load.stop()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	checkErr := store.Check(ctx)
	closed := inBackground(store.Close)
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Errorf("%s: Close takes longer than 5 seconds", did)
	}
	t.Logf("%s: %d calls, %d failed, check: %v", did, load.calls.Load(), load.failed.Load(), checkErr)
}

// callTimeout is the timeout of each call. A call that takes longer than callLimit has
// outlasted it.
const (
	callTimeout = 2 * time.Second
	callLimit   = callTimeout + 2*time.Second
)

// load reads and writes all records until it is stopped, and verifies what it
// reads.
type load struct {
	t       *testing.T
	store   *bolt.Store
	ended   chan struct{}
	writes  sync.RWMutex // held for reading during a write
	workers sync.WaitGroup
	calls   atomic.Int64
	failed  atomic.Int64
}

func startLoad(t *testing.T, store *bolt.Store, seed uint64) *load {
	l := &load{t: t, store: store, ended: make(chan struct{})}
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(10+worker)))
		l.workers.Go(func() {
			for {
				select {
				case <-l.ended:
					return
				default:
					l.call(worker, rng)
				}
			}
		})
	}
	return l
}

func (l *load) stop() {
	close(l.ended)
	l.workers.Wait()
}

func (l *load) call(worker int, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	start := time.Now()
	err := l.operation(ctx, worker, rng)
	if took := time.Since(start); took > callLimit {
		l.t.Errorf("a call with a context of %v took %v", callTimeout, took)
	}
	l.calls.Add(1)
	if err == nil {
		return
	}
	l.failed.Add(1)
	for _, expected := range []error{relayer.ErrUnavailable, relayer.ErrOutcomeUnknown, relayer.ErrNotFound, relayer.ErrConflict, relayer.ErrExists, context.DeadlineExceeded} {
		if errors.Is(err, expected) {
			return
		}
	}
	l.t.Errorf("error is %v", err)
}

func (l *load) operation(ctx context.Context, worker int, rng *rand.Rand) error {
	i := rng.IntN(corruptibleRecords)
	id := versionedRecord(i, 0).ID
	rec, err := l.store.Get(ctx, id)
	if err != nil {
		return err
	}
	l.verify(rec)
	if rng.IntN(8) == 0 {
		query := relayer.HistoryQuery{ID: id, Limit: 10}
		if rng.IntN(2) == 0 {
			query.ID = ""
		}
		changes, err := l.store.History(ctx, query)
		for _, change := range changes {
			change.Record.Private = []byte("{}") // the history has none
			l.verify(change.Record)
		}
		return err
	}
	if rng.IntN(4) == 0 {
		recs, _, err := list(ctx, l.store, page(i, 10))
		for _, rec := range recs {
			l.verify(rec)
		}
		return err
	}
	l.writes.RLock()
	defer l.writes.RUnlock()
	switch rng.IntN(3) {
	case 0:
		if i%4 != worker {
			return nil // each worker changes its own records
		}
		next := versionedRecord(i, int(rec.Revision))
		next.Revision = rec.Revision
		_, err := l.store.Update(ctx, next)
		return err
	case 1:
		_, err := l.store.Create(ctx, versionedRecord(corruptibleRecords+rng.IntN(1<<30), 0))
		return err
	}
	if i%40 != worker {
		return nil
	}
	return l.store.Delete(ctx, id, rec.Revision, nil)
}

// verify fails unless the record is what was written under its ID.
func (l *load) verify(rec relayer.Record) {
	var i, version int
	if _, err := fmt.Sscanf(string(rec.Document), `{"id":"id-%d","version":%d,`, &i, &version); err != nil {
		l.t.Errorf("wrong document served for %q: %q", rec.ID, rec.Document)
		return
	}
	want := versionedRecord(i, version)
	if rec.ID != want.ID || rec.Claim != want.Claim || string(rec.Document) != string(want.Document) || string(rec.Private) != string(want.Private) {
		l.t.Errorf("wrong record served: %q with %q", rec.ID, rec.Document)
	}
}

func truncateFile(t *testing.T, path string, rng *rand.Rand) string {
	size := rng.Int64N(int64(len(read(t, path))))
	if rng.IntN(3) == 0 {
		size = 0
	}
	must(t, os.Truncate(path, size))
	return fmt.Sprintf("truncated to %d bytes", size)
}

// copyBackupOver does what cp does: it truncates the file and writes another
// store into it.
func copyBackupOver(t *testing.T, path string, rng *rand.Rand) string {
	backup := filepath.Join(t.TempDir(), "backup.db")
	store := open(t, backup)
	records := rng.IntN(2000)
	createAll(t, store, 100_000, 100_000+records)
	must(t, store.Close())
	write(t, path, read(t, backup))
	return fmt.Sprintf("overwritten with a backup of %d records", records)
}

func overwriteHeaders(t *testing.T, path string, rng *rand.Rand) string {
	noise := make([]byte, 2*os.Getpagesize())
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	overwrite(t, path, 0, noise)
	return "overwrote both headers"
}

func unlinkFile(t *testing.T, path string, _ *rand.Rand) string {
	must(t, os.Remove(path))
	return "removed the file"
}

func replaceFile(t *testing.T, path string, _ *rand.Rand) string {
	other := path + ".other"
	store := open(t, other)
	must(t, errors.Join(store.Close(), os.Rename(other, path)))
	return "replaced the file"
}

func flipRecordBits(t *testing.T, path string, rng *rand.Rand) string {
	content := read(t, path)
	flipped := 0
	for range 20 {
		at := rng.IntN(len(content))
		if next := strings.Index(string(content[at:]), `"version":`); next >= 0 {
			at += next + rng.IntN(250)
			overwrite(t, path, int64(at), []byte{content[at] ^ 1<<rng.IntN(8)})
			flipped++
		}
	}
	return fmt.Sprintf("flipped %d bits in records", flipped)
}

// flipPageBits flips bits at the front of pages, where their headers and the
// tables of their elements are.
func flipPageBits(t *testing.T, path string, rng *rand.Rand) string {
	content := read(t, path)
	size := os.Getpagesize()
	var text strings.Builder
	for range 10 {
		at := (2+rng.IntN(len(content)/size-2))*size + rng.IntN(200)
		bit := rng.IntN(8)
		overwrite(t, path, int64(at), []byte{content[at] ^ 1<<bit})
		fmt.Fprintf(&text, " page %d byte %d bit %d;", at/size, at%size, bit)
	}
	return "flipped" + text.String()
}

// overwritePage makes all elements of a branch page point to the page itself.
func overwritePage(t *testing.T, path string, rng *rand.Rand) string {
	content := read(t, path)
	size := os.Getpagesize()
	var branches []int
	for at := 2 * size; at < len(content); at += size {
		if kind := binary.NativeEndian.Uint16(content[at+8:]); kind == 1 {
			branches = append(branches, at)
		}
	}
	at := branches[rng.IntN(len(branches))]
	page := content[at : at+size]
	for element := range int(binary.NativeEndian.Uint16(page[10:])) {
		binary.NativeEndian.PutUint64(page[16+16*element+8:], uint64(at/size))
	}
	overwrite(t, path, int64(at), page)
	return fmt.Sprintf("made branch page %d its own child", at/size)
}
