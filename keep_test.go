package relayer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/transfer"
)

// What a newer version might store: every member whose name begins with new is unknown.
var newer = map[string]relayer.Record{
	"evm": {
		ID: "evm",
		Document: []byte(`{"new_first":1,"id":"evm","name":"n","network":"w","network_type":"evm","address":"0x1","paused":false,"system_disabled":true,` +
			`"disabled_reason":{"type":"t","details":"d","new_since":"today"},"signer_id":"s",` +
			`"custom_rpc_urls":[{"url":"https://a.example/***","weight":100,"new_region":"eu"},{"url":"https://a.example/***","weight":1,"new_region":"us"}],` +
			`"policies":{"min_balance":1,"new_limit":{"daily":[1e2, 3]},"whitelist_receivers":["a"]},"new_labels":{"team":"a"}}`),
		Private: []byte(`{"new_headers":["k"],"custom_rpc_urls":["https://a.example/1","https://a.example/2"]}`),
	},
	"solana": {
		ID: "solana",
		Document: []byte(`{"id":"solana","name":"n","network":"w","network_type":"solana","address":"","paused":false,"system_disabled":false,"signer_id":"s",` +
			`"policies":{"allowed_tokens":[{"mint":"a","new_cap":1,"swap_config":{"min_amount":1,"new_cap":2}},{"mint":"b","new_cap":3}],"fee_payment_strategy":"user",` +
			`"swap_config":{"strategy":"noop","new_dex":"x","jupiter_swap_options":{"priority_level":"high","new_tip":5}}},"new_labels":{"team":"a"}}`),
	},
	"stellar": {
		ID: "stellar",
		Document: []byte(`{"id":"stellar","name":"n","network":"w","network_type":"stellar","address":"","paused":false,"system_disabled":false,"signer_id":"s",` +
			`"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":{"new_kind":{"of":"a"}},"new_issuer":"i"}},` +
			`{"asset":"b","metadata":{"kind":{"classic":{"code":"c","issuer":"i","new_flag":true}}},"new_cap":1}],"swap_config":{"strategies":["new-dex"],"new_route":1}}}`),
	},
	"fictional": {
		ID: "fictional",
		Document: []byte(`{"id":"fictional","name":"n","network":"w","network_type":"fictional","address":"","paused":false,"system_disabled":false,"signer_id":"s",` +
			`"custom_rpc_urls":[{"url":"https://a.example/***","weight":100,"new_region":"eu"}],"policies":{"max_sats":10,"new":{"a":[1]},"custom_rpc_urls":[{"new":1},{"new":2}]},"new_labels":{"team":"a"}}`),
		Private: []byte(`{"custom_rpc_urls":["https://a.example/1"]}`),
	},
}

// newerRegistry returns a Manager on a store with the newer records.
func newerRegistry(t *testing.T) (*relayer.Manager, relayer.Store) {
	t.Helper()
	store := memory.New()
	for _, id := range []string{"evm", "solana", "stellar", "fictional"} {
		if _, err := store.Create(t.Context(), newer[id]); err != nil {
			t.Fatal(err)
		}
	}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	return m, store
}

// unknownOf returns the unknown members of a document and of a private part, with their
// values.
func unknownOf(t *testing.T, rec relayer.Record) []string {
	t.Helper()
	var unknown []string
	collect := func(path string, value any) {
		if strings.Contains(path, "new") || value == "new-dex" {
			unknown = append(unknown, path+"="+treeText(t, value))
		}
	}
	walkTree(parseTree(t, string(rec.Document)), "", collect)
	if len(rec.Private) > 0 {
		walkTree(parseTree(t, string(rec.Private)), "private", collect)
	}
	slices.Sort(unknown)
	return unknown
}

func TestUnknownMembers_Kept(t *testing.T) {
	calls := map[string]func(*testing.T, *relayer.Manager, string) error{
		"pause": func(t *testing.T, m *relayer.Manager, id string) error { return second(m.Pause(t.Context(), id)) },
		"patch of paused": func(t *testing.T, m *relayer.Manager, id string) error {
			return second(m.Documents().Patch(t.Context(), id, []byte(`{"paused":true}`)))
		},
		"rename": func(t *testing.T, m *relayer.Manager, id string) error {
			return second(m.Update(t.Context(), id, func(r *relayer.Relayer) error { r.Name = "m"; return nil }))
		},
		"patch": func(t *testing.T, m *relayer.Manager, id string) error {
			return second(m.Patch(t.Context(), id, patchtest.JSON(map[string]any{"name": "m", "paused": true, "notification_id": "x"})))
		},
	}
	for id := range newer {
		for name, call := range calls {
			if id == "stellar" && name != "pause" && name != "patch of paused" {
				continue // its swap strategy is rejected in a checked change
			}
			t.Run(id+" "+name, func(t *testing.T) {
				m, store := newerRegistry(t)
				before, _ := store.Get(t.Context(), id)
				if err := call(t, m, id); err != nil {
					t.Fatal(err)
				}
				wantUnknown(t, store, before)
			})
		}
	}
}

// wantUnknown fails unless a record has a newer revision and the same unknown members.
func wantUnknown(t *testing.T, store relayer.Store, before relayer.Record, removed ...string) {
	t.Helper()
	after, err := store.Get(t.Context(), before.ID)
	if err != nil || after.Revision == before.Revision {
		t.Fatalf("nothing was stored: %v", err)
	}
	want := slices.DeleteFunc(unknownOf(t, before), func(unknown string) bool {
		return slices.ContainsFunc(removed, func(path string) bool { return strings.HasPrefix(unknown, path) })
	})
	if got := unknownOf(t, after); !slices.Equal(got, want) {
		t.Errorf("unknown members\n%q, want\n%q\nin %s", got, want, after.Document)
	}
}

func TestUnknownMembers_ChangedNextToThem(t *testing.T) {
	m, store := newerRegistry(t)
	before, _ := store.Get(t.Context(), "solana")
	_, err := m.Update(t.Context(), "solana", func(r *relayer.Relayer) error {
		policy := r.Policy.(*relayer.SolanaPolicy)
		policy.SwapConfig.JupiterSwapOptions.PriorityFeeMaxLamports = new(uint64(1))
		policy.SwapConfig.CronSchedule = new("* * * * *")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantUnknown(t, store, before)

	before, _ = store.Get(t.Context(), "evm")
	if _, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"policies": map[string]any{"min_balance": nil, "gas_price_cap": 5}})); err != nil {
		t.Fatal(err)
	}
	wantUnknown(t, store, before)
	if got := member(t, []byte(storedDocument(t, m, "evm")), "policies"); !strings.HasPrefix(got, `{"gas_price_cap":5,"whitelist_receivers":["a"],"new_limit":`) {
		t.Errorf("the policy is %s", got)
	}
}

// A list that is changed is replaced whole, although URLs have equal masks.
func TestUnknownMembers_ReplacedList(t *testing.T) {
	m, store := newerRegistry(t)
	_, err := m.Update(t.Context(), "evm", func(r *relayer.Relayer) error {
		r.CustomRPCURLs[0].URL = "https://a.example/3"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	after, _ := store.Get(t.Context(), "evm")
	const want = `[{"url":"https://a.example/***","weight":100},{"url":"https://a.example/***","weight":1}]`
	if got := member(t, after.Document, "custom_rpc_urls"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"custom_rpc_urls": nil})); err != nil {
		t.Fatal(err)
	}
	after, _ = store.Get(t.Context(), "evm")
	if string(after.Private) != `{"new_headers":["k"]}` || len(mustGet(t, m, "evm").CustomRPCURLs) != 0 {
		t.Errorf("without URLs the private part is %s", after.Private)
	}
}

// What a caller replaces or clears has no unknown members of what it was.
func TestUnknownMembers_Removed(t *testing.T) {
	for name, c := range map[string]struct {
		call    func(*relayer.Manager) error
		removed string
	}{
		"policies": {func(m *relayer.Manager) error {
			return second(m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"policies": nil})))
		}, "policies"},
		"policies with only unknown members": {func(m *relayer.Manager) error {
			if _, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"policies": map[string]any{"min_balance": nil, "whitelist_receivers": nil}})); err != nil {
				return err
			}
			return second(m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"policies": nil})))
		}, "policies"},
		"disabled again": {func(m *relayer.Manager) error {
			return second(m.Disable(t.Context(), "evm", relayer.DisabledReason{Type: "other"}))
		}, "disabled_reason"},
		"enabled": {func(m *relayer.Manager) error { return second(m.Enable(t.Context(), "evm")) }, "disabled_reason"},
	} {
		t.Run(name, func(t *testing.T) {
			m, store := newerRegistry(t)
			before, _ := store.Get(t.Context(), "evm")
			if err := c.call(m); err != nil {
				t.Fatal(err)
			}
			wantUnknown(t, store, before, c.removed)
		})
	}
}

// A change that changes nothing stores nothing, and so does not touch unknown members.
func TestUnknownMembers_NoChange(t *testing.T) {
	m, store := newerRegistry(t)
	for id := range newer {
		before, _ := store.Get(t.Context(), id)
		if _, err := m.Resume(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if after, _ := store.Get(t.Context(), id); after.Revision != before.Revision {
			t.Errorf("%s was stored again: %s", id, after.Document)
		}
	}
}

func TestUnknownMembers_Transfer(t *testing.T) {
	_, source := newerRegistry(t)
	target, err := bolt.Open(t.Context(), t.TempDir()+"/relayers.db")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := transfer.Copy(t.Context(), target, source); err != nil {
		t.Fatal(err)
	}
	for id := range newer {
		before, _ := source.Get(t.Context(), id)
		after, err := target.Get(t.Context(), id)
		if err != nil || fmt.Sprint(after) != fmt.Sprint(before) || string(after.Private) != string(before.Private) {
			t.Errorf("copied to %v, error %v\nwant %v", after, err, before)
		}
	}
}

func TestUnknownPolicy_Operations(t *testing.T) {
	m, _ := newerRegistry(t)
	ctx := t.Context()
	const raw = `{"max_sats":10,"new":{"a":[1]},"custom_rpc_urls":[{"new":1},{"new":2}]}`
	want := func(r *relayer.Relayer, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		policy, ok := r.Policy.(*relayer.UnknownPolicy)
		if !ok || policy.Type != "fictional" || policy.NetworkType() != "fictional" || string(policy.Raw) != raw || fmt.Sprint(policy) != raw {
			t.Errorf("the policy is %T %v", r.Policy, r.Policy)
		}
		if string(r.CustomRPCURLs[0].URL) != "https://a.example/1" {
			t.Error("without the full URL")
		}
	}
	want(m.Get(ctx, "fictional"))
	page, err := m.List(ctx, relayer.ListQuery{Page: 1, PerPage: 10})
	if err != nil || len(page.Relayers) != 4 {
		t.Fatalf("List: %v", err)
	}
	want(page.Relayers[3], nil)
	for r, err := range m.All(ctx, relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.ID == "fictional" {
			want(r, nil)
		}
	}
	want(m.Pause(ctx, "fictional"))
	want(m.Resume(ctx, "fictional"))
	want(m.Disable(ctx, "fictional", relayer.DisabledReason{Type: "x"}))
	want(m.Enable(ctx, "fictional"))
	want(m.Patch(ctx, "fictional", patchtest.JSON(map[string]any{"paused": true, "name": "m"})))

	const message = "cannot be changed: this version does not support the network type"
	for name, err := range map[string]error{
		"patch":       second(m.Documents().Patch(ctx, "fictional", []byte(`{"policies":{"max_sats":1}}`))),
		"null patch":  second(m.Documents().Patch(ctx, "fictional", []byte(`{"policies":null}`))),
		"update":      second(m.Update(ctx, "fictional", func(r *relayer.Relayer) error { r.Policy.(*relayer.UnknownPolicy).Raw = []byte(`{}`); return nil })),
		"no policy":   second(m.Update(ctx, "fictional", func(r *relayer.Relayer) error { r.Policy = nil; return nil })),
		"evm policy":  second(m.Update(ctx, "fictional", func(r *relayer.Relayer) error { r.Policy = &relayer.EVMPolicy{}; return nil })),
		"typed nil":   second(m.Update(ctx, "fictional", func(r *relayer.Relayer) error { r.Policy = (*relayer.UnknownPolicy)(nil); return nil })),
		"both fields": second(m.Documents().Patch(ctx, "fictional", []byte(`{"policies":{},"name":"x"}`))),
	} {
		problems := fieldErrors(t, err)
		if !slices.Equal(problems, []relayer.FieldError{{Field: "policies", Message: message}}) {
			t.Errorf("%s: %+v", name, problems)
		}
	}
	if _, err := m.Update(ctx, "fictional", func(r *relayer.Relayer) error { r.Name = ""; return nil }); !errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("an empty name: %v", err)
	}
	want(m.Get(ctx, "fictional"))
	if err := m.Delete(ctx, "fictional"); err != nil {
		t.Error(err)
	}
}

func TestUnknownPolicy_Create(t *testing.T) {
	m := newManager(t)
	req := minimal("a")
	req.Policy = &relayer.UnknownPolicy{Type: "fictional"}
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), req))), "policies")
	req.NetworkType = "fictional"
	wantFields(t, fieldErrors(t, second(m.Create(t.Context(), req))), "network_type", "policies")
}

// A client decodes a list with a relayer of an unknown network type.
func TestUnknownPolicy_Decode(t *testing.T) {
	var list []relayer.Relayer
	body := fmt.Sprintf(`[%s,%s]`, newer["fictional"].Document, newer["solana"].Document)
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(list[0])
	if err != nil || member(t, encoded, "policies") != `{"max_sats":10,"new":{"a":[1]},"custom_rpc_urls":[{"new":1},{"new":2}]}` {
		t.Errorf("encoded as %s, error %v", encoded, err)
	}
	var r relayer.Relayer
	if err := json.Unmarshal([]byte(`{"network_type":"fictional"}`), &r); err != nil || fmt.Sprint(r.Policy) != "{}" {
		t.Errorf("without a policy: %v, error %v", r, err)
	}
}
