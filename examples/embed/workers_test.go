package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// recorder records which relayers have a worker, and for which revision.
type recorder struct {
	t       *testing.T
	mu      sync.Mutex
	running map[string]bool
}

func (rec *recorder) work(ctx context.Context, r *relayer.Relayer, _ func() bool) {
	name := fmt.Sprintf("%s@%d", r.ID, r.Revision)
	for _, other := range rec.names() {
		if strings.HasPrefix(other, r.ID+"@") {
			rec.t.Errorf("%s starts while %s is running", name, other)
		}
	}
	rec.set(name, true)
	<-ctx.Done()
	time.Sleep(time.Millisecond) // a worker needs time to stop
	rec.set(name, false)
}

func (rec *recorder) set(name string, isRunning bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if isRunning {
		rec.running[name] = true
	} else {
		delete(rec.running, name)
	}
}

func (rec *recorder) names() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	names := make([]string, 0, len(rec.running))
	for name := range rec.running {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// expect waits until exactly these relayers have workers.
func (rec *recorder) expect(t *testing.T, relayers ...*relayer.Relayer) {
	t.Helper()
	want := []string{}
	for _, r := range relayers {
		want = append(want, fmt.Sprintf("%s@%d", r.ID, r.Revision))
	}
	slices.Sort(want)
	for range 6000 {
		if slices.Equal(rec.names(), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("workers run for %v, want %v", rec.names(), want)
}

func TestSuperviseWorkers_Manager(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	testFollowsChanges(t, manager, manager)
}

// The workers run in another process than the Manager.
func TestSuperviseWorkers_Client(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	authenticate, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, authenticate, httpapi.WithRateLimit(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	registry, err := client.New(server.URL, client.WithToken(token))
	if err != nil {
		t.Fatal(err)
	}
	testFollowsChanges(t, manager, registry)
}

const token = "token-of-the-worker-test"

// testFollowsChanges runs the workers on the registry of the Manager.
func testFollowsChanges(t *testing.T, manager *relayer.Manager, registry relayer.Registry) {
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

	workers := &recorder{t: t, running: make(map[string]bool)}
	returned := make(chan error, 1)
	go func() { returned <- superviseWorkers(ctx, registry, workers.work) }()
	workers.expect(t, before)

	after := create("after", false)
	workers.expect(t, before, after)
	awake := must(manager.Resume(ctx, "asleep"))
	workers.expect(t, before, after, awake)
	must(manager.Disable(ctx, "after", relayer.DisabledReason{Type: relayer.BalanceCheckFailed}))
	workers.expect(t, before, awake)
	after = must(manager.Enable(ctx, "after"))
	workers.expect(t, before, after, awake)
	renamed := must(manager.Update(ctx, "before", func(r *relayer.Relayer) error { r.Name = "m"; return nil }))
	workers.expect(t, renamed, after, awake)
	if err := manager.Delete(ctx, "asleep"); err != nil {
		t.Fatal(err)
	}
	workers.expect(t, renamed, after)

	// More changes than the buffer of a watcher holds.
	for i := range 4000 {
		renamed = must(manager.Update(ctx, "before", func(r *relayer.Relayer) error { r.Name = fmt.Sprint(i); return nil }))
	}
	workers.expect(t, renamed, after)

	cancel()
	if err := <-returned; err != nil {
		t.Error(err)
	}
	if names := workers.names(); len(names) != 0 {
		t.Errorf("workers still run for %v", names)
	}
}

// A worker that needs long to stop delays neither the stop of another one nor its start.
func TestSuperviseWorkers_SlowStop(t *testing.T) {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, id := range []string{"slow", "quick"} {
		if _, err := manager.Create(ctx, relayer.CreateRequest{ID: id, Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	release, started, stopped := make(chan struct{}), make(chan string, 10), make(chan string, 10)
	returned := make(chan error, 1)
	go func() {
		returned <- superviseWorkers(ctx, manager, func(ctx context.Context, r *relayer.Relayer, _ func() bool) {
			started <- r.ID
			<-ctx.Done()
			if r.ID == "slow" {
				<-release
			}
			stopped <- r.ID
		})
	}()
	<-started
	<-started
	for _, id := range []string{"slow", "quick"} {
		if _, err := manager.Pause(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if id := <-stopped; id != "quick" {
		t.Errorf("%s stops first", id)
	}
	for _, id := range []string{"slow", "quick"} {
		if _, err := manager.Resume(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if id := <-started; id != "quick" { // the next worker of slow waits for the previous one
		t.Errorf("%s starts first", id)
	}
	close(release)
	if first, second := <-stopped, <-started; first != "slow" || second != "slow" {
		t.Errorf("%s stops, and %s starts", first, second)
	}
	cancel()
	if err := <-returned; err != nil {
		t.Error(err)
	}
}

// silent is a Manager whose watches yield nothing.
type silent struct{ *relayer.Manager }

func (s silent) Watch(ctx context.Context, _ relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	return func(func(relayer.Change, error) bool) { <-ctx.Done() }
}

// A worker relays for the current state of its relayer, and only while the view is fresh.
func TestSuperviseWorkers_IsCurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		_, err = manager.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		for _, registry := range []relayer.Registry{manager, silent{manager}} {
			ctx, cancel := context.WithCancel(t.Context())
			states := make(chan func() bool, 10)
			go superviseWorkers(ctx, registry, func(_ context.Context, _ *relayer.Relayer, isCurrent func() bool) { states <- isCurrent })
			isCurrent := <-states
			time.Sleep(29 * time.Second)
			if !isCurrent() {
				t.Errorf("%T: the worker must stop after 29s", registry)
			}
			time.Sleep(2 * time.Second)
			if _, isSilent := registry.(silent); isCurrent() == isSilent {
				t.Errorf("%T: the worker may relay after 31s: %t", registry, isCurrent())
			}
			if _, err := manager.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name += "."; return nil }); err != nil {
				t.Fatal(err)
			}
			if synctest.Wait(); isCurrent() {
				t.Errorf("%T: the worker of a former state may relay", registry)
			}
			cancel()
			synctest.Wait()
		}
	})
}

// A changed endpoint, header and setting reach the next worker of the relayer.
func TestSuperviseWorkers_ChangedSettings(t *testing.T) {
	manager, err := relayer.New(memory.New(), relayer.WithSettings[settings]())
	if err != nil {
		t.Fatal(err)
	}
	_, err = manager.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	used, returned := make(chan string), make(chan error, 1)
	go func() {
		returned <- superviseWorkers(ctx, manager, func(own context.Context, r *relayer.Relayer, _ func() bool) {
			text, _ := relayer.SettingsOf[settings](r)
			for _, endpoint := range r.CustomRPCURLs {
				used <- fmt.Sprint(endpoint.URL.Unmasked(), " ", endpoint.Headers["X-Key"].Unmasked(), " ", text.PollSeconds)
			}
			<-own.Done()
		})
	}()
	for _, c := range []struct{ patch, want string }{
		{`{"custom_rpc_urls":[{"url":"https://a.example/1"}]}`, "https://a.example/1  0"},
		{`{"settings":{"poll_seconds":9}}`, "https://a.example/1  9"},
		{`{"custom_rpc_urls":[{"url":"https://a.example/1","headers":{"X-Key":"one"}}]}`, "https://a.example/1 one 9"},
		{`{"custom_rpc_urls":[{"url":"https://a.example/1","headers":{"X-Key":"two"}}],"settings":null}`, "https://a.example/1 two 0"},
	} {
		if _, err := manager.Patch(ctx, "r", []byte(c.patch)); err != nil {
			t.Fatal(err)
		}
		if got := <-used; got != c.want {
			t.Errorf("after %s the worker uses %q, want %q", c.patch, got, c.want)
		}
	}
	if _, err := manager.Patch(ctx, "r", []byte(`{"settings":{"poll_seconds":61}}`)); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("61 seconds: error %v", err)
	}
	cancel()
	if err := <-returned; err != nil {
		t.Error(err)
	}
}
