//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// TestSelection_ChangesInBatch has one batch create, update and delete a record, so that
// terms come and go in one commit.
func TestSelection_ChangesInBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	kept := create(t, store, record("kept"))
	release := holdWriteLock(t, admin, schema)
	ends := []<-chan error{inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })}
	awaitWaiting(t, admin, schema, 1)
	queue := func(do func() error) {
		ends = append(ends, inBackground(do))
		awaitQueued(t, store, len(ends)-1)
	}
	with := func(id string, revision uint64, terms ...string) relayer.Record {
		rec := record(id)
		rec.Revision, rec.Terms = revision, terms
		return rec
	}
	change := func(rec relayer.Record) func() error {
		return func() error { return errorOf(store.Update(t.Context(), rec)) }
	}
	// The revisions follow from the order.
	queue(func() error { return errorOf(store.Create(t.Context(), with("brief", 0, "a", "b"))) })
	queue(change(with("brief", 3, "b", "c")))
	queue(func() error { return store.Delete(t.Context(), "brief", 4, nil) })
	queue(change(with("kept", kept.Revision)))
	queue(change(with("kept", 6, "b", "common")))
	release()
	for i, end := range ends {
		if err := <-end; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	wantConsistent(t, store)
	for term, want := range map[string]int{"a": 0, "b": 1, "c": 0, "common": 2, "id=kept": 0} {
		if _, total, err := list(t.Context(), store, relayer.StoreQuery{Terms: [][]string{{term}}}); total != want || err != nil {
			t.Errorf("%d records with the term %s, error %v, want %d", total, term, err, want)
		}
	}
}

// TestList_Queries compares random queries with what storeutil.Scan returns for them. The
// sequence numbers have wide gaps, and whole chunks of records are deleted.
func TestList_Queries(t *testing.T) {
	t.Parallel()
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	store, admin, schema := openWithAdmin(t)
	alphabet := []string{"a", "b", "%", "_", `\`, "é", "e", "'", " ", "日"}
	word := func(most int) string {
		var text strings.Builder
		for range random.IntN(most + 1) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return text.String()
	}
	var records []relayer.Record
	for i := range 1100 {
		records = append(records, relayer.Record{
			ID: numbered(i), Revision: uint64(i + 1), Text: word(8), Document: []byte("{}"), Note: []byte(word(3)), Private: []byte("p"),
			Terms: []string{fmt.Sprint("fifth=", i%5), fmt.Sprint("third=", i%3)},
		})
	}
	gap := 0
	for part := range slices.Chunk(records, 300) {
		must(t, store.Import(t.Context(), part))
		execute(t, admin, fmt.Sprintf(`UPDATE %s.state SET last_sequence = last_sequence + %d`, schema, 1<<(9*gap)))
		gap++
	}
	for _, i := range random.Perm(300) { // all of the second part, and some of the first
		remove(t, store, records[300+i])
		if i%3 == 0 {
			remove(t, store, records[i])
		}
	}
	all, err := store.List(t.Context(), relayer.StoreQuery{Limit: 2000})
	if err != nil || len(all.Records) != 700 {
		t.Fatalf("%d records, error %v", len(all.Records), err)
	}
	for range 150 {
		query := relayer.StoreQuery{Limit: random.IntN(30), Offset: []int{0, random.IntN(700), 2000}[random.IntN(3)]}
		query.After = []uint64{0, all.Records[random.IntN(700)].Sequence - uint64(random.IntN(2)), 1 << 63}[random.IntN(3)]
		for range random.IntN(3) {
			query.Terms = append(query.Terms, [][]string{{"fifth=1", "fifth=2"}, {"third=1"}, {"third=2", "x\x00"}, {}}[random.IntN(4)])
		}
		for range random.IntN(3) * random.IntN(7) {
			query.Contains = append(query.Contains, []string{word(2), word(1), "\xff", "a\x00"}[random.IntN(4)])
		}
		for range random.IntN(2) * random.IntN(200) {
			query.IDs = append(query.IDs, numbered(random.IntN(1200)))
		}
		want, err := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
			for _, rec := range all.Records {
				if !yield(rec, nil) {
					return
				}
			}
		}, query)
		must(t, err)
		for _, query.DocumentsOnly = range []bool{false, true} {
			got, err := store.List(t.Context(), query)
			if err != nil || got.Total != want.Total || got.Position != all.Position || !slices.EqualFunc(got.Records, want.Records, func(got, want relayer.Record) bool {
				if query.DocumentsOnly {
					return got.ID == want.ID && got.Revision == want.Revision && got.Sequence == want.Sequence && string(got.Document) == string(want.Document) && string(got.Note) == string(want.Note)
				}
				return same(got, want)
			}) {
				t.Fatalf("%+v: %d of %d at %s, error %v, want %d of %d", query, len(got.Records), got.Total, got.Position, err, len(want.Records), want.Total)
			}
		}
	}
	wantConsistent(t, store)
}

// imported returns records whose revisions are not in their order.
func imported(prefix string, count int, greatest uint64) []relayer.Record {
	var all []relayer.Record
	for i := range count {
		rec := record(fmt.Sprintf("%s-%d", prefix, i))
		rec.Revision = greatest - uint64(i*7%count)
		all = append(all, rec)
	}
	return all
}

// TestImport_SharedBatch has an import share its batch with other writes. Later writes
// get greater revisions than the imported ones.
func TestImport_SharedBatch(t *testing.T) {
	t.Parallel()
	store, admin, schema := openWithAdmin(t)
	changes := watch(t, store)
	release := holdWriteLock(t, admin, schema)
	first := inBackground(func() error { return errorOf(store.Create(t.Context(), record("first"))) })
	awaitWaiting(t, admin, schema, 1)
	queued := 0
	queue := func(do func() error) <-chan error {
		done := inBackground(do)
		queued++
		awaitQueued(t, store, queued) // to keep the order
		return done
	}
	moved := imported("moved", 5, 5000)
	refused := append(imported("refused", 3, 9000), moved[0])
	var created, updated relayer.Record
	done := []<-chan error{
		first,
		queue(func() error { return errorOf(store.Create(context.Background(), record("before"))) }),
		queue(func() error { return store.Import(context.Background(), moved) }),
		queue(func() error {
			if err := store.Import(context.Background(), refused); !errors.Is(err, relayer.ErrExists) {
				return fmt.Errorf("refused import: error %w, want ErrExists", err)
			}
			return nil
		}),
		queue(func() (err error) { created, err = store.Create(context.Background(), record("after")); return err }),
		queue(func() (err error) { updated, err = store.Update(context.Background(), moved[0]); return err }),
		queue(func() error { return store.Delete(context.Background(), moved[1].ID, moved[1].Revision, nil) }),
	}
	release()
	for i, done := range done {
		if err := <-done; err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if created.Revision <= 5000 || created.Revision > 9000 || updated.Revision <= created.Revision {
		t.Errorf("revisions %d and %d after an import of 5000", created.Revision, updated.Revision)
	}
	recs, total, err := list(t.Context(), store, relayer.StoreQuery{Limit: 10})
	if err != nil || total != 7 || recs[0].ID != "first" || recs[1].ID != "before" || recs[2].ID != moved[0].ID || recs[6].ID != "after" {
		t.Errorf("%d relayers, error %v: %v", total, err, recs)
	}
	// The changes before the import come before ErrGap.
	for {
		next := changes.next(t)
		if errors.Is(next.err, relayer.ErrGap) {
			break
		}
		if next.err != nil || next.Record.Revision > 5000 {
			t.Fatalf("received %v, error %v, before ErrGap", next.Record, next.err)
		}
	}
	// The changes of the batch follow.
	last := create(t, store, record("last"))
	for {
		if next := changes.next(t); next.err != nil {
			t.Fatal(next.err)
		} else if next.Record.ID == "last" {
			changes.stop()
			break
		}
	}
	if last.Revision <= updated.Revision {
		t.Errorf("revision %d after %d", last.Revision, updated.Revision)
	}
	wantConsistent(t, store)
}
