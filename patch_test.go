package relayer_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

func TestPatch_FullURLs(t *testing.T) {
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
			return second(m.Documents().Patch(ctx, "evm", []byte(`{"name":"m","policies":{"min_balance":1}}`)))
		},
		func() error { return second(m.Disable(ctx, "evm", relayer.DisabledReason{Type: "x"})) },
		func() error { return second(m.Documents().Patch(ctx, "evm", []byte(`{"policies":null}`))) },
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
	// A new key is not visible in a response, and must be stored.
	swap := func(r *relayer.Relayer) error { r.CustomRPCURLs[0].URL = "https://rpc.example/v2/newkey"; return nil }
	if _, err := m.Update(ctx, "evm", swap); err != nil {
		t.Fatal(err)
	}
	expect("https://rpc.example/v2/newkey", other)
	if _, err := m.Documents().Patch(ctx, "evm", []byte(`{"custom_rpc_urls":[{"url":"`+other+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	expect(other)
	for _, mask := range []string{"wss://other.example/***", "https://elsewhere.example/***"} {
		if _, err := m.Documents().Patch(ctx, "evm", []byte(`{"custom_rpc_urls":[{"url":"`+mask+`"}]}`)); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s: %v", mask, err)
		}
		expect(other)
	}
	if _, err := m.Documents().Patch(ctx, "evm", []byte(`{"custom_rpc_urls":null}`)); err != nil {
		t.Fatal(err)
	}
	expect()
}

// A stored URL that equals the mask of another must not permit that mask.
func TestPatch_MaskedURLs(t *testing.T) {
	const secret, bare = "https://u:SECRET@h.example/", "https://h.example/"
	for name, c := range map[string]struct {
		stored   []relayer.RPCURL
		patched  string
		rejected string // the field, or "" if the patch is valid
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
			_, err = m.Documents().Patch(t.Context(), "r", []byte(`{"custom_rpc_urls":`+c.patched+`}`))
			if c.rejected == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var invalid *relayer.ValidationError
			if !errors.As(err, &invalid) || invalid.Fields[0].Field != c.rejected {
				t.Errorf("got %v, want a problem of %s", err, c.rejected)
			}
			if after := mustGet(t, m, "r"); !reflect.DeepEqual(after, before) {
				t.Errorf("was %v\nis  %v", before, after)
			}
		})
	}
}

func TestPatch_FixedAndUnknownMembers(t *testing.T) {
	m := registry(t)
	_, err := m.Documents().Patch(t.Context(), "evm", []byte(`{"id":"x","network":"y","network_type":null,"signer_id":"s-evm","address":1,`+
		`"system_disabled":false,"disabled_reason":{},"revision":1,"policies":{"id":1}}`))
	want := []relayer.FieldError{
		{Field: "id", Message: "cannot be changed", Code: "immutable"},
		{Field: "network", Message: "cannot be changed", Code: "immutable"},
		{Field: "network_type", Message: "cannot be changed", Code: "immutable"},
		{Field: "signer_id", Message: "cannot be changed", Code: "immutable"},
		{Field: "address", Message: "cannot be changed", Code: "immutable"},
		{Field: "system_disabled", Message: "cannot be changed", Code: "immutable"},
		{Field: "disabled_reason", Message: "cannot be changed", Code: "immutable"},
		{Field: "revision", Message: "is not a known field", Code: "unknown_field"},
		{Field: "policies.id", Message: "is not a known field", Code: "unknown_field"},
	}
	if got := fieldErrors(t, err); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// No call stores a masked URL. One that is stored already does not prevent other changes.
func TestMaskedURL_NeverStored(t *testing.T) {
	m := registry(t)
	for _, masked := range []relayer.RPCURL{
		"https://x.example/***", "wss://x.example:8545/***", "https://x.example/v2/***", "https://x.example/%2A%2A%2A", "https://x.example/***?", "https://x.example/***#f",
		"https://x.example/***?k=v", "https://x.example?***", "https://***@x.example/v2/KEY", "https://***.eth.x.example", "https://***.eth.x.example./v2/KEY", "https://a.***.x.example:8545/", "https://***:***@x.example", mustGet(t, m, "evm").CustomRPCURLs[0].URL + "/***",
	} {
		if !masked.IsMasked() {
			t.Errorf("%s is not taken for a mask", masked.Unmasked())
		}
		endpoints := []relayer.RPCConfig{{URL: masked}}
		list := `"custom_rpc_urls":[{"url":` + treeText(t, masked.Unmasked()) + `}]`
		req := minimal("new")
		req.CustomRPCURLs = endpoints
		for call, err := range map[string]error{
			"Create":         second(m.Create(t.Context(), req)),
			"CreateDocument": second(m.Documents().Create(t.Context(), []byte(evmBody(list)))),
			"Patch":          second(m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"custom_rpc_urls": endpoints}))),
			"PatchDocument":  second(m.Documents().Patch(t.Context(), "evm", []byte("{"+list+"}"))),
			"Update":         second(m.Update(t.Context(), "evm", func(r *relayer.Relayer) error { r.CustomRPCURLs = endpoints; return nil })),
		} {
			problems := fieldErrors(t, err)
			if problems[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must be the full URL, not the masked one that responses show"}) {
				t.Errorf("%s of %s: %+v", call, masked.Unmasked(), problems)
			}
		}
	}
	for _, full := range []relayer.RPCURL{"https://x.example", "https://x.example/", "https://x.example/**", "https://**.x.example", "https://a***.x.example", "https://x.example/a***", "https://x.example?a=***", "***x://"} {
		if full.IsMasked() {
			t.Errorf("%s is taken for a mask", full.Unmasked())
		}
	}
	if !relayer.RPCURL(relayer.RPCURL("no URL").String()).IsMasked() {
		t.Error("the mask of text that is no URL is not recognized")
	}
}

// The mask of a URL with user information has no mark: equivalent URLs are masks, and all
// others are full URLs.
func TestMaskedURL_WithoutMark(t *testing.T) {
	m := newManager(t)
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://user:KEY@rpc.example/"}}
	mustCreate(t, m, req)
	for url, isMask := range map[relayer.RPCURL]bool{
		"https://rpc.example": true, "https://rpc.example/": true, "https://RPC.example:443": true,
		"https://rpc.example/?key=KEY": false, "https://rpc.example/#f": false, "https://rpc.example/v2": false,
		"https://other:KEY@rpc.example/": false, "https://rpc.example:8545/": false, "http://rpc.example:443/": false,
	} {
		_, err := m.Patch(t.Context(), "a", patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: url}}}), relayer.DryRun())
		if errors.Is(err, relayer.ErrInvalid) != isMask || err != nil != isMask {
			t.Errorf("%s: error is %v, want one: %t", url.Unmasked(), err, isMask)
		}
	}
}

func TestMaskedURL_StoredBefore(t *testing.T) {
	store := memory.New()
	_, err := store.Create(t.Context(), relayer.Record{ID: "a",
		Document: []byte(evmBody(`"id":"a"`, `"custom_rpc_urls":[{"url":"https://h.example/***","weight":1}]`, `"policies":{}`)),
		Private:  []byte(`{"custom_rpc_urls":["https://h.example/***"]}`)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"name":"m"}`, `{"custom_rpc_urls":[{"url":"https://h.example/***","weight":2}]}`} {
		if _, err := m.Documents().Patch(t.Context(), "a", []byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	twice := `{"custom_rpc_urls":[{"url":"https://h.example/***"},{"url":"https://h.example/***"}]}`
	wantFields(t, fieldErrors(t, second(m.Documents().Patch(t.Context(), "a", []byte(twice)))), "custom_rpc_urls[1].url")
}

// Unset, null and a value are three different things.
func TestPatch_UnsetNullAndValue(t *testing.T) {
	m := registry(t)
	policy := &relayer.EVMPolicy{GasPriceCap: new(relayer.MustParseAmount("1")), MinBalance: new(relayer.MustParseAmount("2")), IncludeRevertData: new(true)}
	before, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"notification_id": "slack", "policies": policy}))
	if err != nil {
		t.Fatal(err)
	}
	after, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{
		"notification_id": nil,
		"paused":          !before.Paused,
		"policies":        map[string]any{"gas_price_cap": nil, "min_balance": relayer.MustParseAmount("5")},
	}), relayer.IfRevision(before.Revision))
	if err != nil {
		t.Fatal(err)
	}
	want := *before
	want.NotificationID, want.Paused, want.Revision = "", !before.Paused, after.Revision
	changed := *policy
	changed.GasPriceCap, changed.MinBalance = nil, new(relayer.MustParseAmount("5"))
	want.Policy, want.LastChange, want.PausedBy = &changed, after.LastChange, after.PausedBy
	if !reflect.DeepEqual(after, &want) || after.Revision <= before.Revision {
		t.Errorf("want %v\ngot  %v", &want, after)
	}
	if got := string(after.CustomRPCURLs[0].URL); got != string(before.CustomRPCURLs[0].URL) {
		t.Errorf("the RPC URL was changed to %s", got)
	}
	if _, err := m.Patch(t.Context(), "evm", patchtest.JSON(map[string]any{"paused": true}), relayer.IfRevision(before.Revision)); !errors.Is(err, relayer.ErrConflict) {
		t.Errorf("a patch of an old revision: %v", err)
	}
	if _, err := m.Patch(t.Context(), "unknown", nil); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("a patch of an unknown relayer: %v", err)
	}
}

// A patch of paused alone is a pause, however its JSON is written.
func TestPatchDocument_Action(t *testing.T) {
	tests := map[string]relayer.Action{
		`{"paused":true}`:                  relayer.ActionPause,
		" { \"paused\" : false } ":         relayer.ActionResume,
		`{"pa\u0075sed":true}`:             relayer.ActionPause,
		`{"paused":true,"paused":true}`:    relayer.ActionUpdate,
		`{"paused":true,"name":"renamed"}`: relayer.ActionUpdate,
		`{"Paused":true}`:                  relayer.ActionUpdate,
		`{"paused":true} {}`:               relayer.ActionUpdate,
		`{"paused":"true"}`:                relayer.ActionUpdate,
		`{}`:                               relayer.ActionUpdate,
	}
	for body, want := range tests {
		var got relayer.Action
		m := newManager(t, relayer.WithObserver(func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
			got = operation.Action
			return ctx, nil
		}))
		mustCreate(t, m, minimal("a"))
		_, _ = m.Documents().Patch(t.Context(), "a", []byte(body))
		if got != want {
			t.Errorf("%s is %s, want %s", body, got, want)
		}
	}
}

// A Manager does not store text that is not the text of the patch.
func TestPatch_NotUTF8(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("a"))
	_, err := m.Patch(t.Context(), "a", []byte("{\"name\":\"a\xff\"}"))
	if problem, ok := errors.AsType[*relayer.ValidationError](err); !ok || problem.Fields[0] != (relayer.FieldError{Message: "the body must be UTF-8"}) {
		t.Errorf("error %v", err)
	}
	if r := mustGet(t, m, "a"); r.Name != "n" {
		t.Errorf("stored %v", r)
	}
}
