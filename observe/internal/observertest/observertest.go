// Package observertest runs every operation of a [relayer.Manager] with every
// outcome, for the tests of observers.
package observertest

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

// The store holds the relayer ID before each call. Calls that create a relayer
// use NewID.
const (
	ID    = "sepolia-1"
	NewID = "sepolia-2"
)

// Token and URL are secrets in relayers, IDs and error texts. An observer must
// not export them.
const (
	Token = "t0k3n-hunter2"
	URL   = "https://user:hunter2@rpc.example/v2/" + Token
)

// FindSecret returns the secret that text contains, or "".
func FindSecret(text string) string {
	for _, secret := range []string{"hunter2", "rpc.example"} {
		if strings.Contains(text, secret) {
			return secret
		}
	}
	return ""
}

// Request returns a valid request whose RPC URL contains secrets.
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

// Result is a store error, or nil, with the outcome that an observer should
// report for it.
type Result struct {
	Outcome outcome.Outcome
	err     error
}

// Results returns one Result for each outcome. Every error text contains
// secrets.
func Results() []Result {
	wrapped := func(sentinel error) error { return fmt.Errorf("%w: %s", sentinel, URL) }
	return []Result{
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

// Run runs the call on a store that returns the error of r. The observer is
// called once.
func (r Result) Run(t testing.TB, call Call, observe relayer.Observer) {
	t.Helper()
	store := &failingStore{Store: memory.New()}
	prepared, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := prepared.Create(ctx, Request(ID)); err != nil {
		t.Fatal(err)
	}
	observed, err := relayer.New(store, relayer.WithObserver(observe))
	if err != nil {
		t.Fatal(err)
	}
	want := r.err
	if r.Outcome == outcome.Canceled {
		cancel()
		want = context.Canceled // All returns the error of ctx, without that of the store
	}
	store.err = r.err
	if err := call.Do(ctx, observed); !errors.Is(err, want) {
		t.Fatalf("%s returned %v, want %v", call.Name, err, want)
	}
}

// failingStore returns err from Create, Get and List if err is not nil. Every
// other Manager call starts with a Get.
type failingStore struct {
	relayer.Store
	err error
}

func (s *failingStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if s.err != nil {
		return relayer.Record{}, s.err
	}
	return s.Store.Create(ctx, rec)
}

func (s *failingStore) Get(ctx context.Context, id string) (relayer.Record, error) {
	if s.err != nil {
		return relayer.Record{}, s.err
	}
	return s.Store.Get(ctx, id)
}

func (s *failingStore) List(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	if s.err != nil {
		return nil, 0, s.err
	}
	return s.Store.List(ctx, offset, limit)
}
