package relayer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// follower receives changes one at a time.
type follower struct {
	t    *testing.T
	next func() (relayer.Change, error, bool)
}

func follow(t *testing.T, changes iter.Seq2[relayer.Change, error]) *follower {
	next, stop := iter.Pull2(changes)
	t.Cleanup(stop)
	return &follower{t, next}
}

func (f *follower) expect(kind relayer.ChangeKind, id string) *relayer.Relayer {
	f.t.Helper()
	change, err, ok := f.next()
	if !ok || err != nil || change.Kind != kind || change.Relayer.ID != id {
		f.t.Fatalf("got %+v, %v, %t, want %s %s", change, err, ok, kind, id)
	}
	return change.Relayer
}

func TestWatch_Changes(t *testing.T) {
	m := registry(t)
	ctx, cancel := context.WithCancel(t.Context())
	f, other := follow(t, m.Watch(ctx, relayer.WatchQuery{})), follow(t, m.Watch(ctx, relayer.WatchQuery{}))

	request := withURLs("new", "https://rpc.example/key")
	created := mustCreate(t, m, request)
	if _, err := m.Create(ctx, request); !errors.Is(err, relayer.ErrExists) {
		t.Fatal(err)
	}
	must(m.Resume(ctx, "new"))(t) // changes nothing
	paused := must(m.Pause(ctx, "new"))(t)
	must(m.Documents().Patch(ctx, "evm", []byte(`{"name":"patched"}`)))(t)
	mustSucceed(t, m.Delete(ctx, "new"))
	for _, follower := range []*follower{f, other} {
		r := follower.expect(relayer.ChangeCreated, "new")
		if r.Revision != created.Revision || string(r.CustomRPCURLs[0].URL) != "https://rpc.example/key" {
			t.Errorf("created as %+v", r)
		}
		r.Name = "mine" // of this consumer only
		if r := follower.expect(relayer.ChangeUpdated, "new"); r.Revision != paused.Revision || !r.Paused {
			t.Errorf("paused as %+v", r)
		}
		if r := follower.expect(relayer.ChangeUpdated, "evm"); r.Name != "patched" {
			t.Errorf("patched as %+v", r)
		}
		if r := follower.expect(relayer.ChangeDeleted, "new"); r.Revision <= paused.Revision || !r.Paused {
			t.Errorf("deleted as %+v", r)
		}
	}
	cancel()
	if change, err, ok := f.next(); !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancel: %+v, %v, %t", change, err, ok)
	}
	if change, err, ok := f.next(); ok {
		t.Errorf("after the end: %+v, %v", change, err)
	}
}

// A range that ended holds no memory except what the feed retains, even if its context
// is not done.
func TestWatch_ReleasesMemory(t *testing.T) {
	store := memory.New()
	m := registryOn(t, store)
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	document := storedRecord(t, store, "evm").Document
	watchBriefly := func() {
		changes := m.Watch(t.Context(), relayer.WatchQuery{})
		for range 3 {
			name := fmt.Sprintf(`"name":"%d%s"`, rand.Uint64(), strings.Repeat("x", 50_000))
			editRecord(t, store, "evm", func(rec *relayer.Record) {
				rec.Document = bytes.Replace(document, []byte(`"name":"n"`), []byte(name), 1)
			})
		}
		for range changes {
			break
		}
	}
	for range 130 {
		watchBriefly() // until the feed retains as much as it may
	}
	if size := len(storedRecord(t, store, "evm").Document); size < 50_000 {
		t.Fatalf("a document has %d bytes", size)
	}
	before := heap()
	for range 60 {
		watchBriefly()
	}
	if kept := heap() - before; kept > 2<<20 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
}

// TestWatch_UndecodableRecord ends at a record that is not a relayer.
func TestWatch_UndecodableRecord(t *testing.T) {
	store := memory.New()
	m := registryOn(t, store)
	f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{}))
	must(store.Create(t.Context(), relayer.Record{ID: "x", Document: []byte("damaged")}))(t)
	must(m.Pause(t.Context(), "evm"))(t)
	if change, err, ok := f.next(); !ok || err == nil || errors.Is(err, relayer.ErrGap) {
		t.Errorf("got %+v, %v, %t, want an error of the record", change, err, ok)
	}
	if change, err, ok := f.next(); ok {
		t.Errorf("after the error: %+v, %v", change, err)
	}
}

// An idle watch has heartbeats with a position and a time. A change postpones the next one,
// and one that the selector does not select becomes one. A consumer that did not ask for
// heartbeats gets changes only.
func TestWatch_Heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := registry(t)
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var got, without []string
		collect := func(into *[]string, changes iter.Seq2[relayer.Change, error]) {
			for change, err := range changes {
				if errors.Is(err, context.Canceled) {
					*into = append(*into, "canceled")
					continue
				}
				if change.Kind == relayer.ChangeHeartbeat && (change.Relayer != nil || change.Position == "") {
					t.Errorf("heartbeat %+v", change)
				}
				if !change.Time.Equal(time.Now()) {
					t.Errorf("%s is complete up to %v, want now", change.Kind, change.Time)
				}
				*into = append(*into, fmt.Sprint(time.Since(began), " ", change.Kind, " ", err))
			}
			*into = append(*into, "end")
		}
		selector := mustParse(t, "id=evm")
		go collect(&got, m.Watch(ctx, relayer.WatchQuery{Selector: selector, Heartbeats: true}))
		go collect(&without, m.Watch(ctx, relayer.WatchQuery{Selector: selector}))
		synctest.Wait()
		time.Sleep(6 * time.Second)
		must(m.Pause(ctx, "evm"))(t)
		time.Sleep(3 * time.Second)
		must(m.Pause(ctx, "solana"))(t)
		must(m.Resume(ctx, "solana"))(t)
		time.Sleep(5 * time.Second)
		cancel()
		synctest.Wait()
		if want := []string{"4s heartbeat <nil>", "6s updated <nil>", "9s heartbeat <nil>", "13s heartbeat <nil>", "canceled", "end"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if want := []string{"6s updated <nil>", "canceled", "end"}; !slices.Equal(without, want) {
			t.Errorf("without heartbeats got %q, want %q", without, want)
		}
	})
}

// A second range would get other changes than the first, or none: it is an error.
func TestWatch_RangedTwice(t *testing.T) {
	m := registry(t)
	changes := m.Watch(t.Context(), relayer.WatchQuery{})
	must(m.Pause(t.Context(), "evm"))(t)
	for range changes {
		break
	}
	if err := firstError(changes); err == nil || !strings.Contains(err.Error(), "ranged over once") {
		t.Errorf("error %v", err)
	}
}

// A relayer that moves into a selection has the same last change in a watch as in a list, which
// package mirror compares. For a limited caller neither shows what was changed.
func TestWatch_LastChangeAsInList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		req := minimal("r")
		req.Labels = map[string]string{"team": "risk"}
		mustCreate(t, m, req)
		selector := mustParse(t, "label.team=payments|treasury")
		for name, c := range map[string]struct {
			m        *relayer.Manager
			selector relayer.Selector
			shows    bool
		}{"a selection": {m, selector, true}, "a scope": {m.Within(selector), relayer.Selector{}, false}} {
			f := follow(t, c.m.Watch(t.Context(), relayer.WatchQuery{Selector: c.selector}))
			mustChange(t, m, "ann", "r", []byte(`{"labels":{"team":"payments"}}`))
			watched := f.expect(relayer.ChangeCreated, "r")
			page, err := c.m.List(t.Context(), relayer.ListQuery{Selector: c.selector})
			if err != nil || !reflect.DeepEqual(page.Relayers[0], watched) || (len(watched.LastChange.Changed) > 0) != c.shows {
				t.Errorf("%s: watched %+v, listed %+v, error %v", name, watched.LastChange, page.Relayers[0].LastChange, err)
			}
			mustChange(t, m, "ann", "r", []byte(`{"labels":{"team":"treasury"}}`))
			watched = f.expect(relayer.ChangeUpdated, "r")
			if got := mustGet(t, c.m, "r"); !reflect.DeepEqual(got, watched) {
				t.Errorf("%s: watched %+v, got %+v", name, watched.LastChange, got.LastChange)
			}
			mustChange(t, m, "ann", "r", []byte(`{"labels":{"team":"risk"}}`))
		}
	})
}
