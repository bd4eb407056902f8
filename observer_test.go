package relayer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// panickingHandler is a log handler that panics.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Handle(context.Context, slog.Record) error { panic("handler broke") }

// A panic of an observer changes no result, and the observers after it are called.
func TestObserver_Panic(t *testing.T) {
	var log bytes.Buffer
	loggers := map[string]*slog.Logger{
		"logger":            slog.New(slog.NewTextHandler(&log, nil)),
		"panicking logger":  slog.New(panickingHandler{slog.NewTextHandler(&log, nil)}),
		"discarding logger": slog.New(slog.DiscardHandler),
	}
	for name, logger := range loggers {
		t.Run(name, func(t *testing.T) {
			var seen []relayer.Operation
			m := newManager(t, relayer.WithLogger(logger),
				relayer.WithObserver(func(context.Context, relayer.Operation) { panic("observer broke: https://rpc.example/v2/KEY") }),
				relayer.WithObserver(func(_ context.Context, operation relayer.Operation) { seen = append(seen, operation) }))
			useEveryOperation(t, m)
			kinds := []relayer.OperationKind{
				relayer.OperationCreate, relayer.OperationCreate, relayer.OperationCreate, relayer.OperationGet, relayer.OperationGet,
				relayer.OperationList, relayer.OperationList, relayer.OperationList, relayer.OperationUpdate, relayer.OperationUpdate,
				relayer.OperationPause, relayer.OperationResume, relayer.OperationDisable, relayer.OperationEnable, relayer.OperationDelete, relayer.OperationGet,
			}
			for i, operation := range seen {
				if i >= len(kinds) || operation.Kind != kinds[i] {
					t.Errorf("operation %d is %s", i, operation.Kind)
				}
			}
			if len(seen) != len(kinds) {
				t.Errorf("%d operations were observed, want %d", len(seen), len(kinds))
			}
		})
	}
	if text := log.String(); strings.Contains(text, "KEY") || !strings.Contains(text, "observer broke") || !strings.Contains(text, "operation=create") || !strings.Contains(text, "observer_test.go") {
		t.Errorf("the log is without the panic, its operation or its stack: %s", text)
	}
}

// useEveryOperation fails unless each operation of a Manager has its usual result.
func useEveryOperation(t *testing.T, m *relayer.Manager) {
	t.Helper()
	ctx := t.Context()
	mustCreate(t, m, minimal("a"))
	mustCreateDocument(t, m, evmBody(`"id":"b"`))
	if _, err := m.Create(ctx, minimal("a")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("second create: %v", err)
	}
	var listed int
	_, getErr := m.Get(ctx, "a")
	_, _, appendErr := m.AppendDocument(ctx, nil, "b")
	page, listErr := m.List(ctx, 1, 10)
	_, _, appendListErr := m.AppendDocuments(ctx, nil, 1, 10)
	for range m.All(ctx) {
		listed++
	}
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "changed"; return nil })
	_, patchErr := m.PatchDocument(ctx, "b", []byte(`{"name":"changed"}`))
	_, pauseErr := m.Pause(ctx, "a")
	_, resumeErr := m.Resume(ctx, "a")
	_, disableErr := m.Disable(ctx, "a", relayer.DisabledReason{Type: relayer.NonceSyncFailed})
	_, enableErr := m.Enable(ctx, "a")
	deleteErr := m.Delete(ctx, "a")
	if err := errors.Join(getErr, appendErr, listErr, appendListErr, updateErr, patchErr, pauseErr, resumeErr, disableErr, enableErr, deleteErr); err != nil {
		t.Error(err)
	}
	if page == nil || len(page.Relayers) != 2 || listed != 2 {
		t.Errorf("listed %v and %d relayers, want 2", page, listed)
	}
	if _, err := m.Get(ctx, "a"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("get after the delete: %v", err)
	}
}

// The caller gets the panic of the hook, not that of the observer after it.
func TestObserver_PanicDuringPanic(t *testing.T) {
	m := newManager(t,
		relayer.WithObserver(func(context.Context, relayer.Operation) { panic("observer broke: https://rpc.example/v2/KEY") }),
		relayer.WithAddressResolver(func(context.Context, string, relayer.NetworkType, string) (string, error) { panic("resolver broke") }))
	if cause := panicOf(func() { _, _ = m.Create(t.Context(), minimal("a")) }); cause != "resolver broke" {
		t.Errorf("the caller got %v", cause)
	}
}

func panicOf(call func()) (cause any) {
	defer func() { cause = recover() }()
	call()
	return nil
}

// A hook that panics before the commit leaves nothing stored and no lock held.
func TestHook_PanicBeforeCommit(t *testing.T) {
	isBroken := true
	breakIf := func() {
		if isBroken {
			panic("hook broke")
		}
	}
	m := newManager(t,
		relayer.WithAddressResolver(func(context.Context, string, relayer.NetworkType, string) (string, error) { breakIf(); return "", nil }),
		relayer.WithDeleteGuard(func(context.Context, *relayer.Relayer) (string, error) { breakIf(); return "", nil }))
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
		if cause := panicOf(call); cause != "hook broke" {
			t.Errorf("%s: %v", name, cause)
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
		kind relayer.OperationKind
		id   string
		ok   bool
	}
	var got, again []seen
	record := func(into *[]seen) relayer.Observer {
		return func(_ context.Context, operation relayer.Operation) {
			if operation.Began.IsZero() || operation.Took < 0 {
				t.Errorf("began %v, took %v", operation.Began, operation.Took)
			}
			*into = append(*into, seen{operation.Kind, operation.ID, operation.Err == nil})
		}
	}
	m, err := relayer.New(memory.New(), relayer.WithObserver(record(&got)), relayer.WithObserver(record(&again)))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	made, err := m.Create(ctx, relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.ID
	_, _ = m.CreateDocument(ctx, []byte(`{"id":"bad id"}`))
	_, _ = m.CreateDocument(ctx, []byte(`{`))
	_, _ = m.Get(ctx, id)
	_, _, _ = m.AppendDocument(ctx, nil, "nobody")
	_, _ = m.List(ctx, 1, 10)
	_, _, _ = m.AppendDocuments(ctx, nil, 1, 10)
	for range m.All(ctx) {
	}
	_, _ = m.Update(ctx, id, func(*relayer.Relayer) error { return nil })
	_, _ = m.PatchDocument(ctx, id, []byte(`{"paused":1}`))
	_, _ = m.Pause(ctx, id)
	_, _ = m.Resume(ctx, id)
	_, _ = m.PatchDocument(ctx, id, []byte(` { "paused" : true } `))
	_, _ = m.Patch(ctx, id, relayer.Patch{"paused": false})
	_, _ = m.Disable(ctx, id, relayer.DisabledReason{})
	_, _ = m.Enable(ctx, id)
	_ = m.Delete(ctx, id)
	_ = m.Delete(ctx, id)
	want := []seen{
		{relayer.OperationCreate, id, true},
		{relayer.OperationCreate, "bad id", false},
		{relayer.OperationCreate, "", false},
		{relayer.OperationGet, id, true},
		{relayer.OperationGet, "nobody", false},
		{relayer.OperationList, "", true},
		{relayer.OperationList, "", true},
		{relayer.OperationList, "", true},
		{relayer.OperationUpdate, id, true},
		{relayer.OperationUpdate, id, false},
		{relayer.OperationPause, id, true},
		{relayer.OperationResume, id, true},
		{relayer.OperationPause, id, true},
		{relayer.OperationResume, id, true},
		{relayer.OperationDisable, id, false},
		{relayer.OperationEnable, id, true},
		{relayer.OperationDelete, id, true},
		{relayer.OperationDelete, id, false},
	}
	if !slices.Equal(got, want) || !slices.Equal(again, want) {
		t.Errorf("the observers saw\n%v\n%v\nwant\n%v", got, again, want)
	}
}

// An operation that panics is not observed as a success.
func TestObserver_HookPanic(t *testing.T) {
	var seen []relayer.Operation
	observe := func(_ context.Context, operation relayer.Operation) { seen = append(seen, operation) }
	m := registry(t, relayer.WithObserver(observe), relayer.WithDeleteGuard(func(context.Context, *relayer.Relayer) (string, error) { panic("guard") }))
	for _, call := range []func(){
		func() { _, _ = m.Update(t.Context(), "evm", func(*relayer.Relayer) error { panic("change") }) },
		func() { _ = m.Delete(t.Context(), "evm") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not come through")
				}
			}()
			call()
		}()
		if last := seen[len(seen)-1]; last.Err == nil {
			t.Errorf("%s was observed as a success", last.Kind)
		}
	}
	if _, err := m.Pause(t.Context(), "evm"); err != nil {
		t.Errorf("after the panics: %v", err)
	}
}
