package crash

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/transfer"
)

// TestBolt_KilledWhileWriting kills a child that writes with many goroutines. The
// next child continues with the same file.
func TestBolt_KilledWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relayers.db")
	killWhileWriting(t, task{Store: boltStore, Path: path}, func() contents { return survivors(t, path) })
}

// killWhileWriting kills a child in each round and compares what is left with what
// was acknowledged.
func killWhileWriting(t *testing.T, given task, survivors func() contents) {
	t.Helper()
	known := newLedger()
	inFlight, carriedOut := 0, 0
	for given.Round = range *rounds {
		run(t, given, ready, upTo(80*time.Millisecond), known.note)
		left := survivors()
		if found := known.compare(left); !found.isEmpty() {
			t.Fatalf("round %d: %v", given.Round, found)
		}
		inFlight += len(known.inFlight)
		carriedOut += known.carriedOut(left.records)
		known.adopt(left.records)
	}
	if known.acknowledged == 0 {
		t.Error("no write was acknowledged")
	}
	t.Logf("%d rounds: %d writes acknowledged, 0 lost; %d in flight: %d carried out, the others not at all",
		*rounds, known.acknowledged, inFlight, carriedOut)
}

// TestControl_EarlyAcknowledgement proves that the comparison can fail.
func TestControl_EarlyAcknowledgement(t *testing.T) {
	const most = 20
	for round := range most {
		path := filepath.Join(t.TempDir(), "relayers.db")
		known := newLedger()
		run(t, task{Round: round, Store: earlyStore, Path: path}, ready, 10*time.Millisecond+upTo(30*time.Millisecond), known.note)
		if found := known.compare(survivors(t, path)); len(found.lost) > 0 {
			t.Logf("round %d: %d of %d acknowledged creates lost", round, len(found.lost), known.acknowledged)
			return
		}
	}
	t.Errorf("a store that acknowledges before it commits lost nothing in %d rounds", most)
}

// TestBolt_KilledWhileCreatingFile kills a child in its first moments. The file is
// then absent, or a whole store.
func TestBolt_KilledWhileCreatingFile(t *testing.T) {
	absent, whole := 0, 0
	for round := range *rounds {
		path := filepath.Join(t.TempDir(), "relayers.db")
		known := newLedger()
		run(t, task{Round: round, Store: boltStore, Path: path}, opening, upTo(2*time.Millisecond), known.note)
		if _, err := os.Stat(path); err == nil {
			whole++
		} else {
			absent++
		}
		if found := known.compare(survivors(t, path)); !found.isEmpty() {
			t.Fatalf("round %d: %v", round, found)
		}
	}
	t.Logf("%d rounds: the file was absent after %d and whole after %d", *rounds, absent, whole)
}

func upTo(most time.Duration) time.Duration { return rand.N(most) }

// survivors opens and checks the file that is left, and returns its contents.
func survivors(t *testing.T, path string) contents {
	t.Helper()
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	defer store.Close()
	return checkedContents(t, store)
}

type checkedStore interface {
	relayer.Store
	transfer.Checker
}

// contents are the records of a store, and the latest changes of its history.
type contents struct {
	records []relayer.Record
	history []relayer.RecordChange
}

// latestChanges is more than a round makes.
const latestChanges = 20_000

// checkedContents checks a store and returns its contents.
func checkedContents(t *testing.T, store checkedStore) contents {
	t.Helper()
	if err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := store.List(t.Context(), relayer.StoreQuery{Limit: 1 << 30})
	if err != nil || all.Total != len(all.Records) {
		t.Fatalf("%d records, total %d, error %v", len(all.Records), all.Total, err)
	}
	history, err := store.History(t.Context(), relayer.HistoryQuery{Limit: latestChanges})
	if err != nil {
		t.Fatal(err)
	}
	return contents{all.Records, history}
}
