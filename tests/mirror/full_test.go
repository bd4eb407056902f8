//go:build unix

package mirror

import (
	"context"
	"flag"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
)

var (
	fullRelayers = flag.Int("full.relayers", 2000, "relayers of the view with full RPC URLs")
	fullTime     = flag.Duration("full.for", 2*time.Second, "how long the view with full RPC URLs follows 300 changes a second")
	fullOpen     = flag.Duration("full.open", time.Minute, "how long the view with full RPC URLs may take to open; 10s for 100,000 relayers")
	fullLag      = flag.Duration("full.lag", time.Minute, "how long a change may take until it is visible; 1s on a quiet machine")
)

// A view with full RPC URLs opens and follows at the default rate of reads of a server.
func TestMirror_FullRPCURLs(t *testing.T) {
	server := &soakServer{task: soakTask{Path: filepath.Join(t.TempDir(), "relayers.db"), Create: *fullRelayers, HasRateLimit: true}}
	server.start(t)
	t.Cleanup(func() { server.kill(t) })
	began := time.Now()
	view, err := mirror.Open(t.Context(), server.client(t, client.WithFullRPCURLs()), relayer.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(view.Close)
	opened := time.Since(began)
	t.Logf("%d relayers with full URLs opened in %v", lengthOf(view), opened.Round(time.Millisecond))
	if opened > *fullOpen || lengthOf(view) != *fullRelayers {
		t.Errorf("opened %d relayers in %v, want %d in %v", lengthOf(view), opened, *fullRelayers, *fullOpen)
	}
	for r := range view.All(t.Context(), relayer.Selector{}) {
		if len(r.CustomRPCURLs) != 1 || r.CustomRPCURLs[0].URL.Unmasked() != "https://rpc.example/v2/key" {
			t.Fatalf("the URLs of %s are %v", r.ID, unmasked(r.CustomRPCURLs))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	s := &sight{seen: make(map[string][]seenRevision)}
	watching.Go(func() { s.follow(ctx, view) })
	writes := writeSoak(ctx, server.client(t, client.WithRetries(1, time.Second)), *fullRelayers, 300, *fullTime)
	t.Logf("%d acknowledged writes in %v", len(writes), *fullTime)
	if most := report(t, writes, []*sight{s}); most > *fullLag {
		t.Errorf("a change is visible after %v", most)
	}
	stop()
	watching.Wait()
}
