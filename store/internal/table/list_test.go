package table_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-relayer/relayer/store/internal/table"
)

func sequenced(sequence, revision uint64) *table.Record {
	return table.Stored{Sequence: sequence, Revision: revision, Parts: []byte("a"), IDSize: 1}.Record()
}

// TestList_Random compares a list with a sorted slice: inserts at the end and in the
// middle, single deletes and runs of them, replacements, and pages at every kind of
// offset.
func TestList_Random(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var list table.List
	var want []*table.Record
	position := func(sequence uint64) int {
		at, _ := slices.BinarySearchFunc(want, sequence, func(r *table.Record, s uint64) int { return int(r.Sequence()) - int(s) })
		return at
	}
	free := random.Perm(20_000)
	remove := func(at, count int) {
		for _, r := range want[at : at+count] {
			list.Remove(r)
			free = append(free, int(r.Sequence()))
		}
		want = slices.Delete(want, at, at+count)
	}
	for range 400 {
		for range random.IntN(min(200, len(free))) {
			r := sequenced(uint64(free[0]), 1)
			free = free[1:]
			list.Insert(r)
			want = slices.Insert(want, position(r.Sequence()), r)
		}
		for range random.IntN(100) {
			if len(want) > 0 {
				remove(random.IntN(len(want)), 1)
			}
		}
		if at := random.IntN(len(want) + 1); random.IntN(20) == 0 {
			remove(at, (len(want)-at)*random.IntN(4)/3)
		}
		for range random.IntN(20) {
			if at := random.IntN(len(want) + 1); at < len(want) {
				want[at] = sequenced(want[at].Sequence(), 2)
				list.Replace(want[at])
			}
		}
		wantRecords(t, &list, want, random)
	}
	remove(0, len(want))
	wantRecords(t, &list, nil, random)
}

func wantRecords(t *testing.T, list *table.List, want []*table.Record, random *rand.Rand) {
	t.Helper()
	if list.Len() != len(want) {
		t.Fatalf("length is %d, want %d", list.Len(), len(want))
	}
	if got := list.AppendRange(nil, 0, len(want)+1); !slices.Equal(got, want) {
		t.Fatalf("the list differs: %d records, want %d", len(got), len(want))
	}
	for range 5 {
		offset, limit := random.IntN(len(want)+10), random.IntN(1500)
		start := min(offset, len(want))
		page := want[start:min(start+limit, len(want))]
		if got := list.AppendRange(nil, offset, limit); !slices.Equal(got, page) {
			t.Fatalf("page %d+%d of %d has %d records, want %d", offset, limit, len(want), len(got), len(page))
		}
		sequence := uint64(random.IntN(20_010))
		at := slices.IndexFunc(want, func(r *table.Record) bool { return r.Sequence() >= sequence })
		page = nil
		if at >= 0 {
			page = want[at:min(at+limit, len(want))]
		}
		if got := list.AppendFrom(nil, sequence, limit); !slices.Equal(got, page) {
			t.Fatalf("%d records from %d on, want %d", len(got), sequence, len(page))
		}
	}
}

func TestList_OutsideRange(t *testing.T) {
	var list table.List
	list.Insert(sequenced(7, 1))
	for _, page := range [][2]int{{-1, 1}, {1, 1}, {0, 0}, {0, -1}} {
		if got := list.AppendRange(nil, page[0], page[1]); len(got) != 0 {
			t.Errorf("page %v has %d records", page, len(got))
		}
	}
}
