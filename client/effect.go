package client

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// isCreated reports whether the relayer is what the request creates, and nothing else. RPC
// URLs are compared masked, because the relayer has no others. What only a host sets is not
// compared.
func isCreated(req relayer.CreateRequest, current *relayer.Relayer) bool {
	req = req.WithDefaults()
	wanted := relayer.Relayer{
		ID: req.ID, Name: req.Name, Network: req.Network, NetworkType: req.NetworkType, Paused: req.Paused, SignerID: req.SignerID,
		NotificationID: req.NotificationID, CustomRPCURLs: req.CustomRPCURLs, Policies: req.Policies,
		Address: current.Address, SystemDisabled: current.SystemDisabled, DisabledReason: current.DisabledReason, Revision: current.Revision,
	}
	if len(req.CustomRPCURLs) == 0 {
		wanted.CustomRPCURLs = current.CustomRPCURLs[:0] // an empty list is a missing one
	}
	wantedJSON, err := strictjson.Encode(wanted)
	if err != nil {
		return false
	}
	currentJSON, err := strictjson.Encode(current)
	return err == nil && bytes.Equal(wantedJSON, currentJSON)
}

// isPatched reports whether the relayer has all that the body of a patch sets. A body that
// a server rejects has no effect, even if the relayer has its values.
func isPatched(body []byte, current *relayer.Relayer) bool {
	var wanted, stored map[string]any
	encoded, err := json.Marshal(current)
	if err != nil || decodeNumbers(body, &wanted) != nil || decodeNumbers(encoded, &stored) != nil {
		return false
	}
	for _, members := range []map[string]any{wanted, stored} {
		if endpoints, ok := members["custom_rpc_urls"].([]any); ok && len(endpoints) == 0 {
			members["custom_rpc_urls"] = nil // an empty list is a missing one
		}
	}
	if current.NetworkType == relayer.Solana {
		dropDefault(stored, wanted)
	}
	normalizePolicies(stored, wanted)
	return covers(stored, wanted) && isValidPatch(body, current)
}

// isValidPatch checks the members of a patch by the rules of a create, and that none of
// them is one that cannot be changed.
func isValidPatch(body []byte, current *relayer.Relayer) bool {
	create := map[string]any{"name": current.Name, "paused": current.Paused}
	if decodeNumbers(body, &create) != nil {
		return false
	}
	for member, value := range map[string]any{"id": current.ID, "network": current.Network, "network_type": current.NetworkType, "signer_id": current.SignerID} {
		if _, ok := create[member]; ok {
			return false
		}
		create[member] = value
	}
	encoded, err := json.Marshal(create)
	if err != nil {
		return false
	}
	_, err = relayer.ParseCreateRequest(encoded)
	return err == nil
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

// decodeNumbers decodes JSON without rounding its numbers.
func decodeNumbers(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// normalizePolicies treats empty stored policies like missing ones, as servers do.
func normalizePolicies(stored, wanted map[string]any) {
	policies, _ := stored["policies"].(map[string]any)
	stored["policies"] = policies
	if len(policies) == 0 && wanted["policies"] == nil {
		stored["policies"] = nil
	}
}

// dropDefault removes the strategy that a server sets if a Solana relayer has none.
func dropDefault(stored, wanted map[string]any) {
	const member = "fee_payment_strategy"
	requested, _ := wanted["policies"].(map[string]any)
	policies, _ := stored["policies"].(map[string]any)
	if requested[member] == nil && policies[member] == string(relayer.FeePaidByUser) {
		delete(policies, member)
	}
}

// covers reports whether the stored value has all that is wanted. Objects are merged, so
// that a stored one may have more members. Lists are replaced, so that they must be
// equal. A wanted null matches only a missing value.
func covers(stored, wanted any) bool {
	members, ok := wanted.(map[string]any)
	if !ok {
		return isSame(stored, wanted)
	}
	storedMembers, ok := stored.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range members {
		if !covers(storedMembers[name], value) {
			return false
		}
	}
	return true
}

// isSame compares values exactly. A member that is null counts as missing.
func isSame(stored, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		members, ok := stored.(map[string]any)
		return ok && hasSameMembers(members, wanted)
	case []any:
		list, ok := stored.([]any)
		return ok && slices.EqualFunc(list, wanted, isSame)
	default:
		return isEqual(stored, wanted)
	}
}

func hasSameMembers(stored, wanted map[string]any) bool {
	for _, members := range []map[string]any{stored, wanted} {
		for name := range members {
			if !isSame(stored[name], wanted[name]) {
				return false
			}
		}
	}
	return true
}

// isEqual compares texts, booleans, numbers and null. An amount may be text in a request.
func isEqual(stored, wanted any) bool {
	number, ok := stored.(json.Number)
	if !ok {
		return stored == wanted
	}
	switch wanted := wanted.(type) {
	case json.Number:
		return isSameNumber(string(number), string(wanted))
	case string:
		return string(number) == wanted
	default:
		return false
	}
}

func isSameNumber(a, b string) bool {
	wholeA, problemA := strictjson.Whole(a)
	wholeB, problemB := strictjson.Whole(b)
	if problemA == "" && problemB == "" {
		return wholeA == wholeB
	}
	floatA, errA := strconv.ParseFloat(a, 64)
	floatB, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && floatA == floatB
}
