package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

// eachStore runs a test on every store that needs no server.
func eachStore(t *testing.T, run func(t *testing.T, store relayer.Store)) {
	t.Run("memory", func(t *testing.T) { run(t, memory.New()) })
	t.Run("bolt", func(t *testing.T) {
		store, err := bolt.Open(t.Context(), t.TempDir() + "/relayers.db")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		})
		run(t, store)
	})
}

// registry is a manager on a memory store with one relayer of each network
// type, with ids "evm", "solana" and "stellar".
func registry(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return registryOn(t, memory.New(), options...)
}

func registryOn(t *testing.T, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m, err := relayer.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	for _, networkType := range []relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar} {
		_, err := m.Create(t.Context(), relayer.CreateRequest{
			ID: string(networkType), Name: "n", Network: "testnet", NetworkType: networkType, SignerID: "s-" + string(networkType),
			CustomRPCURLs: []relayer.RPCConfig{{URL: "https://user:pw@rpc.example/v2/key"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func mustGet(t testing.TB, m *relayer.Manager, id string) *relayer.Relayer {
	t.Helper()
	r, err := m.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStates goes through the contract's table of states: every call from every
// state.
func TestStates(t *testing.T) {
	first := relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "rpc timed out"}
	second := relayer.DisabledReason{Type: "HostsOwn", Details: ""}
	type state struct {
		paused bool
		reason *relayer.DisabledReason
	}
	calls := map[string]struct {
		call  func(context.Context, *relayer.Manager) (*relayer.Relayer, error)
		after func(state) state
	}{
		"pause": {
			func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Pause(ctx, "evm") },
			func(s state) state { return state{true, s.reason} },
		},
		"resume": {
			func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Resume(ctx, "evm") },
			func(s state) state { return state{false, s.reason} },
		},
		"disable": {
			func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
				return m.Disable(ctx, "evm", first)
			},
			func(s state) state { return state{s.paused, &first} },
		},
		"disable for another reason": {
			func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) {
				return m.Disable(ctx, "evm", second)
			},
			func(s state) state { return state{s.paused, &second} },
		},
		"enable": {
			func(ctx context.Context, m *relayer.Manager) (*relayer.Relayer, error) { return m.Enable(ctx, "evm") },
			func(s state) state { return state{s.paused, nil} },
		},
	}
	for _, from := range []state{{false, nil}, {true, nil}, {false, &first}, {true, &first}, {false, &second}, {true, &second}} {
		for name, c := range calls {
			t.Run(fmt.Sprintf("%s from paused=%t disabled=%t", name, from.paused, from.reason != nil), func(t *testing.T) {
				m := registry(t)
				before, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error {
					r.Paused, r.SystemDisabled, r.DisabledReason = from.paused, from.reason != nil, from.reason
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				got, err := c.call(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				want := c.after(from)
				if got.Paused != want.paused || got.SystemDisabled != (want.reason != nil) || !reflect.DeepEqual(got.DisabledReason, want.reason) {
					t.Errorf("got paused=%t disabled=%t reason=%v", got.Paused, got.SystemDisabled, got.DisabledReason)
				}
				isSame := reflect.DeepEqual(want, from)
				if (got.Revision == before.Revision) != isSame {
					t.Errorf("the revision was %d and is %d", before.Revision, got.Revision)
				}
				if stored := mustGet(t, m, "evm"); !reflect.DeepEqual(stored, got) {
					t.Errorf("returned %+v\nstored   %+v", got, stored)
				}
			})
		}
	}
}

func TestLifeCycleOfUnknownRelayers(t *testing.T) {
	m := registry(t)
	for _, id := range []string{"nobody", "", "a b", strings.Repeat("a", 65)} {
		_, update := m.Update(t.Context(), id, func(*relayer.Relayer) error { return nil })
		_, pause := m.Pause(t.Context(), id)
		_, resume := m.Resume(t.Context(), id)
		_, disable := m.Disable(t.Context(), id, relayer.DisabledReason{Type: "x"})
		_, enable := m.Enable(t.Context(), id)
		_, patch := m.PatchDocument(t.Context(), id, []byte(`{}`))
		for i, err := range []error{update, pause, resume, disable, enable, patch, m.Delete(t.Context(), id)} {
			if !errors.Is(err, relayer.ErrNotFound) {
				t.Errorf("%q, call %d: %v", id, i, err)
			}
		}
	}
}

func TestUpdateIsCheckedAsCreateIs(t *testing.T) {
	for name, c := range map[string]struct {
		id      string
		change  func(*relayer.Relayer)
		field   string
		message string
	}{
		"id":             {"evm", func(r *relayer.Relayer) { r.ID = "other" }, "id", "must not be changed"},
		"network":        {"evm", func(r *relayer.Relayer) { r.Network = "mainnet" }, "network", "must not be changed"},
		"network type":   {"evm", func(r *relayer.Relayer) { r.NetworkType = relayer.Solana }, "network_type", "must not be changed"},
		"signer":         {"evm", func(r *relayer.Relayer) { r.SignerID = "other" }, "signer_id", "must not be changed"},
		"address":        {"evm", func(r *relayer.Relayer) { r.Address = "0x0" }, "address", "must not be changed"},
		"empty name":     {"evm", func(r *relayer.Relayer) { r.Name = "" }, "name", "must not be empty"},
		"bad text":       {"evm", func(r *relayer.Relayer) { r.NotificationID = "\xff" }, "notification_id", "must be UTF-8"},
		"bad URL":        {"evm", func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL = "ftp://x" }, "custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"},
		"bad weight":     {"evm", func(r *relayer.Relayer) { r.CustomRPCURLs[0].Weight = new(101.0) }, "custom_rpc_urls[0].weight", "must be at most 100"},
		"wrong policy":   {"evm", func(r *relayer.Relayer) { r.Policies = &relayer.SolanaPolicy{} }, "policies", "must be the policy of the network type, not that of solana"},
		"negative":       {"solana", func(r *relayer.Relayer) { r.Policies.(*relayer.SolanaPolicy).MinBalance = new(int64(-1)) }, "policies.min_balance", "must be 0 or more"},
		"not a number":   {"stellar", func(r *relayer.Relayer) { r.Policies.(*relayer.StellarPolicy).FeeMarginPercentage = new(math.NaN()) }, "policies.fee_margin_percentage", "must be a finite number"},
		"no reason":      {"evm", func(r *relayer.Relayer) { r.SystemDisabled = true }, "disabled_reason", "must be set while system_disabled is true"},
		"not disabled":   {"evm", func(r *relayer.Relayer) { r.DisabledReason = &relayer.DisabledReason{Type: "x"} }, "disabled_reason", "must not be set while system_disabled is false"},
		"untyped reason": {"evm", func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = true, &relayer.DisabledReason{} }, "disabled_reason.type", "must not be empty"},
		"a mask":         {"evm", func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL = "https://rpc.example/***" }, "custom_rpc_urls[0].url", "must be the full URL, not the masked one that responses show"},
	} {
		t.Run(name, func(t *testing.T) {
			m := registry(t)
			before := mustGet(t, m, c.id)
			_, err := m.Update(t.Context(), c.id, func(r *relayer.Relayer) error { c.change(r); return nil })
			var invalid *relayer.ValidationError
			if !errors.As(err, &invalid) || !slices.Contains(invalid.Fields, relayer.FieldError{Field: c.field, Message: c.message}) {
				t.Errorf("got %v, want %s %s", err, c.field, c.message)
			}
			if after := mustGet(t, m, c.id); !reflect.DeepEqual(after, before) {
				t.Errorf("was %+v\nis  %+v", before, after)
			}
		})
	}
}

func TestDisableNeedsAReason(t *testing.T) {
	m := registry(t)
	for _, reason := range []relayer.DisabledReason{{}, {Type: "\x00"}, {Type: "x", Details: "\xff"}} {
		if _, err := m.Disable(t.Context(), "evm", reason); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%+v: %v", reason, err)
		}
	}
	if r := mustGet(t, m, "evm"); r.SystemDisabled {
		t.Error("disabled for no reason")
	}
}

func TestUpdateKeepsWhatTheCallbackRefuses(t *testing.T) {
	m := registry(t)
	before := mustGet(t, m, "evm")
	refusal := errors.New("not today")
	_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error { r.Name = "changed"; return refusal })
	if !errors.Is(err, refusal) || !reflect.DeepEqual(mustGet(t, m, "evm"), before) {
		t.Errorf("got %v", err)
	}
}

// A switch for emergencies must work whatever rules have come since.
func TestPauseDespiteRulesThatCameLater(t *testing.T) {
	store := memory.New()
	lenient, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lenient.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		Policies: &relayer.EVMPolicy{WhitelistReceivers: []string{"nobody"}}})
	if err != nil {
		t.Fatal(err)
	}
	strict, err := relayer.New(store, relayer.WithNetworkRules())
	if err != nil {
		t.Fatal(err)
	}
	if r, err := strict.Pause(t.Context(), "r"); err != nil || !r.Paused {
		t.Errorf("got %v", err)
	}
	_, err = strict.Update(t.Context(), "r", func(r *relayer.Relayer) error { r.Name = "m"; return nil })
	if !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("an update got %v", err)
	}
}

func TestConditions(t *testing.T) {
	m := registry(t)
	first := mustGet(t, m, "evm").Revision
	paused, err := m.Pause(t.Context(), "evm", relayer.IfRevision(first))
	if err != nil {
		t.Fatal(err)
	}
	rename := func(r *relayer.Relayer) error { r.Name = "changed"; return nil }
	for name, err := range map[string]error{
		"update":           second(m.Update(t.Context(), "evm", rename, relayer.IfRevision(first))),
		"resume":           second(m.Resume(t.Context(), "evm", relayer.IfRevision(first))),
		"pause, no change": second(m.Pause(t.Context(), "evm", relayer.IfRevision(first))),
		"no revision":      second(m.Pause(t.Context(), "evm", relayer.IfRevision())),
		"patch":            second(m.PatchDocument(t.Context(), "evm", []byte(`{"name":"changed"}`), relayer.IfRevision(first))),
		"delete":           m.Delete(t.Context(), "evm", relayer.IfRevision(first)),
	} {
		if !errors.Is(err, relayer.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := mustGet(t, m, "evm"); !reflect.DeepEqual(r, paused) {
		t.Errorf("changed to %+v", r)
	}
	if _, err := m.Update(t.Context(), "evm", rename, relayer.IfRevision(first, paused.Revision)); err != nil {
		t.Error(err)
	}
	if err := m.Delete(t.Context(), "evm", relayer.IfRevision(mustGet(t, m, "evm").Revision)); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNoUpdateIsLost(t *testing.T) { eachStore(t, testNoUpdateIsLost) }

func testNoUpdateIsLost(t *testing.T, store relayer.Store) {
	m := registryOn(t, store)
	var writers sync.WaitGroup
	for i := range 64 {
		writers.Go(func() {
			_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error {
				policy := r.Policies.(*relayer.EVMPolicy)
				policy.WhitelistReceivers = append(policy.WhitelistReceivers, fmt.Sprintf("0x%02d", i))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	receivers := mustGet(t, m, "evm").Policies.(*relayer.EVMPolicy).WhitelistReceivers
	slices.Sort(receivers)
	if len(slices.Compact(receivers)) != 64 {
		t.Errorf("%d receivers: %v", len(receivers), receivers)
	}
}

func TestUpdateGivesUpWhenEveryRaceIsLost(t *testing.T) {
	m, err := relayer.New(contested{memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Pause(t.Context(), "r"); !errors.Is(err, relayer.ErrConflict) {
		t.Errorf("pause: %v", err)
	}
	if err := m.Delete(t.Context(), "r"); !errors.Is(err, relayer.ErrConflict) {
		t.Errorf("delete: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Pause(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// contested is a store in which somebody else is always faster.
type contested struct{ relayer.Store }

func (contested) Update(context.Context, relayer.Record) (relayer.Record, error) {
	return relayer.Record{}, relayer.ErrConflict
}

func (contested) Delete(context.Context, string, uint64) error { return relayer.ErrConflict }

func TestFullURLsStayWhatTheHostGaveLast(t *testing.T) {
	m := registry(t)
	ctx := t.Context()
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, endpoint := range mustGet(t, m, "evm").CustomRPCURLs {
			got = append(got, string(endpoint.URL))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the URLs are %q, want %q", got, want)
		}
	}
	const original, other = "https://user:pw@rpc.example/v2/key", "wss://other.example/socket?token=x"
	steps := []func() error{
		func() error { return second(m.Pause(ctx, "evm")) },
		func() error {
			return second(m.PatchDocument(ctx, "evm", []byte(`{"name":"m","policies":{"min_balance":1}}`)))
		},
		func() error { return second(m.Disable(ctx, "evm", relayer.DisabledReason{Type: "x"})) },
		func() error { return second(m.PatchDocument(ctx, "evm", []byte(`{"policies":null}`))) },
		func() error { return second(m.Enable(ctx, "evm")) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		expect(original)
	}
	add := func(r *relayer.Relayer) error {
		r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: other})
		return nil
	}
	if _, err := m.Update(ctx, "evm", add); err != nil {
		t.Fatal(err)
	}
	expect(original, other)
	// Another key changes nothing that a response shows, and must be stored.
	swap := func(r *relayer.Relayer) error { r.CustomRPCURLs[0].URL = "https://rpc.example/v2/newkey"; return nil }
	if _, err := m.Update(ctx, "evm", swap); err != nil {
		t.Fatal(err)
	}
	expect("https://rpc.example/v2/newkey", other)
	if _, err := m.PatchDocument(ctx, "evm", []byte(`{"custom_rpc_urls":[{"url":"`+other+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	expect(other)
	for _, mask := range []string{"wss://other.example/***", "https://elsewhere.example/***"} {
		if _, err := m.PatchDocument(ctx, "evm", []byte(`{"custom_rpc_urls":[{"url":"`+mask+`"}]}`)); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s: %v", mask, err)
		}
		expect(other)
	}
	if _, err := m.PatchDocument(ctx, "evm", []byte(`{"custom_rpc_urls":null}`)); err != nil {
		t.Fatal(err)
	}
	expect()
}

// Where only user information is masked, the mask looks like a URL of its own.
func TestMaskOfUserInformationIsNotStored(t *testing.T) {
	m := registry(t)
	secret := func(r *relayer.Relayer) error { r.CustomRPCURLs[0].URL = "https://user:pw@rpc.example/"; return nil }
	if _, err := m.Update(t.Context(), "evm", secret); err != nil {
		t.Fatal(err)
	}
	if _, err := m.PatchDocument(t.Context(), "evm", []byte(`{"custom_rpc_urls":[{"url":"https://rpc.example/"}]}`)); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if got := string(mustGet(t, m, "evm").CustomRPCURLs[0].URL); got != "https://user:pw@rpc.example/" {
		t.Errorf("the URL is %s", got)
	}
}

func TestDeleteGuard(t *testing.T) {
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
		t.Errorf("refused: %v", err)
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

func TestExclusiveSigners(t *testing.T) { eachStore(t, testExclusiveSigners) }

func testExclusiveSigners(t *testing.T, store relayer.Store) {
	m, err := relayer.New(store, relayer.WithExclusiveSigners())
	if err != nil {
		t.Fatal(err)
	}
	request := func(id string) relayer.CreateRequest {
		return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
	}
	for round := range 20 {
		var creators sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			creators.Go(func() { _, errs[i] = m.Create(t.Context(), request(fmt.Sprintf("r-%d", i))) })
		}
		creators.Wait()
		winner := -1
		for i, err := range errs {
			var invalid *relayer.ValidationError
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Fatalf("round %d: %d and %d both have the signer", round, winner, i)
			case !errors.As(err, &invalid) || invalid.Fields[0].Field != "signer_id":
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: nobody has the signer", round)
		}
		id := fmt.Sprintf("r-%d", winner)
		if _, err := m.Pause(t.Context(), id); err != nil {
			t.Fatalf("round %d: pausing the winner: %v", round, err)
		}
		if _, err := m.Create(t.Context(), request("late")); !errors.Is(err, relayer.ErrInvalid) {
			t.Fatalf("round %d: after an update the signer was free: %v", round, err)
		}
		if err := m.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := m.Create(t.Context(), request("taken")); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*relayer.CreateRequest){
		"another network":      func(r *relayer.CreateRequest) { r.Network = "mainnet" },
		"another network type": func(r *relayer.CreateRequest) { r.NetworkType = relayer.Solana },
		"another signer":       func(r *relayer.CreateRequest) { r.SignerID = "t" },
		"names run together":   func(r *relayer.CreateRequest) { r.Network, r.SignerID = "sepolia1", ":s" },
		"names too long":       func(r *relayer.CreateRequest) { r.SignerID = strings.Repeat("s", 10_000) },
	} {
		other := request("")
		change(&other)
		if _, err := m.Create(t.Context(), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Create(t.Context(), request("taken")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("an id that is taken as well: %v", err)
	}
	if _, err := registry(t).Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "testnet", NetworkType: relayer.EVM, SignerID: "s-evm"}); err != nil {
		t.Errorf("without the option: %v", err)
	}
}

func TestObserver(t *testing.T) {
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
		{relayer.OperationDisable, id, false},
		{relayer.OperationEnable, id, true},
		{relayer.OperationDelete, id, true},
		{relayer.OperationDelete, id, false},
	}
	if !slices.Equal(got, want) || !slices.Equal(again, want) {
		t.Errorf("the observers saw\n%v\n%v\nwant\n%v", got, again, want)
	}
}

// One URL that is stored as it looks must not vouch for the masks of others.
func TestMasksBesideAURLThatLooksLikeThem(t *testing.T) {
	const secret, bare = "https://u:SECRET@h.example/", "https://h.example/"
	for name, c := range map[string]struct {
		stored  []relayer.RPCURL
		patched string
		refused string // the field, or "" where the patch is right
	}{
		"both patched back":            {[]relayer.RPCURL{secret, bare}, `[{"url":"https://h.example/"},{"url":"https://h.example/"}]`, "custom_rpc_urls[1].url"},
		"the other way round":          {[]relayer.RPCURL{bare, secret}, `[{"url":"https://h.example/","weight":1},{"url":"https://h.example/","weight":2}]`, "custom_rpc_urls[1].url"},
		"the secret one taken away":    {[]relayer.RPCURL{secret, bare}, `[{"url":"https://h.example/"}]`, ""},
		"no slash":                     {[]relayer.RPCURL{secret}, `[{"url":"https://h.example"}]`, "custom_rpc_urls[0].url"},
		"capitals":                     {[]relayer.RPCURL{secret}, `[{"url":"HTTPS://H.EXAMPLE/"}]`, "custom_rpc_urls[0].url"},
		"the default port":             {[]relayer.RPCURL{secret}, `[{"url":"https://h.example:443/"}]`, "custom_rpc_urls[0].url"},
		"an empty query":               {[]relayer.RPCURL{secret}, `[{"url":"https://h.example/***?"}]`, "custom_rpc_urls[0].url"},
		"an empty fragment":            {[]relayer.RPCURL{secret}, `[{"url":"https://elsewhere.example/***#"}]`, "custom_rpc_urls[0].url"},
		"escaped":                      {[]relayer.RPCURL{secret}, `[{"url":"https://h.example/%2A%2A%2A"}]`, "custom_rpc_urls[0].url"},
		"a mask stored as it is":       {[]relayer.RPCURL{"https://h.example/***", "https://h.example/KEY"}, `[{"url":"https://h.example/***"},{"url":"https://h.example/***"}]`, "custom_rpc_urls[1].url"},
		"another URL of the same host": {[]relayer.RPCURL{"https://h.example/KEY"}, `[{"url":"https://h.example/"}]`, ""},
		"a URL without a secret":       {[]relayer.RPCURL{bare}, `[{"url":"https://h.example"}]`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := relayer.New(memory.New())
			if err != nil {
				t.Fatal(err)
			}
			request := relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
			for _, url := range c.stored {
				request.CustomRPCURLs = append(request.CustomRPCURLs, relayer.RPCConfig{URL: url})
			}
			before, err := m.Create(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.PatchDocument(t.Context(), "r", []byte(`{"custom_rpc_urls":`+c.patched+`}`))
			if c.refused == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var invalid *relayer.ValidationError
			if !errors.As(err, &invalid) || invalid.Fields[0].Field != c.refused {
				t.Errorf("got %v, want a problem of %s", err, c.refused)
			}
			if after := mustGet(t, m, "r"); !reflect.DeepEqual(after, before) {
				t.Errorf("was %v\nis  %v", before, after)
			}
		})
	}
}

// Two relayers that came to share a signer before signers became exclusive can
// be paused all the same: that is the first step out of it.
func TestPauseOfRelayersThatShareASigner(t *testing.T) {
	store := memory.New()
	lenient, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := relayer.New(store, relayer.WithExclusiveSigners())
	if err != nil {
		t.Fatal(err)
	}
	request := relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
	for _, id := range []string{"first", "second"} {
		request.ID = id
		if _, err := lenient.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"first", "second"} {
		if r, err := strict.Pause(t.Context(), id); err != nil || !r.Paused {
			t.Errorf("pausing %s: %v", id, err)
		}
		if _, err := strict.PatchDocument(t.Context(), id, []byte(`{"name":"m"}`)); err != nil {
			t.Errorf("patching %s: %v", id, err)
		}
	}
	// The first to be changed has the signer from now on.
	request.ID = "third"
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third: %v", err)
	}
	if err := strict.Delete(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := strict.Resume(t.Context(), "second"); err != nil {
		t.Fatal(err)
	}
	if _, err := strict.Create(t.Context(), request); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("creating a third after the second has claimed the signer: %v", err)
	}
}

// A hook may fail with any error, also with one of ours: it is the hook's, and
// the hook is not asked again.
func TestErrorsOfHooksAreNotLostRaces(t *testing.T) {
	mine := fmt.Errorf("my own: %w", relayer.ErrConflict)
	asked := 0
	m := registry(t, relayer.WithDeleteGuard(func(context.Context, *relayer.Relayer) (string, error) { asked++; return "", mine }))
	_, err := m.Update(t.Context(), "evm", func(*relayer.Relayer) error { asked++; return mine })
	if err != mine || asked != 1 {
		t.Errorf("update: %v, asked %d times", err, asked)
	}
	if err := m.Delete(t.Context(), "evm"); !errors.Is(err, mine) || asked != 2 {
		t.Errorf("delete: %v, asked %d times", err, asked)
	}
}

// A panic is no success to those who keep the books.
func TestObserverOfAPanic(t *testing.T) {
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
			t.Errorf("%s was told as a success", last.Kind)
		}
	}
	if _, err := m.Pause(t.Context(), "evm"); err != nil {
		t.Errorf("after the panics: %v", err)
	}
}

// A deadline holds while another write of the same relayer is under way.
func TestDeadlineWhileAnotherWrites(t *testing.T) {
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

// slow is a store whose updates take until they are told to end.
type slow struct {
	relayer.Store
	begun, end chan struct{}
}

func (s *slow) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.begun <- struct{}{}
	<-s.end
	return s.Store.Update(ctx, rec)
}

func TestPatchNamesEachUnknownFieldOnce(t *testing.T) {
	m := registry(t)
	_, err := m.PatchDocument(t.Context(), "evm", []byte(`{"id":"x","network":"y","policies":{"max_fee":1}}`))
	var invalid *relayer.ValidationError
	if !errors.As(err, &invalid) || len(invalid.Fields) != 3 {
		t.Errorf("got %v", err)
	}
}
