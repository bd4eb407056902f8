// Package patchtest encodes merge patches for tests.
package patchtest

import (
	"encoding/json"

	"github.com/go-relayer/relayer"
)

// JSON returns the JSON of a merge patch, with RPC URLs in full. It panics if a value cannot be
// encoded.
func JSON(members map[string]any) []byte {
	if endpoints, ok := members["custom_rpc_urls"].([]relayer.RPCConfig); ok {
		full := make([]map[string]any, len(endpoints))
		for i, endpoint := range endpoints {
			headers := make(map[string]string)
			for name, value := range endpoint.Headers {
				headers[name] = value.Unmasked()
			}
			full[i] = map[string]any{"url": endpoint.URL.Unmasked(), "weight": endpoint.Weight, "headers": headers}
		}
		members["custom_rpc_urls"] = full
	}
	encoded, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return encoded
}
