package storetest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/limits"
)

// vocabulary has few terms, so that every query selects some of the records.
var vocabulary = []string{"a", "b", "c", "d", "e=1", "e=10"}

func randomTerms(random *rand.Rand) (terms []string) {
	for _, term := range vocabulary {
		if random.IntN(2) == 0 {
			terms = append(terms, term)
		}
	}
	return terms
}

func randomQuery(random *rand.Rand, all []relayer.Record) relayer.StoreQuery {
	most := len(all)
	query := relayer.StoreQuery{Offset: random.IntN(most + 2), Limit: random.IntN(most + 2)}
	if random.IntN(2) == 0 {
		query.Offset = 0
	}
	for range random.IntN(4) {
		terms := []string{}
		for range random.IntN(10) / 3 {
			terms = append(terms, append(vocabulary, "unknown", "e=", "e=1 ")[random.IntN(len(vocabulary)+3)])
		}
		query.Terms = append(query.Terms, terms)
	}
	if random.IntN(4) == 0 {
		for range 1 + random.IntN(5) {
			query.IDs = append(query.IDs, numbered(random.IntN(most+2)))
		}
	}
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(2) {
			query.Contains = append(query.Contains, randomText(random, 2))
		}
	}
	if random.IntN(3) == 0 {
		query.After = all[random.IntN(most)].Sequence
	}
	query.DocumentsOnly = random.IntN(3) == 0
	return query
}

type kept struct{ shared, copies []relayer.Record }

func (k *kept) add(recs ...relayer.Record) {
	for _, rec := range recs {
		k.shared = append(k.shared, rec)
		rec.Terms, rec.Document = slices.Clone(rec.Terms), bytes.Clone(rec.Document)
		rec.Private, rec.Note = bytes.Clone(rec.Private), bytes.Clone(rec.Note)
		rec.Text = strings.Clone(rec.Text)
		k.copies = append(k.copies, rec)
	}
}

func (k *kept) wantUnchanged(t *testing.T) {
	t.Helper()
	for i, rec := range k.shared {
		if diff := difference(rec, k.copies[i]); diff != "" {
			t.Fatalf("the store has changed the memory of a record that it was given or has returned: %s", diff)
		}
	}
}

// listAmongWrites compares random queries with a model among random writes, several times
// each: a store may keep what it has read before.
func listAmongWrites(t *testing.T, store relayer.Store) {
	random := newRandom(t)
	w := watch(t, store)
	var all []relayer.Record
	var seen kept
	for next := range 300 {
		i := random.IntN(max(1, len(all)))
		rec := sample(numbered(next))
		rec.Terms, rec.Document = randomTerms(random), rec.Document[:random.IntN(2)*random.IntN(len(rec.Document))]
		rec.Text = randomText(random, 6)
		switch {
		case len(all) < 60 || next%3 == 0:
			seen.add(rec)
			all = append(all, mustCreate(t, store, rec))
			seen.add(all[len(all)-1])
		case next%3 == 1:
			rec.ID, rec.Revision, rec.Sequence = all[i].ID, all[i].Revision, all[i].Sequence
			rec.Document = bytes.Repeat([]byte("x"), random.IntN(300))
			seen.add(rec)
			all[i] = mustUpdate(t, store, rec)
			seen.add(all[i])
		default:
			mustDelete(t, store, all[i])
			all = slices.Delete(all, i, i+1)
		}
		for range 3 {
			page := wantSelected(t, store, randomQuery(random, all), all)
			seen.add(page[:min(3, len(page))]...)
		}
		seen.add(mustGet(t, store, all[random.IntN(len(all))].ID))
	}
	for _, change := range w.readUntil(t, mustCreate(t, store, sample("last"))) {
		seen.add(change.Record)
	}
	mustDelete(t, store, mustGet(t, store, "last"))
	wantPage(t, store, 0, len(all), all)
	seen.wantUnchanged(t)
}

// termsAtLimits uses terms that a store may confuse: terms compare byte by byte.
func termsAtLimits(t *testing.T, store relayer.Store) {
	terms := []string{
		"a", "A", "a ", " a", "ab", "a%", "_", "a_", "a,b", "{a}", `"a"`, `a\`, "a'b", "NULL", "\x01", "\n",
		"é", "e\u0301", "\u00a0", "\U0010ffff", strings.Repeat("t", limits.Term),
		strings.Repeat("t", limits.Term-1), strings.Repeat("é", limits.Term/2),
	}
	most := sample("most")
	most.Terms = nil
	for i := range limits.Terms {
		most.Terms = append(most.Terms, fmt.Sprintf("%03d%s", i, strings.Repeat("t", limits.Term-3)))
	}
	none := sample("none")
	none.Terms = nil
	all := []relayer.Record{mustCreate(t, store, most), mustCreate(t, store, none)}
	for i, term := range terms {
		rec := sample(numbered(i))
		rec.Terms = []string{term}
		all = append(all, mustCreate(t, store, rec))
	}
	for _, term := range append(terms, most.Terms[0], most.Terms[limits.Terms-1], "other", "") {
		wantSelected(t, store, relayer.StoreQuery{Terms: [][]string{{term}}, Limit: 10}, all)
	}
	var every [][]string
	for _, term := range most.Terms {
		every = append(every, []string{"other", term})
	}
	for _, query := range []relayer.StoreQuery{
		{Limit: 100},
		{Terms: [][]string{terms}, Offset: 3, Limit: 10},
		{Terms: [][]string{append(most.Terms, terms...)}, Limit: math.MaxInt},
		{Terms: every, Limit: 10},
		{Terms: [][]string{{}}, Limit: 10},
		{Terms: [][]string{{"a"}, {"a"}}, Limit: 10},
		{Terms: [][]string{{"a", "a"}}, IDs: []string{numbered(0), numbered(0)}, Limit: 10},
		{IDs: []string{"none", "unknown", "most"}, Offset: 1, Limit: math.MaxInt},
		{Terms: [][]string{{"a"}}, Offset: math.MaxInt, Limit: math.MaxInt},
	} {
		wantSelected(t, store, query, all)
	}
}

// readersSeeSelections lists while each record changes between two terms, and between two texts with
// them. A record always has one of them, and never both.
func readersSeeSelections(t *testing.T, store relayer.Store) {
	const records, fewest, most, reads = 8, 60, 3000, 2000
	all := createMany(t, store, records)
	change := func(at int, term string) {
		all[at].Terms, all[at].Text = []string{term}, term
		all[at] = mustUpdate(t, store, all[at])
	}
	for i := range all {
		change(i, "a")
	}
	var listed atomic.Int64
	stop := repeatUntilStopped(t, func() error {
		listed.Add(1)
		for _, c := range []struct {
			terms    [][]string
			contains []string
			want     int
		}{
			{[][]string{{"a", "b"}}, nil, records},
			{[][]string{{"a"}, {"b"}}, nil, 0},
			{[][]string{{"b"}}, nil, -1},
			{nil, []string{"a", "b"}, records},
			{[][]string{{"a"}}, []string{"b"}, 0},
			{nil, []string{"b"}, -1},
		} {
			query := relayer.StoreQuery{Terms: c.terms, Contains: c.contains, Limit: 2 * records}
			page, err := store.List(t.Context(), query)
			if err != nil || len(page.Records) != page.Total || c.want >= 0 && page.Total != c.want {
				return fmt.Errorf("list of %+v: %d records and a total of %d, error %v", query, len(page.Records), page.Total, err)
			}
			for _, rec := range page.Records {
				if !selects(query, rec) {
					return fmt.Errorf("list of %+v: record with the terms %q and the text %q", query, rec.Terms, rec.Text)
				}
			}
		}
		return nil
	})
	for i := 0; i < fewest || i < most && listed.Load() < reads && !t.Failed(); i++ {
		change(i*5%records, string("ba"[i/records%2]))
	}
	stop()
	wantPage(t, store, 0, 100, all)
}
