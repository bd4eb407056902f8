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
	for action, want := range map[relayer.Action]bool{
		relayer.ActionGet: false, relayer.ActionList: false, relayer.ActionWatch: false, relayer.ActionReveal: false,
		relayer.ActionCreate: true, relayer.ActionUpdate: true, relayer.ActionPause: true, relayer.ActionResume: true,
		relayer.ActionDisable: true, relayer.ActionEnable: true, relayer.ActionDelete: true, "unknown": true, "": true,
	} {
		if action.IsWrite() != want {
			t.Errorf("%q is a write: %t, want %t", action, action.IsWrite(), want)
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
	if mustGet(t, m, "a"); !slices.Equal(ended, []error{nil, nil}) {
		t.Errorf("ended with %v, want two without an error", ended)
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
	change := updating(func(r *relayer.Relayer) { r.Name = "changed"; breakIf() })

	if cause := panicOf(func() { _, _ = m.Create(ctx, minimal("a")) }); cause != "hook broke" {
		t.Errorf("create: %v", cause)
	}
	if _, err := m.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("get after the create that panicked: %v", err)
	}
	isBroken = false
	before := mustCreate(t, m, minimal("a"))
	isBroken = true
	for name, call := range map[string]operation{"update": change, "delete": deleting} {
		observed = nil
		if cause := panicOf(func() { _, _ = call(m, ctx, "a") }); cause != "hook broke" || observed == nil {
			t.Errorf("%s: panic %v, observed as %v", name, cause, observed)
		}
	}
	if r, err := m.Get(ctx, "a"); err != nil || r.Revision != before.Revision {
		t.Errorf("after the panics: %v, error %v, want revision %d", r, err, before.Revision)
	}
	isBroken = false
	for _, call := range []operation{change, deleting} {
		must(call(m, ctx, "a"))(t)
	}
}

// TestObserver_Operations calls every operation once or more.
func TestObserver_Operations(t *testing.T) {
	var got, again []string
	record := func(into *[]string) relayer.Option {
		return atEnd(func(o relayer.Operation, err error) {
			*into = append(*into, fmt.Sprint(o.Action, " ", o.ID, " ", err == nil))
		})
	}
	m := newManager(t, record(&got), record(&again))
	ctx := t.Context()
	id := mustCreate(t, m, minimal("")).ID
	_, _ = m.Documents().Create(ctx, []byte(`{"id":"bad id"}`))
	_, _ = m.Documents().Create(ctx, []byte(`{`))
	_, _ = m.Get(ctx, id)
	_, _ = m.Documents().Get(ctx, "nobody")
	_, _ = m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10})
	_, _ = m.Documents().List(ctx, relayer.ListQuery{})
	allOf(t, m, relayer.Selector{})
	for _, call := range []operation{
		updating(func(*relayer.Relayer) {}), patchingDocument(`{"paused":1}`), (*relayer.Manager).Pause, (*relayer.Manager).Resume,
		patchingDocument(` { "paused" : true } `), patching(`{"paused":false}`), disabling(relayer.DisabledReason{}), (*relayer.Manager).Enable, deleting, deleting,
	} {
		_, _ = call(m, ctx, id)
	}
	_, _, _ = m.History(ctx, relayer.HistoryQuery{ID: id})
	_, _ = m.RPCURLs(ctx, id)
	_, _ = m.Documents().WithFullURLs().Get(ctx, id)
	_, _ = m.Documents().WithFullURLs().List(ctx, relayer.ListQuery{})
	for range m.Check(ctx) {
	}
	ended, end := context.WithCancel(ctx)
	end()
	for range m.Watch(ended, relayer.WatchQuery{}) {
	}
	want := strings.Split(strings.ReplaceAll(`create ID true,create bad id false,create  false,get ID true,get nobody false,list  true,list  true,list  true,`+
		`update ID true,update ID false,pause ID true,resume ID true,pause ID true,resume ID true,disable ID false,enable ID true,`+
		`delete ID true,delete ID false,get ID true,reveal ID false,reveal ID false,reveal  true,list  true`, "ID", id), ",")
	if !slices.Equal(got, want) || !slices.Equal(again, want) {
		t.Errorf("the observers saw\n%q\n%q\nwant\n%q", got, again, want)
	}
}

// An observer sees the revisions of a write, and the paths of the fields that it changed.
func TestObserver_Changes(t *testing.T) {
	var got relayer.Operation
	var shown string
	m := managerOf(t, sealing(t, memory.New(), ringOf(t, "k1")), atEnd(func(operation relayer.Operation, _ error) {
		got = operation
		shown += fmt.Sprintf("%+v\n", operation)
	}), relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.ID == "b" {
			return relayer.Refuse("b is in use")
		}
		return nil
	}))
	create := func(edit func(req *relayer.CreateRequest)) operation {
		return func(m *relayer.Manager, ctx context.Context, id string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
			req := withURLs(id, "https://rpc.example/SECRET")
			edit(&req)
			return m.Create(ctx, req, o...)
		}
	}
	disable := func(details string) operation {
		return disabling(relayer.DisabledReason{Type: "SECRET-type", Details: details})
	}
	endpoint := func(key string, weight int) string {
		return fmt.Sprintf(`"custom_rpc_urls":[{"url":"https://rpc.example/%s","weight":%d}]`, key, weight)
	}
	const disabled = "disabled_reason.details disabled_reason.type system_disabled"
	for _, step := range []struct {
		id    string
		write operation
		err   error
		want  string // action, revisions, paths, the new value of paused, and the reason
	}{
		{"a", create(func(*relayer.CreateRequest) {}), nil, "create 0 1"},
		{"a", create(func(*relayer.CreateRequest) {}), relayer.ErrExists, "create 0 0"},
		{"a", patching(`{"name":"SECRET-name"}`), nil, "update 1 2 name"},
		{"a", patching(`{"name":"SECRET-name"}`), nil, "update 2 2"},
		{"a", patching(`{}`), nil, "update 2 2"},
		{"a", patching(`{"policies":{"gas_price_cap":1,"whitelist_receivers":["SECRET"]},"notification_id":"x"}`), nil,
			"update 2 3 notification_id policies.gas_price_cap policies.whitelist_receivers"},
		{"a", patching(`{"policies":{"gas_price_cap":1,"whitelist_receivers":["SECRET","b"]}}`), nil, "update 3 4 policies.whitelist_receivers"},
		{"a", patching(`{"policies":null}`), nil, "update 4 5 policies.gas_price_cap policies.whitelist_receivers"},
		{"a", patching(`{"labels":{"team":"SECRET","tier.x":"1"}}`), nil, "update 5 6 labels.team labels.tier.x"},
		{"a", patching(`{"labels":{"tier.x":null,"zone":"b"}}`), nil, "update 6 7 labels.tier.x labels.zone"},
		{"a", patching(`{"labels":null}`), nil, "update 7 8 labels.team labels.zone"},
		{"a", patching(`{` + endpoint("SECRET-2", 100) + `}`), nil, "update 8 9 custom_rpc_urls"},
		{"a", patching(`{` + endpoint("SECRET", 1) + `,"name":"n"}`), nil, "update 9 10 custom_rpc_urls name"},
		{"a", patching(`{` + endpoint("SECRET", 2) + `}`), nil, "update 10 11 custom_rpc_urls"},
		{"a", patching(`{"custom_rpc_urls":null}`), nil, "update 11 12 custom_rpc_urls"},
		{"a", (*relayer.Manager).Pause, nil, "pause 12 13 paused paused=true"},
		{"a", withReason((*relayer.Manager).Resume, "incident 42"), nil, "resume 13 14 paused paused=false incident 42"},
		{"a", patching(`{"paused":true,"name":"o"}`), nil, "update 14 15 name paused paused=true"},
		{"a", (*relayer.Manager).Pause, nil, "pause 15 15"},
		{"a", disable("SECRET-details"), nil, "disable 15 16 " + disabled},
		{"a", disable("SECRET"), nil, "disable 16 17 disabled_reason.details"},
		{"a", (*relayer.Manager).Enable, nil, "enable 17 18 " + disabled},
		{"b", create(func(req *relayer.CreateRequest) { req.NetworkType = relayer.Stellar }), nil, "create 0 19"},
		{"b", patching(`{"policies":{"swap_config":{}}}`), nil, "update 19 20 policies.swap_config"},
		{"a", withReason(patching(`{"name":"other","paused":true}`), "see https://a.example/SECRET", relayer.DryRun()), nil, "update 18 18 see https://a.example/***"},
		{"a", withReason(deleting, "", relayer.IfRevision(1)), relayer.ErrConflict, "delete 0 0"},
		{"a", patching(`{"name":""}`), relayer.ErrInvalid, "update 18 18"},
		{"b", deleting, relayer.ErrInvalid, "delete 20 20"},
		{"a", deleting, nil, "delete 18 0"},
		{"a", deleting, relayer.ErrNotFound, "delete 0 0"},
		{"c", create(func(req *relayer.CreateRequest) { req.Paused = true }), nil, "create 0 22"},
		{"b", operationsOn["get"], nil, "get 0 0"},
	} {
		if _, err := step.write(m, t.Context(), step.id); !errors.Is(err, step.err) || step.err == nil && err != nil {
			t.Fatalf("%s: error %v, want %v", step.want, err, step.err)
		}
		seen := fmt.Sprint(got.Action, " ", got.OldRevision, " ", got.Revision)
		for _, path := range got.Changed {
			seen += " " + path
		}
		if got.Paused != nil {
			seen += fmt.Sprint(" paused=", *got.Paused)
		}
		if got.Reason != "" {
			seen += " " + got.Reason
		}
		if seen != step.want {
			t.Errorf("observed %q, want %q", seen, step.want)
		}
	}
	if strings.Contains(shown, "SECRET") {
		t.Errorf("operations have values: %s", shown)
	}
}

func withReason(call operation, reason string, more ...relayer.WriteOption) operation {
	return func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		return call(m, ctx, id, append(append(options, relayer.Reason(reason)), more...)...)
	}
}

// An observer brackets an operation: later observers, hooks and the store get the context
// that it returns, and the last that begins ends first.
func TestObserver_Context(t *testing.T) {
	type traceKey struct{}
	seen := make(map[string]int) // per call of the store, and of hooks
	var order []string
	see := func(ctx context.Context, call string) error {
		if seen[call]++; ctx.Value(traceKey{}) != "inner" {
			t.Errorf("%s in the context of %v", call, ctx.Value(traceKey{}))
		}
		return nil
	}
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
	registryOn(t, store)
	m := managerOf(t, hooked{Store: store, before: func(ctx context.Context, call, _ string) error { return see(ctx, call) }}, trace("outer"), nothing, trace("inner"),
		relayer.WithAddressResolver(func(ctx context.Context, _ relayer.CreateRequest) (string, error) { return "", see(ctx, "resolver") }),
		relayer.WithAdmission(func(ctx context.Context, _ relayer.Operation, _, _ *relayer.Relayer) error {
			return see(ctx, "admission")
		}))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann"})
	calls := map[string]func() error{
		"create": func() error { return second(m.Create(ctx, minimal(""))) },
		"list":   func() error { return second(m.List(ctx, relayer.ListQuery{})) },
		"search": func() error { return second(m.List(ctx, relayer.ListQuery{Selector: mustParse(t, "search=x")})) },
		"all": func() error {
			m.All(ctx, relayer.Selector{})(func(*relayer.Relayer, error) bool { return true })
			return nil
		},
	}
	for name, operation := range operationsOn {
		calls[name] = func() error {
			id := strings.ReplaceAll(name, " ", "-")
			mustCreate(t, managerOf(t, store), minimal(id))
			return second(operation(m, ctx, id))
		}
	}
	for name, call := range calls {
		order = nil
		mustSucceed(t, call())
		if want := []string{"begin outer in <nil>", "begin inner in outer", "end inner", "end outer"}; !slices.Equal(order, want) {
			t.Errorf("%s: %q, want %q", name, order, want)
		}
	}
	for _, call := range []string{"get", "list", "create", "update", "delete", "resolver", "admission"} {
		if seen[call] == 0 {
			t.Errorf("%s was not called", call)
		}
	}
}

// A condition that fails after a lost race has no revisions, like one that fails at once.
func TestObserver_RevisionsOfLostRace(t *testing.T) {
	store := memory.New()
	other := managerOf(t, store)
	var got relayer.Operation
	m := managerOf(t, store, atEnd(func(operation relayer.Operation, _ error) { got = operation }),
		relayer.WithAdmission(func(ctx context.Context, _ relayer.Operation, old, _ *relayer.Relayer) error {
			return second(other.Pause(ctx, old.ID))
		}))
	for action, write := range map[relayer.Action]operation{relayer.ActionUpdate: patching(`{"name":"m"}`), relayer.ActionDelete: deleting} {
		r := mustCreate(t, other, minimal(string(action)))
		_, err := write(m, t.Context(), r.ID, relayer.IfRevision(r.Revision))
		if !errors.Is(err, relayer.ErrConflict) || got.Action != action || got.OldRevision != 0 || got.Revision != 0 {
			t.Errorf("%s: error %v, action %s, revisions %d and %d, want none", action, err, got.Action, got.OldRevision, got.Revision)
		}
	}
}

// refusing returns an admission that fails for every operation with the action.
func refusing(action relayer.Action, err error) relayer.Option {
	return relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == action {
			return err
		}
		return nil
	})
}

// An admission sees every write that changes something, except the emergency switches.
func TestAdmission_Actions(t *testing.T) {
	var got, want []string
	text := func(r *relayer.Relayer) string {
		if r == nil {
			return "none"
		}
		return fmt.Sprintf("%s/%t", r.Name, r.Paused)
	}
	m := newManager(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
		got = append(got, fmt.Sprintf("%s %s: %s to %s, dry run %t", o.Action, o.Actor.ID, text(old), text(changed), o.DryRun))
		return nil
	}))
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "ann"})
	for _, step := range []struct {
		write operation
		want  string // of the admission, if there is one
	}{
		{func(m *relayer.Manager, ctx context.Context, id string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
			return m.Create(ctx, minimal(id), o...)
		}, "create ann: none to n/false"},
		{updating(func(r *relayer.Relayer) { r.Name = "b" }), "update ann: n/false to b/false"},
		{updating(func(*relayer.Relayer) {}), ""},
		{patching(`{"name":"c"}`), "update ann: b/false to c/false"},
		{patchingDocument(`{}`), ""},
		{(*relayer.Manager).Pause, ""},
		{(*relayer.Manager).Resume, "resume ann: c/true to c/false"},
		{(*relayer.Manager).Resume, ""},
		{patchingDocument(`{"paused":true}`), ""},
		{patchingDocument(`{"paused":false}`), "resume ann: c/true to c/false"},
		{patchingDocument(`{"paused":true,"name":"d"}`), "update ann: c/false to d/true"},
		{disabling(relayer.DisabledReason{Type: "x"}), ""},
		{(*relayer.Manager).Enable, "enable ann: d/true to d/true"},
		{deleting, "delete ann: d/true to none"},
	} {
		for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
			must(step.write(m, ctx, "a", options...))(t)
			if step.want != "" {
				want = append(want, fmt.Sprintf("%s, dry run %t", step.want, options != nil))
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("admissions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// All admissions must admit a write, and the first refusal ends it. A refused write stores nothing,
// and the reason reaches its caller, without a full URL.
func TestAdmission_Refuse(t *testing.T) {
	const reason, shown = "not now: " + secretURL, "not now: https://***.rpc.example:8545/***"
	invalid := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: secretURL, Message: reason}}}
	for action, write := range map[relayer.Action]operation{
		relayer.ActionCreate: func(m *relayer.Manager, ctx context.Context, _ string, _ ...relayer.WriteOption) (*relayer.Relayer, error) {
			return m.Create(ctx, minimal("new"))
		},
		relayer.ActionUpdate: patching(`{"name":"x"}`),
		relayer.ActionResume: (*relayer.Manager).Resume,
		relayer.ActionEnable: (*relayer.Manager).Enable,
		relayer.ActionDelete: deleting,
	} {
		for name, refusal := range map[string]error{
			"refusal": relayer.Refuse(reason), "wrapped refusal": fmt.Errorf("because: %w", relayer.Refuse(reason)), "ValidationError": invalid,
		} {
			store := memory.New()
			all := registryOn(t, store)
			must(all.Pause(t.Context(), "evm"))(t)
			must(all.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "x"}))(t)
			before := recordsOf(t, store)
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
			_, err := write(m, t.Context(), "evm")
			refused, ok := errors.AsType[*relayer.ValidationError](err)
			if !ok || !errors.Is(err, relayer.ErrInvalid) || len(refused.Fields) != 1 || refused.Fields[0].Message != shown || admissions != 1 {
				t.Errorf("%s, %s: %v after %d admissions", action, name, err, admissions)
			}
			wantMasked(t, name, fmt.Sprint(err, refused.Fields))
			if after := recordsOf(t, store); after != before {
				t.Errorf("%s, %s: stored\n%s", action, name, after)
			}
		}
	}
	if invalid.Fields[0].Message != reason {
		t.Error("the error of the hook was changed")
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
		"unsupported": errors.ErrUnsupported, "context": context.DeadlineExceeded,
	}
	invalid := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "signer_id", Message: "at " + secretURL}}}
	faults := map[string]error{"get of another registry": unknown, "ValidationError": errors.Join(host, &hostError{7}, invalid)}
	faults["CorruptError"] = &relayer.CorruptError{ID: "another", Err: errors.Join(host, &hostError{7})}
	for name, sentinel := range sentinels {
		faults[name] = fmt.Errorf("%w: %w", sentinel, errors.Join(host, &hostError{7}))
	}
	for name, fault := range faults {
		resolve := func(context.Context, relayer.CreateRequest) (string, error) { return "", fault }
		m := registry(t, refusing(relayer.ActionDelete, fault))
		errs := map[string]error{
			"admission": m.Delete(t.Context(), "evm"),
			"resolver":  second(newManager(t, relayer.WithAddressResolver(resolve)).Create(t.Context(), minimal("new"))),
		}
		delete(errs, map[string]string{"ValidationError": "admission", "unknown signer": "resolver"}[name]) // these have a meaning
		if mustGet(t, m, "evm"); errs["admission"] != nil && !strings.Contains(errs["admission"].Error(), "delete evm: admission: ") {
			t.Errorf("%s: %v", name, errs["admission"])
		}
		for hook, err := range errs {
			for other, sentinel := range sentinels {
				if isContext := other == "context" && name == "context"; errors.Is(err, sentinel) != isContext {
					t.Errorf("%s of %s matches %s: %t", name, hook, other, !isContext)
				}
			}
			if _, isInvalid := errors.AsType[*relayer.ValidationError](err); isInvalid {
				t.Errorf("%s of %s is a ValidationError", name, hook)
			}
			if _, isCorrupt := errors.AsType[*relayer.CorruptError](err); isCorrupt {
				t.Errorf("%s of %s is a CorruptError", name, hook)
			}
			wantMasked(t, name, err.Error())
			typed, ok := errors.AsType[*hostError](err)
			if isHost := ok && typed.code == 7 && errors.Is(err, host) && strings.Contains(err.Error(), "https://***.rpc.example:8545/***"); isHost != (fault != unknown) {
				t.Errorf("%s of %s is the error of the host: %t: %v", name, hook, isHost, err)
			}
		}
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
	req := withURLs("a", "https://rpc.example/key")
	req.Labels = map[string]string{"team": "payments"}
	created := mustCreate(t, m, req)
	updated := must(m.Patch(t.Context(), "a", []byte(`{"name":"new"}`)))(t)
	for name, r := range map[string]*relayer.Relayer{"created": created, "updated": updated, "stored": mustGet(t, m, "a")} {
		if strings.Contains(fmt.Sprint(r), "spoiled") || strings.Contains(fmt.Sprint(r), "private") || r.CustomRPCURLs[0].URL != "https://rpc.example/key" {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// Old and New have the full RPC URLs, or masked ones if they are sealed.
func TestAdmission_RPCURLs(t *testing.T) {
	for isSealed, store := range map[bool]relayer.Store{false: memory.New(), true: sealing(t, memory.New(), ringOf(t, "k1"))} {
		calls := 0
		m := managerOf(t, store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, changed *relayer.Relayer) error {
			for _, r := range []*relayer.Relayer{old, changed} {
				if r != nil && r.CustomRPCURLs[0].URL.IsMasked() != isSealed {
					t.Errorf("sealed %t, %s: URL %q", isSealed, o.Action, r.CustomRPCURLs[0].URL.Unmasked())
				}
			}
			calls++
			return nil
		}))
		mustCreate(t, m, withURLs("a", firstURL))
		must(m.Patch(t.Context(), "a", []byte(`{"name":"new"}`)))(t)
		if err := m.Delete(t.Context(), "a"); err != nil || calls != 3 {
			t.Errorf("sealed %t: %d calls, %v", isSealed, calls, err)
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
			return second(other.Patch(context.Background(), "evm", []byte(`{"name":"faster"}`)))
		}
		return nil
	}))
	mustSucceed(t, m.Delete(t.Context(), "evm"))
	if want := []string{"n", "faster"}; !slices.Equal(got, want) {
		t.Errorf("called with %q, want %q", got, want)
	}
}
