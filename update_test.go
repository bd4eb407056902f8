package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// TestStates_Transitions makes every call in every state.
func TestStates_Transitions(t *testing.T) {
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

func TestChanges_UnknownID(t *testing.T) {
	m := registry(t)
	for _, id := range []string{"nobody", "", "a b", strings.Repeat("a", 65)} {
		_, update := m.Update(t.Context(), id, func(*relayer.Relayer) error { return nil })
		_, pause := m.Pause(t.Context(), id)
		_, resume := m.Resume(t.Context(), id)
		_, disable := m.Disable(t.Context(), id, relayer.DisabledReason{Type: "x"})
		_, enable := m.Enable(t.Context(), id)
		_, patch := m.Documents().Patch(t.Context(), id, []byte(`{}`))
		for i, err := range []error{update, pause, resume, disable, enable, patch, m.Delete(t.Context(), id)} {
			if !errors.Is(err, relayer.ErrNotFound) {
				t.Errorf("%q, call %d: %v", id, i, err)
			}
		}
	}
}

func TestUpdate_InvalidResult(t *testing.T) {
	for name, c := range map[string]struct {
		id      string
		change  func(*relayer.Relayer)
		field   string
		message string
	}{
		"id":           {"evm", func(r *relayer.Relayer) { r.ID = "other" }, "id", "cannot be changed"},
		"network":      {"evm", func(r *relayer.Relayer) { r.Network = "mainnet" }, "network", "cannot be changed"},
		"network type": {"evm", func(r *relayer.Relayer) { r.NetworkType = relayer.Solana }, "network_type", "cannot be changed"},
		"signer":       {"evm", func(r *relayer.Relayer) { r.SignerID = "other" }, "signer_id", "cannot be changed"},
		"address":      {"evm", func(r *relayer.Relayer) { r.Address = "0x0" }, "address", "cannot be changed"},
		"empty name":   {"evm", func(r *relayer.Relayer) { r.Name = "" }, "name", "must not be empty"},
		"bad text":     {"evm", func(r *relayer.Relayer) { r.NotificationID = "\xff" }, "notification_id", "must be UTF-8"},
		"bad URL":      {"evm", func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL = "ftp://x" }, "custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"},
		"bad weight":   {"evm", func(r *relayer.Relayer) { r.CustomRPCURLs[0].Weight = new(101.0) }, "custom_rpc_urls[0].weight", "must be at most 100"},
		"wrong policy": {"evm", func(r *relayer.Relayer) { r.Policy = &relayer.SolanaPolicy{} }, "policies", "must be the policy of the network type, not that of solana"},
		"negative":     {"solana", func(r *relayer.Relayer) { r.Policy.(*relayer.SolanaPolicy).MinBalance = new(int64(-1)) }, "policies.min_balance", "must be 0 or more"},
		"not a number": {"stellar", func(r *relayer.Relayer) { r.Policy.(*relayer.StellarPolicy).FeeMarginPercentage = new(math.NaN()) }, "policies.fee_margin_percentage", "must be a finite number, and not -0"},
		"negative zero": {"stellar", func(r *relayer.Relayer) {
			r.Policy.(*relayer.StellarPolicy).SlippagePercentage = new(math.Copysign(0, -1))
		}, "policies.slippage_percentage", "must be a finite number, and not -0"},
		"zero weight":    {"stellar", func(r *relayer.Relayer) { r.CustomRPCURLs[0].Weight = new(math.Copysign(0, -1)) }, "custom_rpc_urls[0].weight", "must be a finite number, and not -0"},
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
			if !errors.As(err, &invalid) || !slices.ContainsFunc(invalid.Fields, func(f relayer.FieldError) bool { return f.Field == c.field && f.Message == c.message }) {
				t.Errorf("got %v, want %s %s", err, c.field, c.message)
			}
			if after := mustGet(t, m, c.id); !reflect.DeepEqual(after, before) {
				t.Errorf("was %+v\nis  %+v", before, after)
			}
		})
	}
}

func TestDisable_InvalidReason(t *testing.T) {
	m := registry(t)
	for _, reason := range []relayer.DisabledReason{{}, {Type: "\x00"}, {Type: "\xff"}} {
		if _, err := m.Disable(t.Context(), "evm", reason); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%+v: %v", reason, err)
		}
	}
	if r := mustGet(t, m, "evm"); r.SystemDisabled {
		t.Error("disabled for no reason")
	}
}

// Health checks pass the text of an error, which quotes the URL with its key.
func TestDisable_URLsMasked(t *testing.T) {
	m := registry(t)
	const key = "PATHKEY"
	failed := &url.Error{Op: "Post", URL: "https://rpc.example/v2/" + key, Err: errors.New("wss://u:" + key + "@ws.example refused, no host 0123456789abcdef" + key + ".rpc.example")}
	reason := relayer.DisabledReason{Type: relayer.DisabledReasonType("https://rpc.example/" + key), Details: failed.Error()}
	r, err := m.Disable(t.Context(), "evm", reason)
	if err != nil {
		t.Fatal(err)
	}
	want := relayer.DisabledReason{Type: "https://rpc.example/***", Details: `Post "https://rpc.example/***": wss://ws.example refused, no host ***.rpc.example`}
	if *r.DisabledReason != want || strings.Contains(storedDocument(t, m, "evm"), key) {
		t.Errorf("the reason is %+v, want %+v", *r.DisabledReason, want)
	}
	if again, err := m.Disable(t.Context(), "evm", reason); err != nil || again.Revision != r.Revision {
		t.Errorf("the same reason again: %v, error %v", again, err)
	}
	_, err = m.Update(t.Context(), "solana", func(r *relayer.Relayer) error {
		r.SystemDisabled, r.DisabledReason = true, &reason
		return nil
	})
	if err != nil || strings.Contains(storedDocument(t, m, "solana"), key) {
		t.Errorf("an update stores %s, error %v", storedDocument(t, m, "solana"), err)
	}
	if strings.Contains(failed.Error(), "***") || !strings.Contains(reason.Details, key) {
		t.Error("the reason of the caller was changed")
	}
}

// An error of a hook quotes a URL too. Its text is masked, and it still matches.
func TestHookErrors_URLsMasked(t *testing.T) {
	cause := &url.Error{Op: "Get", URL: secretURL, Err: context.DeadlineExceeded}
	var observed []error
	m := registry(t,
		refuseDelete(cause),
		relayer.WithAddressResolver(func(_ context.Context, req relayer.CreateRequest) (string, error) {
			if req.SignerID == "s" {
				return "", cause
			}
			return "", nil
		}),
		atEnd(func(_ relayer.Operation, err error) { observed = append(observed, err) }))
	observed = nil
	for call, err := range map[string]error{"delete": m.Delete(t.Context(), "evm"), "create": second(m.Create(t.Context(), minimal("new")))} {
		if !errors.Is(err, cause) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "https://***.rpc.example:8545/***") {
			t.Errorf("%s: %v", call, err)
		}
		observed = append(observed, err)
	}
	for _, err := range observed {
		wantMasked(t, "an error", err.Error())
	}
	if len(observed) != 4 {
		t.Errorf("%d errors", len(observed))
	}
}

// A pause must work even if stricter rules apply since the relayer was stored.
func TestPause_AfterRulesChanged(t *testing.T) {
	store := memory.New()
	lenient, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lenient.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
		Policy: &relayer.EVMPolicy{WhitelistReceivers: []string{"nobody"}}})
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
	if r, err := strict.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"paused": false})); err != nil || r.Paused {
		t.Errorf("a patch of paused got %v", err)
	}
	_, err = strict.Update(t.Context(), "r", func(r *relayer.Relayer) error { r.Name = "m"; return nil })
	if !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("an update got %v", err)
	}
}

func TestIfRevision(t *testing.T) {
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
		"patch":            second(m.Documents().Patch(t.Context(), "evm", []byte(`{"name":"changed"}`), relayer.IfRevision(first))),
		"delete":           m.Delete(t.Context(), "evm", relayer.IfRevision(first)),
	} {
		if !errors.Is(err, relayer.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"revision 0":    second(m.Pause(t.Context(), "evm", relayer.IfRevision(0))),
		"0 and current": second(m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"name": "changed"}), relayer.IfRevision(0, paused.Revision))),
		"0 and another": m.Delete(t.Context(), "evm", relayer.IfRevision(first), relayer.IfRevision(0)),
	} {
		if !errors.Is(err, relayer.ErrNoRevision) || errors.Is(err, relayer.ErrConflict) {
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

func TestUpdate_Concurrent(t *testing.T) { eachStore(t, testNoUpdateIsLost) }

func testNoUpdateIsLost(t *testing.T, store relayer.Store) {
	m := registryOn(t, store)
	var writers sync.WaitGroup
	for i := range 64 {
		writers.Go(func() {
			_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error {
				policy := r.Policy.(*relayer.EVMPolicy)
				policy.WhitelistReceivers = append(policy.WhitelistReceivers, fmt.Sprintf("0x%02d", i))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	receivers := mustGet(t, m, "evm").Policy.(*relayer.EVMPolicy).WhitelistReceivers
	slices.Sort(receivers)
	if len(slices.Compact(receivers)) != 64 {
		t.Errorf("%d receivers: %v", len(receivers), receivers)
	}
}

func TestUpdate_RetriesExhausted(t *testing.T) {
	m, err := relayer.New(contested{memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(t.Context(), relayer.CreateRequest{ID: "r", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}); err != nil {
		t.Fatal(err)
	}
	for call, err := range map[string]error{
		"pause":  second(m.Pause(t.Context(), "r")),
		"patch":  second(m.Documents().Patch(t.Context(), "r", []byte(`{"name":"m"}`))),
		"delete": m.Delete(t.Context(), "r"),
	} {
		if !errors.Is(err, relayer.ErrConflict) || !strings.Contains(err.Error(), "gave up after 200 attempts: try again") {
			t.Errorf("%s: %v", call, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Pause(ctx, "r"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// contested is a store in which another writer is always faster.
type contested struct{ relayer.Store }

func (contested) Update(context.Context, relayer.Record) (relayer.Record, error) {
	return relayer.Record{}, relayer.ErrConflict
}

func (contested) Delete(context.Context, string, uint64, []byte) error { return relayer.ErrConflict }

// An error of a hook is returned and not retried, even if it matches ErrConflict.
func TestUpdate_HookErrorNotRetried(t *testing.T) {
	mine := fmt.Errorf("my own: %w", relayer.ErrConflict)
	calls := 0
	m := registry(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionCreate {
			return nil
		}
		calls++
		return mine
	}))
	before := mustGet(t, m, "evm")
	_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error { calls++; r.Name = "new"; return mine })
	if !errors.Is(err, mine) || calls != 1 {
		t.Errorf("update: %v, calls %d times", err, calls)
	}
	if err := m.Delete(t.Context(), "evm"); !errors.Is(err, mine) || calls != 2 {
		t.Errorf("delete: %v, calls %d times", err, calls)
	}
	rename := func(r *relayer.Relayer) error { r.Name = "new"; return nil }
	if _, err := m.Update(t.Context(), "evm", rename); !errors.Is(err, mine) || calls != 3 {
		t.Errorf("refused update: %v, calls %d times", err, calls)
	}
	if got := mustGet(t, m, "evm"); !reflect.DeepEqual(got, before) {
		t.Errorf("got %v, want %v", got, before)
	}
}
