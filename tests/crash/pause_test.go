package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/tests/internal/child"
	"github.com/go-relayer/relayer/tests/internal/ledger"
)

// pauseAll pauses all relayers of a file, and reports each pause.
func pauseAll(ctx context.Context, path string, paused func(id string)) (relayer.BulkResult, error) {
	store, err := bolt.Open(ctx, path)
	if err != nil {
		return relayer.BulkResult{}, err
	}
	manager, err := relayer.New(store, relayer.WithObserver(func(ctx context.Context, o *relayer.Operation) (context.Context, func(error)) {
		return ctx, func(err error) {
			if err == nil && o.Action == relayer.ActionPause {
				paused(o.ID)
			}
		}
	}))
	if err != nil {
		return relayer.BulkResult{}, err
	}
	ctx = relayer.WithActor(ctx, relayer.Actor{ID: "operator", RequestID: "incident"})
	result, err := manager.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.Reason("why"))
	if closeErr := store.Close(); err == nil {
		err = closeErr
	}
	return result, err
}

// pauseUntilKilled is the work of a child that pauses all relayers.
func pauseUntilKilled(t task) error {
	_, err := pauseAll(context.Background(), t.Path, func(id string) { child.Send(ledger.Event[bool]{Step: ledger.Done, Keys: []string{id}}) })
	return err
}

// TestPauseAll_Killed kills a child that pauses all relayers. What was acknowledged is paused, and the
// others are paused or not. A repetition pauses the rest, each relayer once.
func TestPauseAll_Killed(t *testing.T) {
	const count = 200
	inTheMiddle := 0
	for range *rounds {
		path := filepath.Join(t.TempDir(), "relayers.db")
		createRelayers(t, path, count)
		process, killAfter := child.Start(t, task{Store: pausingStore, Path: path}), 1+rand.IntN(count)
		acknowledged := make(map[string]bool)
		_, err := child.Follow(process, func(e ledger.Event[bool]) {
			if acknowledged[e.Keys[0]] = true; len(acknowledged) == killAfter {
				process.Kill()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		left := pausedRelayers(t, path, "incident")
		for id := range acknowledged {
			if !left[id] {
				t.Errorf("the pause of %s was acknowledged, and is lost", id)
			}
		}
		if len(left) < count {
			inTheMiddle++
		}
		again, err := pauseAll(t.Context(), path, func(id string) {
			if left[id] {
				t.Errorf("%s was paused twice", id)
			}
		})
		if err != nil || again.Changed != count || again.Unchanged != 0 || len(again.Failed) > 0 {
			t.Errorf("the repetition returned %+v, error %v", again, err)
		}
		if left := pausedRelayers(t, path, "incident"); len(left) != count {
			t.Errorf("%d are paused after the repetition", len(left))
		}
	}
	if t.Logf("%d of %d kills were in the middle", inTheMiddle, *rounds); inTheMiddle == 0 {
		t.Error("no kill was in the middle")
	}
}

func createRelayers(t *testing.T, path string, count int) {
	t.Helper()
	withManager(t, path, func(m *relayer.Manager) {
		var creates sync.WaitGroup
		for i := range count {
			creates.Go(func() {
				_, err := m.Create(t.Context(), relayer.CreateRequest{ID: fmt.Sprint("r-", i), Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"})
				if err != nil {
					t.Error(err)
				}
			})
		}
		creates.Wait()
	})
}

func withManager(t *testing.T, path string, use func(*relayer.Manager)) {
	t.Helper()
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	use(m)
}

// pausedRelayers returns the relayers that a request has paused. It checks that each relayer is as
// before, or paused by the request, with one entry in the history.
func pausedRelayers(t *testing.T, path, requestID string) map[string]bool {
	t.Helper()
	paused := make(map[string]bool)
	withManager(t, path, func(m *relayer.Manager) {
		for r, err := range m.All(t.Context(), relayer.Selector{}) {
			if err != nil {
				t.Fatal(err)
			}
			past, _, err := m.History(t.Context(), relayer.HistoryQuery{ID: r.ID})
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if r.Paused {
				want, paused[r.ID] = 2, true
			}
			if len(past) != want || r.Paused && (r.PausedBy.RequestID != requestID || past[0].Info.RequestID != requestID) {
				t.Errorf("%v is paused by %+v, with %d changes", r, r.PausedBy, len(past))
			}
		}
	})
	return paused
}
