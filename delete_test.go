package relayer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
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
