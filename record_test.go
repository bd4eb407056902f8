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
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// Masked URLs without the full ones must not be returned as if they were full.
func TestGet_PrivatePartMissing(t *testing.T) {
	store := memory.New()
	_, err := store.Create(context.Background(), relayer.Record{ID: "a",
		Document: []byte(`{"id":"a","network_type":"evm","custom_rpc_urls":[{"url":"https://a.example/***","weight":1}],"policies":{}}`)})
	if err != nil {
		t.Fatal(err)
	}
	m, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := m.Get(context.Background(), "a"); err == nil {
		t.Errorf("the host gets %s for the whole URL", string(r.CustomRPCURLs[0].URL))
	}
}

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
	if got, want := fmt.Sprintf("%+v", rec), `{ID:a Revision:7 Sequence:0 Claim:c Terms:[paused=true] Text: Document:{"id":"a"} Private:*** Note:}`; got != want {
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

// leftoverStore is a store that returns a record with every error.
type leftoverStore struct{ relayer.Store }

var leftover = relayer.Record{ID: "leftover", Revision: 99, Document: []byte(`{"leftover":true}`)}

func (leftoverStore) Get(context.Context, string) (relayer.Record, error) {
	return leftover, relayer.ErrNotFound
}

func (leftoverStore) List(context.Context, relayer.StoreQuery) (relayer.Listing, error) {
	return relayer.Listing{Records: []relayer.Record{leftover}, Total: 99}, relayer.ErrUnavailable
}

func (leftoverStore) Create(context.Context, relayer.Record) (relayer.Record, error) {
	return leftover, relayer.ErrExists
}

// leftoverUpdates is a store that returns a record with the error of an update.
type leftoverUpdates struct{ relayer.Store }

func (leftoverUpdates) Update(context.Context, relayer.Record) (relayer.Record, error) {
	return leftover, relayer.ErrUnavailable
}

// A record that a store returns with an error is ignored.
func TestDocuments_RecordWithError(t *testing.T) {
	m, err := relayer.New(leftoverStore{memory.New()})
	if err != nil {
		t.Fatal(err)
	}
	document, err := m.Documents().Get(t.Context(), "a")
	if !reflect.DeepEqual(document, relayer.Document{}) || !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("GetDocument: %v, error %v", document, err)
	}
	page, err := listDocuments(t.Context(), m, relayer.ListQuery{})
	if page != nil || !errors.Is(err, relayer.ErrUnavailable) {
		t.Errorf("List: %+v, error %v", page, err)
	}
	document, err = m.Documents().Create(t.Context(), []byte(evmBody()))
	if !reflect.DeepEqual(document, relayer.Document{}) || !errors.Is(err, relayer.ErrExists) {
		t.Errorf("CreateDocument: %v, error %v", document, err)
	}

	store := memory.New()
	mustCreate(t, managerOf(t, store), minimal("a"))
	m = managerOf(t, leftoverUpdates{store})
	for patch, c := range map[string]struct {
		options []relayer.WriteOption
		want    error
	}{
		`{"name":"new"}`: {want: relayer.ErrUnavailable},
		`{}`:             {[]relayer.WriteOption{relayer.IfRevision(99)}, relayer.ErrConflict},
	} {
		document, err := m.Documents().Patch(t.Context(), "a", []byte(patch), c.options...)
		if !reflect.DeepEqual(document, relayer.Document{}) || !errors.Is(err, c.want) {
			t.Errorf("PatchDocument of %s: %v, error %v", patch, document, err)
		}
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

// A Go client decodes the document of each network, with masked URLs, and encodes it again.
func TestRelayer_JSON(t *testing.T) {
	for _, full := range fullRelayers {
		m := newFullManager(t)
		mustCreateDocument(t, m, full.request)
		want, err := m.Get(t.Context(), "full-"+string(full.networkType))
		if err != nil {
			t.Fatal(err)
		}
		for i, endpoint := range want.CustomRPCURLs {
			want.CustomRPCURLs[i].URL = relayer.RPCURL(endpoint.URL.String())
		}
		want.Revision, want.LastChange, want.PausedBy = 0, relayer.ChangeInfo{}, relayer.ChangeInfo{}
		var got relayer.Relayer
		if err := json.Unmarshal([]byte(full.document), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, *want) {
			t.Errorf("%s: decoded %+v, want %+v", full.networkType, got, *want)
		}
		encoded, err := json.Marshal(got)
		if err != nil || !reflect.DeepEqual(parseTree(t, string(encoded)), parseTree(t, full.document)) {
			t.Errorf("encoded %s, %v\nwant %s", encoded, err, full.document)
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
