package storetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer"
)

func listEmpty(t *testing.T, store relayer.Store) {
	for _, limit := range []int{0, 1, 100, math.MaxInt} {
		wantPage(t, store, 0, limit, nil)
		wantPage(t, store, 7, limit, nil)
	}
}

func listOrder(t *testing.T, store relayer.Store) {
	var all []relayer.Record
	for _, id := range []string{"m", "z", "a", "Z", "0", "-", "_", "mm", "9"} {
		all = append(all, mustCreate(t, store, sample(id)))
	}
	wantPage(t, store, 0, len(all), all)
	for i := range all {
		wantPage(t, store, i, 1, all)
	}
}

func listPages(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 47)
	wantEveryPage(t, store, all)
}

func listPagesAfterDeletes(t *testing.T, store relayer.Store) {
	patterns := []struct {
		name string
		gone func(i, n int) bool
	}{
		{"every second", func(i, _ int) bool { return i%2 == 0 }},
		{"the first half", func(i, n int) bool { return i < n/2 }},
		{"the last half", func(i, n int) bool { return i >= n/2 }},
		{"the middle", func(i, n int) bool { return i > n/4 && i < 3*n/4 }},
		{"all but the last", func(i, n int) bool { return i != n-1 }},
		{"all", func(int, int) bool { return true }},
	}
	random := rand.New(rand.NewPCG(1, 2))
	next := 0
	var all []relayer.Record
	for _, pattern := range patterns {
		for len(all) < 40 {
			all = append(all, mustCreate(t, store, sample(numbered(next))))
			next++
		}
		var gone, left []relayer.Record
		for i, rec := range all {
			if pattern.gone(i, len(all)) {
				gone = append(gone, rec)
			} else {
				left = append(left, rec)
			}
		}
		random.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
		for _, rec := range gone {
			mustDelete(t, store, rec)
		}
		t.Logf("%s deleted: %d left", pattern.name, len(left))
		wantEveryPage(t, store, left)
		all = left
	}
}

func listPastEnd(t *testing.T, store relayer.Store) {
	all := createMany(t, store, 3)
	for _, offset := range []int{3, 4, 100, math.MaxInt32, math.MaxInt - 1, math.MaxInt} {
		for _, limit := range []int{0, 1, 100, math.MaxInt} {
			wantPage(t, store, offset, limit, all)
		}
	}
	wantPage(t, store, 0, 0, all)
	wantPage(t, store, 0, math.MaxInt, all)
	wantPage(t, store, 2, math.MaxInt, all)
}

// wantEveryPage reads the whole list in pages of many sizes, and from every
// offset on.
func wantEveryPage(t *testing.T, store relayer.Store, all []relayer.Record) {
	t.Helper()
	for _, limit := range []int{1, 2, 7, 10, len(all), len(all) + 1} {
		for offset := 0; offset <= len(all); offset += max(limit, 1) {
			wantPage(t, store, offset, limit, all)
		}
	}
	for offset := range len(all) + 2 {
		wantPage(t, store, offset, 3, all)
	}
}
