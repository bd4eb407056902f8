package relayer

import (
	"errors"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// MarshalUnmasked returns the JSON body of the HTTP request that creates the relayer, as
// [Documents.Create] reads it. Unlike every other encoding of the request it
// has the RPC URLs in full: it is for a server, not for a log. It returns a
// [*ValidationError] if a text is not UTF-8.
func (r CreateRequest) MarshalUnmasked() ([]byte, error) {
	if isNil(r.Policy) {
		r.Policy = nil
	}
	masked, err := strictjson.Encode(r)
	if err != nil {
		// The error of the encoder may quote a URL.
		return nil, errors.New("relayer: the request has a value that cannot be encoded as JSON")
	}
	urls, err := strictjson.Encode(fullRPCs(r.CustomRPCURLs))
	if err != nil {
		return nil, errors.New("relayer: the request has a weight that cannot be encoded as JSON")
	}
	encoded := strictjson.ReplaceMember(masked, urlsMember, func([]byte) []byte { return urls })
	found := new(problems)
	for _, path := range strictjson.NotUTF8(encoded) {
		found.Add(path, "must be UTF-8")
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return encoded, nil
}

// fullRPC is an [RPCConfig] that does not mask its URL.
type fullRPC struct {
	URL    string   `json:"url"`
	Weight *float64 `json:"weight,omitempty"`
}

func fullRPCs(endpoints []RPCConfig) []fullRPC {
	full := make([]fullRPC, 0, len(endpoints))
	for _, endpoint := range endpoints {
		full = append(full, fullRPC{endpoint.URL.Unmasked(), endpoint.Weight})
	}
	return full
}
