package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

func panicOf(call func()) (cause any) {
	defer func() { cause = recover() }()
	call()
	return nil
}

// A panic of an observer reaches the caller. The other observers are called, and a write that
// was made before stays.
func TestObserver_Panic(t *testing.T) {
	var ended []error
	isBroken := true
	m := newManager(t,
		atEnd(func(_ relayer.Operation, err error) { ended = append(ended, err) }),
		atEnd(func(relayer.Operation, error) {
			if isBroken {
				panic("observer broke")
			}
		}))
	if cause := panicOf(func() { _, _ = m.Create(t.Context(), minimal("a")) }); cause != "observer broke" {
		t.Errorf("the caller got %v", cause)
	}
	isBroken = false
	if r := mustGet(t, m, "a"); r.ID != "a" {
		t.Errorf("stored %v", r)
	}
	if want := []error{nil, nil}; !slices.Equal(ended, want) {
		t.Errorf("ended with %v, want %v", ended, want)
	}
}

// A hook that panics before the commit leaves nothing stored and no lock held.
func TestHook_PanicBeforeCommit(t *testing.T) {
	isBroken := true
	breakIf := func() {
		if isBroken {
			panic("hook broke")
		}
	}
	var observed error
	m := newManager(t,
		atEnd(func(_ relayer.Operation, err error) { observed = err }),
		relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) { breakIf(); return "", nil }),
		relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error {
			breakIf()
			return nil
		}))
	ctx := t.Context()
	change := func(r *relayer.Relayer) error { r.Name = "changed"; breakIf(); return nil }

	if cause := panicOf(func() { _, _ = m.Create(ctx, minimal("a")) }); cause != "hook broke" {
		t.Errorf("create: %v", cause)
	}
	if _, err := m.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("get after the create that panicked: %v", err)
	}
	isBroken = false
	before := mustCreate(t, m, minimal("a"))
	isBroken = true
	for name, call := range map[string]func(){
		"update": func() { _, _ = m.Update(ctx, "a", change) },
		"delete": func() { _ = m.Delete(ctx, "a") },
	} {
		observed = nil
		if cause := panicOf(call); cause != "hook broke" || observed == nil {
			t.Errorf("%s: panic %v, observed as %v", name, cause, observed)
		}
	}
	if r, err := m.Get(ctx, "a"); err != nil || r.Revision != before.Revision {
		t.Errorf("after the panics: %v, error %v, want revision %d", r, err, before.Revision)
	}
	isBroken = false
	if _, err := m.Update(ctx, "a", change); err != nil {
		t.Errorf("update afterwards: %v", err)
	}
	if err := m.Delete(ctx, "a"); err != nil {
		t.Errorf("delete afterwards: %v", err)
	}
}

func TestObserver_Operations(t *testing.T) {
	type seen struct {
		kind relayer.Action
		id   string
		ok   bool
	}
	var got, again []seen
	record := func(into *[]seen) relayer.Option {
		return atEnd(func(operation relayer.Operation, err error) {
			*into = append(*into, seen{operation.Action, operation.ID, err == nil})
		})
	}
	m := newManager(t, record(&got), record(&again))
	ctx := t.Context()
	made, err := m.Create(ctx, relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.ID
	_, _ = m.Documents().Create(ctx, []byte(`{"id":"bad id"}`))
	_, _ = m.Documents().Create(ctx, []byte(`{`))
	_, _ = m.Get(ctx, id)
	_, _ = m.Documents().Get(ctx, "nobody")
	_, _ = m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10})
	_, _ = listDocuments(ctx, m, relayer.ListQuery{})
	for range m.All(ctx, relayer.Selector{}) {
	}
	_, _ = m.Update(ctx, id, func(*relayer.Relayer) error { return nil })
	_, _ = m.Documents().Patch(ctx, id, []byte(`{"paused":1}`))
	_, _ = m.Pause(ctx, id)
	_, _ = m.Resume(ctx, id)
	_, _ = m.Documents().Patch(ctx, id, []byte(` { "paused" : true } `))
	_, _ = m.Patch(ctx, id, patchtest.JSON(map[string]any{"paused": false}))
	_, _ = m.Disable(ctx, id, relayer.DisabledReason{})
	_, _ = m.Enable(ctx, id)
	_ = m.Delete(ctx, id)
	_ = m.Delete(ctx, id)
	_, _, _ = m.History(ctx, relayer.HistoryQuery{ID: id})
	_, _ = m.RPCURLs(ctx, id)
	for range m.Check(ctx) {
	}
	ended, end := context.WithCancel(ctx)
	end()
	for range m.Watch(ended, relayer.WatchQuery{}) {
	}
	want := []seen{
		{relayer.ActionCreate, id, true},
		{relayer.ActionCreate, "bad id", false},
		{relayer.ActionCreate, "", false},
		{relayer.ActionGet, id, true},
		{relayer.ActionGet, "nobody", false},
		{relayer.ActionList, "", true},
		{relayer.ActionList, "", true},
		{relayer.ActionList, "", true},
		{relayer.ActionUpdate, id, true},
		{relayer.ActionUpdate, id, false},
		{relayer.ActionPause, id, true},
		{relayer.ActionResume, id, true},
		{relayer.ActionPause, id, true},
		{relayer.ActionResume, id, true},
		{relayer.ActionDisable, id, false},
		{relayer.ActionEnable, id, true},
		{relayer.ActionDelete, id, true},
		{relayer.ActionDelete, id, false},
		{relayer.ActionGet, id, true},
		{relayer.ActionReveal, id, false},
		{relayer.ActionList, "", true}, // of the check
	}
	if !slices.Equal(got, want) || !slices.Equal(again, want) {
		t.Errorf("the observers saw\n%v\n%v\nwant\n%v", got, again, want)
	}
}

// changes is what an observer sees of a write.
type changes struct {
	action        relayer.Action
	old, revision uint64
	changed       string // with the new value of paused, and the reason
}

// An observer sees the revisions of a write, and the paths of the fields that it changed.
func TestObserver_Changes(t *testing.T) {
	var got relayer.Operation
	var shown string
	store := memory.New()
	m := managerOf(t, sealing(t, store, ringOf(t, "k1")), atEnd(func(operation relayer.Operation, _ error) {
		got = operation
		shown += fmt.Sprintf("%+v\n", operation)
	}), relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.ID == "b" {
			return relayer.Refuse("b is in use")
		}
		return nil
	}))
	ctx := t.Context()
	patch := func(id, patch string) func() error {
		return func() error { return second(m.Documents().Patch(ctx, id, []byte(patch))) }
	}
	const full, other = "https://rpc.example/SECRET", "https://rpc.example/SECRET-2"
	for _, step := range []struct {
		name  string
		write func() error
		want  changes
	}{
		{"create", func() error { return second(m.Create(ctx, withURLs("a", full))) }, changes{relayer.ActionCreate, 0, 1, ""}},
		{"taken", func() error { _, err := m.Create(ctx, minimal("a")); return isError(err, relayer.ErrExists) }, changes{relayer.ActionCreate, 0, 0, ""}},
		{"name", patch("a", `{"name":"SECRET-name"}`), changes{relayer.ActionUpdate, 1, 2, "name"}},
		{"same name", patch("a", `{"name":"SECRET-name"}`), changes{relayer.ActionUpdate, 2, 2, ""}},
		{"empty", patch("a", `{}`), changes{relayer.ActionUpdate, 2, 2, ""}},
		{"policies", patch("a", `{"policies":{"gas_price_cap":1,"whitelist_receivers":["SECRET"]},"notification_id":"x"}`), changes{relayer.ActionUpdate, 2, 3, "notification_id policies.gas_price_cap policies.whitelist_receivers"}},
		{"list", patch("a", `{"policies":{"gas_price_cap":1,"whitelist_receivers":["SECRET","b"]}}`), changes{relayer.ActionUpdate, 3, 4, "policies.whitelist_receivers"}},
		{"cleared policies", patch("a", `{"policies":null}`), changes{relayer.ActionUpdate, 4, 5, "policies.gas_price_cap policies.whitelist_receivers"}},
		{"first labels", patch("a", `{"labels":{"team":"SECRET","tier.x":"1"}}`), changes{relayer.ActionUpdate, 5, 6, "labels.team labels.tier.x"}},
		{"label", patch("a", `{"labels":{"tier.x":null,"zone":"b"}}`), changes{relayer.ActionUpdate, 6, 7, "labels.tier.x labels.zone"}},
		{"last labels", patch("a", `{"labels":null}`), changes{relayer.ActionUpdate, 7, 8, "labels.team labels.zone"}},
		{"private part", patch("a", `{"custom_rpc_urls":[{"url":"`+other+`"}]}`), changes{relayer.ActionUpdate, 8, 9, "custom_rpc_urls"}},
		{"both parts", patch("a", `{"custom_rpc_urls":[{"url":"`+full+`","weight":1}],"name":"n"}`), changes{relayer.ActionUpdate, 9, 10, "custom_rpc_urls name"}},
		{"weight", patch("a", `{"custom_rpc_urls":[{"url":"`+full+`","weight":2}]}`), changes{relayer.ActionUpdate, 10, 11, "custom_rpc_urls"}},
		{"no URLs", patch("a", `{"custom_rpc_urls":null}`), changes{relayer.ActionUpdate, 11, 12, "custom_rpc_urls"}},
		{"pause", func() error { return second(m.Pause(ctx, "a")) }, changes{relayer.ActionPause, 12, 13, "paused paused=true"}},
		{"resume with a reason", func() error { return second(m.Resume(ctx, "a", relayer.Reason("incident 42"))) }, changes{relayer.ActionResume, 13, 14, "paused paused=false incident 42"}},
		{"pause and name", patch("a", `{"paused":true,"name":"o"}`), changes{relayer.ActionUpdate, 14, 15, "name paused paused=true"}},
		{"pause again", func() error { return second(m.Pause(ctx, "a")) }, changes{relayer.ActionPause, 15, 15, ""}},
		{"disable", func() error {
			return second(m.Disable(ctx, "a", relayer.DisabledReason{Type: "SECRET-type", Details: "SECRET-details"}))
		}, changes{relayer.ActionDisable, 15, 16, "disabled_reason.details disabled_reason.type system_disabled"}},
		{"other reason", func() error {
			return second(m.Disable(ctx, "a", relayer.DisabledReason{Type: "SECRET-type", Details: "SECRET"}))
		}, changes{relayer.ActionDisable, 16, 17, "disabled_reason.details"}},
		{"enable", func() error { return second(m.Enable(ctx, "a")) }, changes{relayer.ActionEnable, 17, 18, "disabled_reason.details disabled_reason.type system_disabled"}},
		{"empty swap config", func() error {
			_, err := m.Create(ctx, relayer.CreateRequest{ID: "b", Name: "n", Network: "x", NetworkType: relayer.Stellar, SignerID: "s"})
			return errors.Join(err, patch("b", `{"policies":{"swap_config":{}}}`)())
		}, changes{relayer.ActionUpdate, 19, 20, "policies.swap_config"}},
		{"dry run", func() error {
			return second(m.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "other", "paused": true}), relayer.DryRun(), relayer.Reason("see https://a.example/SECRET")))
		}, changes{relayer.ActionUpdate, 18, 18, " see https://a.example/***"}},
		{"conflict", func() error { return isError(m.Delete(ctx, "a", relayer.IfRevision(1)), relayer.ErrConflict) }, changes{relayer.ActionDelete, 0, 0, ""}},
		{"invalid", func() error {
			return isError(second(m.Documents().Patch(ctx, "a", []byte(`{"name":""}`))), relayer.ErrInvalid)
		}, changes{relayer.ActionUpdate, 18, 18, ""}},
		{"refused", func() error { return isError(m.Delete(ctx, "b"), relayer.ErrInvalid) }, changes{relayer.ActionDelete, 20, 20, ""}},
		{"delete", func() error { return m.Delete(ctx, "a") }, changes{relayer.ActionDelete, 18, 0, ""}},
		{"unknown", func() error { return isError(m.Delete(ctx, "a"), relayer.ErrNotFound) }, changes{relayer.ActionDelete, 0, 0, ""}},
		{"get", func() error { return second(m.Get(ctx, "b")) }, changes{relayer.ActionGet, 0, 0, ""}},
	} {
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		seen := changes{got.Action, got.OldRevision, got.Revision, strings.Join(got.Changed, " ")}
		if got.Paused != nil {
			seen.changed += fmt.Sprint(" paused=", *got.Paused)
		}
		if got.Reason != "" {
			seen.changed += " " + got.Reason
		}
		if seen != step.want {
			t.Errorf("%s: observed %+v, want %+v", step.name, seen, step.want)
		}
	}
	if strings.Contains(shown, "SECRET") {
		t.Errorf("operations have values: %s", shown)
	}
}

// isError returns nil if err matches want, and otherwise an error.
func isError(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("error %w, want %w", err, want)
}

// contextStore records a value of the contexts that it gets.
type contextStore struct {
	relayer.Store
	seen *[]any
}

type traceKey struct{}

func (s contextStore) see(ctx context.Context) { *s.seen = append(*s.seen, ctx.Value(traceKey{})) }

func (s contextStore) Get(ctx context.Context, id string) (relayer.Record, error) {
	s.see(ctx)
	return s.Store.Get(ctx, id)
}

func (s contextStore) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.see(ctx)
	return s.Store.List(ctx, query)
}

func (s contextStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.see(ctx)
	return s.Store.Create(ctx, rec)
}

func (s contextStore) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.see(ctx)
	return s.Store.Update(ctx, rec)
}

func (s contextStore) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	s.see(ctx)
	return s.Store.Delete(ctx, id, revision, note)
}

// An observer brackets an operation: later observers, hooks and the store get the context
// that it returns, and the last that begins ends first.
func TestObserver_Context(t *testing.T) {
	var seen, hooks []any
	var order []string
	trace := func(name string) relayer.Option {
		return relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
			order = append(order, fmt.Sprint("begin ", name, " in ", ctx.Value(traceKey{})))
			if operation.Actor.ID != "ann" {
				t.Errorf("actor %+v", operation.Actor)
			}
			return context.WithValue(ctx, traceKey{}, name), func(error) { order = append(order, "end "+name) }
		})
	}
	nothing := relayer.WithObserver(func(context.Context, *relayer.Operation) (context.Context, func(error)) { return nil, nil })
	store := memory.New()
	m := managerOf(t, contextStore{store, &seen}, trace("outer"), nothing, trace("inner"),
		relayer.WithAddressResolver(func(ctx context.Context, _ relayer.CreateRequest) (string, error) {
			hooks = append(hooks, ctx.Value(traceKey{}))
			return "", nil
		}),
		relayer.WithAdmission(func(ctx context.Context, _ relayer.Operation, _, _ *relayer.Relayer) error {
			hooks = append(hooks, ctx.Value(traceKey{}))
			return nil
		}))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann"})
	wantOrder := []string{"begin outer in <nil>", "begin inner in outer", "end inner", "end outer"}
	for name, operation := range map[string]func() error{
		"create": func() error { return second(m.Create(ctx, minimal(""))) },
		"list":   func() error { return second(m.List(ctx, relayer.ListQuery{})) },
		"search": func() error { return second(m.List(ctx, relayer.ListQuery{Selector: mustParse(t, "search=x")})) },
		"all": func() error {
			for range m.All(ctx, relayer.Selector{}) {
			}
			return nil
		},
	} {
		order = nil
		if err := operation(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(order, wantOrder) {
			t.Errorf("%s: %q, want %q", name, order, wantOrder)
		}
	}
	for name, operation := range operationsOn {
		mustCreate(t, managerOf(t, store), minimal(strings.ReplaceAll(name, " ", "-")))
		order = nil
		if err := operation(ctx, m, strings.ReplaceAll(name, " ", "-")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(order, wantOrder) {
			t.Errorf("%s: %q, want %q", name, order, wantOrder)
		}
	}
	for _, value := range slices.Concat(seen, hooks) {
		if value != "inner" {
			t.Fatalf("contexts %v and %v", seen, hooks)
		}
	}
	if len(hooks) < 4 || len(seen) < 20 {
		t.Errorf("%d hooks and %d calls of the store", len(hooks), len(seen))
	}
}

// A condition that fails after a lost race has no revisions, like one that fails at once.
func TestObserver_RevisionsOfLostRace(t *testing.T) {
	store := memory.New()
	other := managerOn(t, store)
	var got relayer.Operation
	m := managerOn(t, store, atEnd(func(operation relayer.Operation, _ error) { got = operation }),
		relayer.WithAdmission(func(ctx context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
			if o.Action != relayer.ActionUpdate {
				return nil
			}
			return second(other.Pause(ctx, "a"))
		}))
	r := mustCreate(t, m, minimal("a"))
	_, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "m"}), relayer.IfRevision(r.Revision))
	if !errors.Is(err, relayer.ErrConflict) || got.OldRevision != 0 || got.Revision != 0 {
		t.Errorf("error %v, revisions %d and %d, want none", err, got.OldRevision, got.Revision)
	}
}
