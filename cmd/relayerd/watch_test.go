package main

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// follower counts the changes by the name of the relayer, and the gaps of its stream.
type follower struct {
	mu   sync.Mutex
	seen map[string]int
	last int64
	gaps int
}

// follow follows the changes of a server until the test ends.
func follow(t *testing.T, registry *client.Client) *follower {
	t.Helper()
	f := &follower{seen: make(map[string]int)}
	ctx, cancel := context.WithCancel(context.Background())
	changes := registry.Watch(ctx, relayer.WatchQuery{})
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			for change, err := range changes {
				f.mu.Lock()
				if errors.Is(err, relayer.ErrGap) {
					f.gaps++
				} else if err == nil && change.Relayer != nil {
					f.seen[change.Relayer.Name]++
					f.last, _ = strconv.ParseInt(change.Relayer.Name, 10, 64)
				}
				f.mu.Unlock()
			}
			changes = registry.Watch(ctx, relayer.WatchQuery{})
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return f
}

// await waits until the follower has seen a name, or a later one, and returns how often it has seen one
// at most, and its gaps.
func (f *follower) await(t *testing.T, name int64) (most, gaps int) {
	t.Helper()
	if !await(func() bool { f.mu.Lock(); defer f.mu.Unlock(); return f.last >= name }) {
		t.Fatalf("the change to %d was not received", name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, count := range f.seen {
		most = max(most, count)
	}
	return most, f.gaps
}

// A follower of a server that is stopped and killed, while another client writes, receives each change
// of PostgreSQL once, without a gap. The feed of a file has a gap after each start.
func TestWatch_Restarts(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]string{"file": filepath.Join(t.TempDir(), "relayers.db"), "postgres": newDatabase(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const restarts = 3
			server := start(t, token, "--db", database)
			flags := []string{"--db", database, "--addr", server.address()}
			registry := mustGet(client.New(server.url, client.WithToken(token)))(t)
			mustGet(registry.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "0", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}))(t)
			f := follow(t, registry)
			var acknowledged atomic.Int64
			ctx, stop := context.WithCancel(t.Context())
			var writing sync.WaitGroup
			writing.Go(func() {
				for i := int64(1); ctx.Err() == nil; i++ {
					if _, err := registry.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = strconv.FormatInt(i, 10); return nil }); err == nil {
						acknowledged.Store(i)
					}
				}
			})
			awaitWrites := func() (most, gaps int) {
				t.Helper()
				before := acknowledged.Load()
				if !await(func() bool { return acknowledged.Load() > before+20 }) {
					t.Fatalf("the writer is stuck at %d: %s", before, server.output)
				}
				return f.await(t, acknowledged.Load())
			}
			for i := range restarts {
				awaitWrites()
				if i%2 == 0 {
					server.stop() // fails if the open stream delays the shutdown
				} else {
					server.signal(syscall.SIGKILL)
					_ = server.command.Wait()
				}
				server = start(t, token, flags...)
			}
			most, gaps := awaitWrites() // a stream after a gap begins with the next write
			stop()
			writing.Wait()
			if name == "postgres" && (gaps != 0 || most != 1) || name == "file" && gaps < restarts {
				t.Errorf("%d gaps, and a change was received %d times", gaps, most)
			}
			server.stop()
		})
	}
}
