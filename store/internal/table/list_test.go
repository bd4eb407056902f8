package table

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
)

func sequenced(sequence uint64) *Record { return &Record{Record: relayer.Record{Sequence: sequence}} }

// TestList_Random compares a list with a sorted slice: inserts at the end and in the
// middle, single deletes and runs of them, and pages at every kind of offset.
func TestList_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var records list
	var want []*Record
	position := func(sequence uint64) int {
		at, _ := slices.BinarySearchFunc(want, sequence, func(r *Record, sequence uint64) int { return int(r.Sequence) - int(sequence) })
		return at
	}
	free := random.Perm(20_000)
	remove := func(at, count int) {
		for _, s := range want[at : at+count] {
			records.remove(s)
			free = append(free, int(s.Sequence))
		}
		want = slices.Delete(want, at, at+count)
	}
	for range 400 {
		for range random.IntN(min(200, len(free))) {
			s := sequenced(uint64(free[0]))
			free = free[1:]
			records.put(s)
			want = slices.Insert(want, position(s.Sequence), s)
		}
		for range random.IntN(100) {
			if len(want) > 0 {
				remove(random.IntN(len(want)), 1)
			}
		}
		if at := random.IntN(len(want) + 1); random.IntN(20) == 0 {
			remove(at, (len(want)-at)*random.IntN(4)/3)
		}
		wantRecords(t, records, want, random)
	}
	remove(0, len(want))
	wantRecords(t, records, nil, random)
}

func wantRecords(t *testing.T, records list, want []*Record, random *rand.Rand) {
	t.Helper()
	if !slices.Equal(records, want) {
		t.Fatalf("the list has %d records, want %d", len(records), len(want))
	}
	for range 5 {
		offset, limit, after := random.IntN(len(want)+10), random.IntN(1500), uint64(random.IntN(2)*random.IntN(20_010))
		rest := slices.DeleteFunc(slices.Clone(want), func(r *Record) bool { return r.Sequence <= after && after > 0 })
		start := min(offset, len(rest))
		page := rest[start:min(start+limit, len(rest))]
		if got := records.page(relayer.StoreQuery{After: after, Offset: offset, Limit: limit}); !slices.Equal(got, page) {
			t.Fatalf("page %d+%d after %d of %d has %d records, want %d", offset, limit, after, len(want), len(got), len(page))
		}
	}
	var first, second list
	for _, r := range records {
		in := random.IntN(3)
		if in < 2 {
			first = append(first, r)
		}
		if in > 0 {
			second = append(second, r)
		}
	}
	if got := merged(first, second); !slices.Equal(got, records) {
		t.Fatalf("%d and %d records of %d are merged to %d", len(first), len(second), len(records), len(got))
	}
}

func TestList_OutsideRange(t *testing.T) {
	records := list{sequenced(7)}
	for _, page := range []relayer.StoreQuery{{Offset: -1, Limit: 1}, {Offset: 1, Limit: 1}, {}, {Limit: -1}, {After: 7, Limit: 1}, {After: math.MaxUint64, Limit: 1}} {
		if got := records.page(page); len(got) != 0 {
			t.Errorf("page %+v has %d records", page, len(got))
		}
	}
}

// The index has no list for a term that no record has.
func TestApply_UnusedTerms(t *testing.T) {
	records := New(Counters{NextSequence: 1, NextRevision: 1}, 0)
	for revision, terms := range [][]string{{"a", "b"}, {"b"}, {}} {
		rec := relayer.Record{ID: "id", Revision: uint64(revision), Terms: terms}
		b := records.Begin()
		write := b.Update
		if revision == 0 {
			write = b.Create
		}
		if err := write(NewRecord(rec)); err != nil {
			t.Fatal(err)
		}
		records.Apply(b)
		if len(records.byTerm) != len(terms) {
			t.Errorf("the index has %d lists, want %d", len(records.byTerm), len(terms))
		}
	}
}
