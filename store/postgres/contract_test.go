//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/storeutil"
)

// TestWatch_Unreachable: the sequences of a server that does not respond, or is away, end.
func TestWatch_Unreachable(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*pgserver.Server) error{"hangs": (*pgserver.Server).Pause, "is down": (*pgserver.Server).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := pgserver.Start(t)
			store, other := openAt(t, server.ConnString(), defaultTimeouts), openAt(t, server.ConnString(), defaultTimeouts)
			idle := watch(t, store)
			made := create(t, store, record("one"))
			idle.want(t, relayer.ChangeCreated, made)
			must(t, fail(server))
			begun := time.Now()
			since := watch(t, other)
			for what, got := range map[string]received{"begun before": idle.next(t), "begun since": since.next(t)} {
				if !errors.Is(got.err, relayer.ErrUnavailable) {
					t.Errorf("%s: received %v, error %v, want ErrUnavailable", what, got.RecordChange, got.err)
				}
			}
			if took := time.Since(begun); took < 13*time.Second || took > 15*time.Second+slack {
				t.Errorf("the sequences end after %v", took)
			}
			if name == "hangs" {
				must(t, server.Continue())
			}
		})
	}
}

// TestList_Queries compares random queries with what storeutil.Scan returns for them. The
// sequence numbers have wide gaps, and whole chunks of records are deleted.
func TestList_Queries(t *testing.T) {
	t.Parallel()
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	store, admin, schema := openWithAdmin(t)
	alphabet := []string{"a", "b", "%", "_", `\`, "é", "e", "'", " ", "日"}
	word := func(most int) string {
		var text strings.Builder
		for range random.IntN(most + 1) {
			text.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		return text.String()
	}
	var records []relayer.Record
	for i := range 1100 {
		records = append(records, relayer.Record{
			ID: numbered(i), Revision: uint64(i + 1), Text: word(8), Document: []byte("{}"), Note: []byte(word(3)), Private: []byte("p"),
			Terms: []string{fmt.Sprint("fifth=", i%5), fmt.Sprint("third=", i%3)},
		})
	}
	gap := 0
	for part := range slices.Chunk(records, 300) {
		must(t, store.Import(t.Context(), part))
		execute(t, admin, fmt.Sprintf(`UPDATE %s.state SET last_sequence = last_sequence + %d`, schema, 1<<(9*gap)))
		gap++
	}
	for _, i := range random.Perm(300) { // all of the second part, and some of the first
		remove(t, store, records[300+i])
		if i%3 == 0 {
			remove(t, store, records[i])
		}
	}
	all, err := store.List(t.Context(), relayer.StoreQuery{Limit: 2000})
	if err != nil || len(all.Records) != 700 {
		t.Fatalf("%d records, error %v", len(all.Records), err)
	}
	for range 150 {
		query := relayer.StoreQuery{Limit: random.IntN(30), Offset: []int{0, random.IntN(700), 2000}[random.IntN(3)]}
		query.After = []uint64{0, all.Records[random.IntN(700)].Sequence - uint64(random.IntN(2)), 1 << 63}[random.IntN(3)]
		for range random.IntN(3) {
			query.Terms = append(query.Terms, [][]string{{"fifth=1", "fifth=2"}, {"third=1"}, {"third=2", "x\x00"}, {}}[random.IntN(4)])
		}
		for range random.IntN(3) * random.IntN(7) {
			query.Contains = append(query.Contains, []string{word(2), word(1), "\xff", "a\x00"}[random.IntN(4)])
		}
		for range random.IntN(2) * random.IntN(200) {
			query.IDs = append(query.IDs, numbered(random.IntN(1200)))
		}
		want, err := storeutil.Scan(func(yield func(relayer.Record, error) bool) {
			for _, rec := range all.Records {
				if !yield(rec, nil) {
					return
				}
			}
		}, query)
		must(t, err)
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
	wantConsistent(t, store)
}
