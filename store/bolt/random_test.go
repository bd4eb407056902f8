package bolt_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/storeutil"
)

var randomSeed = flag.Uint64("random-seed", 1, "first seed of the test with random operations")

// randomTest applies random operations to a store and to a slice of its records in
// creation order, and compares both.
type randomTest struct {
	*testing.T
	random *rand.Rand
	path   string
	store  *bolt.Store
	recs   []relayer.Record
	next   int // number of the next record

	// fail simulates a fault of a commit. It is nil if there is none.
	fail func(commit func() error) error
}

// TestRandomOperations deletes and creates whole chunks of records, with commits that fail
// and with growth of the file.
func TestRandomOperations(t *testing.T) {
	for seed := range uint64(4) {
		seed += *randomSeed
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := &randomTest{T: t, random: rand.New(rand.NewPCG(seed, 1)), path: filepath.Join(t.TempDir(), "relayers.db")}
			r.open()
			for range 60 {
				r.step()
				r.compareSome()
			}
			r.compareAll()
			wantSound(t, r.store)
			if err := r.store.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func (r *randomTest) open() {
	r.store = open(r.T, r.path)
	r.store.InterceptCommits(func(commit func() error) error {
		if r.fail != nil {
			return r.fail(commit)
		}
		return commit()
	})
}

func (r *randomTest) step() {
	switch r.random.IntN(12) {
	case 0, 1:
		r.importMany(r.random.IntN(2500))
	case 2:
		r.importMany(r.random.IntN(40))
	case 3:
		r.deleteRange(r.random.IntN(2000))
	case 4, 5:
		r.deleteRange(r.random.IntN(70))
	case 6, 7, 8:
		r.changeSome()
	case 9:
		r.failImport()
	case 10:
		r.failUpdate()
	case 11:
		if err := r.store.Close(); err != nil {
			r.Fatal(err)
		}
		r.open()
	}
}

func (r *randomTest) document() []byte {
	size := r.random.IntN(200)
	switch r.random.IntN(40) {
	case 0, 1, 2:
		size = 0
	case 3:
		size = 20_000
	}
	return bytes.Repeat([]byte{byte('a' + r.random.IntN(26))}, size)
}

func (r *randomTest) terms() (terms []string) {
	for _, term := range []string{"a", "b", "c=1", "d"} {
		if r.random.IntN(2) == 0 {
			terms = append(terms, term)
		}
	}
	return terms
}

func (r *randomTest) record() relayer.Record {
	r.next++
	return relayer.Record{
		ID: fmt.Sprintf("id-%d", r.next), Claim: fmt.Sprintf("claim-%d", r.next), Terms: r.terms(),
		Document: r.document(), Private: []byte("private"),
	}
}

// records returns new records with the revision that the next import may give them.
func (r *randomTest) records(count int) []relayer.Record {
	recs := make([]relayer.Record, count)
	for i := range recs {
		recs[i] = r.record()
		recs[i].Revision = 1
	}
	return recs
}

func (r *randomTest) importMany(count int) {
	recs := r.records(count)
	if err := r.store.Import(r.Context(), recs); err != nil {
		r.Fatal(err)
	}
	r.recs = append(r.recs, recs...)
}

func (r *randomTest) deleteRange(count int) {
	if len(r.recs) == 0 {
		return
	}
	first := r.random.IntN(len(r.recs))
	last := min(len(r.recs), first+count)
	deleteAll(r.T, r.store, r.recs[first:last])
	r.recs = slices.Delete(r.recs, first, last)
}

// changeSome makes concurrent writes, some of which must be rejected.
func (r *randomTest) changeSome() {
	var writes sync.WaitGroup
	var deleted []string
	for _, i := range r.random.Perm(len(r.recs))[:min(len(r.recs), r.random.IntN(200))] {
		rec, kind, document, terms := r.recs[i], r.random.IntN(5), r.document(), r.terms()
		if kind == 0 {
			deleted = append(deleted, rec.ID)
		}
		writes.Go(func() {
			var err, want error
			switch kind {
			case 0:
				err = r.store.Delete(r.Context(), rec.ID, rec.Revision, nil)
			case 1, 2:
				rec.Document, rec.Terms = document, terms
				r.recs[i], err = r.store.Update(r.Context(), rec)
			case 3:
				rec.Revision += 1 << 40
				_, err = r.store.Update(r.Context(), rec)
				want = relayer.ErrConflict
			case 4:
				_, err = r.store.Create(r.Context(), rec)
				want = relayer.ErrExists
			}
			if !errors.Is(err, want) {
				r.Errorf("write %d of %s: error is %v, want %v", kind, rec.ID, err, want)
			}
		})
	}
	created := r.record()
	writes.Go(func() {
		var err error
		if created, err = r.store.Create(r.Context(), created); err != nil {
			r.Error(err)
		}
	})
	writes.Wait()
	r.recs = slices.DeleteFunc(append(r.recs, created), func(rec relayer.Record) bool { return slices.Contains(deleted, rec.ID) })
}

// failCommit makes the next commit fail. The result reports whether it took effect
// nevertheless.
func (r *randomTest) failCommit() (tookEffect func() bool) {
	afterwards, panics, committed := r.random.IntN(2) == 0, r.random.IntN(2) == 0, false
	r.fail = func(commit func() error) error {
		if afterwards {
			if err := commit(); err != nil {
				return err
			}
			committed = true
		}
		r.fail = nil
		if panics {
			panic(errDisk)
		}
		return errDisk
	}
	return func() bool { return committed }
}

func (r *randomTest) failImport() {
	recs := r.records(1 + r.random.IntN(1500))
	tookEffect := r.failCommit()
	r.wantResult(r.store.Import(r.Context(), recs), tookEffect())
	if tookEffect() {
		r.recs = append(r.recs, recs...)
	}
}

// failUpdate updates or deletes a record.
func (r *randomTest) failUpdate() {
	if len(r.recs) == 0 {
		return
	}
	at := r.random.IntN(len(r.recs))
	isDelete, tookEffect := r.random.IntN(2) == 0, r.failCommit()
	rec := r.recs[at]
	rec.Document, rec.Terms = r.document(), r.terms()
	var err error
	if isDelete {
		err = r.store.Delete(r.Context(), rec.ID, rec.Revision, nil)
	} else {
		_, err = r.store.Update(r.Context(), rec)
	}
	r.wantResult(err, tookEffect())
	switch {
	case !tookEffect():
	case isDelete:
		r.recs = slices.Delete(r.recs, at, at+1)
	default:
		r.recs[at] = r.updated(rec)
	}
}

// wantResult fails unless the result of a write whose commit failed is its real one: the
// recovery knows it.
func (r *randomTest) wantResult(err error, tookEffect bool) {
	r.Helper()
	if tookEffect && err != nil || !tookEffect && !errors.Is(err, relayer.ErrUnavailable) {
		r.Fatalf("error is %v; the write took effect: %v", err, tookEffect)
	}
}

// updated returns a record with the revision that an update gave it whose result was lost.
func (r *randomTest) updated(rec relayer.Record) relayer.Record {
	found, err := r.store.Get(r.Context(), rec.ID)
	if err != nil {
		r.Fatal(err)
	}
	rec.Revision, rec.Sequence = found.Revision, found.Sequence
	return rec
}

func (r *randomTest) compareSome() {
	r.Helper()
	sizes := []int{0, 1, 2, 31, 100, 511, 512, 513, 1024, 1025, len(r.recs), math.MaxInt}
	offsets := []int{0, 1, 255, 256, 511, 512, 1024, len(r.recs) - 1, len(r.recs), len(r.recs) + 1, len(r.recs) / 2, math.MaxInt}
	for range 12 {
		offset := max(0, offsets[r.random.IntN(len(offsets))])
		if r.random.IntN(2) == 0 {
			offset = r.random.IntN(len(r.recs) + 1)
		}
		r.compare(page(offset, sizes[r.random.IntN(len(sizes))]))
	}
	for range 10 {
		query := page(r.random.IntN(len(r.recs)+1), r.random.IntN(100))
		for range 1 + r.random.IntN(2) {
			query.Terms = append(query.Terms, r.terms())
		}
		r.compare(query)
	}
}

func (r *randomTest) compare(query relayer.StoreQuery) {
	r.Helper()
	got, total, err := list(r.Context(), r.store, query)
	want, wantTotal := r.want(query)
	isSame := func(a, b relayer.Record) bool {
		return a.ID == b.ID && a.Claim == b.Claim && a.Revision == b.Revision && slices.Equal(a.Terms, b.Terms) && bytes.Equal(a.Document, b.Document)
	}
	if err != nil || total != wantTotal || !slices.EqualFunc(got, want, isSame) {
		r.Fatalf("List(%+v): %d records of %d, want %d of %d; error %v", query, len(got), total, len(want), wantTotal, err)
	}
}

func (r *randomTest) want(query relayer.StoreQuery) (want []relayer.Record, total int) {
	if query.Terms == nil { // a scan takes most of the time with the race detector
		from := r.recs[min(query.Offset, len(r.recs)):]
		return from[:min(query.Limit, len(from))], len(r.recs)
	}
	found, _ := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
		for i, rec := range r.recs {
			rec.Sequence = uint64(i + 1) // imports do not return it
			if !yield(rec, nil) {
				return
			}
		}
	}, query)
	return found.Records, found.Total
}

func (r *randomTest) compareAll() {
	r.compare(page(0, math.MaxInt))
	wantGets(r.T, r.store, r.recs)
}
