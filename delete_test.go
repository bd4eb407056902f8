package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func TestDelete_Guard(t *testing.T) {
	fault := errors.New("queue out of reach")
	answers := map[string]struct {
		refusal string
		err     error
	}{"evm": {refusal: "3 transactions are pending"}, "solana": {err: fault}, "stellar": {}}
	m := registry(t, relayer.WithDeleteGuard(func(_ context.Context, r *relayer.Relayer) (string, error) {
		if string(r.CustomRPCURLs[0].URL) != "https://user:pw@rpc.example/v2/key" {
			t.Errorf("the guard was shown %s", string(r.CustomRPCURLs[0].URL))
		}
		return answers[r.ID].refusal, answers[r.ID].err
	}))
	var invalid *relayer.ValidationError
	if err := m.Delete(t.Context(), "evm"); !errors.As(err, &invalid) || invalid.Fields[0] != (relayer.FieldError{Message: "3 transactions are pending"}) {
		t.Errorf("rejected: %v", err)
	}
	if err := m.Delete(t.Context(), "solana"); !errors.Is(err, fault) {
		t.Errorf("fault: %v", err)
	}
	mustGet(t, m, "evm")
	mustGet(t, m, "solana")
	if err := m.Delete(t.Context(), "stellar"); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if _, err := m.Get(t.Context(), "stellar"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
}

// unreadableStore has one record that it cannot read, but can delete.
type unreadableStore struct {
	relayer.Store
	id      string
	deletes func(revision uint64) error
}

func (s unreadableStore) Get(ctx context.Context, id string) (relayer.Record, error) {
	if id == s.id {
		return relayer.Record{}, fmt.Errorf("%w: its checksum", relayer.ErrCorrupt)
	}
	return s.Store.Get(ctx, id)
}

func (s unreadableStore) Delete(ctx context.Context, id string, revision uint64) error {
	if id == s.id {
		return s.deletes(revision)
	}
	return s.Store.Delete(ctx, id, revision)
}

// A damaged relayer is deleted without a condition and a guard, if the store can.
func TestDelete_DamagedRecord(t *testing.T) {
	guard := relayer.WithDeleteGuard(func(context.Context, *relayer.Relayer) (string, error) { return "", nil })
	for name, c := range map[string]struct {
		store      error // of its Delete
		options    []relayer.Option
		conditions []relayer.Condition
		calls      int
		want       error
	}{
		"deleted":        {calls: 1},
		"not supported":  {store: relayer.ErrConflict, calls: 1, want: relayer.ErrCorrupt},
		"disk is full":   {store: relayer.ErrUnavailable, calls: 1, want: relayer.ErrUnavailable},
		"with condition": {conditions: []relayer.Condition{relayer.IfRevision(1)}, want: relayer.ErrCorrupt},
		"with guard":     {options: []relayer.Option{guard}, want: relayer.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			store := unreadableStore{memory.New(), "damaged", func(uint64) error {
				calls++
				return c.store
			}}
			manager, err := relayer.New(store, c.options...)
			if err != nil {
				t.Fatal(err)
			}
			err = manager.Delete(t.Context(), "damaged", c.conditions...)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || calls != c.calls {
				t.Errorf("error is %v after %d deletes, want %v after %d", err, calls, c.want, c.calls)
			}
		})
	}
}

// The texts of hooks that a remote caller gets contain no full URL.
func TestHook_RefusalIsMasked(t *testing.T) {
	const quoted, want = `Post "https://rpc.example/v2/KEY": refused`, `Post "https://rpc.example/***": refused`
	invalid := &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "https://rpc.example/v2/KEY", Message: quoted}}}
	m := registry(t,
		relayer.WithAddressResolver(func(_ context.Context, signer string, _ relayer.NetworkType, _ string) (string, error) {
			if signer == "broken" {
				return "", fmt.Errorf("resolver: %w", invalid)
			}
			return "", nil
		}),
		relayer.WithDeleteGuard(func(_ context.Context, r *relayer.Relayer) (string, error) {
			if r.ID == "evm" {
				return quoted, nil
			}
			return "", invalid
		}))
	req := minimal("new")
	req.SignerID = "broken"
	for call, err := range map[string]error{
		"refusal": m.Delete(t.Context(), "evm"),
		"guard":   m.Delete(t.Context(), "solana"),
		"create":  second(m.Create(t.Context(), req)),
	} {
		got, ok := errors.AsType[*relayer.ValidationError](err)
		if !ok || got.Fields[0].Message != want || strings.Contains(err.Error()+got.Fields[0].Field, "KEY") {
			t.Errorf("%s: %v", call, err)
		}
	}
	if invalid.Fields[0].Message != quoted {
		t.Error("the error of the hook was changed")
	}
}
