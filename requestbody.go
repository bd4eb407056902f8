package relayer

import (
	"errors"
	"fmt"
	"maps"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// RequestBody returns the JSON body of the HTTP request that creates the relayer, as
// [Manager.CreateDocument] reads it. Unlike every other encoding of the request it
// has the RPC URLs in full: it is for a server, not for a log.
func (r CreateRequest) RequestBody() ([]byte, error) {
	body := struct {
		ID             string      `json:"id,omitempty"`
		Name           string      `json:"name"`
		Network        string      `json:"network"`
		NetworkType    NetworkType `json:"network_type"`
		Paused         bool        `json:"paused"`
		SignerID       string      `json:"signer_id"`
		NotificationID string      `json:"notification_id,omitempty"`
		CustomRPCURLs  []fullRPC   `json:"custom_rpc_urls,omitzero"`
		Policies       Policy      `json:"policies,omitempty"`
	}{r.ID, r.Name, r.Network, r.NetworkType, r.Paused, r.SignerID, r.NotificationID, fullRPCs(r.CustomRPCURLs), r.Policies}
	if isNil(r.Policies) {
		body.Policies = nil
	}
	return encodeRequest(body)
}

// RequestBody returns the JSON body of the HTTP request that applies the patch, as
// [Manager.PatchDocument] reads it. Unlike every other encoding of the patch it has
// the RPC URLs in full: it is for a server, not for a log.
func (p Patch) RequestBody() ([]byte, error) {
	body := maps.Clone(p)
	if body == nil {
		body = Patch{}
	}
	if endpoints, ok := body["custom_rpc_urls"].([]RPCConfig); ok {
		body["custom_rpc_urls"] = fullRPCs(endpoints)
	}
	return encodeRequest(map[string]any(body))
}

// encodeRequest returns no error of the encoder, which may quote a URL.
func encodeRequest(body any) ([]byte, error) {
	encoded, err := strictjson.Encode(body)
	if err != nil {
		return nil, errors.New("relayer: the request has a value that cannot be encoded as JSON")
	}
	return encoded, nil
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
		full = append(full, fullRPC{string(endpoint.URL), endpoint.Weight})
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
func (p Patch) Format(state fmt.State, _ rune) { printJSON(state, p.masked()) }

// MarshalJSON encodes the patch without the RPC URLs, for logs.
func (p Patch) MarshalJSON() ([]byte, error) { return strictjson.Encode(p.masked()) }
