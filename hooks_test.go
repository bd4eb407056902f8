package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

func TestActor_Context(t *testing.T) {
	if actor, ok := relayer.ActorFrom(t.Context()); ok || !reflect.DeepEqual(actor, relayer.Actor{}) {
		t.Errorf("without an actor: %+v, %t", actor, ok)
	}
	ann := relayer.Actor{ID: "ann", RequestID: "1", Address: "192.0.2.1", Attributes: map[string][]string{"group": {"ops", "risk"}}}
	bob := relayer.Actor{ID: "bob"}
	outer := relayer.WithActor(t.Context(), ann)
	inner := relayer.WithActor(outer, bob)
	if actor, ok := relayer.ActorFrom(inner); !ok || !reflect.DeepEqual(actor, bob) {
		t.Errorf("inner: %+v, %t", actor, ok)
	}
	if actor, ok := relayer.ActorFrom(outer); !ok || !reflect.DeepEqual(actor, ann) {
		t.Errorf("outer: %+v, %t", actor, ok)
	}
}

// An action that this version does not know counts as a write.
func TestAction_IsWrite(t *testing.T) {
	reads := []relayer.Action{relayer.ActionGet, relayer.ActionList, relayer.ActionWatch, relayer.ActionReveal}
	for _, action := range reads {
		if action.IsWrite() {
			t.Errorf("%s is a write", action)
		}
	}
	writes := []relayer.Action{
		relayer.ActionCreate, relayer.ActionUpdate, relayer.ActionPause, relayer.ActionResume, relayer.ActionDisable, relayer.ActionEnable,
		relayer.ActionDelete, "unknown", "",
	}
	for _, action := range writes {
		if !action.IsWrite() {
			t.Errorf("%s is a read", action)
		}
	}
}

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
	made := must(m.Create(ctx, relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}))(t)
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
		{"create of a paused one", func() error {
			req := minimal("c")
			req.Paused = true
			return second(m.Create(ctx, req))
		}, changes{relayer.ActionCreate, 0, 22, ""}},
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
	other := managerOf(t, store)
	var got relayer.Operation
	m := managerOf(t, store, atEnd(func(operation relayer.Operation, _ error) { got = operation }),
		relayer.WithAdmission(func(ctx context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
			if o.Action == relayer.ActionCreate {
				return nil
			}
			return second(other.Pause(ctx, old.ID))
		}))
	for action, write := range map[relayer.Action]func(r *relayer.Relayer) error{
		relayer.ActionUpdate: func(r *relayer.Relayer) error {
			return second(m.Patch(t.Context(), r.ID, patchtest.JSON(map[string]any{"name": "m"}), relayer.IfRevision(r.Revision)))
		},
		relayer.ActionDelete: func(r *relayer.Relayer) error { return m.Delete(t.Context(), r.ID, relayer.IfRevision(r.Revision)) },
	} {
		err := write(mustCreate(t, m, minimal(string(action))))
		if !errors.Is(err, relayer.ErrConflict) || got.Action != action || got.OldRevision != 0 || got.Revision != 0 {
			t.Errorf("%s: error %v, action %s, revisions %d and %d, want none", action, err, got.Action, got.OldRevision, got.Revision)
		}
	}
}

// refuseDelete returns an admission that fails for every delete.
func refuseDelete(err error) relayer.Option {
	return relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete {
			return err
		}
		return nil
	})
}

// recordAdmissions returns an option that appends a text for every admission.
func recordAdmissions(into *[]string) relayer.Option {
	return relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
		text := func(r *relayer.Relayer) string {
			if r == nil {
				return "none"
			}
			return fmt.Sprintf("%s/%t", r.Name, r.Paused)
		}
		*into = append(*into, fmt.Sprintf("%s %s: %s to %s, dry run %t", o.Action, o.Actor.ID, text(old), text(changed), o.DryRun))
		return nil
	})
}

// An admission sees every write that changes something, except the emergency switches.
func TestAdmission_Actions(t *testing.T) {
	var got []string
	m := newManager(t, recordAdmissions(&got))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann"})
	for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
		must(m.Create(ctx, minimal("a"), options...))(t)
	}
	steps := []func(options ...relayer.WriteOption) error{
		func(o ...relayer.WriteOption) error {
			return second(m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "b"; return nil }, o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Update(ctx, "a", func(*relayer.Relayer) error { return nil }, o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "c"}), o...))
		},
		func(o ...relayer.WriteOption) error { return second(m.Documents().Patch(ctx, "a", []byte(`{}`), o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Pause(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Resume(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return second(m.Resume(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":true}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":false}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Documents().Patch(ctx, "a", []byte(`{"paused":true,"name":"d"}`), o...))
		},
		func(o ...relayer.WriteOption) error {
			return second(m.Disable(ctx, "a", relayer.DisabledReason{Type: "x"}, o...))
		},
		func(o ...relayer.WriteOption) error { return second(m.Enable(ctx, "a", o...)) },
		func(o ...relayer.WriteOption) error { return m.Delete(ctx, "a", o...) },
	}
	for _, step := range steps {
		for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
			mustSucceed(t, step(options...))
		}
	}
	var want []string
	for _, text := range []string{
		"create ann: none to n/false",
		"update ann: n/false to b/false",
		"update ann: b/false to c/false",
		"resume ann: c/true to c/false",
		"resume ann: c/true to c/false",
		"update ann: c/false to d/true",
		"enable ann: d/true to d/true",
		"delete ann: d/true to none",
	} {
		want = append(want, text+", dry run true", text+", dry run false")
	}
	if !slices.Equal(got, want) {
		t.Errorf("admissions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// All admissions must admit a write, and the first refusal ends it. A refused write stores nothing,
// and the reason reaches its caller.
func TestAdmission_Refuse(t *testing.T) {
	writes := map[relayer.Action]func(ctx context.Context, m *relayer.Manager) error{
		relayer.ActionCreate: func(ctx context.Context, m *relayer.Manager) error { return second(m.Create(ctx, minimal("new"))) },
		relayer.ActionUpdate: func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Patch(ctx, "evm", patchtest.JSON(map[string]any{"name": "x"})))
		},
		relayer.ActionResume: func(ctx context.Context, m *relayer.Manager) error { return second(m.Resume(ctx, "evm")) },
		relayer.ActionEnable: func(ctx context.Context, m *relayer.Manager) error { return second(m.Enable(ctx, "evm")) },
		relayer.ActionDelete: func(ctx context.Context, m *relayer.Manager) error { return m.Delete(ctx, "evm") },
	}
	for action, write := range writes {
		for name, refusal := range map[string]error{
			"refusal":         relayer.Refuse("not now"),
			"wrapped refusal": fmt.Errorf("because: %w", relayer.Refuse("not now")),
			"ValidationError": &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "name", Message: "not now"}}},
		} {
			store := memory.New()
			all := registryOn(t, store)
			for _, err := range []error{second(all.Pause(t.Context(), "evm")), second(all.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "x"}))} {
				if err != nil {
					t.Fatal(err)
				}
			}
			before := storedDocument(t, all, "evm")
			admissions := 0
			m := managerOf(t, store, refuseNothing, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
				if o.Action != action {
					t.Errorf("admission of %s, want %s", o.Action, action)
				}
				admissions++
				return refusal
			}), relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error {
				t.Error("an admission was called after the refusal")
				return nil
			}))
			err := write(t.Context(), m)
			if admissions != 1 {
				t.Errorf("%s, %s: %d admissions", action, name, admissions)
			}
			if problems := fieldErrors(t, err); len(problems) != 1 || problems[0].Message != "not now" {
				t.Errorf("%s, %s: %v", action, name, err)
			}
			if storedDocument(t, all, "evm") != before || !errors.Is(second(all.Get(t.Context(), "new")), relayer.ErrNotFound) {
				t.Errorf("%s, %s: stored", action, name)
			}
		}
	}
}

// Any other error of an admission or of the address resolver is a fault of the server: it
// has the errors and types of the host, and no meaning of this package.
func TestHook_Fault(t *testing.T) {
	host := errors.New("queue is out of reach: " + secretURL)
	_, unknown := newManager(t).Get(t.Context(), "queue")
	sentinels := map[string]error{
		"not found": relayer.ErrNotFound, "exists": relayer.ErrExists, "conflict": relayer.ErrConflict, "unavailable": relayer.ErrUnavailable,
		"unknown outcome": relayer.ErrOutcomeUnknown, "corrupt": relayer.ErrCorrupt, "sealed": relayer.ErrSealed, "claimed": relayer.ErrClaimed,
		"gap": relayer.ErrGap, "invalid": relayer.ErrInvalid, "no revision": relayer.ErrNoRevision, "unknown signer": relayer.ErrUnknownSigner,
		"unknown format": relayer.ErrUnknownFormat, "newer format": relayer.ErrNewerFormat,
		"unsupported": errors.ErrUnsupported,
	}
	faults := map[string]error{"get of another registry": unknown}
	for name, sentinel := range sentinels {
		faults[name] = fmt.Errorf("%w: %w", sentinel, errors.Join(host, &hostError{7}))
	}
	for name, fault := range faults {
		calls := 0
		m := registry(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
			if o.Action != relayer.ActionDelete {
				return nil
			}
			calls++
			return fault
		}))
		err := m.Delete(t.Context(), "evm")
		if err == nil || calls != 1 || !strings.Contains(err.Error(), "delete evm: admission: ") {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		mustGet(t, m, "evm")
		wantFault := func(hook string, err error) {
			for other, sentinel := range sentinels {
				if errors.Is(err, sentinel) {
					t.Errorf("%s of %s matches %s", name, hook, other)
				}
			}
			if wantMasked(t, name, err.Error()); name != "get of another registry" && !strings.Contains(err.Error(), "https://***.rpc.example:8545/***") {
				t.Errorf("%s of %s: %v", name, hook, err)
			}
			if typed, ok := errors.AsType[*hostError](err); name != "get of another registry" && (!errors.Is(err, host) || !ok || typed.code != 7) {
				t.Errorf("%s of %s does not match the error of the host: %v", name, hook, err)
			}
		}
		wantFault("an admission", err)
		if name == "unknown signer" {
			continue // means that the request is invalid
		}
		resolve := func(context.Context, relayer.CreateRequest) (string, error) { return "", fault }
		_, err = newManager(t, relayer.WithAddressResolver(resolve)).Create(t.Context(), minimal("new"))
		wantFault("a resolver", err)
	}
	m := registry(t, refuseDelete(fmt.Errorf("waiting: %w", context.DeadlineExceeded)))
	if err := m.Delete(t.Context(), "evm"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

type hostError struct{ code int }

func (e *hostError) Error() string { return fmt.Sprint("code ", e.code) }

// The relayers of an admission are copies: a change of them is not stored.
func TestAdmission_Copies(t *testing.T) {
	spoil := relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, changed *relayer.Relayer) error {
		for _, r := range []*relayer.Relayer{old, changed} {
			if r == nil {
				continue
			}
			r.Name, r.Labels["team"], r.CustomRPCURLs[0].URL = "spoiled", "spoiled", "https://spoiled.example"
			*r.Policy.(*relayer.EVMPolicy) = relayer.EVMPolicy{PrivateTransactions: new(true)}
		}
		return nil
	})
	m := newManager(t, spoil, spoil)
	req := minimal("a")
	req.Labels = map[string]string{"team": "payments"}
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/key"}}
	created := mustCreate(t, m, req)
	updated := must(m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "new"})))(t)
	for name, r := range map[string]*relayer.Relayer{"created": created, "updated": updated, "stored": mustGet(t, m, "a")} {
		if strings.Contains(fmt.Sprint(r), "spoiled") || strings.Contains(fmt.Sprint(r), "private") || r.CustomRPCURLs[0].URL != "https://rpc.example/key" {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// Old and New have the full RPC URLs, or masked ones if they are sealed.
func TestAdmission_RPCURLs(t *testing.T) {
	for name, c := range map[string]struct {
		store relayer.Store
		want  bool // masked
	}{"clear": {memory.New(), false}, "sealed": {sealing(t, memory.New(), ringOf(t, "k1")), true}} {
		calls := 0
		m := managerOf(t, c.store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
			for _, r := range []*relayer.Relayer{old, changed} {
				if r != nil && r.CustomRPCURLs[0].URL.IsMasked() != c.want {
					t.Errorf("%s, %s: URL %q", name, o.Action, r.CustomRPCURLs[0].URL.Unmasked())
				}
			}
			calls++
			return nil
		}))
		mustCreate(t, m, withURLs("a", firstURL))
		if _, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": "new"})); err != nil {
			t.Error(err)
		}
		if err := m.Delete(t.Context(), "a"); err != nil || calls != 3 {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
}

// An admission is called again with the relayer that another writer has stored.
func TestAdmission_LostRace(t *testing.T) {
	store := memory.New()
	other := registryOn(t, store)
	var got []string
	m := managerOf(t, store, relayer.WithAdmission(func(_ context.Context, _ relayer.Operation, old, _ *relayer.Relayer) error {
		got = append(got, old.Name)
		if len(got) == 1 {
			return second(other.Patch(context.Background(), "evm", patchtest.JSON(map[string]any{"name": "faster"})))
		}
		return nil
	}))
	mustSucceed(t, m.Delete(t.Context(), "evm"))
	if want := []string{"n", "faster"}; !slices.Equal(got, want) {
		t.Errorf("called with %q, want %q", got, want)
	}
}
