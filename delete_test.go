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

func (s unreadableStore) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	if id == s.id {
		return s.deletes(revision)
	}
	return s.Store.Delete(ctx, id, revision, note)
}

// A damaged relayer is deleted without a condition and an admission, if the store can.
func TestDelete_DamagedRecord(t *testing.T) {
	admitAll := relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error { return nil })
	for name, c := range map[string]struct {
		store      error // of its Delete
		options    []relayer.Option
		conditions []relayer.WriteOption
		calls      int
		want       error
	}{
		"deleted":        {calls: 1},
		"not supported":  {store: relayer.ErrConflict, calls: 1, want: relayer.ErrCorrupt},
		"disk is full":   {store: relayer.ErrUnavailable, calls: 1, want: relayer.ErrUnavailable},
		"with condition": {conditions: []relayer.WriteOption{relayer.IfRevision(1)}, want: relayer.ErrCorrupt},
		"with admission": {options: []relayer.Option{admitAll}, want: relayer.ErrCorrupt},
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
		relayer.WithAdmission(func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
			switch {
			case o.Action != relayer.ActionDelete:
				return nil
			case old.ID == "evm":
				return relayer.Refuse(quoted)
			default:
				return invalid
			}
		}))
	for call, err := range map[string]error{
		"refusal":   m.Delete(t.Context(), "evm"),
		"admission": m.Delete(t.Context(), "solana"),
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
