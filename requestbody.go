package relayer

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// MarshalUnmasked returns the JSON body of the HTTP request that creates the relayer, as
// [Documents.Create] reads it. Unlike every other encoding of the request it
// has the RPC URLs in full: it is for a server, not for a log. It returns a
// [*ValidationError] if a text is not UTF-8.
func (r CreateRequest) MarshalUnmasked() ([]byte, error) {
	body := struct {
		ID             string      `json:"id,omitempty"`
		Name           string      `json:"name"`
		Network        string      `json:"network"`
		NetworkType    NetworkType `json:"network_type"`
		Paused         bool        `json:"paused"`
		SignerID       string      `json:"signer_id"`
		NotificationID string      `json:"notification_id,omitempty"`
		CustomRPCURLs  []fullRPC   `json:"custom_rpc_urls,omitzero"`
		Policy         Policy      `json:"policies,omitempty"`

		Labels map[string]string `json:"labels,omitempty"`
	}{r.ID, r.Name, r.Network, r.NetworkType, r.Paused, r.SignerID, r.NotificationID, fullRPCs(r.CustomRPCURLs), r.Policy, r.Labels}
	if isNil(r.Policy) {
		body.Policy = nil
	}
	return encodeRequest(body)
}

// MarshalUnmasked returns the JSON body of the HTTP request that applies the patch, as
// [Documents.Patch] reads it. Unlike every other encoding of the patch it has
// the RPC URLs in full: it is for a server, not for a log. It returns a
// [*ValidationError] if a text is not UTF-8 or the policy is a nil pointer or map, and
// another error if a value cannot be encoded.
func (p Patch) MarshalUnmasked() ([]byte, error) {
	body := maps.Clone(p)
	if body == nil {
		body = Patch{}
	}
	if err := policyPointerError(body["policies"]); err != nil {
		return nil, err
	}
	if endpoints, ok := body["custom_rpc_urls"].([]RPCConfig); ok {
		body["custom_rpc_urls"] = fullRPCs(endpoints)
	}
	return encodeRequest(map[string]any(body))
}

// policyPointerError rejects what would clear a policy or change it by mistake.
func policyPointerError(policies any) error {
	if isPolicyValue(policies) {
		return invalid("policies", "must be the address of a policy (&policy), a patch of one, or null")
	}
	if isNilValue(policies) {
		return invalid("policies", "must not be empty: only null clears the policy")
	}
	return nil
}

// isPolicyValue reports whether a value is a policy and not a pointer to one.
func isPolicyValue(value any) bool {
	return value != nil && reflect.PointerTo(reflect.TypeOf(value)).Implements(reflect.TypeFor[Policy]()) && reflect.TypeOf(value).Kind() == reflect.Struct
}

// encodeRequest returns no error of the encoder, which may quote a URL.
func encodeRequest(body any) ([]byte, error) {
	encoded, err := strictjson.Encode(body)
	if err != nil {
		return nil, errors.New("relayer: the request has a value that cannot be encoded as JSON")
	}
	// The encoder replaces what is not UTF-8, and masks RPC URLs. It also rejects cycles.
	found := new(problems)
	checkTexts(reflect.ValueOf(body), "", found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return encoded, nil
}

// checkTexts adds a problem for every text of an encoded value that is not UTF-8, and for
// every RPC URL: its encoding lacks secrets, in part without a mark that shows it.
func checkTexts(value reflect.Value, path string, found *problems) {
	if !value.IsValid() || encodesItself(value.Type()) {
		return
	}
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		checkTexts(value.Elem(), path, found)
	case reflect.String:
		if value.Type() == reflect.TypeFor[RPCURL]() {
			found.Add(path, "would be sent masked: custom_rpc_urls must be a list of endpoints as a relayer has it")
		} else if !utf8.ValidString(value.String()) {
			found.Add(path, "must be UTF-8")
		}
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return // encoded as base64
		}
		for i := range value.Len() {
			checkTexts(value.Index(i), fmt.Sprintf("%s[%d]", path, i), found)
		}
	case reflect.Map:
		checkMembers(value, path, found)
	case reflect.Struct:
		for field, member := range value.Fields() {
			if name := jsonName(field); field.IsExported() && name != "-" {
				checkTexts(member, strictjson.Join(path, cmp.Or(name, field.Name)), found)
			}
		}
	}
}

func checkMembers(members reflect.Value, path string, found *problems) {
	if patch, ok := members.Interface().(Patch); ok {
		members = reflect.ValueOf(patch.masked()) // as it is encoded
	}
	keys := members.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if !utf8.ValidString(key.String()) {
			found.Add(path, "must have no member with a name that is not UTF-8")
			continue
		}
		checkTexts(members.MapIndex(key), strictjson.Join(path, key.String()), found)
	}
}

// encodesItself reports whether a type of another package has its own encoding, which
// need not contain its fields.
func encodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() != reflect.TypeFor[Patch]().PkgPath() &&
		(t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]()))
}

// fullRPC is an [RPCConfig] that does not mask its URL.
type fullRPC struct {
	URL    string   `json:"url"`
	Weight *float64 `json:"weight,omitempty"`
}

func fullRPCs(endpoints []RPCConfig) []fullRPC {
	if endpoints == nil {
		return nil
	}
	full := make([]fullRPC, 0, len(endpoints))
	for _, endpoint := range endpoints {
		full = append(full, fullRPC{endpoint.URL.Unmasked(), endpoint.Weight})
	}
	return full
}

// masked returns the patch without the RPC URLs.
func (p Patch) masked() map[string]any {
	masked := maps.Clone(map[string]any(p))
	if masked["custom_rpc_urls"] != nil {
		masked["custom_rpc_urls"] = "***"
	}
	return masked
}

// Format prints the JSON form of the patch without the RPC URLs, for every verb.
func (p Patch) Format(state fmt.State, _ rune) { strictjson.Print(state, p.masked()) }

// MarshalJSON encodes the patch without the RPC URLs, for logs.
func (p Patch) MarshalJSON() ([]byte, error) { return strictjson.Encode(p.masked()) }
