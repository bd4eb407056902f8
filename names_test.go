package relayer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// objectsOf returns the paths of all objects of a request, the whole of it as
// "".
func objectsOf(t *testing.T, request string) []string {
	t.Helper()
	objects := []string{""}
	walkTree(parseTree(t, request), "", func(path string, value any) {
		if _, ok := value.(map[string]any); ok {
			objects = append(objects, path)
		}
	})
	return objects
}

// below returns the path of a member of the object at path.
func below(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// withMember writes one more member into the object at path, in front of the
// others and even where it has a member of that name.
func withMember(t *testing.T, request, path, member string) string {
	t.Helper()
	const mark = `"\u0000":0`
	tree := parseTree(t, request)
	walkTree(map[string]any{"": tree}, "", func(at string, value any) {
		if object, ok := value.(map[string]any); ok && at == path {
			object["\x00"] = 0
		}
	})
	marked := treeText(t, tree)
	if strings.Count(marked, mark) != 1 {
		t.Fatalf("%q is in %s %d times", path, marked, strings.Count(marked, mark))
	}
	return strings.Replace(marked, mark, member, 1)
}

// TestUnknownNames puts names that nobody knows into every object.
func TestUnknownNames(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range objectsOf(t, full.request) {
			for _, name := range []string{"unknown", "Revision", "x-y", "é", "system disabled", "a.b"} {
				for _, value := range []string{`null`, `1`, `{"a":[{"a":1,"a":1}]}`} {
					text := withMember(t, full.request, path, fmt.Sprintf("%q:%s", name, value))
					problems := problemsOf(t, text)
					wantFields(t, problems, below(path, name))
				}
			}
		}
	}
}

// TestHostsOwnNames: what only the host sets is unknown in a request.
func TestHostsOwnNames(t *testing.T) {
	for _, member := range []string{`"address":"0x1"`, `"system_disabled":false`, `"disabled_reason":null`, `"revision":1`, `"metadata":{}`} {
		name := strings.Split(member, `"`)[1]
		wantFields(t, problemsOf(t, evmBody(member)), name)
	}
}

// TestFoldedNames writes every name in capitals, and with a letter that only
// case folding takes for s or k: none is the name.
func TestFoldedNames(t *testing.T) {
	for _, full := range fullRelayers {
		walkTree(parseTree(t, full.request), "", func(path string, _ any) {
			object, name := "", path
			if end := strings.LastIndexByte(path, '.'); end >= 0 {
				object, name = path[:end], path[end+1:]
			}
			if strings.HasSuffix(path, "]") {
				return
			}
			for _, folded := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.Replace(name, "s", "ſ", 1)} {
				if folded == name {
					continue
				}
				problems := problemsOf(t, withMember(t, full.request, object, fmt.Sprintf("%q:null", folded)))
				wantFields(t, problems, below(object, folded))
				if !strings.Contains(problems[0].Message, `"`+name+`"`) {
					t.Errorf("message %q does not name %s", problems[0].Message, name)
				}
			}
		})
	}
}

// TestFoldedInPlaceOfRequired: a name in the wrong case is not the field.
func TestFoldedInPlaceOfRequired(t *testing.T) {
	text := strings.Replace(evmBody(), `"name"`, `"Name"`, 1)
	wantFields(t, problemsOf(t, text), "Name", "name")
}

// TestDuplicateNames gives every member twice: the same value, another, null,
// and with the name written in another way.
func TestDuplicateNames(t *testing.T) {
	for _, full := range fullRelayers {
		walkTree(parseTree(t, full.request), "", func(path string, value any) {
			if strings.HasSuffix(path, "]") {
				return
			}
			object, name := "", path
			if end := strings.LastIndexByte(path, '.'); end >= 0 {
				object, name = path[:end], path[end+1:]
			}
			same := treeText(t, value)
			members := []string{fmt.Sprintf("%q:%s", name, same), fmt.Sprintf(`"\u%04x%s":%s`, name[0], name[1:], same)}
			if !strings.HasSuffix(object, ".kind") {
				members = append(members, fmt.Sprintf("%q:null", name))
			}
			for _, member := range members {
				wantFields(t, problemsOf(t, withMember(t, full.request, object, member)), path)
			}
		})
	}
}

// TestPolicyOfAnotherNetwork gives every field of one network's policy to the
// others: those that they do not share are unknown.
func TestPolicyOfAnotherNetwork(t *testing.T) {
	policyNames := func(full fullRelayer) map[string]any {
		return parseTree(t, full.request).(map[string]any)["policies"].(map[string]any)
	}
	for _, from := range fullRelayers {
		for _, to := range fullRelayers {
			own := policyNames(to)
			for name, value := range policyNames(from) {
				if _, shared := own[name]; shared {
					continue
				}
				member := fmt.Sprintf("%q:%s", name, treeText(t, value))
				wantFields(t, problemsOf(t, body(string(to.networkType), `"policies":{`+member+`}`)), "policies."+name)
			}
		}
	}
	// Shared by name alone: the shape is that of the relayer's own network.
	wantFields(t, problemsOf(t, body("solana", `"policies":{"swap_config":{"strategies":["soroswap"]}}`)), "policies.swap_config.strategies")
	wantFields(t, problemsOf(t, body("stellar", `"policies":{"swap_config":{"strategy":"noop"}}`)), "policies.swap_config.strategy")
	wantFields(t, problemsOf(t, body("stellar", `"policies":{"allowed_tokens":[{"mint":"m"}]}`)), "policies.allowed_tokens[0].mint", "policies.allowed_tokens[0].asset")
}

// TestEmptyName: a name may be empty and still is unknown. It is not to be
// taken for an element of a list.
func TestEmptyName(t *testing.T) {
	for text, object := range map[string]string{evmBody(`"policies":{"":1}`): "policies", evmBody(`"":1`): ""} {
		problems := problemsOf(t, text)
		if len(problems) != 1 || strings.TrimSuffix(problems[0].Field, ".") != object {
			t.Errorf("problems %+v, want one of %q", problems, object)
		}
	}
}

// TestAllProblemsAtOnce: what is wrong in the JSON, in the values and with the
// signer is told in one answer.
func TestAllProblemsAtOnce(t *testing.T) {
	text := `{
		"id": "not an id",
		"name": 5,
		"network_type": "solana",
		"network": "",
		"paused": "no",
		"unknown": 1,
		"notification_id": "",
		"custom_rpc_urls": [{"url": "https://a.example"}, {"url": "ftp://a.example", "weight": 101, "x": 1}, {}, 7],
		"policies": {
			"allowed_tokens": [{"decimals": 256, "swap_config": {"min_amount": -1}}, {"mint": ""}],
			"fee_payment_strategy": "nobody",
			"gas_price_cap": 1,
			"max_signatures": 1.5,
			"swap_config": {"strategy": "x", "jupiter_swap_options": {"priority_level": "low", "dynamic_compute_unit_limit": 1}}
		}
	}`
	wantFields(t, problemsOf(t, text),
		"id", "name", "network", "paused", "unknown", "notification_id", "signer_id",
		"custom_rpc_urls[1].url", "custom_rpc_urls[1].weight", "custom_rpc_urls[1].x", "custom_rpc_urls[2].url", "custom_rpc_urls[3]",
		"policies.allowed_tokens[0].mint", "policies.allowed_tokens[0].decimals", "policies.allowed_tokens[0].swap_config.min_amount", "policies.allowed_tokens[1].mint",
		"policies.fee_payment_strategy", "policies.gas_price_cap", "policies.max_signatures",
		"policies.swap_config.strategy", "policies.swap_config.jupiter_swap_options.priority_level",
		"policies.swap_config.jupiter_swap_options.dynamic_compute_unit_limit")
}

func TestCreateDocument_ListsAtMost1000Problems(t *testing.T) {
	const notice = "only the first 1000 problems are listed"
	for wrong, want := range map[int]int{999: 999, 1000: 1000, 1001: 1001, 5000: 1001} {
		elements := strings.TrimSuffix(strings.Repeat("5,", wrong), ",")
		problems := problemsOf(t, evmBody(`"policies":{"whitelist_receivers":[`+elements+`]}`))
		last := problems[len(problems)-1]
		if len(problems) != want || (last.Message == notice && last.Field == "") != (wrong > 1000) {
			t.Errorf("%d problems: %d listed, want %d, the last is %+v", wrong, len(problems), want, last)
		}
	}
}

// TestErrorText: the error names every field and its rule.
func TestErrorText(t *testing.T) {
	err := &relayer.ValidationError{Fields: []relayer.FieldError{{Message: "the body is wrong"}, {Field: "name", Message: "is required"}}}
	if want := "invalid relayer: the body is wrong; name is required"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
