//go:build unix

package postgres_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/transfer"
)

// The figures are ratios of measurements that alternate within one run, because the
// speed of a machine varies. Each is the median of its rounds. The other stores, and
// the statements that a program without this package would send, are measured next to
// this one. All get a context that can be canceled, as a request has.
var turns = 5

var largest = flag.Int("largest", 100_000, "the most relayers that the benchmarks of reads fill a store with")

// contender is one of the stores that are compared.
type contender struct {
	name string
	relayer.Store
}

func contenders(b *testing.B) []contender {
	b.Helper()
	if testing.Short() {
		turns = 1
	}
	file, err := bolt.Open(b.Context(), filepath.Join(b.TempDir(), "relayers.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	pool := benchPool(b)
	store, err := postgres.New(b.Context(), pool, newSchema())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return []contender{{"memory", memory.New()}, {"bolt", file}, {"postgres", store}, {"bare", newBare(b, pool)}}
}

// benchPool returns a pool with a connection for each of 64 clients.
func benchPool(b *testing.B) *pgxpool.Pool {
	b.Helper()
	config, err := pgxpool.ParseConfig(server.ConnString())
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 66
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// bare sends the least possible statements: one row, one insert, one commit, without
// claims, counts, changes or a common order. It finds pages by key and counts no total.
type bare struct {
	relayer.Store
	pool  *pgxpool.Pool
	table string
}

func newBare(b *testing.B, pool *pgxpool.Pool) *bare {
	b.Helper()
	table := fmt.Sprintf("bare_%d", schemas.Add(1))
	_, err := pool.Exec(b.Context(), `CREATE TABLE `+table+` (
		position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text COLLATE "C" UNIQUE, document bytea, private bytea)`)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = pool.Exec(context.Background(), `DROP TABLE `+table) })
	return &bare{pool: pool, table: table}
}

func (s *bare) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	_, err := s.pool.Exec(ctx, `INSERT INTO `+s.table+` (id, document, private) VALUES ($1, $2, $3)`, rec.ID, rec.Document, rec.Private)
	return rec, err
}

func (s *bare) Import(ctx context.Context, records []relayer.Record) error {
	var ids []string
	for _, rec := range records {
		ids = append(ids, rec.ID)
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO `+s.table+` (id, document, private) SELECT id, $2, $3 FROM unnest($1::text[]) AS id`,
		ids, benchDocument, benchPrivate)
	return err
}

func (s *bare) Get(ctx context.Context, id string) (rec relayer.Record, err error) {
	err = s.pool.QueryRow(ctx, `SELECT id, document, private FROM `+s.table+` WHERE id = $1`, id).
		Scan(&rec.ID, &rec.Document, &rec.Private)
	return rec, err
}

// List finds a page by key, as if the offset were one. It selects nothing.
func (s *bare) List(ctx context.Context, query relayer.StoreQuery) (found relayer.Listing, err error) {
	rows, err := s.pool.Query(ctx, `SELECT id, document, private FROM `+s.table+` WHERE position > $1 ORDER BY position LIMIT $2`, query.Offset, query.Limit)
	if err != nil {
		return relayer.Listing{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var rec relayer.Record
		if err := rows.Scan(&rec.ID, &rec.Document, &rec.Private); err != nil {
			return relayer.Listing{}, err
		}
		found.Records = append(found.Records, rec)
	}
	return found, rows.Err()
}

// withoutTerms is a store of records that have no terms.
type withoutTerms struct{ relayer.Store }

func newWithoutTerms(b *testing.B) withoutTerms {
	b.Helper()
	store, err := postgres.New(b.Context(), benchPool(b), newSchema())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return withoutTerms{store}
}

func (s withoutTerms) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	rec.Terms = nil
	return s.Store.Create(ctx, rec)
}

func BenchmarkCreate(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			all := append(contenders(b), contender{"without-terms", newWithoutTerms(b)})
			rates := make(map[string][]float64)
			next := 0
			for b.Loop() {
				for range turns {
					n := 300 + 50*clients
					for _, c := range all {
						rates[c.name] = append(rates[c.name], createRate(b, c, clients, next, n))
					}
					next += n
				}
			}
			for _, c := range all {
				b.ReportMetric(median(rates[c.name]), c.name+"/s")
			}
			for _, other := range []string{"bare", "without-terms"} {
				b.ReportMetric(median(rates["postgres"])/median(rates[other]), "postgres/"+other)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func createRate(b *testing.B, store relayer.Store, clients, first, n int) float64 {
	var next atomic.Int64
	start := time.Now()
	var done sync.WaitGroup
	for range clients {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if _, err := store.Create(b.Context(), benchRecord(first+int(i))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkHistory_Writes compares creates, each with an update, of a Store that retains a history
// with those of one whose changes are pruned soon after they have been made.
func BenchmarkHistory_Writes(b *testing.B) {
	if testing.Short() {
		turns = 1
	}
	feed := postgres.WithChangeRetention(100 * time.Millisecond)
	for _, clients := range []int{1, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var stores [2]relayer.Store
			for i, history := range []postgres.Option{postgres.WithHistory(1000, time.Hour), postgres.WithHistory(0, 0)} {
				store, err := postgres.New(b.Context(), benchPool(b), newSchema(), feed, history)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { _ = store.Close() })
				stores[i] = withUpdate{store}
			}
			var ratios []float64
			next, n := 0, 300+50*clients
			for b.Loop() {
				for range 2 * turns {
					with, without := createRate(b, stores[0], clients, next, n), createRate(b, stores[1], clients, next, n)
					ratios = append(ratios, with/without)
					next += n
				}
			}
			b.ReportMetric(median(ratios), "with/without")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// withUpdate updates each record that it has created.
type withUpdate struct{ relayer.Store }

func (s withUpdate) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	made, err := s.Store.Create(ctx, rec)
	if err != nil {
		return made, err
	}
	return s.Update(ctx, made)
}

// BenchmarkReads reads random IDs, and pages of 10 at both ends.
func BenchmarkReads(b *testing.B) {
	for _, size := range []int{1_000, 100_000, 1_000_000} {
		if size > *largest || testing.Short() && size > 1_000 {
			continue
		}
		b.Run(fmt.Sprintf("relayers=%d", size), func(b *testing.B) {
			all := filled(b, size)
			b.Run("get", func(b *testing.B) {
				compare(b, all, func(c contender) error {
					_, err := c.Get(b.Context(), benchRecord(rand.IntN(size)).ID)
					return err
				})
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
			} {
				b.Run(page.name, func(b *testing.B) { compareLists(b, all, page.StoreQuery) })
			}
		})
	}
}

func compareLists(b *testing.B, all []contender, query relayer.StoreQuery) {
	query.Limit = cmp.Or(query.Limit, 10)
	if len(query.Terms) > 0 {
		all = all[:3] // bare selects nothing
	}
	compare(b, all, func(c contender) error {
		found, err := c.List(b.Context(), query)
		if err == nil && len(found.Records) != query.Limit {
			err = fmt.Errorf("%d relayers", len(found.Records))
		}
		return err
	})
}

// BenchmarkSearch compares a search for eight texts with that for one, in milliseconds. Few
// relayers match. With -short there are 1,000.
func BenchmarkSearch(b *testing.B) {
	size := 200_000
	if testing.Short() {
		size = 1_000
	}
	store := contenders(b)[2]
	importInto(b, store, size)
	times := make(map[string][]float64)
	for b.Loop() {
		for name, texts := range map[string][]string{
			"search":          {"relayer 7 "},
			"search-of-eight": {"relayer 7 ", "relayer 77 ", "mainnet", "team 51", "nothing", "zzz", "sepolia", "payments"},
		} {
			start := time.Now()
			if _, err := store.List(b.Context(), relayer.StoreQuery{Contains: texts, Limit: 10}); err != nil {
				b.Fatal(err)
			}
			times[name] = append(times[name], time.Since(start).Seconds()*1000)
		}
	}
	for name, took := range times {
		b.ReportMetric(median(took), name+"-ms")
	}
	b.ReportMetric(median(times["search-of-eight"])/median(times["search"]), "eight/one")
	b.ReportMetric(0, "ns/op")
}

// compare reports the time of a call for each contender, in microseconds.
func compare(b *testing.B, all []contender, call func(contender) error) {
	times := make(map[string][]float64)
	for b.Loop() {
		for range turns {
			for _, c := range all {
				times[c.name] = append(times[c.name], timeOf(b, func() error { return call(c) }))
			}
		}
	}
	for _, c := range all {
		b.ReportMetric(median(times[c.name]), c.name+"-µs")
		if c.name == "bare" {
			b.ReportMetric(median(times["postgres"])/median(times["bare"]), "postgres/bare")
		}
	}
	b.ReportMetric(0, "ns/op")
}

func timeOf(b *testing.B, call func() error) float64 {
	const calls = 300
	start := time.Now()
	for range calls {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Microseconds()) / calls
}

// filled returns contenders that hold size relayers, 100 of them with the term tier=rare.
func filled(b *testing.B, size int) []contender {
	b.Helper()
	all := contenders(b)
	for _, c := range all {
		importInto(b, c, size)
	}
	return all
}

func importInto(b *testing.B, c contender, size int) {
	b.Helper()
	for first := 0; first < size; first += 1000 {
		records := make([]relayer.Record, min(1000, size-first))
		for i := range records {
			records[i] = benchRecord(first + i)
			if (first+i)%(size/100) == 0 {
				records[i].Terms = append(records[i].Terms, "tier=rare")
			}
		}
		if err := c.Store.(transfer.Importer).Import(b.Context(), records); err != nil {
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

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
