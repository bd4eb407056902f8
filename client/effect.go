package client

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

// isCreated reports whether the relayer is what the request creates, and nothing else. RPC
// URLs are compared masked, because the relayer has no others. What only a host sets is not
// compared.
func isCreated(req relayer.CreateRequest, current *relayer.Relayer) bool {
	req, err := wire.WithDefaults(req)
	if err != nil {
		return false
	}
	if len(req.CustomRPCURLs) == 0 {
		req.CustomRPCURLs = current.CustomRPCURLs[:0] // an empty list is a missing one
	}
	wanted, err := strictjson.Encode(req)
	if err != nil {
		return false
	}
	stored, err := strictjson.Encode(wire.RequestOf(current))
	return err == nil && bytes.Equal(wanted, stored)
}

// isPatched reports whether a server would accept the body of a patch for the relayer, and
// it would change nothing.
func isPatched(body []byte, current *relayer.Relayer) bool {
	encoded, err := wire.RequestOf(current).MarshalUnmasked()
	if err != nil || !isAccepted(body, encoded) {
		return false
	}
	merged, err := strictjson.MergePatch(encoded, body)
	if err != nil {
		return false
	}
	patched, err := parseRequest(merged)
	return err == nil && isCreated(patched, current)
}

// isAccepted checks the members of a patch by the rules of a create, and that none of
// them is one that cannot be changed. A merge would hide an unknown member that is null.
func isAccepted(body, current []byte) bool {
	patch, isPatch := strictjson.Members(body)
	create, isObject := strictjson.Members(current)
	if !isPatch || !isObject {
		return false
	}
	for _, fixed := range []string{"id", "network", "network_type", "signer_id"} {
		if _, ok := patch[fixed]; ok {
			return false
		}
	}
	maps.Copy(create, patch)
	encoded, err := strictjson.Encode(create)
	if err != nil {
		return false
	}
	_, err = parseRequest(encoded)
	return err == nil
}

func parseRequest(body []byte) (req relayer.CreateRequest, err error) {
	if err := req.UnmarshalJSON(body); err != nil {
		return req, err
	}
	return req, req.Validate(context.Background())
}

// setsRPCURLs reports whether the body sets RPC URLs. The masked URLs of a relayer do not
// show whether they are those of the body.
func setsRPCURLs(body []byte) bool {
	var wanted struct {
		Endpoints json.RawMessage `json:"custom_rpc_urls"`
	}
	if json.Unmarshal(body, &wanted) != nil {
		return true
	}
	text := string(wanted.Endpoints)
	return text != "" && text != "null" && text != "[]"
}
