package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// at is a set of relayers being worked for, at their revisions.
type at struct {
	t       *testing.T
	mu      sync.Mutex
	running map[string]bool
}

func (a *at) work(ctx context.Context, r *relayer.Relayer) {
	name := fmt.Sprintf("%s@%d", r.ID, r.Revision)
	for _, other := range a.names() {
		if strings.HasPrefix(other, r.ID+"@") {
			a.t.Errorf("%s begins while %s is at work", name, other)
		}
	}
	a.set(name, true)
	<-ctx.Done()
	time.Sleep(time.Millisecond) // some work is left to finish
	a.set(name, false)
}

func (a *at) set(name string, isRunning bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if isRunning {
		a.running[name] = true
	} else {
		delete(a.running, name)
	}
}

func (a *at) names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := make([]string, 0, len(a.running))
	for name := range a.running {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// expect waits until exactly these are worked for.
func (a *at) expect(t *testing.T, relayers ...*relayer.Relayer) {
	t.Helper()
	want := []string{}
	for _, r := range relayers {
		want = append(want, fmt.Sprintf("%s@%d", r.ID, r.Revision))
	}
	slices.Sort(want)
	for range 1000 {
		if slices.Equal(a.names(), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("working for %v, want %v", a.names(), want)
}

func TestWorkersFollowTheRegistry(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	must := func(r *relayer.Relayer, err error) *relayer.Relayer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	create := func(id string, paused bool) *relayer.Relayer {
		t.Helper()
		return must(manager.Create(ctx, relayer.CreateRequest{ID: id, Name: "n", Network: "x", NetworkType: relayer.EVM, Paused: paused, SignerID: "s"}))
	}
	before := create("before", false)
	create("asleep", true)

	a := &at{t: t, running: make(map[string]bool)}
	ended := make(chan error, 1)
	go func() { ended <- superviseWorkers(ctx, manager, a.work) }()
	a.expect(t, before)

	after := create("after", false)
	a.expect(t, before, after)
	awake := must(manager.Resume(ctx, "asleep"))
	a.expect(t, before, after, awake)
	must(manager.Disable(ctx, "after", relayer.DisabledReason{Type: relayer.BalanceCheckFailed}))
	a.expect(t, before, awake)
	after = must(manager.Enable(ctx, "after"))
	a.expect(t, before, after, awake)
	renamed := must(manager.Update(ctx, "before", func(r *relayer.Relayer) error { r.Name = "m"; return nil }))
	a.expect(t, renamed, after, awake)
	if err := manager.Delete(ctx, "asleep"); err != nil {
		t.Fatal(err)
	}
	a.expect(t, renamed, after)

	// More changes at once than a watcher is kept.
	for i := range 4000 {
		renamed = must(manager.Update(ctx, "before", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(i); return nil }))
	}
	a.expect(t, renamed, after)

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if names := a.names(); len(names) != 0 {
		t.Errorf("still working for %v", names)
	}
}
