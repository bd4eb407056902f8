//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/storeutil"
)

// TestWatch_PrivateParts has a watcher that reads changes long after they were made. The last
// one of each record has the private part, and no other one.
func TestWatch_PrivateParts(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema())
	begin := positionOf(t, store)
	var want []relayer.RecordChange
	note := func(kind relayer.ChangeKind, rec relayer.Record) relayer.Record {
		want = append(want, relayer.RecordChange{Kind: kind, Record: rec})
		return rec
	}
	for _, id := range []string{"a", "b"} {
		rec := note(relayer.ChangeCreated, create(t, store, with(record(id), "", id+"1")))
		rec = note(relayer.ChangeUpdated, update(t, store, with(rec, "changed", "")))
		rec = note(relayer.ChangeUpdated, update(t, store, with(rec, "", id+"2")))
		rec = note(relayer.ChangeUpdated, update(t, store, with(rec, "", id+"3")))
		rec = note(relayer.ChangeUpdated, update(t, store, with(rec, "again", "")))
		remove(t, store, note(relayer.ChangeDeleted, rec))
		note(relayer.ChangeCreated, create(t, store, with(record(id), "", id+"4")))
	}
	next := pull(t, store.Watch(t.Context(), begin))
	for i, c := range want {
		if i != len(want)/2-1 && i != len(want)-1 {
			c.Record.Private = nil
		}
		got := next()
		if got.err != nil || got.Kind != c.Kind || string(got.Record.Private) != string(c.Record.Private) || string(got.Record.Document) != string(c.Record.Document) {
			t.Fatalf("change %d: %s %v with the private part %s, error %v, want %s %s", i, got.Kind, got.Record, got.Record.Private, got.err, c.Kind, c.Record.Private)
		}
	}
}

func positionOf(t *testing.T, store relayer.Store) string {
	t.Helper()
	found, err := store.List(t.Context(), relayer.StoreQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Position
}

// TestList_Position lists pages of every kind during the writes of two Stores, and follows the
// changes after them. Each page and its changes lead to what is stored in the end.
func TestList_Position(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	stores := [2]*postgres.Store{open(t, schema), open(t, schema)}
	stop := make(chan struct{})
	var writing, following sync.WaitGroup
	for i := range 4 {
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				at := n % 6
				if n == 6 {
					at = n // stays
				}
				rec := create(t, stores[i%2], record(fmt.Sprintf("w%d-%d", i, at)))
				rec = update(t, stores[i%2], rec)
				if n != 6 {
					remove(t, stores[i%2], rec)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	copies := make([]map[string]uint64, 24)
	for i := range copies {
		following.Go(func() {
			time.Sleep(rand.N(300 * time.Millisecond))
			query := []relayer.StoreQuery{{Limit: 100}, {Terms: [][]string{{"common"}}, Limit: 100}, {Contains: []string{"text"}, Limit: 100, DocumentsOnly: true}}[i%3]
			found, err := stores[i%2].List(ctx, query)
			if err != nil || found.Total != len(found.Records) {
				t.Errorf("%d of %d, error %v", len(found.Records), found.Total, err)
				return
			}
			copied := make(map[string]uint64)
			for _, rec := range found.Records {
				copied[rec.ID] = rec.Revision
			}
			copies[i] = copied
			for change, err := range stores[1-i%2].Watch(ctx, found.Position) {
				rec := change.Record
				before, isThere := copied[rec.ID]
				switch {
				case err != nil:
					t.Error(err)
					return
				case change.Kind == relayer.ChangeHeartbeat:
				case isThere == (change.Kind == relayer.ChangeCreated) || before >= rec.Revision:
					t.Errorf("%s of %s to revision %d, which was %d", change.Kind, rec.ID, rec.Revision, before)
					return
				case change.Kind == relayer.ChangeDeleted:
					delete(copied, rec.ID)
				default:
					copied[rec.ID] = rec.Revision
				}
				if rec.ID == "end" {
					return
				}
			}
		})
	}
	time.Sleep(500 * time.Millisecond)
	close(stop)
	writing.Wait()
	end := create(t, stores[0], record("end"))
	following.Wait()
	recs, _, err := list(t.Context(), stores[0], relayer.StoreQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{end.ID: end.Revision}
	for _, rec := range recs {
		want[rec.ID] = rec.Revision
	}
	for i, copied := range copies {
		if !maps.Equal(copied, want) {
			t.Errorf("copy %d: %v, want %v", i, copied, want)
		}
	}
}

// TestWatch_Time: a watcher has every change that any Store has acknowledged before the time
// of a change or heartbeat.
func TestWatch_Time(t *testing.T) {
	t.Parallel()
	schema := newSchema()
	stores := [2]*postgres.Store{open(t, schema), open(t, schema)}
	begin := positionOf(t, stores[0])
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var acknowledged atomic.Pointer[[]time.Time] // by number
	acknowledged.Store(new([]time.Time))
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := range 300 {
			create(t, stores[n%2], record(numbered(n)))
			times := append(slices.Clone(*acknowledged.Load()), time.Now())
			acknowledged.Store(&times)
		}
	})
	for i, after := range []string{"", begin, begin} {
		begun := len(*acknowledged.Load())
		changes := stores[i%2].Watch(ctx, after)
		if after != "" {
			begun = 0
		}
		writing.Go(func() {
			seen, last := begun, time.Time{}
			heartbeats := 0
			for change, err := range changes {
				if err != nil {
					t.Error(err)
					return
				}
				if change.Kind == relayer.ChangeHeartbeat {
					heartbeats++
				} else {
					seen = int(change.Record.Revision)
				}
				if change.Time.Before(last) {
					t.Errorf("the time goes back from %v to %v", last, change.Time)
				}
				last = change.Time
				times := *acknowledged.Load()
				if missing := len(times) - seen; missing > 0 && times[seen].Before(change.Time) {
					t.Errorf("number %d was acknowledged %v before the time of %d", seen+1, change.Time.Sub(times[seen]), seen)
					return
				}
				if heartbeats == 2 {
					if seen != 300 || time.Since(last) > 5*time.Second+slack {
						t.Errorf("a heartbeat after %d changes has a time %v ago", seen, time.Since(last))
					}
					return
				}
			}
		})
	}
	writing.Wait()
}

// TestWatch_Heartbeats: an idle sequence has a heartbeat at least every 5 seconds, whose
// position resumes there.
func TestWatch_Heartbeats(t *testing.T) {
	t.Parallel()
	store := open(t, newSchema())
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	last, position := time.Now(), ""
	for change, err := range store.Watch(ctx, positionOf(t, store)) {
		if took := time.Since(last); err != nil || change.Kind != relayer.ChangeHeartbeat || took > 5*time.Second+slack {
			t.Fatalf("received %v, error %v, after %v", change, err, took)
		}
		if last = time.Now(); position != "" {
			break
		}
		position = change.Position
	}
	made := create(t, store, record("one"))
	if got := pull(t, store.Watch(ctx, position))(); !same(got.Record, made) {
		t.Errorf("received %v, error %v, want %v", got.Record, got.err, made)
	}
}

// TestWatch_Unreachable: the sequences of a server that does not respond, or is away, end.
func TestWatch_Unreachable(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*pgserver.Server) error{"hangs": (*pgserver.Server).Pause, "is down": (*pgserver.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgserver.Start(t)
			store, err := postgres.Open(t.Context(), server.ConnString())
			if err != nil {
				t.Fatal(err)
			}
			closeAtEnd(t, store)
			idle := watch(t, store)
			made := create(t, store, record("one"))
			idle.want(t, relayer.ChangeCreated, made)
			if err := fail(server); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			for what, got := range map[string]received{
				"begun before": idle.next(t),
				"begun since":  pull(t, store.Watch(t.Context(), ""))(),
			} {
				if !errors.Is(got.err, relayer.ErrUnavailable) {
					t.Errorf("%s: received %v, error %v, want ErrUnavailable", what, got.RecordChange, got.err)
				}
			}
			if took := time.Since(begun); took < 13*time.Second || took > 2*(15*time.Second+slack) {
				t.Errorf("the sequences end after %v", took)
			}
			if name == "hangs" {
				if err := server.Continue(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestList_Queries compares random queries with what storeutil.Scan returns for them.
func TestList_Queries(t *testing.T) {
	t.Parallel()
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	store := open(t, newSchema())
	alphabet := []string{"a", "b", "%", "_", `\`, "é", "e", "'", " ", "日"}
	word := func(most int) string {
		var text strings.Builder
		for range random.IntN(most + 1) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return text.String()
	}
	var records []relayer.Record
	for i := range 1500 {
		records = append(records, relayer.Record{
			ID: numbered(i), Revision: uint64(i + 1), Text: word(8), Document: []byte("{}"), Note: []byte(word(3)), Private: []byte("p"),
			Terms: []string{fmt.Sprint("fifth=", i%5), fmt.Sprint("third=", i%3)},
		})
	}
	for part := range slices.Chunk(records, 500) {
		if err := store.Import(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range random.Perm(1500)[:700] {
		remove(t, store, records[i])
	}
	all, err := store.List(t.Context(), relayer.StoreQuery{Limit: 2000})
	if err != nil || len(all.Records) != 800 {
		t.Fatalf("%d records, error %v", len(all.Records), err)
	}
	for range 600 {
		query := relayer.StoreQuery{Limit: random.IntN(30), Offset: []int{0, random.IntN(50), 2000}[random.IntN(3)]}
		query.After = []uint64{0, uint64(random.IntN(1700)), 1 << 63}[random.IntN(3)]
		for range random.IntN(3) {
			query.Terms = append(query.Terms, [][]string{{"fifth=1", "fifth=2"}, {"third=1"}, {"third=2", "x\x00"}, {}}[random.IntN(4)])
		}
		for range random.IntN(3) * random.IntN(7) {
			query.Contains = append(query.Contains, []string{word(2), word(1), "\xff", "a\x00"}[random.IntN(4)])
		}
		for range random.IntN(2) * random.IntN(200) {
			query.IDs = append(query.IDs, numbered(random.IntN(1600)))
		}
		want, err := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
			for _, rec := range all.Records {
				if !yield(rec, nil) {
					return
				}
			}
		}, query)
		if err != nil {
			t.Fatal(err)
		}
		for _, query.DocumentsOnly = range []bool{false, true} {
			got, err := store.List(t.Context(), query)
			if err != nil || got.Total != want.Total || got.Position != all.Position || !slices.EqualFunc(got.Records, want.Records, func(got, want relayer.Record) bool {
				if query.DocumentsOnly {
					return got.ID == want.ID && got.Revision == want.Revision && got.Sequence == want.Sequence && string(got.Document) == string(want.Document) && string(got.Note) == string(want.Note)
				}
				return same(got, want)
			}) {
				t.Fatalf("%+v: %d of %d at %s, error %v, want %d of %d", query, len(got.Records), got.Total, got.Position, err, len(want.Records), want.Total)
			}
		}
	}
}
