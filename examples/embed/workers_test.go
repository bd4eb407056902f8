package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http/httptest"
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
	changed sync.Cond // with mu
	running map[string]bool
}

func (rec *recorder) work(ctx context.Context, r *relayer.Relayer, _ func() bool) {
	name := fmt.Sprintf("%s@%d", r.ID, r.Revision)
	rec.set(name, true, func(other string) {
		if strings.HasPrefix(other, r.ID+"@") {
			rec.t.Errorf("%s starts while %s is running", name, other)
		}
	})
	<-ctx.Done()
	rec.set(name, false, func(string) {})
}

// set calls check with each running worker, before the change.
func (rec *recorder) set(name string, isRunning bool, check func(other string)) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for other := range rec.running {
		check(other)
	}
	if rec.running[name] = true; !isRunning {
		delete(rec.running, name)
	}
	rec.changed.Broadcast()
}

// expect waits until exactly these relayers have workers.
func (rec *recorder) expect(relayers ...*relayer.Relayer) {
	want := make(map[string]bool)
	for _, r := range relayers {
		want[fmt.Sprintf("%s@%d", r.ID, r.Revision)] = true
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for !maps.Equal(rec.running, want) {
		rec.changed.Wait()
	}
}

// newRegistry returns a Manager with relayers.
func newRegistry(t *testing.T, ids ...string) *relayer.Manager {
	t.Helper()
	manager := must(relayer.New(memory.New(), relayer.WithSettings[settings]()))(t)
	for _, id := range ids {
		must(manager.Create(t.Context(), request(id)))(t)
	}
	return manager
}

func request(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
}

// must returns the first result of a call, or a function that fails the test with its error.
func must[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestSuperviseWorkers_Manager(t *testing.T) {
	manager := newRegistry(t)
	testFollowsChanges(t, manager, manager)
}

// The workers run in another process than the Manager.
func TestSuperviseWorkers_Client(t *testing.T) {
	manager := newRegistry(t)
	authenticate := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	api := must(httpapi.New(manager, authenticate, httpapi.WithRateLimit(0, 0)))(t)
	server := httptest.NewServer(api)
	defer server.Close()
	testFollowsChanges(t, manager, must(client.New(server.URL, client.WithToken(token)))(t))
}

const token = "token-of-the-worker-test"

// testFollowsChanges runs the workers on the registry of the Manager.
func testFollowsChanges(t *testing.T, manager *relayer.Manager, registry relayer.Registry) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	before := must(manager.Create(ctx, request("before")))(t)
	asleep := request("asleep")
	asleep.Paused = true
	must(manager.Create(ctx, asleep))(t)

	workers := &recorder{t: t, running: make(map[string]bool)}
	workers.changed.L = &workers.mu
	returned := make(chan error, 1)
	go func() { returned <- superviseWorkers(ctx, registry, workers.work) }()
	workers.expect(before)

	after := must(manager.Create(ctx, request("after")))(t)
	workers.expect(before, after)
	awake := must(manager.Resume(ctx, "asleep"))(t)
	workers.expect(before, after, awake)
	must(manager.Disable(ctx, "after", relayer.DisabledReason{Type: relayer.BalanceCheckFailed}))(t)
	workers.expect(before, awake)
	after = must(manager.Enable(ctx, "after"))(t)
	workers.expect(before, after, awake)
	renamed := must(manager.Patch(ctx, "before", []byte(`{"name":"m"}`)))(t)
	workers.expect(renamed, after, awake)
	if err := manager.Delete(ctx, "asleep"); err != nil {
		t.Fatal(err)
	}
	workers.expect(renamed, after)

	// More changes than the buffer of a watcher holds.
	for i := range 4000 {
		renamed = must(manager.Patch(ctx, "before", fmt.Appendf(nil, `{"name":"%d"}`, i)))(t)
	}
	workers.expect(renamed, after)

	cancel()
	if err := <-returned; err != nil {
		t.Error(err)
	}
	if len(workers.running) != 0 {
		t.Errorf("workers still run for %v", workers.running)
	}
}

// A worker that needs long to stop delays neither the stop of another one nor its start.
func TestSuperviseWorkers_SlowStop(t *testing.T) {
	manager := newRegistry(t, "slow", "quick")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
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
		must(manager.Pause(ctx, id))(t)
	}
	if id := <-stopped; id != "quick" {
		t.Errorf("%s stops first", id)
	}
	for _, id := range []string{"slow", "quick"} {
		must(manager.Resume(ctx, id))(t)
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
		manager := newRegistry(t, "r")
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
			must(manager.Patch(ctx, "r", fmt.Appendf(nil, `{"name":"%T"}`, registry)))(t)
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
	manager := newRegistry(t, "r")
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
		must(manager.Patch(ctx, "r", []byte(c.patch)))(t)
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
