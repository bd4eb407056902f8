package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// The figures are ratios of two things measured alternately in one run, because the
// speed of a machine changes from minute to minute. Each is the median of all samples.
var samples = 7

// BenchmarkCreate compares durable creates with loops over the engine alone, with one
// transaction and one sync per record. One loop puts the record, and the other one
// everything that a create puts: the record, the change and the state.
func BenchmarkCreate(b *testing.B) {
	for _, creators := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("creators=%d", creators), func(b *testing.B) {
			var toRecord, toAll []float64
			for b.Loop() {
				one, all := createRatios(b, creators)
				toRecord, toAll = append(toRecord, one), append(toAll, all)
			}
			b.ReportMetric(median(toRecord), "x-record-loop")
			b.ReportMetric(median(toAll), "x-same-puts-loop")
		})
	}
}

// createRatios returns the rate of creates divided by the rate of each loop.
func createRatios(b *testing.B, creators int) (toRecord, toAll float64) {
	store, _ := openTemp(b)
	record, all := openBare(b, putRecord), openBare(b, putAll)
	n := max(200, 40*creators)
	var ones, alls []float64
	for sample := range samples {
		one := record.rate(b, 200)
		creates := createRate(b, store, creators, sample*n, n)
		ones = append(ones, creates/one)
		alls = append(alls, creates/all.rate(b, 200))
	}
	return median(ones), median(alls)
}

func createRate(b testing.TB, store relayer.Store, creators, first, n int) float64 {
	b.Helper()
	return writeRate(b, creators, n, func(i int) error {
		_, err := store.Create(context.Background(), benchRecord(first+i))
		return err
	})
}

// writeRate returns the writes per second of n writes.
func writeRate(b testing.TB, writers, n int, write func(i int) error) float64 {
	b.Helper()
	var next atomic.Int64
	start := time.Now()
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := write(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkImport compares imports of 500 records with sequential creates of as many.
func BenchmarkImport(b *testing.B) {
	const page = 500
	store, _ := openTemp(b)
	next := 0
	var ratios []float64
	for b.Loop() {
		created := createRate(b, store, 1, next, page)
		imported := importRate(b, store, next+page, page)
		next += 2 * page
		ratios = append(ratios, imported/created)
	}
	b.ReportMetric(median(ratios), "x-lone-creates")
}

func importRate(b *testing.B, store *bolt.Store, first, n int) float64 {
	records := make([]relayer.Record, n)
	for i := range records {
		records[i] = benchRecord(first + i)
		records[i].Revision = uint64(1 + first + i)
	}
	start := time.Now()
	if err := store.Import(context.Background(), records); err != nil {
		b.Fatal(err)
	}
	return float64(n) / time.Since(start).Seconds()
}

// bareLoop is what a program without this package would do.
type bareLoop struct {
	db   *bbolt.DB
	put  func(tx *bbolt.Tx, i int) error
	next int
}

var bareBuckets = []string{"relayers", "history", "meta"}

func openBare(b *testing.B, put func(*bbolt.Tx, int) error) *bareLoop {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range bareBuckets {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return &bareLoop{db: db, put: put}
}

func (l *bareLoop) rate(b *testing.B, n int) float64 {
	start := time.Now()
	for range n {
		if err := l.db.Update(func(tx *bbolt.Tx) error { return l.put(tx, l.next) }); err != nil {
			b.Fatal(err)
		}
		l.next++
	}
	return float64(n) / time.Since(start).Seconds()
}

func putRecord(tx *bbolt.Tx, i int) error {
	rec := benchRecord(i)
	return tx.Bucket([]byte("relayers")).Put([]byte(rec.ID), slices.Concat([]byte(strings.Join(rec.Terms, ",")), []byte(rec.Text), rec.Note, rec.Document, rec.Private))
}

func putAll(tx *bbolt.Tx, i int) error {
	rec := benchRecord(i)
	key := append(binary.BigEndian.AppendUint64(nil, uint64(i)), rec.ID...)
	return errors.Join(
		tx.Bucket([]byte("relayers")).Put(key, slices.Concat([]byte(strings.Join(rec.Terms, ",")), []byte(rec.ID), []byte(rec.Text), rec.Note, rec.Document, rec.Private)),
		tx.Bucket([]byte("history")).Put(key[:8], slices.Concat([]byte(strings.Join(rec.Terms, ",")), []byte(rec.ID), []byte(rec.Text), rec.Note, rec.Document)),
		tx.Bucket([]byte("meta")).Put([]byte("state"), make([]byte, 36)),
	)
}

const small = 1_000

// With -short the benchmarks only show that they run.
var large = 1_000_000

// BenchmarkList compares the last page of a million relayers with the first. A tenth of
// the relayers was deleted at random.
func BenchmarkList(b *testing.B) {
	store := open(b, loadedFile(b, large))
	defer store.Close()
	_, total, err := list(b.Context(), store, page(0, 0))
	if err != nil {
		b.Fatal(err)
	}
	for _, limit := range []int{10, 100} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			var first, last []float64
			listTime(b, store, 0, limit)
			listTime(b, store, total-limit, limit)
			for b.Loop() {
				first = append(first, listTime(b, store, 0, limit))
				last = append(last, listTime(b, store, total-limit, limit))
			}
			b.ReportMetric(median(last)/median(first), "last/first")
			b.ReportMetric(median(first), "ns/first")
			b.ReportMetric(median(last), "ns/last")
		})
	}
}

func listTime(b *testing.B, store relayer.Store, offset, limit int) float64 {
	const calls = 2000
	start := time.Now()
	for range calls {
		if recs, _, err := list(context.Background(), store, page(offset, limit)); err != nil || len(recs) != limit {
			b.Fatal(len(recs), err)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / calls
}

// BenchmarkGet compares a get from a million relayers with one from a thousand, with
// random IDs. A map in memory that copies what it finds is the baseline: its times grow
// too, because a million records do not fit in the caches of the processor.
func BenchmarkGet(b *testing.B) {
	many, few := open(b, loadedFile(b, large)), open(b, loadedFile(b, small))
	defer many.Close()
	defer few.Close()
	manyIDs, fewIDs := listIDs(b, many), listIDs(b, few)
	getEach(b, many, manyIDs)
	getEach(b, few, fewIDs)
	manyMap, fewMap := mapOf(b, many), mapOf(b, few)
	var fromMany, fromFew, fromManyMap, fromFewMap []float64
	for b.Loop() {
		fromFew = append(fromFew, getTime(b, few.Get, fewIDs))
		fromMany = append(fromMany, getTime(b, many.Get, manyIDs))
		fromFewMap = append(fromFewMap, getTime(b, fewMap.get, fewIDs))
		fromManyMap = append(fromManyMap, getTime(b, manyMap.get, manyIDs))
	}
	b.ReportMetric(median(fromMany)/median(fromFew), "million/thousand")
	b.ReportMetric(median(fromManyMap)/median(fromFewMap), "map-million/thousand")
	b.ReportMetric(median(fromMany), "ns/million")
	b.ReportMetric(median(fromFew), "ns/thousand")
	b.ReportMetric(median(fromManyMap), "ns/map-million")
	b.ReportMetric(median(fromFewMap), "ns/map-thousand")
	b.ReportMetric(0, "ns/op")
}

// recordMap is the simplest store in memory: a map into one slice of bytes, without
// pointers for the garbage collector to follow.
type recordMap struct {
	spans map[benchID][2]int
	bytes []byte
}

// benchID has the length of the IDs of benchRecord.
type benchID [36]byte

func mapOf(b *testing.B, store relayer.Store) recordMap {
	b.Helper()
	recs, _, err := list(b.Context(), store, page(0, large))
	if err != nil {
		b.Fatal(err)
	}
	m := recordMap{spans: make(map[benchID][2]int, len(recs))}
	for _, rec := range recs {
		start := len(m.bytes)
		m.bytes = append(append(m.bytes, rec.Document...), rec.Private...)
		m.spans[benchID([]byte(rec.ID))] = [2]int{start, len(m.bytes)}
	}
	return m
}

func (m recordMap) get(_ context.Context, id string) (relayer.Record, error) {
	span := m.spans[benchID([]byte(id))]
	return relayer.Record{ID: id, Document: bytes.Clone(m.bytes[span[0]:span[1]])}, nil
}

// getEach reads every record before the clock starts.
func getEach(b *testing.B, store relayer.Store, ids []string) {
	b.Helper()
	for _, id := range ids {
		if _, err := store.Get(context.Background(), id); err != nil {
			b.Fatal(err)
		}
	}
}

// getTime draws the IDs before the clock starts.
func getTime(b *testing.B, get func(context.Context, string) (relayer.Record, error), ids []string) float64 {
	drawn := make([]string, 2000)
	for i := range drawn {
		drawn[i] = strings.Clone(ids[rand.IntN(len(ids))])
	}
	start := time.Now()
	for _, id := range drawn {
		if _, err := get(context.Background(), id); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(len(drawn))
}

// BenchmarkOpen opens a file of a hundred thousand and of a million relayers. The heap is what
// is live afterwards, and then while relayers are updated, divided by the bytes of the IDs,
// claims, terms, documents and private parts. So the quotient contains what the store adds to
// these: the texts and notes, and the indexes. The resident memory is what the open adds to
// that of the process, divided by the heap.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{large / 10, large} {
		b.Run(fmt.Sprint("relayers=", n), func(b *testing.B) {
			path := loadedFile(b, n)
			var took, heap, updated, resident []float64
			for b.Loop() {
				debug.FreeOSMemory()
				before, residentBefore := heapInUse(), residentMemory(b)
				start := time.Now()
				store := open(b, path)
				took = append(took, time.Since(start).Seconds())
				added, live := residentMemory(b)-residentBefore, float64(heapInUse()-before)
				size := recordBytes(b, store)
				heap, resident = append(heap, live/size), append(resident, added/live)
				updateSome(b, store, n/20)
				updated = append(updated, float64(heapInUse()-before)/size)
				if err := store.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(median(took), "s/open")
			b.ReportMetric(median(heap), "heap/records")
			b.ReportMetric(median(updated), "heap/records-updated")
			b.ReportMetric(median(resident), "resident/heap")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// residentMemory returns the resident memory of the process in bytes, or 0 if the system
// does not report it.
func residentMemory(b *testing.B) float64 {
	b.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	var size, pages int
	if err == nil {
		_, err = fmt.Sscan(string(statm), &size, &pages)
	}
	if err != nil {
		b.Log(err)
	}
	return float64(pages * os.Getpagesize())
}

func recordBytes(b *testing.B, store relayer.Store) (size float64) {
	b.Helper()
	_, total, err := list(b.Context(), store, page(0, 0))
	for offset := 0; offset < total && err == nil; offset += 1000 {
		var recs []relayer.Record
		recs, _, err = list(b.Context(), store, page(offset, 1000))
		for _, rec := range recs {
			size += float64(len(rec.ID) + len(rec.Claim) + len(strings.Join(rec.Terms, "")) + len(rec.Document) + len(rec.Private))
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// updateSome updates relayers at random places, many at a time.
func updateSome(b *testing.B, store relayer.Store, n int) {
	b.Helper()
	_, total, err := list(b.Context(), store, page(0, 0))
	if err != nil {
		b.Fatal(err)
	}
	var done sync.WaitGroup
	for worker := range 256 {
		done.Go(func() {
			for i := worker; i < n; i += 256 {
				recs, _, err := list(b.Context(), store, page(i*7919%total, 1))
				if err == nil {
					_, err = store.Update(b.Context(), recs[0])
				}
				if err != nil && !errors.Is(err, relayer.ErrConflict) {
					b.Error(err)
				}
			}
		})
	}
	done.Wait()
}

// BenchmarkReads measures single calls and their allocations.
func BenchmarkReads(b *testing.B) {
	store := open(b, loadedFile(b, small))
	defer store.Close()
	ids := listIDs(b, store)
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Get(context.Background(), ids[17]); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, limit := range []int{10, 100} {
		b.Run(fmt.Sprintf("list=%d", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := list(context.Background(), store, page(300, limit)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

var loaded = struct {
	sync.Mutex
	paths map[int]string
}{paths: make(map[int]string)}

// loadedFile returns a file after n creates and n/10 deletes. It is made once for all
// benchmarks of a run. TestMain removes it.
func loadedFile(b *testing.B, n int) string {
	b.Helper()
	loaded.Lock()
	defer loaded.Unlock()
	if path := loaded.paths[n]; path != "" {
		return path
	}
	dir, err := os.MkdirTemp("", "relayers-bench")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "relayers.db")
	store := open(b, path)
	createRate(b, store, 2048, 0, n)
	deleteTenth(b, store)
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	loaded.paths[n] = path
	return path
}

func deleteTenth(b *testing.B, store relayer.Store) {
	recs, _, err := list(b.Context(), store, page(0, large))
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	random.Shuffle(len(recs), func(i, j int) { recs[i], recs[j] = recs[j], recs[i] })
	deleteAll(b, store, recs[:len(recs)/10])
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		samples, large = 1, 10_000
	}
	code := m.Run()
	for _, path := range loaded.paths {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func listIDs(b *testing.B, store relayer.Store) []string {
	b.Helper()
	recs, _, err := list(b.Context(), store, page(0, large))
	if err != nil {
		b.Fatal(err)
	}
	ids := make([]string, len(recs))
	for i, rec := range recs {
		ids[i] = rec.ID
	}
	return ids
}

// benchRecord has the size of a usual relayer, and an ID like a generated one: 16 bytes
// in hex, near the one before it.
func benchRecord(i int) relayer.Record {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], 1<<60+uint64(i))
	binary.BigEndian.PutUint64(id[8:], uint64(i)*0x9e3779b97f4a7c15)
	name := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	return relayer.Record{
		ID:       name,
		Terms:    benchTerms,
		Text:     fmt.Sprintf("%s\x1frelayer %d of team %d", name, i, i%50),
		Note:     benchNote,
		Document: benchDocument,
		Private:  benchPrivate,
	}
}

// benchTerms are those of a usual relayer.
var benchTerms = []string{
	"network=sepolia", "network_type=evm", "notification_id=operations", "paused=false", "signer_id=local-signer", "system_disabled=false",
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
