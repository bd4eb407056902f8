//go:build !goexperiment.jsonv2

package relayer_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// A key of a map in JSON is a text as it is, unless encoding/json is that of version 2.
func TestRPCURL_KeyOfMap(t *testing.T) {
	encoded, err := json.Marshal(map[relayer.RPCURL]int{relayer.RPCURL(secretURL): 1})
	if err != nil || !strings.Contains(string(encoded), "PATHKEY") {
		t.Errorf("encoded as %s, error %v", encoded, err)
	}
}

// TestWrite_Allocations bounds the work of a write, and that of changes by that of a create:
// a change decodes the stored relayer once, and a pause none of it. The race detector adds up
// to a tenth. The limits include the allocations of encoding/json, so that they do not apply to
// another implementation of it.
func TestWrite_Allocations(t *testing.T) {
	m, ctx := managerOf(t, memory.New()), t.Context()
	mustCreate(t, m, typical("r"))
	reason := []byte(`{"type":"NonceSyncFailed","details":"nonce 7"}`)
	i := 0
	count := func(write func() error) float64 {
		return testing.AllocsPerRun(100, func() {
			i++
			if err := write(); err != nil {
				t.Error(err)
			}
		})
	}
	room := 1.0
	if build, ok := debug.ReadBuildInfo(); ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		room = 1.1
	}
	create := count(func() error { return second(m.Create(ctx, typical(fmt.Sprint("new-", i)))) })
	for name, c := range map[string]struct {
		most, share float64 // of a create
		write       func() error
	}{
		"patch": {255, 1.75, func() error {
			return second(m.Documents().Patch(ctx, "r", fmt.Appendf(nil, `{"policies":{"gas_price_cap":%d}}`, i)))
		}},
		"update": {310, 2.1, func() error {
			return second(m.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(i); return nil }))
		}},
		"pause and resume": {2 * 113, 2 * 0.78, func() error { return cmp.Or(second(m.Pause(ctx, "r")), second(m.Resume(ctx, "r"))) }},
		"pause and resume of a document": {2 * 56, 2 * 0.42, func() error {
			return cmp.Or(second(m.Documents().Patch(ctx, "r", []byte(`{"paused":true}`))), second(m.Documents().Patch(ctx, "r", []byte(`{"paused":false}`))))
		}},
		"disable and enable of a document": {2 * 82, 2 * 0.58, func() error {
			return cmp.Or(second(m.Documents().Disable(ctx, "r", reason)), second(m.Documents().Enable(ctx, "r")))
		}},
	} {
		if got := count(c.write); got > c.most*room || got > c.share*create {
			t.Errorf("%s: %v allocations, want at most %v and %v times the %v of a create", name, got, c.most*room, c.share, create)
		}
	}
}
