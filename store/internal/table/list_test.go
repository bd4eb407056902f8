package table

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
)

func sequenced(sequence uint64) *Record { return &Record{sequence: sequence} }

// TestList_Random compares a list with a sorted slice: inserts at the end and in the
// middle, single deletes and runs of them, and pages at every kind of offset.
func TestList_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var records list
	var want []*Record
	position := func(sequence uint64) int {
		at, _ := slices.BinarySearchFunc(want, sequence, func(r *Record, sequence uint64) int { return int(r.sequence) - int(sequence) })
		return at
	}
	free := random.Perm(20_000)
	remove := func(at, count int) {
		for _, s := range want[at : at+count] {
			records.remove(s)
			free = append(free, int(s.sequence))
		}
		want = slices.Delete(want, at, at+count)
	}
	for range 400 {
		for range random.IntN(min(200, len(free))) {
			s := sequenced(uint64(free[0]))
			free = free[1:]
			records.insert(s)
			want = slices.Insert(want, position(s.sequence), s)
		}
		for range random.IntN(100) {
			if len(want) > 0 {
				remove(random.IntN(len(want)), 1)
			}
		}
		if at := random.IntN(len(want) + 1); random.IntN(20) == 0 {
			remove(at, (len(want)-at)*random.IntN(4)/3)
		}
		wantRecords(t, &records, want, random)
	}
	remove(0, len(want))
	wantRecords(t, &records, nil, random)
}

func wantRecords(t *testing.T, records *list, want []*Record, random *rand.Rand) {
	t.Helper()
	if records.size != len(want) {
		t.Fatalf("size is %d, want %d", records.size, len(want))
	}
	if got := records.appendRange(nil, 0, len(want)+1); !slices.Equal(got, want) {
		t.Fatalf("the list differs: %d records, want %d", len(got), len(want))
	}
	for range 5 {
		offset, limit := random.IntN(len(want)+10), random.IntN(1500)
		start := min(offset, len(want))
		page := want[start:min(start+limit, len(want))]
		if got := records.appendRange(nil, offset, limit); !slices.Equal(got, page) {
			t.Fatalf("page %d+%d of %d has %d records, want %d", offset, limit, len(want), len(got), len(page))
		}
	}
	wantSeeks(t, records, want, random)
}

// wantSeeks moves a cursor by small and large steps.
func wantSeeks(t *testing.T, records *list, want []*Record, random *rand.Rand) {
	t.Helper()
	c := cursor{list: records}
	for sequence := uint64(0); sequence < 20_010; sequence += 1 << random.IntN(12) {
		at, _ := slices.BinarySearchFunc(want, sequence, func(r *Record, sequence uint64) int { return int(r.sequence) - int(sequence) })
		if got := c.seek(sequence); at == len(want) && got != nil || at < len(want) && got != want[at] {
			t.Fatalf("record %v from %d on", got, sequence)
		}
	}
}

// If few records of each chunk remain, they are merged into one chunk.
func TestList_MergesChunks(t *testing.T) {
	for _, fromEnd := range []bool{false, true} {
		var records list
		var removed []*Record
		for i := range 4 * maxChunk {
			r := sequenced(uint64(i))
			records.insert(r)
			if i%64 != 0 {
				removed = append(removed, r)
			}
		}
		if fromEnd {
			slices.Reverse(removed)
		}
		for _, r := range removed {
			records.remove(r)
		}
		if len(records.chunks) != 1 || records.size != 4*maxChunk/64 {
			t.Errorf("from the end %t: %d records in %d chunks, want one chunk", fromEnd, records.size, len(records.chunks))
		}
	}
}

func TestList_OutsideRange(t *testing.T) {
	var records list
	records.insert(sequenced(7))
	for _, page := range [][2]int{{-1, 1}, {1, 1}, {0, 0}, {0, -1}} {
		if got := records.appendRange(nil, page[0], page[1]); len(got) != 0 {
			t.Errorf("page %v has %d records", page, len(got))
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
