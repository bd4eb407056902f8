//go:build unix

package postgres_test

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
)

var largest = flag.Int("largest", 100_000, "the most relayers that the benchmarks of reads fill a store with")

// benchStore has a connection for each of 64 clients.
func benchStore(b *testing.B) *postgres.Store {
	b.Helper()
	pool := newPoolWith(b, server.ConnString(), func(config *pgxpool.Config) { config.MaxConns = 66 })
	return openOn(b, pool, newSchema())
}

// BenchmarkCreate reports the creates of all clients in a second.
func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			store := benchStore(b)
			created := 0
			for b.Loop() {
				var next atomic.Int64
				n := 300 + 50*clients
				var writing sync.WaitGroup
				for range clients {
					writing.Go(func() {
						for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
							if _, err := store.Create(b.Context(), benchRecord(created+i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				writing.Wait()
				created += n
			}
			b.ReportMetric(float64(created)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkReads reads random IDs, pages at both ends, selections, and searches.
func BenchmarkReads(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		if size > *largest || testing.Short() && size > 1_000 {
			continue
		}
		b.Run(fmt.Sprintf("relayers=%d", size), func(b *testing.B) {
			store := benchStore(b)
			importInto(b, store, size)
			b.Run("get", func(b *testing.B) {
				for b.Loop() {
					get(b, store, benchRecord(rand.IntN(size)).ID)
				}
			})
			half, sixth := [][]string{{"half=1"}}, [][]string{{"half=1"}, {"third=1"}}
			for _, page := range []struct {
				name string
				relayer.StoreQuery
			}{
				{"first-page", relayer.StoreQuery{}},
				{"last-page", relayer.StoreQuery{Offset: size - 10}},
				{"list-of-100", relayer.StoreQuery{Limit: 100}},
				{"list-of-100-documents", relayer.StoreQuery{Limit: 100, DocumentsOnly: true}},
				{"page-of-100", relayer.StoreQuery{Terms: [][]string{{"tier=rare"}}, Offset: 50}},
				{"first-page-of-half", relayer.StoreQuery{Terms: half}},
				{"last-page-of-half", relayer.StoreQuery{Terms: half, Offset: size/2 - 10}},
				{"last-page-of-sixth", relayer.StoreQuery{Terms: sixth, Offset: size/6 - 10}},
				{"search", relayer.StoreQuery{Contains: []string{"relayer 7"}}},
				{"search-of-eight", relayer.StoreQuery{Contains: []string{"relayer 7", "relayer 77 ", "mainnet", "team 51", "nothing", "zzz", "sepolia", "payments"}}},
			} {
				page.Limit = cmp.Or(page.Limit, 10)
				b.Run(page.name, func(b *testing.B) {
					for b.Loop() {
						found, _, err := list(b.Context(), store, page.StoreQuery)
						if err != nil || len(found) != page.Limit {
							b.Fatalf("%d relayers, error %v", len(found), err)
						}
					}
				})
			}
		})
	}
}

// importInto fills a store with relayers, 100 of them with the term tier=rare.
func importInto(b *testing.B, store *postgres.Store, size int) {
	b.Helper()
	for first := 0; first < size; first += 1000 {
		records := make([]relayer.Record, min(1000, size-first))
		for i := range records {
			records[i] = benchRecord(first + i)
			if (first+i)%(size/100) == 0 {
				records[i].Terms = append(records[i].Terms, "tier=rare")
			}
		}
		if err := store.Import(b.Context(), records); err != nil {
			b.Fatal(err)
		}
	}
}

// benchRecord returns a record of typical size with an ID like a generated one.
func benchRecord(i int) relayer.Record {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(1<<60+i))
	binary.BigEndian.PutUint64(id[8:], uint64(i)*0x9e3779b97f4a7c15)
	name := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	return relayer.Record{
		ID:       name,
		Revision: uint64(i + 1),
		Terms: []string{
			"half=" + strconv.Itoa(i%2), "network=sepolia", "network_type=evm", "paused=false",
			"signer_id=" + strconv.Itoa(i), "system_disabled=false", "third=" + strconv.Itoa(i%3),
		},
		Text:     fmt.Sprintf("%s\x1frelayer %d of team %d", name, i, i%50),
		Note:     benchNote,
		Document: benchDocument,
		Private:  benchPrivate,
	}
}

var (
	benchDocument = make([]byte, 600)
	benchPrivate  = make([]byte, 200)
	benchNote     = []byte(`{"time":1700000000000,"actor":"deployer","action":"create"}`)
)
