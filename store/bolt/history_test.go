package bolt_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
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

// importMany imports records, which are in no history.
func (m *historyModel) importMany(count int) {
	m.number++
	records := make([]relayer.Record, count)
	for i := range records {
		records[i] = changed(fmt.Sprintf("import-%d-%d", m.number, i), i)
		records[i].Revision = 1
	}
	err := m.store.Import(m.Context(), records)
	for _, rec := range records {
		if err == nil {
			m.records[rec.ID], err = m.store.Get(m.Context(), rec.ID)
		}
	}
	must(m, err)
}

func (m *historyModel) nextRevision() uint64 {
	if len(m.changes) == 0 {
		return 1
	}
	return m.changes[len(m.changes)-1].Record.Revision + 1
}

// kept returns the latest changes of each relayer.
func (m *historyModel) kept() (kept []relayer.RecordChange) {
	count := make(map[string]int)
	for _, change := range slices.Backward(m.changes) {
		if count[change.Record.ID]++; count[change.Record.ID] <= m.keep {
			kept = append(kept, change)
		}
	}
	slices.Reverse(kept)
	return kept
}

func (m *historyModel) compare(random *rand.Rand) {
	m.Helper()
	current := slices.SortedFunc(maps.Values(m.records), func(a, b relayer.Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	if got, total, err := list(m.Context(), m.store, page(0, 10_000)); err != nil || total != len(got) || !slices.EqualFunc(got, current, func(a, b relayer.Record) bool { return reflect.DeepEqual(a, b) }) {
		m.Fatalf("the records are %d of %d, want %d, or differ; error %v", len(got), total, len(current), err)
	}
	wantGets(m.T, m.store, current)
	kept := m.kept()
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
		if got[i].Time.IsZero() {
			t.Fatalf("History(%+v): change %d has no time", query, i)
		}
		got[i].Time = time.Time{}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("History(%+v): change %d is\n%#v, want\n%#v", query, i, got[i], want[i])
		}
	}
}

func (m *historyModel) reopen() {
	must(m, m.store.Close())
	m.store = open(m.T, m.path, m.opts...)
}

// The records and the history are those of all writes that took effect, in their order: after failed
// commits, imports, a start, a backup and a compaction too. Of each relayer, older changes than those to retain are pruned.
func TestHistory_Model(t *testing.T) {
	for _, keep := range []int{1, 5, 30, 1000} {
		t.Run(fmt.Sprint("keep=", keep), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(7, uint64(keep)))
			m := &historyModel{T: t, path: filepath.Join(t.TempDir(), "relayers.db"), keep: keep, records: make(map[string]relayer.Record)}
			m.opts = []bolt.Option{bolt.WithHistory(keep, time.Hour)}
			const pruneStep = 64 // changes of a relayer that are too many
			m.store = open(t, m.path, m.opts...)
			for range 500 {
				switch random.IntN(60) {
				case 0:
					failCommit(m.store, 1, failSync)
				case 1:
					failCommit(m.store, 1, func(func() error) error { return errDisk })
				case 2:
					m.reopen()
				case 3:
					wantSound(t, m.store)
				case 4:
					failCommit(m.store, 1, func(commit func() error) error { panic(errors.Join(commit(), errDisk)) })
				case 5:
					m.importMany(random.IntN(100))
				}
				m.write(random)
				if random.IntN(20) == 0 {
					m.compare(random)
				}
			}
			m.compare(random)
			backup := backUp(t, m.store)
			must(t, m.store.Close())
			if _, _, err := bolt.Compact(t.Context(), m.path); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{backup, m.path} {
				if count, most := len(historyEntries(t, path)), len(m.kept())+20*pruneStep; count > most {
					t.Errorf("the file has %d entries, want at most %d", count, most)
				}
				m.store = open(t, path, m.opts...)
				records := maps.Clone(m.records)
				m.compare(random)
				m.write(random)
				wantSound(t, m.store)
				must(t, m.store.Close())
				m.changes, m.records = m.changes[:len(m.changes)-1], records
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
	must(t, store.Import(t.Context(), []relayer.Record{{ID: "imported", Revision: 3, Private: []byte(`{"secret":1}`)}}))
	must(t, store.Close())
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
	must(t, err)
	return m.changes
}

var updates = flag.Int("updates", 2000, "how many updates of one relayer TestHistory_BoundedFile makes")

// TestHistory_BoundedFile: one relayer is updated again and again, while others are updated
// sometimes. The history has the latest changes of the one and all of the others, and the file
// stays as large as the records, these changes and some free pages need.
func TestHistory_BoundedFile(t *testing.T) {
	const others, otherUpdates, keep, limit = 63, 5, 1000, 5 << 20
	store, path := openTemp(t, bolt.WithHistory(keep, time.Hour))
	var done sync.WaitGroup
	for writer := range others + 1 {
		done.Go(func() {
			count := otherUpdates
			if writer == 0 {
				count = *updates
			}
			rec, err := store.Create(t.Context(), numbered(writer))
			for i := 0; i < count && err == nil; i++ {
				rec, err = store.Update(t.Context(), rec)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for writer := range others + 1 {
		rec, err := store.Get(t.Context(), numbered(writer).ID)
		changes, historyErr := store.History(t.Context(), relayer.HistoryQuery{ID: rec.ID, Limit: 2 * keep})
		want := otherUpdates + 1
		if writer == 0 {
			want = keep
		}
		if err != nil || historyErr != nil || len(changes) != want || changes[0].Record.Revision != rec.Revision {
			t.Fatalf("relayer %d: %d changes, want %d, and the newest first; errors %v, %v", writer, len(changes), want, err, historyErr)
		}
	}
	must(t, store.Close())
	size, count := len(read(t, path)), len(historyEntries(t, path))
	if most := keep + others*(otherUpdates+1) + 2*64; size > limit || count > most {
		t.Errorf("after %d updates the file has %d bytes and %d changes, want at most %d and %d", *updates, size, count, limit, most)
	}
	t.Logf("after %d updates the file has %d bytes", *updates, size)
}

func TestHistory_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, path := openTemp(t, bolt.WithHistory(1000, time.Hour))
		writeChanges(t, store, 200)
		time.Sleep(time.Hour + time.Second)
		rec := mustGet(store.Create(t.Context(), changed("new", 1)))(t)
		rec.Private = nil
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, []relayer.RecordChange{{Kind: relayer.ChangeCreated, Record: rec}})
		for i := range 5 {
			if _, err := store.Create(t.Context(), changed("more", i)); err != nil && i == 0 {
				t.Fatal(err)
			}
			must(t, errorOf(store.Create(t.Context(), changed(fmt.Sprint("more", i), 100+i))))
		}
		must(t, store.Close())
		if count := len(historyEntries(t, path)); count > 7+64 {
			t.Errorf("the file has %d entries, want those that are too old deleted", count)
		}
	})
}

// Without a history nothing is added to it, and what an earlier process added is pruned.
func TestHistory_None(t *testing.T) {
	store, path := openTemp(t)
	writeChanges(t, store, 200)
	for _, none := range []bolt.Option{bolt.WithHistory(100, 0), bolt.WithHistory(0, time.Hour), bolt.WithHistory(0, 0)} {
		must(t, store.Close())
		store = open(t, path, none)
		wantError(t, errorOf(store.History(t.Context(), relayer.HistoryQuery{Limit: 1})), errors.ErrUnsupported)
	}
	createAll(t, store, 0, 10)
	for i := range 10 {
		must(t, errorOf(store.Create(t.Context(), numbered(100+i))))
	}
	must(t, store.Close())
	if count := len(historyEntries(t, path)); count != 0 {
		t.Errorf("the file has %d entries", count)
	}
}

// historyEntry returns the key and the value of the entry of a revision.
func historyEntry(tx *bbolt.Tx, revision int) (key, value []byte) {
	key, value = tx.Bucket([]byte("history")).Cursor().Seek(binary.BigEndian.AppendUint64(nil, uint64(revision)))
	return bytes.Clone(key), bytes.Clone(value)
}

// A damaged change whose ID is known is left out and logged. Everything else
// goes on, and the change is deleted when it is the oldest of its relayer.
func TestHistory_DamagedChanges(t *testing.T) {
	store, path := openTemp(t)
	changes := writeChanges(t, store, 100)
	must(t, store.Close())
	write(t, path, edited(t, read(t, path), func(tx *bbolt.Tx) error {
		history := tx.Bucket([]byte("history"))
		key, value := historyEntry(tx, 10)
		value[len(value)-3] ^= 1
		short, _ := historyEntry(tx, 20)
		wrong, moved := historyEntry(tx, 25)
		err := errors.Join(history.Put(key, value), history.Put(short, []byte{1}), history.Delete(wrong))
		wrong[len(wrong)-1] ^= 1
		return errors.Join(err, history.Put(wrong, moved))
	}))
	var logged bytes.Buffer
	store = open(t, path, bolt.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))), bolt.WithHistory(100, time.Hour))
	if text := logged.String(); strings.Count(text, "a change of the history is damaged") != 3 || strings.Contains(text, "document") {
		t.Errorf("the log is %q", text)
	}
	sound := slices.DeleteFunc(slices.Clone(changes), func(c relayer.RecordChange) bool {
		return slices.Contains([]uint64{10, 20, 25}, c.Record.Revision)
	})
	wantHistory(t, store, relayer.HistoryQuery{Limit: 100}, sound)
	wantHistory(t, store, relayer.HistoryQuery{ID: "id", Limit: 100}, sound)
	logged.Reset()
	wantSound(t, store)
	if !strings.Contains(logged.String(), "damaged=3") {
		t.Errorf("the log of the check is %q", logged.String())
	}
	backup := open(t, backUp(t, store))
	wantHistory(t, backup, relayer.HistoryQuery{Limit: 100}, sound)
	later := continueHistory(t, store, changes[99].Record, 150)
	wantHistory(t, store, relayer.HistoryQuery{Limit: 200}, later[50:])
	wantSound(t, store)
	wantAcrossOpens(t, store, path, later[50:], bolt.WithHistory(100, time.Hour))
}

// A file is refused if changes are missing, or are old versions, or if the ID of one is not known.
func TestHistory_RefusedFile(t *testing.T) {
	whole, _ := changedFile(t)
	for name, edit := range map[string]func(tx *bbolt.Tx) error{
		"a change is missing": func(tx *bbolt.Tx) error {
			key, _ := historyEntry(tx, 10)
			return tx.Bucket([]byte("history")).Delete(key)
		},
		"all changes are missing": func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte("history"))
			return errors.Join(err, tx.DeleteBucket([]byte("history")))
		},
		"a key and a value that are damaged": func(tx *bbolt.Tx) error {
			key, _ := historyEntry(tx, 10)
			err := tx.Bucket([]byte("history")).Delete(key)
			key[len(key)-1] ^= 1
			return errors.Join(err, tx.Bucket([]byte("history")).Put(key, []byte{1}))
		},
		"not an entry": func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("history")).Put([]byte("not a key of a change"), nil)
		},
		"a bucket": func(tx *bbolt.Tx) error {
			return errorOf(tx.Bucket([]byte("history")).CreateBucket([]byte("bucket")))
		},
	} {
		t.Run(name, func(t *testing.T) { wantRefused(t, edited(t, whole, edit)) })
	}
}

// wantRefused opens a damaged file.
func wantRefused(t *testing.T, content []byte) {
	t.Helper()
	path := writeTemp(t, content)
	store, err := bolt.Open(t.Context(), path)
	wantError(t, err, relayer.ErrCorrupt)
	if err == nil {
		_ = store.Close()
	}
	if !bytes.Equal(read(t, path), content) {
		t.Error("the file was changed")
	}
}

// historyPages returns the positions of the pages of the history, in the order of their keys.
func historyPages(t *testing.T, whole []byte) []int {
	t.Helper()
	var root uint64
	edited(t, whole, func(tx *bbolt.Tx) error {
		root = uint64(tx.Bucket([]byte("history")).Root())
		return nil
	})
	return pagesBelow(whole, int(root)*os.Getpagesize())
}

func pagesBelow(whole []byte, at int) []int {
	found := []int{at}
	if binary.NativeEndian.Uint16(whole[at+8:]) == pageKinds["branch"] {
		for i := range int(binary.NativeEndian.Uint16(whole[at+10:])) {
			child := binary.NativeEndian.Uint64(whole[at+16+16*i+8:])
			found = append(found, pagesBelow(whole, int(child)*os.Getpagesize())...)
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
	must(t, store.Close())
	compact(t, grown, path)
	return read(t, path), changes
}

// TestHistory_DamagedPages damages each page of the history: the file is refused.
func TestHistory_DamagedPages(t *testing.T) {
	whole, _ := changedFile(t)
	damaged := historyPages(t, whole)
	if len(damaged) < 10 {
		t.Fatalf("the history has %d pages", len(damaged))
	}
	for _, at := range damaged {
		content := bytes.Clone(whole)
		content[at+16+5] ^= 1 // a position in the table of elements
		wantRefused(t, content)
	}
}

// TestHistory_FreePage: the root of the history is listed as free, so that commits would
// overwrite it.
func TestHistory_FreePage(t *testing.T) {
	store, path := openTemp(t)
	writeChanges(t, store, 100)
	must(t, store.Close())
	listAsFree(t, path, uint64(historyPages(t, read(t, path))[0]/os.Getpagesize()))
	wantRefused(t, read(t, path))
}

// wantAcrossOpens compares the history, also after the file was closed and opened, and closes
// the store.
func wantAcrossOpens(t *testing.T, store *bolt.Store, path string, changes []relayer.RecordChange, opts ...bolt.Option) {
	t.Helper()
	for range 2 {
		wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, changes)
		wantSound(t, store)
		must(t, store.Close())
		store = open(t, path, opts...)
	}
	must(t, store.Close())
}

// continueHistory updates a record, and returns these changes.
func continueHistory(t *testing.T, store *bolt.Store, rec relayer.Record, count int) (changes []relayer.RecordChange) {
	t.Helper()
	for i := range count {
		next := changed(rec.ID, 1000+i)
		next.Revision = rec.Revision
		written := mustGet(store.Update(t.Context(), next))(t)
		change := relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: written, OldTerms: rec.Terms, OldText: rec.Text}
		change.Record.Private = nil
		changes, rec = append(changes, change), written
	}
	return changes
}

// TestHistory_DamagedWhileOpen damages pages of the history while the file is open. A read or a write
// that meets one is an error, and writes are refused until a check finds no damage.
func TestHistory_DamagedWhileOpen(t *testing.T) {
	whole, changes := changedFile(t)
	leaves := historyPages(t, whole)[1:]
	first, last := leaves[0], leaves[len(leaves)-1]
	lastDeleted := bytes.Index(whole, []byte(`{"note":65}`)) / os.Getpagesize() * os.Getpagesize() // of 66
	sibling := leaves[slices.Index(leaves, lastDeleted)+1]
	if sibling == first || sibling == last {
		t.Fatal("the last change to delete was not found")
	}
	readAll := func(store *bolt.Store, query relayer.HistoryQuery) error {
		query.Limit = 1000
		return errorOf(store.History(t.Context(), query))
	}
	write := func(store *bolt.Store) error { return errorOf(store.Create(t.Context(), changed("other", 1))) }
	update := func(store *bolt.Store) error {
		rec, err := store.Get(t.Context(), "id")
		if err == nil {
			_, err = store.Update(t.Context(), rec)
		}
		return err
	}
	for name, test := range map[string]struct {
		at     int // of the page
		meet   func(store *bolt.Store) error
		header bool // damage its header instead of a value
	}{
		"history of all":              {first, func(s *bolt.Store) error { return readAll(s, relayer.HistoryQuery{}) }, false},
		"history of one":              {first, func(s *bolt.Store) error { return readAll(s, relayer.HistoryQuery{ID: "id"}) }, false},
		"page of the history of all":  {first, func(s *bolt.Store) error { return readAll(s, relayer.HistoryQuery{}) }, true},
		"page of the history of one":  {first, func(s *bolt.Store) error { return readAll(s, relayer.HistoryQuery{ID: "id"}) }, true},
		"append":                      {last, write, true},
		"delete":                      {first, update, false}, // 200 changes are too many
		"page of a delete":            {first, update, true},
		"sibling of a page of delete": {sibling, update, true},
		"write after a failed commit": {first, write, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := writeTemp(t, whole)
				keep := 1000
				if strings.Contains(name, "delete") {
					keep = 100
				}
				store := open(t, path, bolt.WithHistory(keep, time.Hour))
				at := test.at + 16 + 5 // a position in the table of elements
				if !test.header {
					at = test.at + bytes.Index(whole[test.at:], []byte(`{"document":`)) + 12
				}
				if strings.Contains(name, "failed commit") {
					failCommit(store, 1, func(func() error) error { return errDisk })
					if err := write(store); !errors.Is(err, relayer.ErrUnavailable) {
						t.Fatal(err)
					}
				}
				flipBits(t, path, whole, at, 1)
				if err := test.meet(store); !errors.Is(err, relayer.ErrCorrupt) || !errors.Is(err, relayer.ErrUnavailable) {
					t.Fatalf("error is %v, want %v", err, relayer.ErrCorrupt)
				}
				wantError(t, write(store), relayer.ErrCorrupt)
				wantError(t, store.Check(t.Context()), relayer.ErrCorrupt)
				flipBits(t, path, whole, at, 0)
				wantSound(t, store)
				wantHistory(t, store, relayer.HistoryQuery{Limit: 1000}, changes[len(changes)-min(keep, len(changes)):])
				must(t, write(store))
				wantSound(t, store)
			})
		})
	}
}

// A backup leaves out what is behind the damage, and nothing hides that it is incomplete.
func TestBackup_DamagedHistory(t *testing.T) {
	whole, _ := changedFile(t)
	leaves := historyPages(t, whole)[1:]
	path := writeTemp(t, whole)
	store := open(t, path)
	flipBits(t, path, whole, leaves[len(leaves)/2]+16+5, 1) // a position in the table of elements
	must(t, store.Backup(t.Context(), filepath.Join(t.TempDir(), "backup.db")))
	wantError(t, errorOf(store.Create(t.Context(), changed("other", 1))), relayer.ErrCorrupt)
	must(t, os.Remove(path)) // another problem does not hide it
	wantError(t, store.Ready(t.Context()), relayer.ErrCorrupt)
}

// A backup reports a change that was damaged since the open. It fails if the history cannot be read.
func TestBackup_DamagedChange(t *testing.T) {
	whole, _ := changedFile(t)
	leaf := historyPages(t, whole)[1]
	path := writeTemp(t, whole)
	store := open(t, path)
	flipBits(t, path, whole, leaf+bytes.Index(whole[leaf:], []byte(`{"document":`))+12, 1)
	must(t, store.Backup(t.Context(), filepath.Join(t.TempDir(), "backup.db")))
	wantError(t, store.Ready(t.Context()), relayer.ErrCorrupt)
	wantError(t, errorOf(store.Create(t.Context(), changed("other", 1))), relayer.ErrCorrupt)

	store = open(t, writeTemp(t, whole))
	restore := store.MakeUnreadable(t.TempDir())
	backup := filepath.Join(t.TempDir(), "backup.db")
	wantError(t, store.Backup(t.Context(), backup), relayer.ErrUnavailable)
	wantError(t, store.Check(t.Context()), relayer.ErrUnavailable)
	restore()
	must(t, store.Backup(t.Context(), backup))
	wantSound(t, open(t, backup))
}

// A backup has the history of its records, even if later changes are too many to retain all, and another
// backup fails meanwhile. When no backup runs, a write prunes changes again.
func TestBackup_BusyRelayer(t *testing.T) {
	retained := bolt.WithHistory(10, time.Hour)
	store, path := openTemp(t, retained)
	createAll(t, store, 0, 600) // a backup reads them in steps
	want := writeChanges(t, store, 10)
	update := func() {
		rec, err := store.Get(t.Context(), "id")
		must(t, errors.Join(err, errorOf(store.Update(t.Context(), rec))))
	}
	paused := newPausingContext(t)
	copied := inBackground(func() error { return store.Backup(paused, path+".copy") })
	<-paused.reached
	wantError(t, store.Backup(t.Context(), path), fs.ErrExist)
	for range 80 {
		update()
	}
	close(paused.open)
	must(t, <-copied)
	wantHistory(t, open(t, path+".copy", retained), relayer.HistoryQuery{ID: "id", Limit: 100}, want)
	update()
	must(t, store.Close())
	if count := len(historyEntries(t, path)); count > 600+10+64 {
		t.Errorf("the file has %d changes, want those above the limit pruned", count)
	}
}

// A change that was made while the clock was years behind does not hide the ones before it.
func TestHistory_ClockWasBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	store := open(t, path)
	changes := writeChanges(t, store, 5)
	must(t, store.Close())
	synctest.Test(t, func(t *testing.T) { // its clock begins in 2000
		store := open(t, path)
		rec := mustGet(store.Get(t.Context(), "id"))(t)
		must(t, errorOf(store.Update(t.Context(), rec)))
		must(t, store.Close())
	})
	store = open(t, path)
	must(t, errorOf(store.Create(t.Context(), changed("other", 1))))
	for id, want := range map[string]int{"": len(changes) + 1, "id": len(changes)} {
		found, err := store.History(t.Context(), relayer.HistoryQuery{ID: id, Limit: 100})
		if err != nil || len(found) != want {
			t.Errorf("the history of %q has %d changes, want %d, error %v", id, len(found), want, err)
		}
	}
}

func TestHistory_Context(t *testing.T) {
	store, _ := openTemp(t)
	writeChanges(t, store, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, errorOf(store.History(ctx, relayer.HistoryQuery{Limit: 1})), context.Canceled)
	must(t, store.Close())
	wantError(t, errorOf(store.History(t.Context(), relayer.HistoryQuery{Limit: 1})), relayer.ErrUnavailable)
}
