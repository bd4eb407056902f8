package relayer

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
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
	if patch, ok := members.Interface().(interface{ masked() map[string]any }); ok {
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
	return t.PkgPath() != reflect.TypeFor[CreateRequest]().PkgPath() &&
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
