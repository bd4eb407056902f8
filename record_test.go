package relayer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// TestRecord_PrivateMasked prints, logs and encodes records and their changes.
func TestRecord_PrivateMasked(t *testing.T) {
	rec := relayer.Record{ID: "a", Revision: 7, Claim: "c", Terms: []string{"paused=true"}, Document: []byte(`{"id":"a"}`), Private: []byte(`["PATHKEY PASSWORD"]`)}
	change := relayer.RecordChange{Kind: relayer.ChangeCreated, Record: rec}
	values := []any{
		rec, &rec, []relayer.Record{rec}, []*relayer.Record{&rec}, map[string]*relayer.Record{"a": &rec}, struct{ R *relayer.Record }{&rec},
		change, &change, []relayer.RecordChange{change}, []*relayer.RecordChange{&change}, struct{ C *relayer.RecordChange }{&change},
	}
	for _, value := range values {
		for _, verb := range verbs {
			wantMasked(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
		}
		wantMasked(t, fmt.Sprintf("an error with %T", value), fmt.Errorf("call: %v", value).Error())
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(handler).With("v", value).Info(fmt.Sprint(value), slog.Group("g", slog.Any("v", value)))
		}
		wantMasked(t, fmt.Sprintf("%T in a log", value), log.String())
		for what, text := range map[string]string{"JSON": string(encoded), "a log": log.String()} {
			if strings.Contains(text, base64.StdEncoding.EncodeToString(rec.Private)) {
				t.Errorf("%s of %T shows the private part in base64: %s", what, value, text)
			}
			if !strings.Contains(text, "***") {
				t.Errorf("%s of %T is without the mask: %s", what, value, text)
			}
		}
	}
	if got, want := fmt.Sprintf("%+v", rec), `{"ID":"a","Revision":7,"Sequence":0,"Claim":"c","Terms":["paused=true"],"Text":"","Document":"{\"id\":\"a\"}","Private":"***","Note":""}`; got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
	if got := fmt.Sprint(relayer.Record{ID: "a"}); strings.Contains(got, "***") {
		t.Errorf("a record without a private part prints as %s", got)
	}
}

// A store that keeps records as JSON by mistake gets an error instead of losing the
// private part.
func TestRecord_MaskedDoesNotDecode(t *testing.T) {
	encoded, err := json.Marshal(relayer.Record{ID: "a", Private: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	var rec relayer.Record
	if err := json.Unmarshal(encoded, &rec); err == nil {
		t.Errorf("%s decodes to %v", encoded, rec)
	}
}

// A record that a store returns with an error is ignored.
func TestDocuments_RecordWithError(t *testing.T) {
	store := memory.New()
	mustCreate(t, managerOf(t, store), minimal("a"))
	m := managerOf(t, hooked{Store: store, after: func(context.Context, string, error) error { return errStore }})
	document, err := m.Documents().Get(t.Context(), "a")
	if !reflect.DeepEqual(document, relayer.Document{}) || !errors.Is(err, errStore) {
		t.Errorf("GetDocument: %v, error %v", document, err)
	}
	page, err := listDocuments(t.Context(), m, relayer.ListQuery{})
	if page != nil || !errors.Is(err, errStore) {
		t.Errorf("List: %+v, error %v", page, err)
	}
	document, err = m.Documents().Create(t.Context(), []byte(evmBody()))
	if !reflect.DeepEqual(document, relayer.Document{}) || !errors.Is(err, errStore) {
		t.Errorf("CreateDocument: %v, error %v", document, err)
	}
}

func TestDisabledReason_UnmarshalJSON(t *testing.T) {
	reasons := map[string]relayer.DisabledReason{
		`{"type":"NonceSyncFailed","details":"why"}`: {Type: relayer.NonceSyncFailed, Details: "why"},
		`{"type":"a","details":null,"more":1}`:       {Type: "a"},
		`{"type":"a"}`:                               {Type: "a"},
		`{"type":"Multiple","details":[{"type":"a","details":"x"},{"type":"b","details":"y"}]}`: {Type: "Multiple", Details: "a: x; b: y"},
		`{"type":"Multiple","details":[]}`:       {Type: "Multiple"},
		`{"type":"a","details":1}`:               {Type: "a", Details: "1"},
		`{"type":"a","details":[1]}`:             {Type: "a", Details: "[1]"},
		`{"type":"a","details":{"code":"none"}}`: {Type: "a", Details: `{"code":"none"}`},
	}
	for text, want := range reasons {
		r := relayer.Relayer{}
		if err := json.Unmarshal([]byte(`{"network_type":"evm","disabled_reason":`+text+`}`), &r); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if *r.DisabledReason != want {
			t.Errorf("%s decodes to %+v, want %+v", text, *r.DisabledReason, want)
		}
	}
	for _, text := range []string{`{"type":1}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(relayer.DisabledReason)); err == nil {
			t.Errorf("%s decodes", text)
		}
	}
}

// These responses are not among those of this version.
func TestRelayer_UnmarshalJSON(t *testing.T) {
	var disabled relayer.Relayer
	text := `{"id":"a","network_type":"evm","system_disabled":true,"disabled_reason":{"type":"NonceSyncFailed","details":"d"},"policies":null,"added_later":1}`
	if err := json.Unmarshal([]byte(text), &disabled); err != nil {
		t.Fatal(err)
	}
	if want := (relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "d"}); *disabled.DisabledReason != want || !disabled.SystemDisabled {
		t.Errorf("decoded %+v", disabled)
	}
	if !reflect.DeepEqual(disabled.Policy, &relayer.EVMPolicy{}) {
		t.Errorf("policies null decoded as %#v", disabled.Policy)
	}
	for _, wrong := range []string{`{"id":"a"}`, `{"network_type":"evm","policies":5}`, `{"network_type":"evm","policies":{"min_balance":"0x5"}}`, `{"network_type":5}`, `[]`} {
		r := relayer.Relayer{ID: "before"}
		if err := json.Unmarshal([]byte(wrong), &r); err == nil || r.ID != "before" {
			t.Errorf("%s decoded as %+v, %v", wrong, r, err)
		}
	}
}

// What a newer version might store: every member whose name begins with new is unknown.
var newer = map[string]relayer.Record{
	"evm": {
		ID: "evm",
		Document: []byte(`{"new_first":1,"id":"evm","name":"n","network":"w","network_type":"evm","address":"0x1","paused":false,"system_disabled":true,` +
			`"disabled_reason":{"type":"t","details":"d","new_since":"today"},"signer_id":"s",` +
			`"custom_rpc_urls":[{"url":"https://a.example/***","weight":100,"new_region":"eu"},{"url":"https://a.example/***","weight":1,"new_region":"us"}],` +
			`"policies":{"min_balance":1,"new_limit":{"daily":[1e2, 3]},"whitelist_receivers":["a"]},"new_labels":{"team":"a"}}`),
		Private: []byte(`{"new_headers":["k"],"custom_rpc_urls":[{"url":"https://a.example/1","weight":100},{"url":"https://a.example/2","weight":1}]}`),
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
		Private: []byte(`{"custom_rpc_urls":[{"url":"https://a.example/1","weight":100}]}`),
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

// Every write says who made it, when, why and what it was, in every result.
func TestNote_OfEveryWrite(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "alice", RequestID: "req-1"})
		because := relayer.Reason("incident 42")
		disabled := []string{"disabled_reason.details", "disabled_reason.type", "system_disabled"}
		for _, c := range []struct {
			action  relayer.Action
			changed []string
			write   func() (*relayer.Relayer, error)
		}{
			{relayer.ActionCreate, nil, func() (*relayer.Relayer, error) { return m.Create(ctx, minimal("r"), because) }},
			{relayer.ActionPause, []string{"paused"}, func() (*relayer.Relayer, error) { return m.Pause(ctx, "r", because) }},
			{relayer.ActionResume, []string{"paused"}, func() (*relayer.Relayer, error) {
				return m.Patch(ctx, "r", patchtest.JSON(map[string]any{"paused": false}), because)
			}},
			{relayer.ActionDisable, disabled, func() (*relayer.Relayer, error) {
				return m.Disable(ctx, "r", relayer.DisabledReason{Type: "x"}, because)
			}},
			{relayer.ActionEnable, disabled, func() (*relayer.Relayer, error) { return m.Enable(ctx, "r", because) }},
			{relayer.ActionUpdate, []string{"name"}, func() (*relayer.Relayer, error) {
				return m.Update(ctx, "r", func(r *relayer.Relayer) error { r.Name = "new"; return nil }, because)
			}},
		} {
			began := time.Now().Truncate(time.Millisecond)
			written, err := c.write()
			if err != nil {
				t.Fatal(err)
			}
			note := written.LastChange
			if note.Time.Before(began) || note.Time.After(time.Now()) || note.Time.Location() != time.UTC {
				t.Errorf("%s at %v, want between %v and now, in UTC", c.action, note.Time, began)
			}
			if note.Time, note.PausedBy = (time.Time{}), nil; !reflect.DeepEqual(note, relayer.ChangeInfo{Revision: written.Revision, Actor: "alice", Action: c.action, Reason: "incident 42", RequestID: "req-1", Changed: c.changed}) {
				t.Errorf("%s: %+v", c.action, note)
			}
			page, err := m.List(ctx, relayer.ListQuery{})
			if err != nil {
				t.Fatal(err)
			}
			document, err := m.Documents().Get(ctx, "r")
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []relayer.ChangeInfo{mustGet(t, m, "r").LastChange, page.Relayers[0].LastChange, document.LastChange()} {
				if !reflect.DeepEqual(got, written.LastChange) {
					t.Errorf("%s read as %+v, want %+v", c.action, got, written.LastChange)
				}
			}
		}
	})
}

// A write that changes nothing leaves the note of the last change.
func TestNote_WriteWithoutChange(t *testing.T) {
	m := newManager(t)
	created := mustCreate(t, m, minimal("r"))
	resumed, err := m.Resume(t.Context(), "r", relayer.Reason("no effect"))
	if err != nil || !reflect.DeepEqual(resumed.LastChange, created.LastChange) {
		t.Errorf("%+v, %v, want %+v", resumed.LastChange, err, created.LastChange)
	}
}

// A watch has the notes too, that of a delete with its own revision.
func TestNote_InWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{}))
		mustCreate(t, m, minimal("r"))
		time.Sleep(time.Hour)
		bob := relayer.WithActor(t.Context(), relayer.Actor{ID: "bob"})
		if err := m.Delete(bob, "r", relayer.Reason("gone")); err != nil {
			t.Fatal(err)
		}
		created, deleted := f.expect(relayer.ChangeCreated, "r"), f.expect(relayer.ChangeDeleted, "r")
		want := relayer.ChangeInfo{Revision: deleted.Revision, Time: created.LastChange.Time.Add(time.Hour), Actor: "bob", Action: relayer.ActionDelete, Reason: "gone"}
		if !reflect.DeepEqual(deleted.LastChange, want) || deleted.Revision <= created.Revision {
			t.Errorf("deleted by %+v at %d, want %+v after %d", deleted.LastChange, deleted.Revision, want, created.Revision)
		}
	})
}

// A note that this package did not write, and an actor with separators, are no error.
func TestNote_OtherBytes(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "a\tb\xff\t" + strings.Repeat("é", 600)})
	r, err := m.Create(ctx, minimal("r"), relayer.Reason("why"))
	want := relayer.ChangeInfo{Revision: r.Revision, Time: r.LastChange.Time, Actor: "a\uFFFDb\uFFFD\uFFFD" + strings.Repeat("é", 122), Action: relayer.ActionCreate, Reason: "why"}
	if err != nil || !reflect.DeepEqual(r.LastChange, want) {
		t.Errorf("%+v, error %v, want %+v", r.LastChange, err, want)
	}
	for note, want := range map[string]relayer.ChangeInfo{
		"":           {},
		"{}":         {},
		"text":       {},
		`{"time":5}`: {},
		`{"time":"1970-01-01T00:00:01Z","action":"pause","actor":"alice","reason":"why","request_id":"id","changed":["a","b"],"later":{}}`: {
			Time: time.Unix(1, 0).UTC(), Actor: "alice", Action: relayer.ActionPause, Reason: "why", RequestID: "id", Changed: []string{"a", "b"},
		},
	} {
		rec, err := store.Get(t.Context(), "r")
		if rec.Note = []byte(note); err == nil {
			rec, err = store.Update(t.Context(), rec)
		}
		want.Revision = rec.Revision
		if got := mustGet(t, m, "r").LastChange; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the note %q is %+v, want %+v; error %v", note, got, want, err)
		}
	}
}

func TestReason_Limits(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	for reason, isValid := range map[string]bool{
		"":                        true,
		strings.Repeat("é", 256):  true,
		strings.Repeat("e", 257):  false,
		"two\nlines":              false,
		"tab\t":                   false,
		"\xff":                    false,
		"\"quotes\" & <angles> ✓": true,
	} {
		changed, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"labels": map[string]any{"n": fmt.Sprint(len(reason))}}), relayer.Reason(reason))
		if !isValid {
			if err == nil {
				t.Errorf("%q was accepted", reason)
				continue
			}
			wantFields(t, fieldErrors(t, err), "change_reason")
			continue
		}
		if err != nil || changed.LastChange.Reason != reason {
			t.Errorf("%q: stored %v, error %v", reason, changed, err)
		}
	}
}

// TestReason_MaskedURLs: a reason quotes what a person pasted. The longest one that grows when it
// is masked can be stored too.
func TestReason_MaskedURLs(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	for reason, want := range map[string]string{
		"401 of https://user:pw@rpc.example/v2/KEY, see #7": "401 of https://rpc.example/***, see #7",
		"wss://rpc.example/?key=KEY":                        "wss://rpc.example/***",
		"user:pw@rpc.example":                               "rpc.example",
		strings.Repeat("a.b/é ", 42):                        strings.Repeat("a.b/*** ", 42)[:256],
	} {
		changed, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"labels": map[string]any{"n": fmt.Sprint(len(reason))}}), relayer.Reason(reason))
		if err != nil || changed.LastChange.Reason != want || mustGet(t, m, "r").LastChange.Reason != want {
			t.Errorf("%q: stored %v, error %v", reason, changed, err)
		}
	}
}

// checked returns what Check yields, as "ID part".
func checked(t *testing.T, m *relayer.Manager) []string {
	t.Helper()
	var found []string
	for id, err := range m.Check(t.Context()) {
		if !errors.Is(err, relayer.ErrCorrupt) {
			t.Fatalf("%s: %v", id, err)
		}
		for _, part := range []string{"id of", "claim of", "terms of", "text of", "stored document", "private part of"} {
			if strings.Contains(err.Error(), part) {
				found = append(found, id+" "+strings.TrimSuffix(part, " of"))
			}
		}
	}
	return found
}

func TestCheck_RecordsUnlikeTheirDocuments(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	forge := func(id string, change func(*relayer.Record)) {
		req := withURLs(id, "https://rpc.example/own")
		req.SignerID = id
		req.Labels = map[string]string{"team": "a"}
		mustCreate(t, m, req)
		rec, err := store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if change(&rec); second(store.Update(t.Context(), rec)) != nil {
			t.Fatal("not stored")
		}
	}
	replaced := func(terms []string, old, new string) []string {
		terms = slices.Clone(terms)
		terms[slices.Index(terms, old)] = new
		slices.Sort(terms)
		return terms
	}
	forge("sound", func(*relayer.Record) {})
	forge("moved", func(r *relayer.Record) { r.Terms = replaced(r.Terms, "label.team=a", "label.team=b") })
	forge("less", func(r *relayer.Record) { r.Terms = r.Terms[1:] })
	forge("more", func(r *relayer.Record) { r.Terms = append(slices.Clone(r.Terms), "x-unknown=1") })
	forge("hidden", func(r *relayer.Record) { r.Text = "other" })
	forge("claim", func(r *relayer.Record) { r.Claim = "other" })
	forge("document", func(r *relayer.Record) { r.Document = []byte("{") })
	forge("id", func(r *relayer.Record) {
		r.Document = []byte(strings.Replace(string(r.Document), `"id":"id"`, `"id":"di"`, 1))
	})
	forge("host", func(r *relayer.Record) {
		r.Document = []byte(strings.Replace(string(r.Document), "rpc.example", "evil.example", 1))
	})
	want := []string{"moved terms", "less terms", "more terms", "hidden text", "claim claim", "document stored document", "id id", "host private part"}
	if got := checked(t, m); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
