package relayer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// TestRecord_PrivateMasked prints, logs and encodes records and their changes.
func TestRecord_PrivateMasked(t *testing.T) {
	rec := relayer.Record{ID: "a", Revision: 7, Claim: "c", Terms: []string{"paused=true"}, Document: []byte(`{"id":"a"}`), Private: []byte(`["PATHKEY PASSWORD"]`)}
	change := relayer.RecordChange{Kind: relayer.ChangeCreated, Record: rec}
	for _, value := range []any{
		rec, &rec, []relayer.Record{rec}, []*relayer.Record{&rec}, map[string]*relayer.Record{"a": &rec}, struct{ R *relayer.Record }{&rec},
		change, &change, []relayer.RecordChange{change}, []*relayer.RecordChange{&change}, struct{ C *relayer.RecordChange }{&change},
	} {
		wantPrintsMasked(t, value)
		for what, text := range wantEncodedMasked(t, value) {
			if strings.Contains(text, base64.StdEncoding.EncodeToString(rec.Private)) || !strings.Contains(text, "***") {
				t.Errorf("%s of %T shows the private part in base64, or is without the mask: %s", what, value, text)
			}
		}
	}
	if got, want := fmt.Sprintf("%+v", rec), `{"ID":"a","Revision":7,"Sequence":0,"Claim":"c","Terms":["paused=true"],"Text":"","Document":"{\"id\":\"a\"}","Private":"***","Note":""}`; got != want {
		t.Errorf("printed %s, want %s", got, want)
	}
	if got := fmt.Sprint(relayer.Record{ID: "a"}); strings.Contains(got, "***") {
		t.Errorf("a record without a private part prints as %s", got)
	}
	// A store that keeps records as JSON by mistake gets an error instead of losing the private part.
	if encoded := must(json.Marshal(rec))(t); json.Unmarshal(encoded, &rec) == nil {
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
	page, err := m.Documents().List(t.Context(), relayer.ListQuery{})
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
		`{"type":"a","details":1}`:                   {Type: "a", Details: "1"},
		`{"type":"a","details":[1]}`:                 {Type: "a", Details: "[1]"},
		`{"type":"a","details":{"code":"none"}}`:     {Type: "a", Details: `{"code":"none"}`},
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
	mustSucceed(t, json.Unmarshal([]byte(text), &disabled))
	if want := (relayer.DisabledReason{Type: relayer.NonceSyncFailed, Details: "d"}); *disabled.DisabledReason != want || !disabled.SystemDisabled {
		t.Errorf("decoded %+v", disabled)
	}
	if !reflect.DeepEqual(disabled.Policy, &relayer.EVMPolicy{}) {
		t.Errorf("policies null decoded as %#v", disabled.Policy)
	}
	for _, wrong := range []string{`{"id":"a"}`, `{"network_type":"evm","policies":5}`, `{"network_type":"evm","policies":{"min_balance":"0x5"}}`, `{"network_type":5}`, `{"network_type":"evm","name":5}`, `[]`} {
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
	store := storeOf(t, newer["evm"], newer["solana"], newer["stellar"], newer["fictional"])
	return managerOf(t, store), store
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

// Unknown members are kept, except in what a caller replaces or clears.
func TestUnknownMembers_Kept(t *testing.T) {
	rename := patching(`{"name":"m","paused":true,"notification_id":"x"}`)
	all := []string{"evm", "solana", "stellar", "fictional"}
	for name, c := range map[string]struct {
		ids     []string
		calls   []operation
		removed string
	}{
		"pause":           {all, []operation{(*relayer.Manager).Pause}, ""},
		"patch of paused": {all, []operation{patchingDocument(`{"paused":true}`)}, ""},
		// The swap strategy of the stellar relayer is rejected in a checked change.
		"rename": {[]string{"evm", "solana", "fictional"}, []operation{updating(func(r *relayer.Relayer) { r.Name = "m" })}, ""},
		"patch":  {[]string{"evm", "solana", "fictional"}, []operation{rename}, ""},
		"change next to them": {[]string{"solana"}, []operation{updating(func(r *relayer.Relayer) {
			policy := r.Policy.(*relayer.SolanaPolicy)
			policy.SwapConfig.JupiterSwapOptions.PriorityFeeMaxLamports = new(uint64(1))
			policy.SwapConfig.CronSchedule = new("* * * * *")
		})}, ""},
		"policy":           {[]string{"evm"}, []operation{patching(`{"policies":{"min_balance":null,"gas_price_cap":5}}`)}, ""},
		"cleared policies": {[]string{"evm"}, []operation{patching(`{"policies":null}`)}, "policies"},
		"cleared policies with only unknown members": {[]string{"evm"}, []operation{
			patching(`{"policies":{"min_balance":null,"whitelist_receivers":null}}`), patching(`{"policies":null}`),
		}, "policies"},
		"disabled again": {[]string{"evm"}, []operation{disabling(relayer.DisabledReason{Type: "other"})}, "disabled_reason"},
		"enabled":        {[]string{"evm"}, []operation{(*relayer.Manager).Enable}, "disabled_reason"},
	} {
		for _, id := range c.ids {
			t.Run(id+" "+name, func(t *testing.T) {
				m, store := newerRegistry(t)
				before := storedRecord(t, store, id)
				must(m.Resume(t.Context(), id))(t) // changes nothing, so that nothing is stored
				if after := storedRecord(t, store, id); !reflect.DeepEqual(after, before) {
					t.Errorf("stored again: %s", after.Document)
				}
				for _, call := range c.calls {
					must(call(m, t.Context(), id))(t)
				}
				after := storedRecord(t, store, id)
				want := slices.DeleteFunc(unknownOf(t, before), func(unknown string) bool { return c.removed != "" && strings.HasPrefix(unknown, c.removed) })
				if got := unknownOf(t, after); !slices.Equal(got, want) || after.Revision == before.Revision {
					t.Errorf("unknown members\n%q, want\n%q\nin %s", got, want, after.Document)
				}
				if got := member(t, after.Document, "policies"); name == "policy" && !strings.HasPrefix(got, `{"gas_price_cap":5,"whitelist_receivers":["a"],"new_limit":`) {
					t.Errorf("the policy is %s", got)
				}
			})
		}
	}
}

// A list that is changed is replaced whole, although URLs have equal masks.
func TestUnknownMembers_ReplacedList(t *testing.T) {
	m, store := newerRegistry(t)
	must(updating(func(r *relayer.Relayer) { r.CustomRPCURLs[0].URL = "https://a.example/3" })(m, t.Context(), "evm"))(t)
	const want = `[{"url":"https://a.example/***","weight":100},{"url":"https://a.example/***","weight":1}]`
	if got := member(t, storedRecord(t, store, "evm").Document, "custom_rpc_urls"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	must(m.Patch(t.Context(), "evm", []byte(`{"custom_rpc_urls":null}`)))(t)
	if after := storedRecord(t, store, "evm"); string(after.Private) != `{"new_headers":["k"]}` || len(mustGet(t, m, "evm").CustomRPCURLs) != 0 {
		t.Errorf("without URLs the private part is %s", after.Private)
	}
}

func TestUnknownPolicy_Operations(t *testing.T) {
	m, _ := newerRegistry(t)
	ctx := t.Context()
	const raw = `{"max_sats":10,"new":{"a":[1]},"custom_rpc_urls":[{"new":1},{"new":2}]}`
	want := func(r *relayer.Relayer) {
		t.Helper()
		policy, ok := r.Policy.(*relayer.UnknownPolicy)
		if !ok || policy.Type != "fictional" || policy.NetworkType() != "fictional" || string(policy.Raw) != raw || fmt.Sprint(policy) != raw {
			t.Errorf("the policy is %T %v", r.Policy, r.Policy)
		}
		if string(r.CustomRPCURLs[0].URL) != "https://a.example/1" {
			t.Error("without the full URL")
		}
	}
	want(must(m.List(ctx, relayer.ListQuery{}))(t).Relayers[3])
	want(allOf(t, m, relayer.Selector{})[3])
	for _, call := range []operation{
		operationsOn["get"], (*relayer.Manager).Pause, (*relayer.Manager).Resume, disabling(relayer.DisabledReason{Type: "x"}), (*relayer.Manager).Enable,
		patching(`{"paused":true,"name":"m"}`),
	} {
		want(must(call(m, ctx, "fictional"))(t))
	}
	const message = "cannot be changed: this version does not support the network type"
	for i, call := range []operation{
		patchingDocument(`{"policies":{"max_sats":1}}`), patchingDocument(`{"policies":null}`), patchingDocument(`{"policies":{},"name":"x"}`),
		updating(func(r *relayer.Relayer) { r.Policy.(*relayer.UnknownPolicy).Raw = []byte(`{}`) }),
		updating(func(r *relayer.Relayer) { r.Policy = nil }),
		updating(func(r *relayer.Relayer) { r.Policy = &relayer.EVMPolicy{} }),
		updating(func(r *relayer.Relayer) { r.Policy = (*relayer.UnknownPolicy)(nil) }),
	} {
		problems := fieldErrors(t, second(call(m, ctx, "fictional")))
		if !slices.Equal(problems, []relayer.FieldError{{Field: "policies", Message: message}}) {
			t.Errorf("change %d: %+v", i, problems)
		}
	}
	wantFields(t, fieldErrors(t, second(updating(func(r *relayer.Relayer) { r.Name = "" })(m, ctx, "fictional"))), "name")
	want(mustGet(t, m, "fictional"))
	mustSucceed(t, m.Delete(ctx, "fictional"))
}

// Every write says who made it, when, why and what it was, in every result.
func TestNote_OfEveryWrite(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		ctx := relayer.WithActor(t.Context(), relayer.Actor{ID: "alice", RequestID: "req-1"})
		disabled := []string{"disabled_reason.details", "disabled_reason.type", "system_disabled"}
		for _, c := range []struct {
			action  relayer.Action
			changed []string
			write   operation
		}{
			{relayer.ActionCreate, nil, func(m *relayer.Manager, ctx context.Context, id string, o ...relayer.WriteOption) (*relayer.Relayer, error) {
				return m.Create(ctx, minimal(id), o...)
			}},
			{relayer.ActionPause, []string{"paused"}, (*relayer.Manager).Pause},
			{relayer.ActionResume, []string{"paused"}, patching(`{"paused":false}`)},
			{relayer.ActionDisable, disabled, disabling(relayer.DisabledReason{Type: "x"})},
			{relayer.ActionEnable, disabled, (*relayer.Manager).Enable},
			{relayer.ActionUpdate, []string{"name"}, updating(func(r *relayer.Relayer) { r.Name = "new" })},
		} {
			began := time.Now().Truncate(time.Millisecond)
			written := must(c.write(m, ctx, "r", relayer.Reason("incident 42")))(t)
			note := written.LastChange
			if note.Time.Before(began) || note.Time.After(time.Now()) || note.Time.Location() != time.UTC {
				t.Errorf("%s at %v, want between %v and now, in UTC", c.action, note.Time, began)
			}
			if note.Time, note.PausedBy = (time.Time{}), nil; !reflect.DeepEqual(note, relayer.ChangeInfo{Revision: written.Revision, Actor: "alice", Action: c.action, Reason: "incident 42", RequestID: "req-1", Changed: c.changed}) {
				t.Errorf("%s: %+v", c.action, note)
			}
			document := must(m.Documents().Get(ctx, "r"))(t)
			for _, got := range []relayer.ChangeInfo{mustGet(t, m, "r").LastChange, allOf(t, m, relayer.Selector{})[0].LastChange, document.LastChange()} {
				if !reflect.DeepEqual(got, written.LastChange) {
					t.Errorf("%s read as %+v, want %+v", c.action, got, written.LastChange)
				}
			}
		}
	})
}

// A watch has the notes too, that of a delete with its own revision.
func TestNote_InWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t)
		f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{}))
		mustCreate(t, m, minimal("r"))
		time.Sleep(time.Hour)
		bob := relayer.WithActor(t.Context(), relayer.Actor{ID: "bob"})
		mustSucceed(t, m.Delete(bob, "r", relayer.Reason("gone")))
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
	r := must(m.Create(ctx, minimal("r"), relayer.Reason("why")))(t)
	want := relayer.ChangeInfo{Revision: r.Revision, Time: r.LastChange.Time, Actor: "a\uFFFDb\uFFFD\uFFFD" + strings.Repeat("é", 122), Action: relayer.ActionCreate, Reason: "why"}
	if !reflect.DeepEqual(r.LastChange, want) {
		t.Errorf("%+v, want %+v", r.LastChange, want)
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
		want.Revision = editRecord(t, store, "r", func(rec *relayer.Record) { rec.Note = []byte(note) }).Revision
		if got := mustGet(t, m, "r").LastChange; !reflect.DeepEqual(got, want) {
			t.Errorf("the note %q is %+v, want %+v", note, got, want)
		}
	}
}

func TestReason_Limits(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	for reason, want := range map[string]string{
		"":                        "",
		strings.Repeat("é", 256):  strings.Repeat("é", 256),
		"\"quotes\" & <angles> ✓": "\"quotes\" & <angles> ✓",
		// A reason quotes what a person pasted. The longest one that grows when it is masked can be
		// stored too.
		"401 of https://user:pw@rpc.example/v2/KEY, see #7": "401 of https://rpc.example/***, see #7",
		"wss://rpc.example/?key=KEY":                        "wss://rpc.example/***",
		"user:pw@rpc.example":                               "rpc.example",
		strings.Repeat("a.b/é ", 42):                        strings.Repeat("a.b/*** ", 42)[:256],
		"  as a header ":                                    "as a header",
	} {
		changed, err := m.Patch(t.Context(), "r", fmt.Appendf(nil, `{"labels":{"n":"%d"}}`, len(reason)), relayer.Reason(reason))
		if err != nil || changed.LastChange.Reason != want || mustGet(t, m, "r").LastChange.Reason != want {
			t.Errorf("%q: stored %v, error %v", reason, changed, err)
		}
	}
	for _, reason := range []string{strings.Repeat("e", 257), "two\nlines", "tab\t", "\xff"} {
		wantFields(t, fieldErrors(t, second(m.Pause(t.Context(), "r", relayer.Reason(reason)))), "change_reason")
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
	replace := func(rec *relayer.Record, old, new string) {
		rec.Document = bytes.Replace(rec.Document, []byte(old), []byte(new), 1)
	}
	var want []string
	for _, c := range []struct {
		id, part string
		change   func(*relayer.Record)
	}{
		{"sound", "", func(*relayer.Record) {}},
		{"moved", "terms", func(r *relayer.Record) {
			r.Terms = slices.Clone(r.Terms)
			r.Terms[slices.Index(r.Terms, "label.team=a")] = "label.team=b"
			slices.Sort(r.Terms)
		}},
		{"less", "terms", func(r *relayer.Record) { r.Terms = r.Terms[1:] }},
		{"more", "terms", func(r *relayer.Record) { r.Terms = append(slices.Clone(r.Terms), "x-unknown=1") }},
		{"hidden", "text", func(r *relayer.Record) { r.Text = "other" }},
		{"claim", "claim", func(r *relayer.Record) { r.Claim = "other" }},
		{"document", "stored document", func(r *relayer.Record) { r.Document = []byte("{") }},
		{"id", "id", func(r *relayer.Record) { replace(r, `"id":"id"`, `"id":"di"`) }},
		{"host", "private part", func(r *relayer.Record) { replace(r, "rpc.example", "evil.example") }},
	} {
		req := withURLs(c.id, "https://rpc.example/own")
		req.SignerID = c.id
		req.Labels = map[string]string{"team": "a"}
		mustCreate(t, m, req)
		if editRecord(t, store, c.id, c.change); c.part != "" {
			want = append(want, c.id+" "+c.part)
		}
	}
	if got := checked(t, m); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
