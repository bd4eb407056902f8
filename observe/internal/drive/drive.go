// Package drive carries out every operation of a [relayer.Manager] with every
// outcome, for the tests of observers.
package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
	"github.com/go-relayer/relayer/store/memory"
)

// ID is of the relayer that calls are about, and Absent of one that a create
// makes.
const (
	ID     = "sepolia-1"
	Absent = "sepolia-2"
)

// Token and URL are secrets that are in relayers, ids and error texts, and that
// no observer may pass on.
const (
	Token = "t0k3n-hunter2"
	URL   = "https://user:hunter2@rpc.example/v2/" + Token
)

// Leak returns the secret that is in text, or "".
func Leak(text string) string {
	for _, secret := range []string{"hunter2", "rpc.example"} {
		if strings.Contains(text, secret) {
			return secret
		}
	}
	return ""
}

// Request asks for a relayer that has a secret in it.
func Request(id string) relayer.CreateRequest {
	return relayer.CreateRequest{
		ID:            id,
		Name:          "Sepolia",
		Network:       "sepolia",
		NetworkType:   relayer.EVM,
		SignerID:      "local-signer",
		CustomRPCURLs: []relayer.RPCConfig{{URL: URL}},
	}
}

// Ending is a way for an operation to end.
type Ending struct {
	Outcome outcome.Outcome
	err     error
}

// Endings returns one ending for each outcome, with secrets in every error text.
func Endings() []Ending {
	wrapped := func(sentinel error) error { return fmt.Errorf("%w: %s", sentinel, URL) }
	return []Ending{
		{outcome.OK, nil},
		{outcome.NotFound, wrapped(relayer.ErrNotFound)},
		{outcome.Exists, wrapped(relayer.ErrExists)},
		{outcome.Invalid, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: Token, Message: URL}}}},
		{outcome.Conflict, wrapped(relayer.ErrConflict)},
		{outcome.Unavailable, wrapped(relayer.ErrUnavailable)},
		{outcome.Unknown, wrapped(relayer.ErrOutcomeUnknown)},
		{outcome.Canceled, wrapped(context.Canceled)},
		{outcome.Error, errors.New(URL)},
	}
}

// Drive has the call end so, and the observer told of it once.
func (e Ending) Drive(t testing.TB, call Call, observe relayer.Observer) {
	t.Helper()
	e.DriveContext(context.Background(), t, call, observe)
}

// DriveContext is Drive below the ctx of a caller.
func (e Ending) DriveContext(ctx context.Context, t testing.TB, call Call, observe relayer.Observer) {
	t.Helper()
	store := &failing{Store: memory.New()}
	prepared, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepared.Create(ctx, Request(ID)); err != nil {
		t.Fatal(err)
	}
	observed, err := relayer.New(store, relayer.WithObserver(observe))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if e.Outcome == outcome.Canceled {
		cancel()
	}
	store.err = e.err
	if err := call.Do(ctx, observed); !errors.Is(err, e.err) {
		t.Fatalf("%s returned %v, want %v", call.Name, err, e.err)
	}
}

// failing is a store that fails where err is set.
type failing struct {
	relayer.Store
	err error
}

func (s *failing) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if s.err != nil {
		return relayer.Record{}, s.err
	}
	return s.Store.Create(ctx, rec)
}

func (s *failing) Get(ctx context.Context, id string) (relayer.Record, error) {
	if s.err != nil {
		return relayer.Record{}, s.err
	}
	return s.Store.Get(ctx, id)
}

func (s *failing) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	if s.err != nil {
		return nil, 0, s.err
	}
	return s.Store.List(ctx, offset, limit)
}
