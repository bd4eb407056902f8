package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// selectable returns the record of a number, with the terms of a usual relayer. Half of the
// records have paused=true, a third network=0, and 100 of a million the label.
func selectable(i int) relayer.Record {
	terms := []string{
		fmt.Sprint("network=", i%3), fmt.Sprint("network_type=", i%3), "notification_id=ops",
		fmt.Sprint("paused=", i/3%2 == 0), fmt.Sprint("signer_id=", i%5000), fmt.Sprint("system_disabled=", i%100 == 0),
	}
	if i%10_000 == 0 {
		terms = slices.Insert(terms, 0, "label.team=payments")
	}
	return relayer.Record{
		ID: fmt.Sprintf("6b3c1f52-0d8e-4a4f-9a57-%012d", i), Terms: terms, Document: make([]byte, 600), Private: make([]byte, 200),
	}
}

func withoutTerms(i int) relayer.Record {
	rec := selectable(i)
	rec.Terms = nil
	return rec
}

// BenchmarkSelect compares pages of selections of a million relayers with the first page of
// all. A fifth of the relayers were updated, so that they are not in the order of memory.
// With -short there are 10,000.
func BenchmarkSelect(b *testing.B) {
	total := 1_000_000
	if testing.Short() {
		total = 10_000
	}
	store := memory.New()
	for i := range total {
		if _, err := store.Create(b.Context(), selectable(i)); err != nil {
			b.Fatal(err)
		}
	}
	for range total / 5 {
		rec, err := store.Get(b.Context(), selectable(rand.IntN(total)).ID)
		if err == nil {
			_, err = store.Update(b.Context(), rec)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	few, paused, network := []string{"label.team=payments"}, []string{"paused=true"}, []string{"network=0"}
	for _, c := range []struct {
		name  string
		query relayer.StoreQuery
		want  int
	}{
		{"rare", relayer.StoreQuery{Terms: [][]string{few}, Limit: 10}, total / 10_000},
		{"half/first", relayer.StoreQuery{Terms: [][]string{paused}, Limit: 10}, (total + 2) / 2},
		{"half/last", relayer.StoreQuery{Terms: [][]string{paused}, Offset: total/2 - 10, Limit: 10}, (total + 2) / 2},
		{"half and third", relayer.StoreQuery{Terms: [][]string{paused, network}, Limit: 10}, (total + 5) / 6},
		{"half and rare", relayer.StoreQuery{Terms: [][]string{paused, few}, Limit: 10}, -1},
		{"any of two", relayer.StoreQuery{Terms: [][]string{{"network=0", "network=1"}}, Limit: 10}, -1},
	} {
		b.Run(c.name, func(b *testing.B) {
			var all, selected []float64
			for b.Loop() {
				all = append(all, listTime(b, store, relayer.StoreQuery{Limit: 10}))
				selected = append(selected, listTime(b, store, c.query))
			}
			if page, err := store.List(b.Context(), c.query); err != nil || c.want >= 0 && page.Total/10 != c.want/10 {
				b.Fatalf("%d records, want %d, error %v", page.Total, c.want, err)
			}
			b.ReportMetric(median(selected)/median(all), "x-all")
			b.ReportMetric(median(selected)/1e3, "us/page")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func listTime(b *testing.B, store relayer.Store, query relayer.StoreQuery) float64 {
	const most = 20 * time.Millisecond
	start, calls := time.Now(), 0
	for ; calls < 2000 && time.Since(start) < most; calls++ {
		if _, err := store.List(context.Background(), query); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(calls)
}

// BenchmarkTerms compares writes of relayers with six terms with those of relayers without,
// and the memory that both need.
func BenchmarkTerms(b *testing.B) {
	total := 300_000
	if testing.Short() {
		total = 3000
	}
	times, used := make(map[string][]float64), make(map[string]float64)
	for b.Loop() {
		for kind, record := range map[string]func(int) relayer.Record{"without": withoutTerms, "with": selectable} {
			recs := make([]relayer.Record, total)
			for i := range recs {
				recs[i] = record(i)
			}
			before := heapInUse()
			store := memory.New()
			write := func(name string, one func(i int) error) {
				start := time.Now()
				for i := range recs {
					if err := one(i); err != nil {
						b.Fatal(err)
					}
				}
				times[kind+name] = append(times[kind+name], float64(time.Since(start).Nanoseconds())/float64(total))
			}
			update := func(i int) (err error) {
				recs[i], err = store.Update(b.Context(), recs[i])
				return err
			}
			write("create", func(i int) (err error) {
				recs[i], err = store.Create(b.Context(), recs[i])
				return err
			})
			used[kind] = float64(heapInUse()-before) / float64(total)
			write("update", update)
			for _, rec := range recs {
				if at := slices.Index(rec.Terms, "paused=true"); at >= 0 {
					rec.Terms[at] = "paused=unknown"
				}
			}
			write("change", update)
			write("delete", func(i int) error { return store.Delete(b.Context(), recs[i].ID, recs[i].Revision, nil) })
		}
	}
	for _, name := range []string{"create", "update", "change", "delete"} {
		without, with := median(times["without"+name]), median(times["with"+name])
		b.ReportMetric(with/without, "x-"+name)
		b.ReportMetric(with, "ns/"+name)
	}
	b.ReportMetric(used["with"]-used["without"], "B/record")
	b.ReportMetric(0, "ns/op")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
