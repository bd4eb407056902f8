//go:build unix

package mirror

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
)

const fullRelayers = 2000

// A view with full RPC URLs opens and follows at the default rate of reads of a server.
func TestMirror_FullRPCURLs(t *testing.T) {
	server := &childServer{task: serverTask{Path: filepath.Join(t.TempDir(), "relayers.db"), Create: fullRelayers, HasRateLimit: true}}
	server.start(t)
	t.Cleanup(func() { server.kill(t) })
	view := must(mirror.Open(t.Context(), server.client(t, client.WithFullRPCURLs()), relayer.Selector{}))(t)
	t.Cleanup(view.Close)
	if lengthOf(view) != fullRelayers {
		t.Errorf("opened %d relayers", lengthOf(view))
	}
	for r := range view.All(t.Context(), relayer.Selector{}) {
		if len(r.CustomRPCURLs) != 1 || r.CustomRPCURLs[0].URL.Unmasked() != "https://rpc.example/v2/key" {
			t.Fatalf("the URLs of %s are %v", r.ID, r.CustomRPCURLs)
		}
	}
	writer, last := server.client(t), make(map[string]uint64)
	for i := range 600 {
		r, err := writer.Pause(t.Context(), fmt.Sprint("r", i%300))
		if i >= 300 {
			r, err = writer.Resume(t.Context(), fmt.Sprint("r", i%300))
		}
		succeed(t, err)
		last[r.ID] = r.Revision
	}
	for id, revision := range last {
		eventually(t, id, func() string {
			if r, err := view.Get(t.Context(), id); err != nil || r.Revision != revision {
				return fmt.Sprintf("%v, error %v, want revision %d", r, err, revision)
			}
			return ""
		})
	}
}
