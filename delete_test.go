package relayer_test

import (
	"context"
	"errors"
	"testing"
	"time"

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

// A deadline applies while another write of the same relayer is in progress.
func TestDelete_DeadlineDuringWrite(t *testing.T) {
	store := &slow{Store: memory.New(), begun: make(chan struct{}), end: make(chan struct{})}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
		t.Fatal(err)
	}
	paused := make(chan error, 1)
	go func() {
		_, err := m.Pause(t.Context(), "r")
		paused <- err
	}()
	<-store.begun
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := m.Delete(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the delete that waited: %v", err)
	}
	close(store.end)
	if err := <-paused; err != nil {
		t.Error(err)
	}
	if err := m.Delete(t.Context(), "r"); err != nil {
		t.Errorf("a delete afterwards: %v", err)
	}
}

// slow is a store whose updates wait for the test.
type slow struct {
	relayer.Store
	begun, end chan struct{}
}

func (s *slow) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.begun <- struct{}{}
	<-s.end
	return s.Store.Update(ctx, rec)
}
