package client

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
)

// isInEffect reports whether the relayer has all that the body of a create or of a patch
// sets. RPC URLs are compared masked, because the relayer has no others.
func isInEffect(body []byte, current *relayer.Relayer) bool {
	encoded, err := json.Marshal(current)
	if err != nil {
		return false
	}
	var wanted, stored map[string]any
	if decodeNumbers(body, &wanted) != nil || decodeNumbers(encoded, &stored) != nil {
		return false
	}
	maskURLs(wanted)
	if current.NetworkType == relayer.Solana {
		dropDefault(stored, wanted)
	}
	return covers(stored, wanted)
}

// decodeNumbers decodes JSON without rounding its numbers.
func decodeNumbers(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

func maskURLs(body map[string]any) {
	endpoints, _ := body["custom_rpc_urls"].([]any)
	for _, endpoint := range endpoints {
		if members, ok := endpoint.(map[string]any); ok {
			full, _ := members["url"].(string)
			members["url"] = relayer.RPCURL(full).String()
		}
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

// covers reports whether the stored value has all that is wanted. It may have more:
// defaults. A wanted null matches a missing value and an empty object.
func covers(stored, wanted any) bool {
	switch wanted := wanted.(type) {
	case nil:
		return isEmpty(stored)
	case map[string]any:
		return coversObject(stored, wanted)
	case []any:
		return coversList(stored, wanted)
	default:
		return isEqual(stored, wanted)
	}
}

func isEmpty(stored any) bool {
	switch stored := stored.(type) {
	case nil:
		return true
	case map[string]any:
		return len(stored) == 0
	default:
		return false
	}
}

func coversObject(stored any, wanted map[string]any) bool {
	members, ok := stored.(map[string]any)
	if !ok && stored != nil {
		return false
	}
	for name, value := range wanted {
		if !covers(members[name], value) {
			return false
		}
	}
	return true
}

func coversList(stored any, wanted []any) bool {
	list, ok := stored.([]any)
	if !ok && stored != nil || len(list) != len(wanted) {
		return false
	}
	for i := range wanted {
		if !covers(list[i], wanted[i]) {
			return false
		}
	}
	return true
}

// isEqual compares texts, booleans and numbers. An amount may be text in a request.
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
