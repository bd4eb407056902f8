package relayer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// objectsOf returns the paths of all objects of a request; the request itself is "".
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

// withMember inserts a member at the beginning of the object at path, even if the
// object has a member of that name.
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

// TestDecode_UnknownNames adds unknown names to every object.
func TestDecode_UnknownNames(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range objectsOf(t, full.request) {
			if path == "settings" {
				continue // it has the names of the host
			}
			for _, name := range []string{"unknown", "Revision", "x-y", "é", "system disabled", "a.b", ""} {
				for _, value := range []string{`null`, `1`, `{"a":[{"a":1,"a":1}]}`} {
					text := withMember(t, full.request, path, fmt.Sprintf("%q:%s", name, value))
					problems := problemsOf(t, text)
					wantFields(t, problems, strings.TrimSuffix(below(path, name), "."))
				}
			}
		}
	}
}

// Fields that only the host can set are unknown in a request.
func TestDecode_HostOnlyFields(t *testing.T) {
	for _, member := range []string{`"address":"0x1"`, `"system_disabled":false`, `"disabled_reason":null`, `"revision":1`, `"metadata":{}`} {
		name := strings.Split(member, `"`)[1]
		wantFields(t, problemsOf(t, evmBody(member)), name)
	}
}

// eachMember calls test with every member of every full request: the path of its object, its
// name, and its value.
func eachMember(t *testing.T, test func(full fullRelayer, object, name string, value any)) {
	t.Helper()
	for _, full := range fullRelayers {
		walkTree(parseTree(t, full.request), "", func(path string, value any) {
			object, name := "", path
			if end := strings.LastIndexByte(path, '.'); end >= 0 {
				object, name = path[:end], path[end+1:]
			}
			if !strings.HasSuffix(path, "]") {
				test(full, object, name, value)
			}
		})
	}
}

// TestDecode_NamesInAnotherCase writes every name in capitals, and with a letter that
// case folding maps to s or k.
func TestDecode_NamesInAnotherCase(t *testing.T) {
	eachMember(t, func(full fullRelayer, object, name string, _ any) {
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

// TestDecode_DuplicateNames repeats every member: with the same value, another value,
// null, and an escaped name.
func TestDecode_DuplicateNames(t *testing.T) {
	eachMember(t, func(full fullRelayer, object, name string, value any) {
		same := treeText(t, value)
		members := []string{fmt.Sprintf("%q:%s", name, same), fmt.Sprintf(`"\u%04x%s":%s`, name[0], name[1:], same)}
		if !strings.HasSuffix(object, ".kind") {
			members = append(members, fmt.Sprintf("%q:null", name))
		}
		for _, member := range members {
			wantFields(t, problemsOf(t, withMember(t, full.request, object, member)), below(object, name))
		}
	})
}

// Fields with the same name have the shape of the relayer's own network, and fields of another one
// are unknown.
func TestDecode_PolicyOfAnotherNetwork(t *testing.T) {
	wantFields(t, problemsOf(t, body("evm", `"policies":{"max_fee":1,"allowed_tokens":[]}`)), "policies.max_fee", "policies.allowed_tokens")
	wantFields(t, problemsOf(t, body("solana", `"policies":{"gas_price_cap":1,"swap_config":{"strategies":["soroswap"]}}`)), "policies.gas_price_cap", "policies.swap_config.strategies")
	wantFields(t, problemsOf(t, body("stellar", `"policies":{"swap_config":{"strategy":"noop"}}`)), "policies.swap_config.strategy")
	wantFields(t, problemsOf(t, body("stellar", `"policies":{"allowed_tokens":[{"mint":"m"}]}`)), "policies.allowed_tokens[0].mint", "policies.allowed_tokens[0].asset")
}

// Problems of the JSON, of the values and of the signer are reported together.
func TestDecode_AllProblems(t *testing.T) {
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

func TestDecode_AtMost1000Problems(t *testing.T) {
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

// nested returns an object with arrays in it, depth levels deep.
func nested(depth int) string {
	return `{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

// The problem of these bodies is not one of a field.
func TestDecode_NotAnObject(t *testing.T) {
	valid := evmBody()
	tests := map[string]string{
		"empty":                 "",
		"white space":           " \r\n\t",
		"null":                  "null",
		"true":                  "true",
		"number":                "5",
		"string":                `"{}"`,
		"array":                 "[" + valid + "]",
		"empty array":           "[]",
		"byte order mark":       "\ufeff" + valid,
		"two objects":           valid + valid,
		"two lines":             valid + "\n" + valid,
		"text after":            valid + " x",
		"comma after":           valid + ",",
		"brace after":           valid + "}",
		"NUL after":             valid + "\x00",
		"NUL before":            "\x00" + valid,
		"form feed before":      "\f" + valid,
		"no-break space before": "\u00a0" + valid,
		"comment":               "/* */" + valid,
		"trailing comma":        strings.Replace(valid, "}", ",}", 1),
		"single quotes":         strings.ReplaceAll(valid, `"`, "'"),
		"bare names":            `{name:"n"}`,
		"NaN":                   evmBody(`"policies":{"min_balance":NaN}`),
		"leading zero":          evmBody(`"policies":{"min_balance":05}`),
		"plus sign":             evmBody(`"policies":{"min_balance":+5}`),
		"bare point":            evmBody(`"policies":{"min_balance":5.}`),
		"hexadecimal":           evmBody(`"policies":{"min_balance":0x5}`),
		"raw NUL in a string":   evmBody("\"id\":\"a\x00b\""),
		"raw newline":           evmBody("\"id\":\"a\nb\""),
		"unknown escape":        evmBody(`"notification_id":"\x41"`),
		"short escape":          evmBody(`"notification_id":"\u00"`),
		"bad byte in a string":  evmBody("\"notification_id\":\"a\xffb\""),
		"overlong":              evmBody("\"notification_id\":\"\xc0\xaf\""),
		"encoded surrogate":     evmBody("\"notification_id\":\"\xed\xa0\x80\""),
		"bad byte in a name":    evmBody("\"a\xff\":1"),
		"bad byte after":        valid + "\xff",
		"Latin-1":               evmBody("\"notification_id\":\"caf\xe9\""),
		"UTF-16":                "{\x00\"\x00n\x00",
		"too deep":              nested(10_001),
		"far too deep":          nested(100_000),
		"too deep and cut":      strings.Repeat("[", 100_000),
		"too deep in policies":  evmBody(`"policies":` + nested(10_000)),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			problems := problemsOf(t, text)
			wantFields(t, problems, "")
			if len(text) > 4 && strings.Contains(problems[0].Message, text) {
				t.Errorf("message %q repeats the body", problems[0].Message)
			}
		})
	}
}

// More levels than any type has are decoded, so that the problem is one of a field.
func TestDecode_Depth(t *testing.T) {
	wantFields(t, problemsOf(t, nested(33)), "x", "name", "network", "network_type", "paused", "signer_id")
	wantFields(t, problemsOf(t, evmBody(`"policies":`+nested(31))), "policies.x")
	wantFields(t, problemsOf(t, evmBody(`"policies":{"gas_price_cap":`+nested(30)+`}`)), "policies.gas_price_cap")
	// Brackets in strings do not count.
	mustCreateDocument(t, newManager(t), evmBody(fmt.Sprintf("%q:%q", "notification_id", `\"`+strings.Repeat("[{", 50))))
}

// TestDecode_Truncated truncates a full request at every byte.
func TestDecode_Truncated(t *testing.T) {
	for _, full := range fullRelayers {
		for end := range len(full.request) {
			wantFields(t, problemsOf(t, full.request[:end]), "")
		}
	}
}

// These strings are valid JSON and cannot be stored.
func TestDecode_InvalidText(t *testing.T) {
	const token = `"policies":{"allowed_tokens":[{"mint":"m","symbol":%s}],"allowed_accounts":["ok",%s],"swap_config":{"cron_schedule":%s}}`
	for _, bad := range []string{
		`"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00"`, `"\uDBFF"`, `"\uDFFFx"`, `"\ud800\ud800\udc00"`, `"\udc00\ud800"`, `"\ud800\n\udc00"`,
		`"\ud800x\udc00"`, `"\ud800\\udc00"`, `"\ud83d\ude00\ud83d"`, `"\ufffd\ud800"`, `"\\ufffd\ud800"`, "\"\uFFFD\\ud800\"",
	} {
		t.Run(bad, func(t *testing.T) {
			for _, field := range []string{"name", "network", "network_type", "signer_id"} {
				wantFields(t, problemsOf(t, replaced(t, evmBody(), field, bad)), field)
			}
			for _, field := range []string{"id", "notification_id"} {
				wantFields(t, problemsOf(t, evmBody(fmt.Sprintf("%q:%s", field, bad))), field)
			}
			wantFields(t, problemsOf(t, evmBody(`"custom_rpc_urls":[{"url":`+bad+`}]`)), "custom_rpc_urls[0].url")
			wantFields(t, problemsOf(t, body("solana", fmt.Sprintf(token, bad, bad, bad))),
				"policies.allowed_tokens[0].symbol", "policies.allowed_accounts[1]", "policies.swap_config.cron_schedule")
		})
	}
	for given, want := range map[string]string{
		`"\ud83d\ude00"`: "😀", `"\uD83D\uDE00"`: "😀", `"\\ud800"`: `\ud800`, `"\\\\ud800"`: `\\ud800`, `"\ufffd"`: "\ufffd", `"\ud7ff\ue000"`: "\ud7ff\ue000",
		`"\u0001"`: "\x01", `"\u2028"`: "\u2028", `"\u200b"`: "\u200b",
	} {
		m := newManager(t)
		document := mustCreateDocument(t, m, replaced(t, evmBody(), "name", given))
		r, err := m.Get(t.Context(), document.ID)
		if err != nil || r.Name != want {
			t.Errorf("name %s became %q, %v, want %q", given, r.Name, err, want)
		}
	}
}

// TestDecode_InvalidValues sets every field to every wrong value. The only problem has
// the path of the field.
func TestDecode_InvalidValues(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			known := fieldAt(t, full, path)
			wrong := wrongValues[known.kind]
			if strings.HasSuffix(path, "]") || known.required {
				wrong = append([]string{"null"}, wrong...)
			}
			if len(wrong) < 5 {
				t.Fatalf("no wrong values for %s", path)
			}
			t.Run(fmt.Sprint(full.networkType, " ", path), func(t *testing.T) {
				for _, value := range wrong {
					wantFields(t, problemsOf(t, replaced(t, full.request, path, value)), path)
				}
			})
		}
	}
}

// TestDecode_ValidValues sets every field to valid values in every notation of JSON.
func TestDecode_ValidValues(t *testing.T) {
	for _, full := range fullRelayers {
		for _, path := range pathsOf(t, full.request) {
			for given, want := range rightValues[fieldAt(t, full, path).kind] {
				document := mustCreateDocument(t, newFullManager(t), replaced(t, full.request, path, given))
				wantDocument := replaced(t, full.document, path, want)
				if got := treeText(t, parseTree(t, string(document.JSON))); got != treeText(t, parseTree(t, wantDocument)) {
					t.Errorf("%s %s: %s became\n%s\nwant\n%s", full.networkType, path, given, got, wantDocument)
				}
			}
		}
	}
}

// The messages contain the limit that a number exceeds.
func TestDecode_RangeMessages(t *testing.T) {
	const notDigits = "must be a number or a string of decimal digits"
	for _, test := range []struct {
		full              fullRelayer
		path, value, want string
	}{
		{fullRelayers[0], "policies.gas_price_cap", "-1", "must be 0 or more"},
		{fullRelayers[0], "policies.gas_price_cap", overMaxAmount, "must be at most 2^256-1"},
		{fullRelayers[0], "policies.gas_price_cap", "0.5", "must be a whole number"},
		{fullRelayers[0], "policies.gas_price_cap", `"` + overMaxAmount + `"`, "must be at most 2^256-1"},
		{fullRelayers[0], "policies.gas_price_cap", `""`, notDigits},
		{fullRelayers[0], "policies.gas_price_cap", `"-1"`, notDigits},
		{fullRelayers[0], "policies.gas_price_cap", `"\ud800"`, notDigits},
		{fullRelayers[0], "custom_rpc_urls[0].weight", "-1", "must be 0 or more"},
		{fullRelayers[0], "custom_rpc_urls[0].weight", "101", "must be at most 100"},
		{fullRelayers[1], "policies.max_signatures", "-5", "must be 0 or more"},
		{fullRelayers[1], "policies.max_signatures", "2147483648", "must be at most 2147483647"},
		{fullRelayers[1], "policies.min_balance", "9223372036854775808", "must be at most 9223372036854775807"},
		{fullRelayers[1], "policies.allowed_tokens[0].decimals", "256", "must be at most 255"},
		{fullRelayers[1], "policies.allowed_tokens[0].max_allowed_fee", "1e20", "must be at most 18446744073709551615"},
		{fullRelayers[2], "policies.allowed_tokens[0].metadata.decimals", "4294967296", "must be at most 4294967295"},
	} {
		problems := problemsOf(t, replaced(t, test.full.request, test.path, test.value))
		if problems[0].Message != test.want {
			t.Errorf("%s = %s: message %q, want %q", test.path, test.value, problems[0].Message, test.want)
		}
	}
}

// OpenZeppelin Relayer accepts larger amounts only as strings.
func TestRequestBody_Amounts(t *testing.T) {
	req := minimal("a")
	req.Policy = &relayer.EVMPolicy{GasPriceCap: new(relayer.MustParseAmount("18446744073709551615")), MinBalance: new(relayer.MustParseAmount("18446744073709551616"))}
	body := must(req.MarshalUnmasked())(t)
	if want := `"policies":{"gas_price_cap":18446744073709551615,"min_balance":"18446744073709551616"}`; !strings.Contains(string(body), want) {
		t.Errorf("%s, want %s", body, want)
	}
}

// The encoder would replace what is not UTF-8, without an error.
func TestRequestBody_NotUTF8(t *testing.T) {
	const bad = "SECRET\xff"
	kind := &relayer.StellarTokenKind{Classic: &relayer.StellarClassicAsset{Code: bad, Issuer: "i"}}
	tokens := &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a"}, {Asset: bad, Metadata: &relayer.StellarTokenMetadata{Kind: kind}}}}
	req := relayer.CreateRequest{
		ID: "a", Name: bad, Network: `\ufffd and �`, SignerID: bad, CustomRPCURLs: []relayer.RPCConfig{{URL: "https://a.example"}, {URL: bad}},
		Policy: tokens, Labels: map[string]string{"a": "\\" + bad},
	}
	body, err := req.MarshalUnmasked()
	wantFields(t, fieldErrors(t, err), "name", "signer_id", "policies.allowed_tokens[1].asset", "policies.allowed_tokens[1].metadata.kind.classic.code",
		"labels.a", "custom_rpc_urls[1].url")
	if body != nil || strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%s, %v", body, err)
	}
}

// A value that the encoder refuses, or passes on as it is, is named.
func TestRequestBody_NotEncodable(t *testing.T) {
	kind := func(unknown string) relayer.Policy {
		kind := &relayer.StellarTokenKind{Unknown: []byte(unknown)}
		return &relayer.StellarPolicy{AllowedTokens: []relayer.StellarAllowedToken{{Asset: "a", Metadata: &relayer.StellarTokenMetadata{Kind: kind}}}}
	}
	const kindPath = "policies.allowed_tokens[0].metadata.kind"
	for name, test := range map[string]struct {
		change func(*relayer.CreateRequest)
		want   string
	}{
		"a weight": {func(r *relayer.CreateRequest) {
			r.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example", Weight: new(math.NaN())}}
		}, "custom_rpc_urls[0].weight"},
		"a kind that is not JSON":         {func(r *relayer.CreateRequest) { r.NetworkType, r.Policy = relayer.Stellar, kind(`{`) }, kindPath},
		"a kind that is not UTF-8":        {func(r *relayer.CreateRequest) { r.NetworkType, r.Policy = relayer.Stellar, kind("\"\xff\"") }, kindPath},
		"a nil pointer of another policy": {func(r *relayer.CreateRequest) { r.Policy = (*relayer.StellarPolicy)(nil) }, "policies"},
		"another policy": {func(r *relayer.CreateRequest) {
			r.NetworkType, r.Policy = "other", &relayer.UnknownPolicy{Type: "other", Raw: []byte(`{`)}
		}, "network_type"},
	} {
		t.Run(name, func(t *testing.T) {
			req := minimal("a")
			test.change(&req)
			body, err := req.MarshalUnmasked()
			if wantFields(t, fieldErrors(t, err), test.want); body != nil {
				t.Errorf("%s", body)
			}
		})
	}
}

func TestCreateRequestUnmarshal_PlainURLs(t *testing.T) {
	var req relayer.CreateRequest
	text := evmBody(`"custom_rpc_urls":["https://a.example/\u0041",{"url":"wss://b.example","weight":5}]`)
	mustSucceed(t, json.Unmarshal([]byte(text), &req))
	want := []relayer.RPCConfig{{URL: "https://a.example/A"}, {URL: "wss://b.example", Weight: new(5.0)}}
	if !reflect.DeepEqual(req.CustomRPCURLs, want) {
		t.Errorf("got %v", req.CustomRPCURLs)
	}
	if problems := problemsOf(t, evmBody(`"custom_rpc_urls":["https://a.example"]`)); problems[0].Field != "custom_rpc_urls[0]" {
		t.Errorf("CreateDocument accepts a plain URL: %v", problems)
	}
}

// Problems of the JSON and of its values are returned together.
func TestCreateRequestUnmarshal_Problems(t *testing.T) {
	for text, want := range map[string][]string{
		`[]`: {""},
		`{`:  {""},
		evmBody(`"id":"a b"`, `"custom_rpc_urls":["ftp://a","https://a.example/\ud800",7,null,{"url":"x","weight":101}]`, `"policies":{"min_balance":-1,"max_fee":1}`, `"x":1`): {
			"id", "custom_rpc_urls[0].url", "custom_rpc_urls[1]", "custom_rpc_urls[2]", "custom_rpc_urls[3]",
			"custom_rpc_urls[4].url", "custom_rpc_urls[4].weight", "policies.min_balance", "policies.max_fee", "x",
		},
	} {
		before := minimal("before")
		req := before
		err := req.UnmarshalJSON([]byte(text))
		invalid, ok := errors.AsType[*relayer.ValidationError](err)
		if !ok || !reflect.DeepEqual(req, before) {
			t.Fatalf("%s: request %v, error %v", text, req, err)
		}
		wantFields(t, invalid.Fields, want...)
	}
}

// A request survives its own JSON, except for the URLs, which it masks.
func TestCreateRequest_OwnJSON(t *testing.T) {
	labeled := minimal("")
	labeled.Labels = map[string]string{"team": "a"}
	for _, req := range []relayer.CreateRequest{minimal(""), minimal("r"), labeled} {
		encoded := must(json.Marshal(req))(t)
		var got relayer.CreateRequest
		if err := json.Unmarshal(encoded, &got); err != nil || got.ID != req.ID || !reflect.DeepEqual(got.Labels, req.Labels) {
			t.Errorf("%s is decoded as %v, error %v", encoded, got, err)
		}
	}
}
