//go:build unix

package sealing_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/store/sealed"
	"github.com/go-relayer/relayer/tests/internal/patchtest"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

// rotating has keys that change, as those of a file that a server reloads.
type rotating struct {
	current atomic.Pointer[keyring.Keyring]
	sealed  sync.WaitGroup // the held writes that have to seal
}

func (r *rotating) rotate(t *testing.T, round int) {
	t.Helper()
	ring, err := ringOf(keyOf(round), keyOf(round-1))
	if err != nil {
		t.Fatal(err)
	}
	r.current.Store(&ring)
}

func (r *rotating) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	text, err := r.current.Load().Seal(ctx, plaintext, associatedData)
	if ctx.Value(held{}) != nil {
		r.sealed.Done()
	}
	return text, err
}

func (r *rotating) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	return r.current.Load().Open(ctx, text, associatedData)
}

func (r *rotating) Keys() []sealed.Key { return r.current.Load().Keys() }

func (r *rotating) KeyOf(text []byte) (sealed.Key, error) { return r.current.Load().KeyOf(text) }

// held is the key of the contexts of the writes that wait for the lock.
type held struct{}

// gated is a store whose held writes wait while the gate is locked.
type gated struct {
	relayer.Store
	gate *sync.RWMutex
}

func (s gated) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.Store.Create(ctx, rec)
}

func (s gated) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if ctx.Value(held{}) != nil {
		s.gate.RLock()
		defer s.gate.RUnlock()
	}
	return s.Store.Update(ctx, rec)
}

// tableLock returns a function that locks the table of relayers against writes.
func tableLock(t *testing.T, connString string) (hold func() (release func())) {
	t.Helper()
	conn := pgtest.Connect(t, connString)
	execute := func(statement string) {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Error(err)
		}
	}
	return func() func() {
		execute("BEGIN; LOCK TABLE relayer.relayers IN EXCLUSIVE MODE")
		return func() { execute("COMMIT") }
	}
}

// The keys change while creates, and patches of the first URLs, have sealed under the earlier key
// and wait for a lock. When Reseal has ended, nothing is under it, and nothing comes to be.
func TestReseal_WritesHeldByALock(t *testing.T) {
	t.Parallel()
	withGate := func(t *testing.T, store relayer.Store) {
		gate := new(sync.RWMutex)
		resealHeldWrites(t, gated{store, gate}, func() func() { gate.Lock(); return gate.Unlock })
	}
	t.Run("memory", func(t *testing.T) { withGate(t, memory.New()) })
	t.Run("bolt", func(t *testing.T) {
		store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		withGate(t, store)
	})
	t.Run("postgres", func(t *testing.T) {
		server := pgserver.Start(t)
		store := pgtest.Open(t, server.ConnString())
		resealHeldWrites(t, store, tableLock(t, server.ConnString()))
	})
}

func resealHeldWrites(t *testing.T, store relayer.Store, hold func() (release func())) {
	const writes = 8
	keys := new(rotating)
	keys.rotate(t, 1)
	m, err := managerWith(store, keys)
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= *rounds; round++ {
		isPatch := func(number int) bool { return number%2 == 0 }
		idOf := func(number int) string { return fmt.Sprintf("r%d-%d", round, number) }
		for number := range writes {
			if !isPatch(number) {
				continue
			}
			if _, err := m.Create(t.Context(), definition(idOf(number), nil)); err != nil {
				t.Fatal(err)
			}
		}
		release := hold()
		keys.sealed.Add(writes)
		var writing sync.WaitGroup
		for number := range writes {
			writing.Go(func() {
				ctx, endpoints := context.WithValue(t.Context(), held{}, true), []relayer.RPCConfig{{URL: ownURL}}
				var err error
				if isPatch(number) {
					_, err = m.Patch(ctx, idOf(number), patchtest.JSON(map[string]any{"custom_rpc_urls": endpoints}))
				} else {
					_, err = m.Create(ctx, definition(idOf(number), endpoints))
				}
				if err != nil {
					t.Errorf("%s: %v", idOf(number), err)
				}
			})
		}
		keys.sealed.Wait()
		keys.rotate(t, round+1)
		var counts sealed.Counts
		ended := make(chan struct{})
		writing.Go(func() {
			defer close(ended)
			for id, err := range m.store.Reseal(t.Context()) {
				if err != nil {
					t.Errorf("round %d: %s: %v", round, id, err)
				}
			}
			if counts, err = m.store.Count(t.Context()); err != nil {
				t.Error(err)
			}
		})
		select { // time for a walk that does not wait for the writes
		case <-ended:
		case <-time.After(20 * time.Millisecond):
		}
		release()
		writing.Wait()
		after, err := m.store.Count(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for when, counted := range map[string]sealed.Counts{"Reseal": counts, "the writes": after} {
			if byID := countsByID(counted); len(byID) != 1 || byID[keyOf(round+1)] != writes || counted.Clear != 0 {
				t.Errorf("round %d: after %s %v are under keys, want %d under %s", round, when, byID, writes, keyOf(round+1))
			}
		}
		for number := range writes {
			if err := m.Delete(t.Context(), idOf(number)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
