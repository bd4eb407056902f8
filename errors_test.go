package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func TestValidationError_Text(t *testing.T) {
	err := &relayer.ValidationError{Fields: []relayer.FieldError{{Message: "the body is wrong"}, {Field: "name", Message: "is required"}, {Field: " x", Message: "is unknown"}}}
	if want := "invalid relayer: the body is wrong; name is required;  x is unknown"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	// A name in a request must not forge a line of a log.
	_, forged := newManager(t).Documents().Create(t.Context(), []byte(evmBody(`"a\nb\u001b[31m":1`)))
	if forged == nil || strings.ContainsAny(forged.Error(), "\n\x1b") {
		t.Errorf("error text %q", forged)
	}
}

// Errors name the operation and the ID, and match what they wrap.
func TestError_Text(t *testing.T) {
	ctx := t.Context()
	m := registry(t, refusing(relayer.ActionDelete, errors.New("queue is out of reach: https://queue.example/SECRET")))
	closed := managerOf(t, failingAfter(memory.New(), 0))
	long := strings.Repeat("é", 64)
	rename := func(r *relayer.Relayer) error { r.Name = "new"; return nil }
	for _, test := range []struct {
		err, is error
		want    string
	}{
		{second(m.Get(ctx, "treasury")), relayer.ErrNotFound, "relayer: get treasury: relayer not found"},
		{second(m.Documents().Get(ctx, "treasury")), relayer.ErrNotFound, "relayer: get treasury: relayer not found"},
		{second(m.RPCURLs(ctx, "treasury")), relayer.ErrNotFound, "relayer: reveal treasury: relayer not found"},
		{second(m.Update(ctx, "evm", rename, relayer.IfRevision(99))), relayer.ErrConflict, "relayer: update evm: relayer was changed by another writer"},
		{second(m.Update(ctx, "evm", func(*relayer.Relayer) error { return context.Canceled })), context.Canceled, "relayer: update evm: context canceled"},
		{second(m.Patch(ctx, "evm", []byte(`{"name":`))), relayer.ErrInvalid, "relayer: update evm: invalid relayer: the body must be valid JSON: the error is at or before line 1, column 8"},
		{second(m.Patch(ctx, "evm", []byte("{\"name\":\"a\xff\"}"))), relayer.ErrInvalid, "relayer: update evm: invalid relayer: the body must be UTF-8"},
		{second(m.Patch(ctx, "treasury", []byte(`{"paused":true}`))), relayer.ErrNotFound, "relayer: pause treasury: relayer not found"},
		{second(m.Documents().Patch(ctx, "evm", []byte(`{"name":""}`))), relayer.ErrInvalid, "relayer: update evm: invalid relayer: name must not be empty"},
		{second(m.Resume(ctx, "evm", relayer.IfRevision(0))), relayer.ErrNoRevision, "relayer: resume evm: relayer has no revision"},
		{second(m.Pause(ctx, "evm", relayer.WriteOption{})), nil, "relayer: pause evm: write option is empty"},
		{m.Delete(ctx, "evm"), nil, "relayer: delete evm: admission: queue is out of reach: https://queue.example/***"},
		{second(m.Create(ctx, minimal("evm"))), relayer.ErrExists, "relayer: create evm: relayer already exists"},
		{second(m.Documents().Create(ctx, []byte(evmBody(`"id":"evm"`)))), relayer.ErrExists, "relayer: create evm: relayer already exists"},
		{second(m.Documents().Create(ctx, []byte(`{`))), relayer.ErrInvalid, "relayer: create: invalid relayer: the body must be valid JSON: the error is at or before line 1, column 1"},
		{second(m.List(ctx, relayer.ListQuery{Page: -1})), relayer.ErrInvalid, "relayer: list: invalid relayer: page must be 0 or more"},
		{second(closed.List(ctx, relayer.ListQuery{})), relayer.ErrUnavailable, "relayer: list: disk on fire: store unavailable"},
		{second(closed.Get(ctx, "a")), relayer.ErrUnavailable, "relayer: get a: disk on fire: store unavailable"},
		{firstError(closed.All(ctx, relayer.Selector{})), relayer.ErrUnavailable, "relayer: list: disk on fire: store unavailable"},
		{second(closed.List(ctx, relayer.ListQuery{Selector: mustParse(t, "search=a")})), relayer.ErrUnavailable, "relayer: list: disk on fire: store unavailable"},
		{firstError(m.Watch(ctx, relayer.WatchQuery{After: "unknown"})), relayer.ErrGap, "relayer: watch: changes were dropped: read all relayers again"},
		{second(m.Get(ctx, "")), relayer.ErrNotFound, "relayer: get: relayer not found"},
		{second(m.Get(ctx, "a b\n\x1b")), relayer.ErrNotFound, `relayer: get "a b\n\x1b": relayer not found`},
		{second(m.Pause(ctx, "x"+long)), relayer.ErrNotFound, `relayer: pause "x` + long[:62] + `": relayer not found`},
	} {
		if test.err == nil || test.err.Error() != test.want || test.is != nil && !errors.Is(test.err, test.is) {
			t.Errorf("error %q, want %q that matches %v", test.err, test.want, test.is)
		}
	}
}

// TestFieldError_Code: the codes of problems of a request in JSON and in Go.
func TestFieldError_Code(t *testing.T) {
	body := `{"id":"a","id":"b","name":5,"network":"","network_type":"evm","paused":null,"unknown":1,"labels":{"k":5},` +
		`"custom_rpc_urls":[{"url":"x","weight":101}],"policies":{"min_balance":-1,"whitelist_receivers":[true]}}`
	want := map[string]string{
		"id": "duplicate", "name": "wrong_type", "network": "required", "paused": "required", "unknown": "unknown_field", "labels.k": "wrong_type",
		"signer_id": "required", "custom_rpc_urls[0].url": "", "custom_rpc_urls[0].weight": "out_of_range",
		"policies.min_balance": "out_of_range", "policies.whitelist_receivers[0]": "wrong_type",
	}
	codes := make(map[string]string)
	for _, problem := range problemsOf(t, body) {
		codes[problem.Field] = problem.Code
	}
	if !maps.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	m := registry(t)
	other := minimal("a")
	other.NetworkType = "other"
	for _, c := range []struct {
		field, code string
		err         error
	}{
		{"policies", "wrong_type", second(m.Patch(t.Context(), "evm", []byte(`{"policies":[]}`)))},
		{"policies.min_balance", "wrong_type", second(m.Patch(t.Context(), "evm", []byte(`{"policies":{"min_balance":"-1"}}`)))},
		{"policies.min_balance", "out_of_range", second(m.Patch(t.Context(), "evm", []byte(`{"policies":{"min_balance":"`+overMaxAmount+`"}}`)))},
		{"page", "out_of_range", second(m.List(t.Context(), relayer.ListQuery{Page: -1}))},
		{"type", "required", second(m.Disable(t.Context(), "evm", relayer.DisabledReason{}))},
		{"colour", "unknown_field", relayer.Selector{}.Where("colour", "red").Err()},
		{"paused", "not_allowed", relayer.Selector{}.Where("paused", "maybe").Err()},
		{"network_type", "not_allowed", second(m.Create(t.Context(), other))},
		{"signer_id", "immutable", second(m.Patch(t.Context(), "evm", []byte(`{"signer_id":"t"}`)))},
	} {
		if got := fieldErrors(t, c.err); len(got) != 1 || got[0].Field != c.field || got[0].Code != c.code {
			t.Errorf("problems %+v, want %s of %s", got, c.code, c.field)
		}
	}
	encoded, err := json.Marshal(fieldErrors(t, second(m.Patch(t.Context(), "evm", []byte(`{"id":"t"}`)))))
	if err != nil || string(encoded) != `[{"field":"id","message":"cannot be changed"}]` {
		t.Errorf("encoded as %s, %v", encoded, err)
	}
}

// The error of a host's store may have no cause.
func TestCorruptError_NoCause(t *testing.T) {
	err := &relayer.CorruptError{ID: "a"}
	if !errors.Is(err, relayer.ErrCorrupt) || err.Error() != relayer.ErrCorrupt.Error() {
		t.Errorf("the error is %v", err)
	}
}
