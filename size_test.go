package relayer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// sizeOf returns the size of a relayer as stored.
func sizeOf(t *testing.T, store relayer.Store, id string) int {
	t.Helper()
	rec, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return len(rec.Document) + len(rec.Private)
}

func managerOf(t *testing.T, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantTooLarge(t *testing.T, what string, err error, limit, size int) {
	t.Helper()
	want := relayer.FieldError{Message: fmt.Sprintf("the relayer must be at most %d bytes as stored, not %d", limit, size)}
	if problems := fieldErrors(t, err); !slices.Equal(problems, []relayer.FieldError{want}) {
		t.Errorf("%s: %+v, want %+v", what, problems, want)
	}
}

func TestMaxRelayerSize_Default(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/v2/key"}}
	mustCreate(t, m, req)
	room := 262144 - sizeOf(t, store, "a")

	fits := "n" + strings.Repeat("x", room)
	longer := fits + "x"
	rename := func(name string) func(*relayer.Relayer) error {
		return func(r *relayer.Relayer) error { r.Name = name; return nil }
	}
	for what, err := range map[string]error{
		"update": second(m.Update(t.Context(), "a", rename(longer))),
		"patch":  second(m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"name": longer}))),
	} {
		wantTooLarge(t, what, err, 262144, 262145)
	}
	if _, err := m.Update(t.Context(), "a", rename(fits)); err != nil || sizeOf(t, store, "a") != 262144 {
		t.Errorf("a relayer of the maximum size: %v, %d bytes", err, sizeOf(t, store, "a"))
	}

	req.ID, req.Name = "b", longer
	wantTooLarge(t, "create", second(m.Create(t.Context(), req)), 262144, 262145)
	wantTooLarge(t, "validate", req.Validate(t.Context()), 262144, 262145)
	req.Name, req.Paused = fits, true
	mustCreate(t, m, req)
	if _, err := m.Documents().Patch(t.Context(), "b", []byte(`{"paused":false}`)); err != nil {
		t.Errorf("resuming a relayer of the maximum size: %v", err)
	}
	// Unknown members and full URLs count.
	if _, err := m.Patch(t.Context(), "b", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: "https://rpc.example/v2/key2"}}})); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("a longer URL with the same mask: %v", err)
	}
}

// Patches add up: each is small, and the relayer that they make is not.
func TestMaxRelayerSize_ManyPatches(t *testing.T) {
	m := newManager(t, relayer.WithMaxRelayerSize(2000))
	mustCreate(t, m, minimal("a"))
	fields := []string{"name", "notification_id"}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{fields[i%2]: strings.Repeat("x", 50*i+1)}))
	}
	if !errors.Is(err, relayer.ErrInvalid) || len(storedDocument(t, m, "a")) > 2000 {
		t.Errorf("%d bytes were stored, error %v", len(storedDocument(t, m, "a")), err)
	}
}

// What was stored above the maximum can be read, shrunk, switched and deleted.
func TestMaxRelayerSize_StoredAbove(t *testing.T) {
	store := memory.New()
	req := minimal("a")
	req.Policy = &relayer.EVMPolicy{WhitelistReceivers: slices.Repeat([]string{"receiver"}, 1000)}
	req.NotificationID = "x"
	mustCreate(t, managerOf(t, store), req)
	before := sizeOf(t, store, "a")
	m := managerOf(t, store, relayer.WithMaxRelayerSize(1000))
	ctx := t.Context()
	mustGet(t, m, "a")
	if _, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10}); err != nil {
		t.Error(err)
	}
	patch := func(text string) func() error {
		return func() error { return second(m.Documents().Patch(ctx, "a", []byte(text))) }
	}
	wantTooLarge(t, "growing", patch(`{"name":"nn"}`)(), 1000, before+1)
	for i, step := range []func() error{
		func() error { return second(m.Pause(ctx, "a")) },
		func() error { return second(m.Resume(ctx, "a")) },
		patch(`{"paused":true}`), patch(`{"paused":false}`), patch(`{}`), patch(`{"name":"m"}`), patch(`{"notification_id":null}`),
		func() error {
			return second(m.Disable(ctx, "a", relayer.DisabledReason{Type: "x", Details: strings.Repeat("long", 1<<14)}))
		},
		func() error { return second(m.Enable(ctx, "a")) },
	} {
		if err := step(); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
	}
	shrink := func(r *relayer.Relayer) error {
		policy := r.Policy.(*relayer.EVMPolicy)
		policy.WhitelistReceivers = policy.WhitelistReceivers[:500]
		return nil
	}
	if _, err := m.Update(ctx, "a", shrink); err != nil {
		t.Errorf("a change that shrinks it: %v", err)
	}
	if err := m.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
}

// Disable succeeds with the text of any error: long details are cut off, and what cannot be
// stored is replaced.
func TestDisable_AnyDetails(t *testing.T) {
	m := registry(t)
	for details, want := range map[string]string{
		strings.Repeat("x", 16<<10):                strings.Repeat("x", 16<<10),
		strings.Repeat("x", 16<<10) + "yz":         strings.Repeat("x", 16<<10),
		"x" + strings.Repeat("é", 16<<10):          "x" + strings.Repeat("é", 8<<10-1),
		"response \xff\xfe\x00: https://a/KEY\xff": "response \uFFFD\uFFFD: https://a/***",
		strings.Repeat("https://a/KEY ", 2000):     strings.Repeat("https://a/*** ", 2000)[:16<<10],
	} {
		r, err := m.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "x", Details: details})
		if err != nil || strings.TrimSuffix(r.DisabledReason.Details, "***") != strings.TrimSuffix(want, "***") {
			t.Errorf("%d bytes are stored as %d, want %d, error %v", len(details), len(r.DisabledReason.Details), len(want), err)
		}
	}
	long := relayer.DisabledReason{Type: relayer.DisabledReasonType(strings.Repeat("t", 257))}
	wantFields(t, fieldErrors(t, second(m.Disable(t.Context(), "evm", long))), "disabled_reason.type")
}
