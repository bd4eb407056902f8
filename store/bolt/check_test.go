package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// A file that was changed while it was closed is refused, or the check finds the record.
func TestCheck_Damage(t *testing.T) {
	whole := wholeFile(t)
	records := func(tx *bbolt.Tx) *bbolt.Bucket { return tx.Bucket([]byte("relayers")) }
	change := func(change func(value []byte)) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			value := bytes.Clone(records(tx).Get(keyOf(7)))
			change(value)
			return records(tx).Put(keyOf(7), value)
		}
	}
	flip := func(at int) func(tx *bbolt.Tx) error {
		return change(func(value []byte) { value[at] ^= 1 })
	}
	setState := func(at int, number uint64) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			value := bytes.Clone(meta.Get([]byte("state")))
			binary.BigEndian.PutUint64(value[at:], number)
			numbers, sum := value[:len(value)-4], value[len(value)-4:]
			binary.BigEndian.PutUint32(sum, crc32.Checksum(numbers, crc32.MakeTable(crc32.Castagnoli)))
			return meta.Put([]byte("state"), value)
		}
	}
	tests := map[string]struct {
		damage func(tx *bbolt.Tx) error
		opens  bool
	}{
		"a changed byte in a record": {change(func(value []byte) { value[len(value)-1] ^= 1 }), true},
		"a changed ID":               {flip(25 + 9), true},
		"a longer ID":                {change(func(value []byte) { value[13] = 60 }), true},
		"a changed revision":         {flip(12), true},
		"a changed checksum":         {flip(4), true},
		"another version":            {change(func(value []byte) { value[0]++ }), true},
		"a short record":             {func(tx *bbolt.Tx) error { return records(tx).Put(keyOf(7), []byte{1}) }, true},
		"another ID in the key": {func(tx *bbolt.Tx) error {
			value := records(tx).Get(keyOf(7))
			other := recordKey(8, "other")
			return errors.Join(records(tx).Put(other, value), records(tx).Delete(keyOf(7)))
		}, true},
		"a record at another position": {func(tx *bbolt.Tx) error {
			value := records(tx).Get(keyOf(299))
			key := keyOf(299)
			key[0] = 1
			return errors.Join(records(tx).Put(key, value), records(tx).Delete(keyOf(299)))
		}, false},
		"a key without an ID": {func(tx *bbolt.Tx) error { return records(tx).Put(keyOf(7)[:8], []byte{1}) }, false},
		"a missing record":    {func(tx *bbolt.Tx) error { return records(tx).Delete(keyOf(7)) }, false},
		"a record too many": {func(tx *bbolt.Tx) error {
			return records(tx).Put(keyOf(300), records(tx).Get(keyOf(7)))
		}, false},
		"a key with the position of the next one": {moveRecord(16, 17), false},
		"a key with the position of the last one": {moveRecord(17, 16), false},
		"an ID twice": {func(tx *bbolt.Tx) error {
			return errors.Join(records(tx).Delete(keyOf(8)), records(tx).Put(recordKey(9, "id-0000007"), []byte{1}))
		}, false},
		"an old version of a record": {func(tx *bbolt.Tx) error {
			return errors.Join(
				records(tx).Delete(keyOf(8)),
				records(tx).Put(recordKey(9, "other"), validValue(t, 9, "other")),
			)
		}, false},
		"a total that is too low":              {setState(16, 299), false},
		"a sequence number that was not given": {setState(0, 7), false},
		"a revision counter that is too low":   {setState(8, 3), false},
		"another sum":                          {setState(24, 3), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := writeTemp(t, edited(t, whole, test.damage))
			store, err := bolt.Open(t.Context(), path)
			if (err == nil) != test.opens {
				t.Fatalf("Open: error is %v", err)
			}
			var listErr error
			if err == nil {
				err = store.Check(t.Context())
				_, _, listErr = list(t.Context(), store, page(0, 300))
			}
			if !errors.Is(err, relayer.ErrCorrupt) {
				t.Fatalf("error is %v, want %v", err, relayer.ErrCorrupt)
			}
			for _, secret := range []string{"document", "private"} {
				if shown := fmt.Sprint(err, listErr); strings.Contains(shown, secret) {
					t.Errorf("errors %q quote what is stored", shown)
				}
			}
		})
	}
}

// moveRecord gives the key of a record the position of another one, which a delete could then remove.
func moveRecord(i, at int) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		records := tx.Bucket([]byte("relayers"))
		value := bytes.Clone(records.Get(keyOf(i)))
		return errors.Join(records.Delete(keyOf(i)), records.Put(recordKey(at+1, numbered(i).ID), value))
	}
}

// keyOf returns the key of a record of wholeFile.
func keyOf(i int) []byte {
	return recordKey(i+1, fmt.Sprintf("id-%07d", i))
}

// recordKey returns the key of a record.
func recordKey(sequence int, id string) []byte {
	key := append(binary.BigEndian.AppendUint64(nil, uint64(sequence)), id...)
	return binary.BigEndian.AppendUint32(key, crc32.Checksum(key, crc32.MakeTable(crc32.Castagnoli)))
}

// validValue returns a sound value for a position, as the store writes it.
func validValue(t *testing.T, sequence int, id string) []byte {
	t.Helper()
	store, path := openTemp(t)
	records := make([]relayer.Record, sequence)
	for i := range records {
		records[i] = relayer.Record{ID: fmt.Sprint(i), Revision: 1}
	}
	records[sequence-1].ID = id
	must(t, errors.Join(store.Import(t.Context(), records), store.Close()))
	var value []byte
	edited(t, read(t, path), func(tx *bbolt.Tx) error {
		value = bytes.Clone(tx.Bucket([]byte("relayers")).Get(recordKey(sequence, id)))
		return nil
	})
	return value
}

// The file gets other records with the transaction ID and the counters of the last commit. Check
// reports each difference once.
func TestCheck_OtherRecords(t *testing.T) {
	whole := wholeFile(t)
	tests := map[string]struct {
		change func(records *bbolt.Bucket) error
		want   string
	}{
		"a missing record":     {func(records *bbolt.Bucket) error { return records.Delete(keyOf(7)) }, `record 8, ID "id-0000007", is not in the file`},
		"without the last one": {func(records *bbolt.Bucket) error { return records.Delete(keyOf(300)) }, `record 301, ID "id-0000300", is not in the file`},
		"a record too many": {func(records *bbolt.Bucket) error {
			return records.Put(keyOf(301), records.Get(keyOf(7)))
		}, "record 302 is in the file and not in memory"},
		"another record": {func(records *bbolt.Bucket) error {
			return records.Put(keyOf(7), records.Get(keyOf(8)))
		}, `record 8, ID "id-0000007", is not the one in memory`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := writeTemp(t, whole)
			synctest.Test(t, func(t *testing.T) {
				store := open(t, path)
				must(t, create(t, store, numbered(300))())
				var state, added []byte
				edited(t, read(t, path), func(tx *bbolt.Tx) error {
					state = bytes.Clone(tx.Bucket([]byte("meta")).Get([]byte("state")))
					added = bytes.Clone(tx.Bucket([]byte("relayers")).Get(keyOf(300)))
					return nil
				})
				overwrite(t, path, 0, edited(t, whole, func(tx *bbolt.Tx) error {
					records := tx.Bucket([]byte("relayers"))
					return errors.Join(tx.Bucket([]byte("meta")).Put([]byte("state"), state), records.Put(keyOf(300), added), test.change(records))
				}))
				err := store.Check(t.Context())
				wantCorrupt(t, "Check", err, test.want)
				if text := fmt.Sprint(err); strings.Count(text, "record ") != 1 {
					t.Errorf("error %q reports other records too", text)
				}
			})
		})
	}
}

// The root page is listed as free: after the next start, a commit would overwrite it.
func TestCheck_FreeRoot(t *testing.T) {
	store, path := openTemp(t)
	for i := range 3 {
		must(t, create(t, store, numbered(i))())
	}
	listAsFree(t, path, rootOf(read(t, path)))
	wantCorrupt(t, "Check", store.Check(t.Context()), "is listed as free")
}

// Without the newer header, the file has the state of the commit before. The next commit
// overwrites the damaged header.
func TestCheck_DamagedHeader(t *testing.T) {
	t.Run("invalid", func(t *testing.T) {
		checkDamagedHeader(t, func(header, _ []byte) { header[60] ^= 1 })
	})
	t.Run("old version", func(t *testing.T) {
		checkDamagedHeader(t, func(header, old []byte) { copy(header, old) })
	})
}

// checkDamagedHeader damages the newer header. Old is what was at its place before.
func checkDamagedHeader(t *testing.T, damage func(header, old []byte)) {
	store, path := openTemp(t)
	before := read(t, path)
	for _, id := range []string{"1", "2", "first", "last"} {
		must(t, create(t, store, relayer.Record{ID: id})())
	}
	must(t, store.Close())
	whole := read(t, path)
	at, size := newerHeader(whole), os.Getpagesize()
	damage(whole[at:at+size], before[at:at+size])
	write(t, path, whole)
	var logged bytes.Buffer
	store = open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	wantIDs(t, store, []string{"1", "2", "first"})
	if text := logged.String(); strings.Count(text, "a header of the file is invalid") != 1 {
		t.Errorf("the log is %q, want the invalid header", text)
	}
	err := store.Check(t.Context())
	if !errors.Is(err, relayer.ErrCorrupt) || !strings.Contains(err.Error(), "the last commit may be lost") {
		t.Errorf("error is %v", err)
	}
	must(t, create(t, store, relayer.Record{ID: "next"})())
	wantIDs(t, store, []string{"1", "2", "first", "next"})
	wantSound(t, store)
	must(t, store.Close())
	logged.Reset()
	if err := open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))).Close(); err != nil || logged.Len() > 0 {
		t.Errorf("error %v, log %q", err, logged.String())
	}
}

// rootOf returns the page of the root of all buckets.
func rootOf(whole []byte) uint64 { return binary.NativeEndian.Uint64(whole[newerHeader(whole)+32:]) }

// listAsFree replaces the first free page in the list of free pages.
func listAsFree(t *testing.T, path string, page uint64) {
	t.Helper()
	whole := read(t, path)
	freelist := int(binary.NativeEndian.Uint64(whole[newerHeader(whole)+48:])) * os.Getpagesize()
	if page == 0 || binary.NativeEndian.Uint16(whole[freelist+10:]) == 0 {
		t.Fatalf("the page is %d, and there may be no free page", page)
	}
	overwrite(t, path, int64(freelist+16), binary.NativeEndian.AppendUint64(nil, page))
}

// newerHeader returns the position of the current header: each header ends in the
// number of its transaction and a checksum.
func newerHeader(whole []byte) int {
	second := os.Getpagesize()
	number := func(header int) uint64 { return binary.NativeEndian.Uint64(whole[header+64:]) }
	if number(second) > number(0) {
		return second
	}
	return 0
}

// A fault while the check reads a page is damage too.
func TestCheck_FileTruncatedMeanwhile(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	store := open(t, path)
	whole := read(t, path)
	ctx := newPausingContext(t)
	checked := inBackground(func() error { return store.Check(ctx) })
	<-ctx.reached
	must(t, os.Truncate(path, int64(2*os.Getpagesize())))
	close(ctx.open)
	wantError(t, <-checked, relayer.ErrCorrupt)
	write(t, path, whole)
	wantError(t, create(t, store, relayer.Record{ID: "new"})(), relayer.ErrCorrupt)
	wantSound(t, store)
	must(t, create(t, store, relayer.Record{ID: "new"})())
}

func TestCheck_ClosedStore(t *testing.T) {
	store, path := openTemp(t)
	_ = store.Close()
	wantError(t, store.Check(t.Context()), relayer.ErrUnavailable)
	wantError(t, store.Backup(t.Context(), path+".copy"), relayer.ErrUnavailable)
}

// Close cancels a running check, and that is not damage.
func TestClose_CheckRunning(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	store := open(t, path)
	ctx := newPausingContext(t)
	checked := inBackground(func() error { return store.Check(ctx) })
	<-ctx.reached
	closed := inBackground(store.Close)
	// The check holds the write lock, so that Ready returns when Close has begun.
	wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable)
	close(ctx.open)
	if err := <-checked; !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("Check: error is %v, want only %v", err, relayer.ErrUnavailable)
	}
	must(t, <-closed)
}

func TestCheck_Canceled(t *testing.T) {
	store, _ := openTemp(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // a select of two channels that are ready is random
		for call, err := range map[string]error{"Check": store.Check(ctx), "Ready": store.Ready(ctx)} {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: error is %v, want %v", call, err, context.Canceled)
			}
		}
	}
}

// endsLater is a context that ends after some calls of Err.
type endsLater struct {
	context.Context
	calls atomic.Int32
}

func (c *endsLater) Err() error {
	if c.calls.Add(1) > 100 {
		return context.Canceled
	}
	return nil
}

func TestCheck_CanceledMeanwhile(t *testing.T) {
	store, _ := openTemp(t)
	createAll(t, store, 0, 300)
	wantError(t, store.Check(&endsLater{Context: t.Context()}), context.Canceled)
}

func TestCheck_CanceledWhileWaiting(t *testing.T) {
	store, g := openHeld(t, relayer.Record{ID: "first"})
	wantCancelable(t, store.Check)
	g.release(t)
}

// pageKinds are the kinds of pages, as the headers of the pages have them.
var pageKinds = map[string]uint16{"branch": 1, "leaf": 2, "header": 4, "freelist": 16}

var mutations = flag.Int("mutations", 150, "how many mutations of a closed file TestOpen_MutatedFile makes")

// mutations of a page, or of some bits. Stale has the pages of an earlier commit.
var mutate = map[string]func(whole, stale []byte, random *rand.Rand) []byte{
	"flip": func(whole, _ []byte, random *rand.Rand) []byte {
		for range 1 + random.IntN(3) {
			at := random.IntN(len(whole))
			if random.IntN(2) == 0 { // in the table of elements
				at = at/os.Getpagesize()*os.Getpagesize() + random.IntN(200)
			}
			whole[at] ^= 1 << random.IntN(8)
		}
		return whole
	},
	"truncate": func(whole, _ []byte, random *rand.Rand) []byte { return whole[:random.IntN(len(whole))] },
	"zero": func(whole, _ []byte, random *rand.Rand) []byte {
		clear(randomPage(whole, random))
		return whole
	},
	"swap": func(whole, _ []byte, random *rand.Rand) []byte {
		one, other := randomPage(whole, random), randomPage(whole, random)
		kept := bytes.Clone(one)
		copy(one, other)
		copy(other, kept)
		return whole
	},
	"stale": func(whole, stale []byte, random *rand.Rand) []byte {
		at := random.IntN(len(stale)/os.Getpagesize()) * os.Getpagesize()
		copy(whole[at:], stale[at:at+os.Getpagesize()])
		return whole
	},
}

func randomPage(whole []byte, random *rand.Rand) []byte {
	at := random.IntN(len(whole)/os.Getpagesize()) * os.Getpagesize()
	return whole[at : at+os.Getpagesize()]
}

// TestOpen_MutatedFile mutates a closed file. Each record and each change is then the right one, or an
// error: a damaged change is logged and left out. So it is after another write and a start. A check
// ends, and finds what is damaged.
func TestOpen_MutatedFile(t *testing.T) {
	whole, previous, stale := filesForMutations(t)
	want, wantPrevious := contentOf(t, whole), contentOf(t, previous)
	kinds := slices.Sorted(maps.Keys(mutate))
	path := filepath.Join(t.TempDir(), "mutated.db")
	opened := 0
	for number := range *mutations {
		kind := kinds[number%len(kinds)]
		random := rand.New(rand.NewPCG(11, uint64(number)))
		write(t, path, mutate[kind](bytes.Clone(whole), stale, random))
		var logged bytes.Buffer
		for writes := range 2 {
			store, err := bolt.Open(t.Context(), path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
			if err != nil {
				if !errors.Is(err, relayer.ErrCorrupt) && !errors.Is(err, relayer.ErrUnknownFormat) && !errors.Is(err, relayer.ErrNewerFormat) {
					t.Errorf("mutation %d, %s, after %d writes: %v", number, kind, writes, err)
				}
				if writes > 0 {
					t.Errorf("mutation %d, %s: the file was opened and written to, and is refused now: %v", number, kind, err)
				}
				break
			}
			opened++
			problem := want.differs(t, store, logged.String(), writes)
			if problem != "" && strings.Contains(logged.String(), "a header of the file is invalid") {
				problem = wantPrevious.differs(t, store, logged.String(), writes)
			}
			if problem != "" {
				t.Errorf("mutation %d, %s, after %d writes: %s; log %q", number, kind, writes, problem, logged.String())
			}
			if err := store.Check(t.Context()); err != nil && !errors.Is(err, relayer.ErrCorrupt) {
				t.Errorf("mutation %d, %s: Check: %v", number, kind, err)
			}
			_, writeErr := store.Create(t.Context(), changed(newID, writes))
			must(t, store.Close())
			if writeErr != nil {
				break
			}
		}
	}
	t.Logf("%d mutations, %d files opened", *mutations, opened)
}

// newID is the ID of the record that is written to a mutated file.
const newID = "new"

// filesForMutations returns a file, the file before its last commit, and one of an earlier commit,
// without what follows their last page.
func filesForMutations(t *testing.T) (whole, previous, stale []byte) {
	t.Helper()
	m := &historyModel{T: t, path: filepath.Join(t.TempDir(), "whole.db"), records: make(map[string]relayer.Record)}
	m.store = open(t, m.path)
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 300 {
		switch i {
		case 290:
			stale = read(t, m.path)
		case 299:
			previous = read(t, m.path)
		}
		m.write(random)
	}
	must(t, m.store.Close())
	whole = read(t, m.path)
	return whole[:usedSize(t, whole)], previous[:usedSize(t, previous)], stale[:usedSize(t, stale)]
}

// fileContent is what a store must return.
type fileContent struct {
	records map[string]relayer.Record
	history map[uint64]relayer.RecordChange
}

func contentOf(t *testing.T, file []byte) fileContent {
	t.Helper()
	store := open(t, writeTemp(t, file))
	records, _, err := list(t.Context(), store, page(0, 1000))
	changes, historyErr := store.History(t.Context(), relayer.HistoryQuery{Limit: 1000})
	if err != nil || historyErr != nil || len(changes) == 0 {
		t.Fatal(err, historyErr, len(changes))
	}
	c := fileContent{make(map[string]relayer.Record), make(map[uint64]relayer.RecordChange)}
	for _, rec := range records {
		c.records[rec.ID] = rec
	}
	for _, change := range changes {
		c.history[change.Record.Revision] = change
	}
	return c
}

// differs returns what a store returns that is neither right nor an error, or "".
func (c fileContent) differs(t *testing.T, store *bolt.Store, logged string, writes int) string {
	_, total, err := list(t.Context(), store, page(0, 1))
	if total != len(c.records)+writes && !errors.Is(err, relayer.ErrCorrupt) {
		return fmt.Sprintf("%d records, want %d, error %v", total, len(c.records)+writes, err)
	}
	for id, want := range c.records {
		rec, err := store.Get(t.Context(), id)
		if !errors.Is(err, relayer.ErrCorrupt) && (err != nil || !reflect.DeepEqual(rec, want)) {
			return fmt.Sprintf("record %+v, want %+v, error %v", rec, want, err)
		}
	}
	changes, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1000})
	if err != nil {
		return fmt.Sprintf("History: %v", err)
	}
	for i, change := range changes {
		isOther := change.Record.ID != newID && !reflect.DeepEqual(change, c.history[change.Record.Revision])
		if isOther || i > 0 && change.Record.Revision >= changes[i-1].Record.Revision {
			return fmt.Sprintf("change %+v, want %+v", change, c.history[change.Record.Revision])
		}
	}
	leftOut := strings.Count(logged, "a change of the history is damaged") / (writes + 1) // of each start
	if len(changes)+leftOut != len(c.history)+writes {
		return fmt.Sprintf("%d changes, and %d that are logged, want %d", len(changes), leftOut, len(c.history)+writes)
	}
	return ""
}

// The root of the bucket with the state is a page of records, which is sound.
func TestWrite_WrongRootOfBucket(t *testing.T) {
	store, path := openTemp(t)
	for i := range 100 {
		must(t, create(t, store, relayer.Record{ID: fmt.Sprint(i)})())
	}
	content := read(t, path)
	leaf := pageOfKind(t, content, pageKinds["leaf"]) / os.Getpagesize()
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte("meta\x00\x00\x00\x00\x00\x00\x00\x00")) { // the bucket is inline
			overwrite(t, path, int64(at+len("meta")), binary.NativeEndian.AppendUint64(nil, uint64(leaf)))
		}
	}
	wantError(t, create(t, store, relayer.Record{ID: "new"})(), relayer.ErrCorrupt)
	wantError(t, store.Ready(t.Context()), relayer.ErrCorrupt)
}

// pageOfKind returns the position of the last page of a kind.
func pageOfKind(t *testing.T, content []byte, kind uint16) int {
	t.Helper()
	size := os.Getpagesize()
	for at := usedSize(t, content) - size; at >= 0; at -= size {
		if binary.NativeEndian.Uint16(content[at+8:]) == kind {
			return at
		}
	}
	t.Fatal("no page of that kind")
	return 0
}

// flippedFile returns a file of 50 records, of which record 7 is damaged: one digit of an
// amount in its document.
func flippedFile(t *testing.T) string {
	t.Helper()
	store, path := openTemp(t)
	for i := range 50 {
		rec := relayer.Record{ID: fmt.Sprintf("id-%02d", i), Document: fmt.Appendf(nil, `{"gas_price_cap":10000000%02d}`, i)}
		must(t, errorOf(store.Create(t.Context(), rec)))
	}
	must(t, store.Close())
	// Pages that were freed hold older copies of the record.
	content := read(t, path)
	for at := range content {
		if bytes.HasPrefix(content[at:], []byte(`:1000000007}`)) {
			overwrite(t, path, int64(at+1), []byte{'3'})
		}
	}
	return path
}

// A record is not known by an ID that no checksum confirms: the file is refused.
func TestChecksum_DamagedID(t *testing.T) {
	whole := wholeFile(t)
	for name, damaged := range map[string]func(key, value []byte){
		"in the key and the document": func(key, value []byte) { key[8+9] ^= 1; value[len(value)-1] ^= 1 },
		"in the key and the value":    func(key, value []byte) { key[8+9] ^= 1; value[25+9] ^= 1 },
		"in the checksums":            func(key, value []byte) { key[len(key)-1] ^= 1; value[1] ^= 1 },
	} {
		path := writeTemp(t, edited(t, whole, func(tx *bbolt.Tx) error {
			records := tx.Bucket([]byte("relayers"))
			key, value := keyOf(7), bytes.Clone(records.Get(keyOf(7)))
			damaged(key, value)
			return errors.Join(records.Delete(keyOf(7)), records.Put(key, value))
		}))
		store, err := bolt.Open(t.Context(), path)
		if err == nil {
			_ = store.Close()
		}
		wantCorrupt(t, name, err, "a record has no ID")
	}
}

// If one part of a record is damaged, its ID is known, and a delete removes it.
func TestChecksum_EveryByteOfRecord(t *testing.T) {
	t.Parallel()
	whole := wholeFile(t)
	key := keyOf(7)
	var size int
	edited(t, whole, func(tx *bbolt.Tx) error {
		size = len(key) + len(tx.Bucket([]byte("relayers")).Get(key))
		return nil
	})
	for at := 8; at < size; at += 1 + at/60 {
		path := writeTemp(t, edited(t, whole, func(tx *bbolt.Tx) error {
			records := tx.Bucket([]byte("relayers"))
			entry := append(bytes.Clone(key), records.Get(key)...)
			entry[at] ^= 1
			return errors.Join(records.Delete(key), records.Put(entry[:len(key)], entry[len(key):]))
		}))
		store := open(t, path)
		_, err := store.Get(t.Context(), "id-0000007")
		wantCorrupt(t, fmt.Sprint("Get with byte ", at), err, `"id-0000007"`)
		if err := store.Delete(t.Context(), "id-0000007", 0, nil); err != nil {
			t.Errorf("byte %d: Delete: %v", at, err)
		}
		wantSound(t, store)
		must(t, store.Close())
		store = open(t, path)
		wantSound(t, store)
		if _, total, err := list(t.Context(), store, page(0, 300)); err != nil || total != 299 {
			t.Errorf("byte %d: total is %d, error %v", at, total, err)
		}
		_ = store.Close()
	}
}

// A read never returns a commit whose sync has not succeeded.
func TestRead_OnlyDurableCommits(t *testing.T) {
	store, _ := openTemp(t)
	committed, synced := make(chan struct{}), make(chan struct{})
	store.InterceptCommits(func(commit func() error) error {
		err := commit()
		close(committed)
		<-synced
		return err
	})
	result := inBackground(create(t, store, relayer.Record{ID: "new"}))
	<-committed
	wantError(t, errorOf(store.Get(t.Context(), "new")), relayer.ErrNotFound) // before the commit returned
	close(synced)
	must(t, <-result)
	must(t, errorOf(store.Get(t.Context(), "new")))
}

// A record was overwritten while the file was closed.
func TestRead_DamagedRecord(t *testing.T) {
	store := open(t, writeTemp(t, edited(t, wholeFile(t), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("relayers")).Put(keyOf(7), []byte("nonsense"))
	})))
	wantDamaged := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Fatalf("%s: error is %v", what, err)
		}
		wantRemedy(t, err)
	}
	recs, _, err := list(t.Context(), store, page(0, 300))
	wantDamaged("List", err)
	if len(recs) != 7 || recs[6].ID != numbered(6).ID {
		t.Errorf("List: %d records came with the error, want the 7 before the damaged one", len(recs))
	}
	if damaged, ok := errors.AsType[*relayer.CorruptError](err); !ok || damaged.ID != numbered(7).ID || damaged.Sequence != 8 {
		t.Errorf("List: error is %+v, want the ID and the sequence", damaged)
	}
	after := page(0, 300)
	after.After = 8
	if recs, _, err := list(t.Context(), store, after); err != nil || len(recs) != 292 {
		t.Errorf("List after the damaged record: %d records, error %v", len(recs), err)
	}
	damagedRecords := 0
	for i := range 300 {
		rec := numbered(i)
		_, err := store.Get(t.Context(), rec.ID)
		if err == nil {
			continue
		}
		damagedRecords++
		wantDamaged("Get", err)
		rec.Revision = 1
		_, err = store.Update(t.Context(), rec)
		wantDamaged("Update", err)
	}
	if damagedRecords != 1 {
		t.Errorf("%d records cannot be read, want 1", damagedRecords)
	}
	wantCorrupt(t, "Check", store.Check(t.Context()), `"id-0000007"`)
	_, _, err = list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{"any"}}, Limit: 300})
	wantDamaged("List of a term", err)
	other := numbered(8)
	other.Revision = 9
	_, updateErr := store.Update(t.Context(), other)
	// Next to a damaged record.
	must(t, errors.Join(updateErr, create(t, store, relayer.Record{ID: "new"})(), store.Ready(t.Context())))
}

// The file is truncated while the store is open: reads go on from memory.
func TestRead_FileTruncated(t *testing.T) {
	path := writeTemp(t, wholeFile(t))
	store := open(t, path)
	must(t, os.Truncate(path, int64(2*os.Getpagesize())))
	must(t, errorOf(store.Get(t.Context(), numbered(1).ID)))
	if recs, _, err := list(t.Context(), store, page(0, 300)); err != nil || len(recs) != 300 {
		t.Errorf("List: %d records, error %v", len(recs), err)
	}
	for call, err := range map[string]error{"Ready": store.Ready(t.Context()), "Check": store.Check(t.Context())} {
		if !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("%s: error is %v", call, err)
		}
	}
	for range 2 {
		if err := create(t, store, relayer.Record{ID: "new"})(); !errors.Is(err, relayer.ErrUnavailable) || !errors.Is(err, relayer.ErrCorrupt) {
			t.Errorf("Create: error is %v", err)
		}
	}
	wantError(t, store.Ready(t.Context()), relayer.ErrUnavailable)
}

func wantGets(t *testing.T, store relayer.Store, recs []relayer.Record) {
	t.Helper()
	for _, want := range recs {
		got, err := store.Get(t.Context(), want.ID)
		if err != nil || got.ID != want.ID || got.Revision != want.Revision {
			t.Fatalf("%s at %d, want %s at %d; error %v", got.ID, got.Revision, want.ID, want.Revision, err)
		}
	}
}
