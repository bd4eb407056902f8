package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// changed returns a record with parts that all differ from those of other numbers.
func changed(id string, number int) relayer.Record {
	return relayer.Record{
		ID: id, Claim: fmt.Sprintf("claim-%s-%d", id, number), Terms: []string{"a", fmt.Sprint("n=", number)},
		Text: fmt.Sprint("text ", number), Document: fmt.Appendf(nil, `{"document":%d}`, number),
		Private: fmt.Appendf(nil, `{"secret":%d}`, number), Note: fmt.Appendf(nil, `{"note":%d}`, number),
	}
}

// historyModel is what the history of a store must have.
type historyModel struct {
	*testing.T
	store   *bolt.Store
	opts    []bolt.Option
	path    string
	keep    int
	records map[string]relayer.Record // with the latest revision
	changes []relayer.RecordChange
	number  int
}

func (m *historyModel) add(kind relayer.ChangeKind, rec, old relayer.Record) {
	change := relayer.RecordChange{Kind: kind, Record: rec}
	change.Record.Private = nil
	if kind != relayer.ChangeCreated {
		change.OldTerms, change.OldText = old.Terms, old.Text
	}
	m.changes = append(m.changes, change)
	delete(m.records, rec.ID)
	if kind != relayer.ChangeDeleted {
		m.records[rec.ID] = rec
	}
}

// write makes a random write. Its result is nil if it took effect.
func (m *historyModel) write(random *rand.Rand) {
	m.number++
	rec := changed(fmt.Sprint("id-", random.IntN(20)), m.number)
	old, exists := m.records[rec.ID]
	rec.Revision = old.Revision
	kind := relayer.ChangeUpdated
	var err error
	switch {
	case !exists:
		kind = relayer.ChangeCreated
		rec, err = m.store.Create(m.Context(), rec)
	case random.IntN(3) == 0:
		kind = relayer.ChangeDeleted
		note := rec.Note
		err = m.store.Delete(m.Context(), old.ID, old.Revision, note)
		rec = old
		rec.Note, rec.Revision = note, m.nextRevision()
	default:
		rec, err = m.store.Update(m.Context(), rec)
	}
	switch {
	case err == nil:
		m.add(kind, rec, old)
	case !errors.Is(err, relayer.ErrUnavailable):
		m.Fatal(err)
	}
}

func (m *historyModel) nextRevision() uint64 {
	if len(m.changes) == 0 {
		return 1
	}
	return m.changes[len(m.changes)-1].Record.Revision + 1
}

func (m *historyModel) compare(random *rand.Rand) {
	m.Helper()
	kept := m.changes[max(0, len(m.changes)-m.keep):]
	wantHistory(m.T, m.store, relayer.HistoryQuery{Limit: 1000}, kept)
	query := relayer.HistoryQuery{ID: fmt.Sprint("id-", random.IntN(20)), Limit: 1 + random.IntN(5)}
	if random.IntN(2) == 0 {
		query.Before = uint64(1 + random.IntN(len(m.changes)+2))
	}
	wantHistory(m.T, m.store, query, kept)
}

// wantHistory compares a query with a selection from all changes, which are in order.
func wantHistory(t *testing.T, store *bolt.Store, query relayer.HistoryQuery, all []relayer.RecordChange) {
	t.Helper()
	var want []relayer.RecordChange
	for _, change := range slices.Backward(all) {
		isSelected := (query.ID == "" || change.Record.ID == query.ID) && (query.Before == 0 || change.Record.Revision < query.Before)
		if isSelected && len(want) < query.Limit {
			want = append(want, change)
		}
	}
	got, err := store.History(t.Context(), query)
	if err != nil {
		t.Fatalf("History(%+v): %v", query, err)
	}
	if len(got) != len(want) {
		t.Fatalf("History(%+v): %d changes, want %d", query, len(got), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("History(%+v): change %d is\n%#v, want\n%#v", query, i, got[i], want[i])
		}
	}
}

func (m *historyModel) reopen() {
	if err := m.store.Close(); err != nil {
		m.Fatal(err)
	}
	m.store = open(m.T, m.path, m.opts...)
}

// The history is that of all writes that took effect, in their order: after failed commits, a
// start, a backup and a compaction too. Older changes than those to retain are pruned.
func TestHistory_Model(t *testing.T) {
	for _, keep := range []int{5, 300, 1000} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(keep)))
			m := &historyModel{T: t, path: filepath.Join(t.TempDir(), "relayers.db"), keep: keep, records: make(map[string]relayer.Record)}
			m.opts = []bolt.Option{bolt.WithHistory(keep, time.Hour)}
			m.store = open(t, m.path, m.opts...)
			for range 900 {
				switch random.IntN(60) {
				case 0:
					failCommit(m.store, 1, failSync)
				case 1:
					failCommit(m.store, 1, func(func() error) error { return errDisk })
				case 2:
					m.reopen()
				case 3:
					wantSound(t, m.store)
				}
				m.write(random)
				if random.IntN(20) == 0 {
					m.compare(random)
				}
			}
			m.compare(random)
			backup := backUp(t, m.store)
			if err := m.store.Close(); err != nil {
				t.Fatal(err)
			}
			if _, _, err := bolt.Compact(t.Context(), m.path); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{backup, m.path} {
				if count := len(historyEntries(t, path)); count > keep+64 {
					t.Errorf("the file has %d entries, want at most %d", count, keep+64)
				}
				m.store = open(t, path, m.opts...)
				m.compare(random)
				m.write(random)
				wantSound(t, m.store)
				if err := m.store.Close(); err != nil {
					t.Fatal(err)
				}
				m.changes = m.changes[:len(m.changes)-1]
			}
		})
	}
}

// historyEntries returns the entries of the history in a file that is closed, by their keys.
func historyEntries(t *testing.T, path string) map[string][]byte {
	t.Helper()
	entries := make(map[string][]byte)
	edited(t, read(t, path), func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("history")).ForEach(func(key, value []byte) error {
			entries[string(key)] = bytes.Clone(value)
			return nil
		})
	})
	return entries
}

func TestHistory_NoPrivatePart(t *testing.T) {
	store, path := openTemp(t)
	writeChanges(t, store, 10)
	if err := store.Import(t.Context(), []relayer.Record{{ID: "imported", Revision: 3, Private: []byte(`{"secret":1}`)}}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	entries := historyEntries(t, path)
	if len(entries) != 10 {
		t.Errorf("the file has %d entries, want 10: an import is none", len(entries))
	}
	for _, value := range entries {
		if bytes.Contains(value, []byte("secret")) || !bytes.Contains(value, []byte("i")) {
			t.Errorf("an entry is %q", value)
		}
	}
}

// writeChanges creates a record and updates it, so that it has so many changes.
func writeChanges(t *testing.T, store *bolt.Store, count int) (changes []relayer.RecordChange) {
	t.Helper()
	m := &historyModel{T: t, store: store, records: make(map[string]relayer.Record)}
	rec, err := store.Create(t.Context(), changed("id", 0))
	for i := 1; err == nil; i++ {
		old := m.records["id"]
		kind := relayer.ChangeUpdated
		if i == 1 {
			kind = relayer.ChangeCreated
		}
		if m.add(kind, rec, old); i == count {
			break
		}
		next := changed("id", i)
		next.Revision = rec.Revision
		rec, err = store.Update(t.Context(), next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m.changes
}

var updates = flag.Int("updates", 6000, "how many updates TestHistory_BoundedFile makes")

// TestHistory_BoundedFile: while 64 writers update records, the file stays as large as the records, the
// changes to retain and some free pages need.
func TestHistory_BoundedFile(t *testing.T) {
	const writers, keep, limit = 64, 1000, 9 << 20
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path, bolt.WithHistory(keep, time.Hour))
	var done sync.WaitGroup
	for writer := range writers {
		done.Go(func() {
			rec, err := store.Create(t.Context(), numbered(writer))
			for i := 0; i < *updates/writers && err == nil; i++ {
				rec, err = store.Update(t.Context(), rec)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	size, count := len(read(t, path)), len(historyEntries(t, path))
	if size > limit || count < keep || count > keep+4*writers {
		t.Errorf("after %d updates the file has %d bytes and %d changes, want at most %d bytes and about %d changes", *updates, size, count, limit, keep)
	}
	t.Logf("after %d updates the file has %d bytes", *updates, size)
}

func TestHistory_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "relayers.db")
		store := open(t, path, bolt.WithHistory(1000, time.Hour))
		writeChanges(t, store, 200)
		time.Sleep(time.Hour + time.Second)
		rec, err := store.Create(t.Context(), changed("new", 1))
		if err != nil {
			t.Fatal(err)
		}
		rec.Private = nil
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, []relayer.RecordChange{{Kind: relayer.ChangeCreated, Record: rec}})
		for i := range 5 {
			if _, err := store.Create(t.Context(), changed("more", i)); err != nil && i == 0 {
				t.Fatal(err)
			}
			if _, err := store.Create(t.Context(), changed(fmt.Sprint("more", i), 100+i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if count := len(historyEntries(t, path)); count > 7+64 {
			t.Errorf("the file has %d entries, want those that are too old deleted", count)
		}
	})
}

// Without a history nothing is added to it, and what an earlier process added is pruned.
func TestHistory_None(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	writeChanges(t, store, 200)
	for _, none := range []bolt.Option{bolt.WithHistory(100, 0), bolt.WithHistory(0, time.Hour), bolt.WithHistory(0, 0)} {
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = open(t, path, none)
		if _, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error is %v, want %v", err, errors.ErrUnsupported)
		}
	}
	createAll(t, store, 0, 10)
	for i := range 10 {
		if _, err := store.Create(t.Context(), numbered(100+i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if count := len(historyEntries(t, path)); count != 0 {
		t.Errorf("the file has %d entries", count)
	}
}

func TestHistory_InvalidOption(t *testing.T) {
	for _, opt := range []bolt.Option{bolt.WithHistory(-1, time.Hour), bolt.WithHistory(1, -time.Hour)} {
		if _, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "new.db"), opt); err == nil {
			t.Error("the option was accepted")
		}
	}
}

// A damaged entry is left out and logged. Everything else goes on.
func TestHistory_DamagedEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	changes := writeChanges(t, store, 30)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, edited(t, read(t, path), func(tx *bbolt.Tx) error {
		history := tx.Bucket([]byte("history"))
		entry := func(revision int) ([]byte, []byte) {
			key := binary.BigEndian.AppendUint64(nil, uint64(revision))
			return key, bytes.Clone(history.Get(key))
		}
		key, value := entry(10)
		value[len(value)-3] ^= 1
		short, _ := entry(20)
		wrong, moved := entry(25)
		deleted := bytes.Clone(wrong)
		wrong[0] = 7
		return errors.Join(history.Put(key, value), history.Put(short, []byte{1}), history.Put(wrong, moved), history.Delete(deleted),
			history.Put([]byte("not a key of a change"), nil))
	}))
	var logged bytes.Buffer
	store = open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))), bolt.WithHistory(100, time.Hour))
	defer store.Close()
	if text := logged.String(); !bytes.Contains(logged.Bytes(), []byte("entries of the history are damaged")) || bytes.Contains(logged.Bytes(), []byte("document")) {
		t.Errorf("the log is %q", text)
	}
	changes = slices.DeleteFunc(changes, func(c relayer.RecordChange) bool {
		return slices.Contains([]uint64{10, 20, 25}, c.Record.Revision)
	})
	wantHistory(t, store, relayer.HistoryQuery{Limit: 100}, changes)
	logged.Reset()
	wantSound(t, store)
	if !bytes.Contains(logged.Bytes(), []byte("damaged=4")) {
		t.Errorf("the log of the check is %q", logged.String())
	}
	backup := open(t, backUp(t, store))
	defer backup.Close()
	wantHistory(t, backup, relayer.HistoryQuery{Limit: 100}, changes)
	createAll(t, store, 0, 300) // the damaged ones are pruned
	wantSound(t, store)
}

// An entry that is damaged while the file is open is left out. If no entry can be read, that is
// an error.
func TestHistory_DamagedWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // without a comparison in the background
		path := filepath.Join(t.TempDir(), "relayers.db")
		var logged bytes.Buffer
		store := open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		defer store.Close()
		changes := writeChanges(t, store, 300)
		whole := read(t, path)
		for at := range whole {
			if bytes.HasPrefix(whole[at:], []byte(`{"document":77}`)) {
				flipBits(t, path, whole, at+12, 1)
			}
		}
		without := slices.DeleteFunc(slices.Clone(changes), func(c relayer.RecordChange) bool { return c.Record.Revision == 78 })
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, without)
		if !bytes.Contains(logged.Bytes(), []byte("entries of the history are damaged: they are left out")) {
			t.Errorf("the log is %q", logged.String())
		}
		wantSound(t, store)
		overwrite(t, path, 0, withNoise(whole))
		_, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 5})
		if !errors.Is(err, relayer.ErrCorrupt) || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("error is %v, want %v", err, relayer.ErrCorrupt)
		}
		overwrite(t, path, 0, whole)
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, changes)
	})
}

// historyPages returns the positions of the pages of the history in a file without free pages.
// Its keys have 8 bytes, and those of records more.
func historyPages(whole []byte) (found []int) {
	for at := 2 * os.Getpagesize(); at < len(whole); at += os.Getpagesize() {
		kind, keySize := binary.NativeEndian.Uint16(whole[at+8:]), whole[at+16+4:]
		if kind == pageKinds["leaf"] {
			keySize = whole[at+16+8:]
		}
		if (kind == pageKinds["leaf"] || kind == pageKinds["branch"]) && binary.NativeEndian.Uint32(keySize) == 8 {
			found = append(found, at)
		}
	}
	return found
}

// changedFile returns the bytes of a file with a history of several pages, none of which is free.
func changedFile(t *testing.T) (whole []byte, changes []relayer.RecordChange) {
	t.Helper()
	grown, path := filepath.Join(t.TempDir(), "grown.db"), filepath.Join(t.TempDir(), "changed.db")
	store := open(t, grown)
	changes = writeChanges(t, store, 300)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	compact(t, grown, path)
	return read(t, path), changes
}

// TestHistory_DamagedPages damages each page of the history. The file opens without the history, and
// the next write begins a new one, which a start, a backup and a compaction keep.
func TestHistory_DamagedPages(t *testing.T) {
	whole, changes := changedFile(t)
	damaged := historyPages(whole)
	if len(damaged) < 10 {
		t.Fatalf("the history has %d pages", len(damaged))
	}
	for _, at := range damaged {
		path := writeTemp(t, whole)
		flipBits(t, path, whole, at+16+5, 1) // a position in the table of elements
		var logged bytes.Buffer
		store := open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		if bytes.Count(logged.Bytes(), []byte("the history is damaged")) != 1 {
			t.Errorf("page %d: the log is %q", at/os.Getpagesize(), logged.String())
		}
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, nil)
		changes := continueHistory(t, store, changes[len(changes)-1].Record, 3)
		copied := backUp(t, store)
		wantAcrossOpens(t, store, path, changes)
		if before, after, err := bolt.Compact(t.Context(), path); err != nil || after > before/2 {
			t.Errorf("compacted from %d to %d bytes, error %v: the damaged history is left", before, after, err)
		}
		for _, path := range []string{path, copied} {
			store = open(t, path)
			wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, changes)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestHistory_FreePage: the root of the history is listed as free, so that commits overwrite it. The
// history is left out before that.
func TestHistory_FreePage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	changes := writeChanges(t, store, 100)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole := read(t, path)
	var root uint64
	edited(t, whole, func(tx *bbolt.Tx) error {
		root = uint64(tx.Bucket([]byte("history")).Root())
		return nil
	})
	freelist := int(binary.NativeEndian.Uint64(whole[newerHeader(whole)+16+32:])) * os.Getpagesize()
	if root == 0 || binary.NativeEndian.Uint16(whole[freelist+10:]) == 0 {
		t.Fatalf("the root is page %d, and there may be no free page", root)
	}
	overwrite(t, path, int64(freelist+16), binary.NativeEndian.AppendUint64(nil, root))
	store = open(t, path)
	changes = continueHistory(t, store, changes[99].Record, 50)
	wantAcrossOpens(t, store, path, changes)
}

// wantAcrossOpens compares the history, also after the file was closed and opened, and closes
// the store.
func wantAcrossOpens(t *testing.T, store *bolt.Store, path string, changes []relayer.RecordChange) {
	t.Helper()
	for range 2 {
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, changes)
		wantSound(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = open(t, path)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// continueHistory updates a record, and returns these changes.
func continueHistory(t *testing.T, store *bolt.Store, rec relayer.Record, count int) (changes []relayer.RecordChange) {
	t.Helper()
	for i := range count {
		next := changed(rec.ID, 1000+i)
		next.Revision = rec.Revision
		written, err := store.Update(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		change := relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: written, OldTerms: rec.Terms, OldText: rec.Text}
		change.Record.Private = nil
		changes, rec = append(changes, change), written
	}
	return changes
}

// TestHistory_PageDamagedWhileOpen damages a page that the next write appends to, or deletes from. The
// write begins a new history, also after a failed commit. After some of them there is none any more.
func TestHistory_PageDamagedWhileOpen(t *testing.T) {
	whole, changes := changedFile(t)
	damaged := historyPages(whole)
	first, last := damaged[0], damaged[0]
	for at := range whole {
		if bytes.HasPrefix(whole[at:], []byte(`{"document":0}`)) {
			first = at / os.Getpagesize() * os.Getpagesize()
		}
		if bytes.HasPrefix(whole[at:], []byte(`{"note":298}`)) { // the last update is in the records too
			last = at / os.Getpagesize() * os.Getpagesize()
		}
	}
	for name, test := range map[string]struct {
		at, keep int
		fail     func(func() error) error
	}{
		"append":                       {last, 1000, nil},
		"delete":                       {first, 100, nil},
		"append after a failed commit": {last, 1000, func(func() error) error { return errDisk }},
		"append after a failed sync":   {last, 1000, failSync},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // without a comparison in the background
				path := writeTemp(t, whole)
				var logged bytes.Buffer
				opts := []bolt.Option{bolt.WithHistory(test.keep, time.Hour), bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil)))}
				store := open(t, path, opts...)
				last := changes[len(changes)-1].Record
				var written []relayer.RecordChange
				if test.fail != nil {
					failCommit(store, 1, test.fail)
					flipBits(t, path, whole, test.at+16+5, 1)
					if _, err := store.Create(t.Context(), changed("other", 1)); err != nil && !errors.Is(err, relayer.ErrUnavailable) {
						t.Fatal(err)
					}
				}
				flipBits(t, path, whole, test.at+16+5, 1)
				written = append(written, continueHistory(t, store, last, 3)...)
				if bytes.Count(logged.Bytes(), []byte("the history is damaged")) != 1 {
					t.Errorf("the log is %q", logged.String())
				}
				for range 2 {
					found, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1000})
					if err != nil || len(found) < 3 || len(found) > 4 {
						t.Errorf("%d changes, error %v", len(found), err)
					}
					wantHistory(t, store, relayer.HistoryQuery{ID: "id", Limit: 1000}, written)
					wantSound(t, store)
					if err := store.Close(); err != nil {
						t.Fatal(err)
					}
					store = open(t, path, opts...)
				}
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestHistory_DamagedOften: a file leaves at most 8 damaged histories behind, then it has none.
func TestHistory_DamagedOften(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	rec, err := store.Create(t.Context(), changed("id", 0))
	for i := range 12 {
		if err != nil {
			t.Fatal(err)
		}
		changes := continueHistory(t, store, rec, 3)
		if rec = changes[2].Record; i > 8 {
			changes = nil
		}
		wantHistory(t, store, relayer.HistoryQuery{Limit: 3}, changes)
		wantSound(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		write(t, path, edited(t, read(t, path), func(tx *bbolt.Tx) error {
			_, err := tx.Bucket([]byte("history")).CreateBucketIfNotExists([]byte("not an entry"))
			return err
		}))
		store = open(t, path)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bolt.Compact(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	store = open(t, path)
	defer store.Close()
	wantHistory(t, store, relayer.HistoryQuery{Limit: 3}, continueHistory(t, store, rec, 3))
}

func TestHistory_Context(t *testing.T) {
	store, _ := openTemp(t)
	writeChanges(t, store, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.History(ctx, relayer.HistoryQuery{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.History(t.Context(), relayer.HistoryQuery{Limit: 1}); !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("error is %v, want %v", err, relayer.ErrUnavailable)
	}
}
