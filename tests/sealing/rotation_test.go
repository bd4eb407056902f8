//go:build unix

package sealing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

const (
	writers = 16
	fixed   = 60 // relayers that only the rotation changes
)

// task is the work of a child: writers and a rotation to a new primary key.
type task struct {
	Round    int
	Location string
}

// event is a step of a write. Its value is the URL after the write, or "" if the relayer is
// deleted.
type event = ledger.Event[string]

// resealed is the step of a relayer that was resealed.
const resealed ledger.Step = "resealed"

func keyOf(round int) string { return fmt.Sprintf("k%d", round) }

// rotateUntilKilled runs the writers of two instances, of which one does not have the new
// primary key as its primary key yet, and seals everything under it.
func rotateUntilKilled(given task) error {
	ctx := context.Background()
	store, err := open(ctx, given.Location)
	if err != nil {
		return err
	}
	older, err := managerOn(store, keyOf(given.Round-1), keyOf(given.Round))
	if err != nil {
		return err
	}
	newer, err := managerOn(store, keyOf(given.Round), keyOf(given.Round-1))
	if err != nil {
		return err
	}
	failed := make(chan error)
	for number := range writers {
		w := writer{number: number, seq: given.Round * 1_000_000, manager: []*relayer.Manager{older.Manager, newer.Manager}[number%2]}
		go func() { failed <- w.work(ctx) }()
	}
	go func() {
		for {
			for id, err := range newer.store.Reseal(ctx) {
				if err != nil {
					failed <- fmt.Errorf("resealing %s: %w", id, err)
				}
				child.Send(event{Step: resealed})
			}
		}
	}()
	return <-failed
}

type writer struct {
	number, seq int
	manager     *relayer.Manager
}

// work changes one relayer until a write fails. None should.
func (w *writer) work(ctx context.Context) error {
	id := fmt.Sprintf("w%d", w.number)
	for {
		_, err := w.manager.Get(ctx, id)
		exists := err == nil
		switch {
		case err != nil && !errors.Is(err, relayer.ErrNotFound):
		case exists && rand.N(4) == 0: // without its URLs
			_, err = w.manager.Update(ctx, id, func(r *relayer.Relayer) error {
				r.Paused = !r.Paused
				return nil
			})
		default:
			err = w.write(ctx, id, exists, exists && rand.N(8) == 0)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
}

func (w *writer) write(ctx context.Context, id string, exists, deletes bool) (err error) {
	w.seq++
	url := fmt.Sprintf("https://rpc.example/%d/%d", w.number, w.seq)
	if deletes {
		url = ""
	}
	child.Send(event{Step: ledger.Begin, Writer: w.number, Keys: []string{id}, Value: url})
	endpoints := []relayer.RPCConfig{{URL: relayer.RPCURL(url)}}
	switch {
	case deletes:
		err = w.manager.Delete(ctx, id)
	case exists:
		_, err = w.manager.Patch(ctx, id, patchOf(endpoints...))
	default:
		_, err = w.manager.Create(ctx, definition(id, endpoints))
	}
	if err == nil {
		child.Send(event{Step: ledger.Done, Writer: w.number})
	}
	return err
}

func definition(id string, endpoints []relayer.RPCConfig) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s", CustomRPCURLs: endpoints}
}

// TestRotation_UnderWritersWithKills rotates keys under writers, and kills the process in
// the middle. Each round has a new primary key. After the rest of the rotation the key
// before is removed.
func TestRotation_UnderWritersWithKills(t *testing.T) {
	t.Parallel()
	eachLocation(t, func(t *testing.T, location string, settled func()) {
		createFixed(t, location)
		known, interrupted := ledger.New[string](), 0
		for round := 1; round <= *rounds || interrupted == 0 && round <= 10**rounds; round++ {
			rotate(t, task{Round: round, Location: location}, known)
			settled()
			if finishRotation(t, location, round) {
				interrupted++
			}
			expectState(t, location, round, known)
		}
		t.Logf("%d of %d rotations were interrupted", interrupted, *rounds)
		if interrupted == 0 {
			t.Error("no kill interrupted a rotation")
		}
	})
}

func createFixed(t *testing.T, location string) {
	t.Helper()
	withManager(t, location, []string{keyOf(0)}, func(m sealedManager) {
		for i := range fixed {
			url := relayer.RPCURL(fmt.Sprintf("https://rpc.example/fixed/%d", i))
			mustGet(m.Create(t.Context(), definition(fmt.Sprintf("f%d", i), []relayer.RPCConfig{{URL: url}})))(t)
		}
	})
}

func withManager(t *testing.T, location string, keys []string, use func(sealedManager)) {
	t.Helper()
	store := mustGet(open(t.Context(), location))(t)
	defer func() { must(t, store.Close()) }()
	m := mustGet(managerOn(store, keys...))(t)
	use(m)
}

// rotate runs a child, and kills it when it has resealed some of the relayers.
func rotate(t *testing.T, given task, known *ledger.Ledger[string]) {
	t.Helper()
	p := child.Start(t, given)
	left := 1 + rand.N(fixed/2)
	killed, err := child.Follow(p, func(e event) {
		if e.Step != resealed {
			known.Note(e)
			return
		}
		if left--; left == 0 {
			p.Kill()
		}
	})
	if err != nil || !killed {
		t.Fatalf("round %d: the child was not killed: %v", given.Round, err)
	}
}

// finishRotation resumes the rotation, and reports whether it was interrupted: more
// relayers were under the earlier key than the writers have.
func finishRotation(t *testing.T, location string, round int) (isInterrupted bool) {
	t.Helper()
	withManager(t, location, []string{keyOf(round), keyOf(round - 1)}, func(m sealedManager) {
		counts := mustGet(m.store.Count(t.Context()))(t)
		isInterrupted = countsByID(counts)[keyOf(round-1)] > writers
		m.reseal(t)
	})
	return isInterrupted
}

// expectState reads everything with the new key alone.
func expectState(t *testing.T, location string, round int, known *ledger.Ledger[string]) {
	t.Helper()
	withManager(t, location, []string{keyOf(round)}, func(m sealedManager) {
		counts, err := m.store.Count(t.Context())
		if err != nil || counts.Clear != 0 || len(counts.Keys) != 1 || countsByID(counts)[keyOf(round)] < fixed {
			t.Errorf("round %d: %v under keys, %d in clear, error %v", round, counts.Keys, counts.Clear, err)
		}
		for i := range fixed {
			if got := stateOf(t, m, fmt.Sprintf("f%d", i)); got != fmt.Sprintf("https://rpc.example/fixed/%d", i) {
				t.Fatalf("round %d: f%d has the URL %q", round, i, got)
			}
		}
		held := make(map[string]string)
		for number := range writers {
			id := fmt.Sprintf("w%d", number)
			held[id] = stateOf(t, m, id)
		}
		known.Interrupt()
		if found := known.Compare(held); !found.IsEmpty() {
			t.Fatalf("round %d: %v in %v", round, found, held)
		}
		known.Adopt(held)
	})
}

func countsByID(counts sealed.Counts) map[string]int {
	byID := make(map[string]int)
	for key, count := range counts.Keys {
		byID[key.ID] += count
	}
	return byID
}

// stateOf returns the URL of a relayer, or "" if there is none.
func stateOf(t *testing.T, m sealedManager, id string) string {
	t.Helper()
	endpoints, err := m.RPCURLs(t.Context(), id)
	if errors.Is(err, relayer.ErrNotFound) {
		return ""
	}
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("%s has %d URLs; error %v", id, len(endpoints), err)
	}
	return endpoints[0].URL.Unmasked()
}
