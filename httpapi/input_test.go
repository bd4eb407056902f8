package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// complete has a create request with all members of the contract for each network
// type.
var complete = map[relayer.NetworkType]string{
	relayer.EVM: `{"id":"full-evm","name":"n","network":"sepolia","network_type":"evm","paused":true,"signer_id":"s","notification_id":"note",
		"custom_rpc_urls":[{"url":"https://user:pass@rpc.example:8545/v2/key?a=b#c","weight":7},{"url":"wss://rpc.example"}],
		"policies":{"eip1559_pricing":true,"gas_limit_estimation":false,"gas_price_cap":1,"include_revert_data":true,"min_balance":2,
			"private_transactions":false,"whitelist_receivers":["0x00","0x01"]}}`,
	relayer.Solana: `{"id":"full-solana","name":"n","network":"devnet","network_type":"solana","paused":true,"signer_id":"s","notification_id":"note",
		"custom_rpc_urls":[{"url":"http://127.0.0.1:8899/","weight":0}],
		"policies":{"allowed_accounts":["a"],"allowed_programs":["p"],
			"allowed_tokens":[{"mint":"m","decimals":9,"symbol":"S","max_allowed_fee":18446744073709551615,
				"swap_config":{"slippage_percentage":1.5,"min_amount":1,"max_amount":2,"retain_min_amount":3}}],
			"disallowed_accounts":["d"],"fee_margin_percentage":2.5,"fee_payment_strategy":"relayer","max_allowed_fee_lamports":1,
			"max_signatures":2,"max_tx_data_size":3,"min_balance":4,
			"swap_config":{"strategy":"jupiter-swap","cron_schedule":"0 * * * *","min_balance_threshold":5,
				"jupiter_swap_options":{"priority_fee_max_lamports":6,"priority_level":"veryHigh","dynamic_compute_unit_limit":true}}}}`,
	relayer.Stellar: `{"id":"full-stellar","name":"n","network":"testnet","network_type":"stellar","paused":true,"signer_id":"s","notification_id":"note",
		"custom_rpc_urls":[{"url":"ws://rpc.example/socket","weight":100}],
		"policies":{"allowed_tokens":[
				{"asset":"native","metadata":{"kind":"native","decimals":7,"canonical_asset_id":"native"},"max_allowed_fee":1,
					"swap_config":{"slippage_percentage":0.5,"min_amount":1,"max_amount":2,"retain_min_amount":3}},
				{"asset":"USDC:G","metadata":{"kind":{"classic":{"code":"USDC","issuer":"G"}}}},
				{"asset":"C","metadata":{"kind":{"contract":{"contract_id":"C"}}}}],
			"concurrent_transactions":true,"fee_margin_percentage":1.5,"fee_payment_strategy":"user","max_fee":2147483647,
			"min_balance":9223372036854775807,"slippage_percentage":0.25,
			"swap_config":{"strategies":["order-book","soroswap"],"cron_schedule":"0 0 * * *","min_balance_threshold":1},"timeout_seconds":30}}`,
}

// leaf is a value in a JSON document.
type leaf struct {
	path  string // as in error messages
	value any
	set   func(value any)
}

// leaves returns all values below node in a stable order, including objects and
// arrays.
func leaves(path string, node any, set func(any)) []leaf {
	var found []leaf
	if path != "" {
		found = append(found, leaf{path, node, set})
	}
	switch node := node.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(keys(node)) {
			value, below := node[name], name
			if path != "" {
				below = path + "." + name
			}
			found = append(found, leaves(below, value, func(value any) { node[name] = value })...)
		}
	case []any:
		for i, value := range node {
			found = append(found, leaves(fmt.Sprintf("%s[%d]", path, i), value, func(value any) { node[i] = value })...)
		}
	}
	return found
}

func parse(t *testing.T, body string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document
}

// wrongFor returns a value of every JSON type except that of value.
func wrongFor(value any) []any {
	all := []any{"text", json.Number("1"), true, []any{}, map[string]any{}}
	var wrong []any
	for _, candidate := range all {
		if fmt.Sprintf("%T", candidate) != fmt.Sprintf("%T", value) {
			wrong = append(wrong, candidate)
		}
	}
	return wrong
}

func TestCreate_AllFields(t *testing.T) {
	s := serve(t)
	for networkType, body := range complete {
		got := s.do("POST", collection, body)
		if got.status != http.StatusCreated {
			t.Fatalf("%s: %d %s", networkType, got.status, got.body)
		}
		sent := parse(t, body)
		returned := parse(t, got.body)["data"].(map[string]any)
		for _, endpoint := range sent["custom_rpc_urls"].([]any) {
			endpoint := endpoint.(map[string]any)
			if endpoint["weight"] == nil {
				endpoint["weight"] = json.Number("100")
			}
			endpoint["url"] = relayer.RPCURL(endpoint["url"].(string)).String()
		}
		for name, value := range sent {
			if encode(t, returned[name]) != encode(t, value) {
				t.Errorf("%s: sent %s as %s, got %s", networkType, name, encode(t, value), encode(t, returned[name]))
			}
		}
	}
}

// goName matches Go types and struct names, which must not be in a message.
var goName = regexp.MustCompile(`\*|\b(int|uint|float|string|bool|struct|interface|nil|slice|map)(8|16|32|64)?\b\)|[A-Z][a-z]+[A-Z]|reflect|Unmarshal|json:|validat`)

func TestCreate_WrongType(t *testing.T) {
	s := serve(t)
	for networkType, body := range complete {
		for i, intact := range leaves("", parse(t, body), nil) {
			for _, wrong := range wrongFor(intact.value) {
				document := parse(t, body)
				leaves("", document, nil)[i].set(wrong)
				got := s.do("POST", collection, encode(t, document))
				if got.status != http.StatusBadRequest {
					t.Errorf("%s: %s as %s returned %d", networkType, intact.path, encode(t, wrong), got.status)
					continue
				}
				wantFieldNamed(t, got, intact.path)
			}
		}
	}
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}

// wantFieldNamed checks that the failure names the path or a field inside it, and
// that its messages have no Go types or struct names.
func wantFieldNamed(t *testing.T, got reply, path string) {
	t.Helper()
	named := false
	for _, problem := range decode[relayer.Failure](t, got.body).Errors {
		named = named || strings.HasPrefix(problem.Field, path)
		if goName.MatchString(problem.Message) {
			t.Errorf("a message has a Go name: %q", problem.Message)
		}
	}
	if !named {
		t.Errorf("no error names %s: %s", path, got.body)
	}
}

// integerFields has the integer fields of each policy and their largest values.
var integerFields = map[relayer.NetworkType]map[string]string{
	relayer.EVM: {
		"gas_price_cap": max256, "min_balance": max256,
	},
	relayer.Solana: {
		"max_allowed_fee_lamports": maxInt64, "max_signatures": maxInt32, "max_tx_data_size": maxInt32, "min_balance": maxInt64,
		"swap_config.min_balance_threshold": maxUint64, "swap_config.jupiter_swap_options.priority_fee_max_lamports": maxUint64,
		"allowed_tokens[0].decimals": "255", "allowed_tokens[0].max_allowed_fee": maxUint64,
		"allowed_tokens[0].swap_config.min_amount": maxUint64, "allowed_tokens[0].swap_config.max_amount": maxUint64,
		"allowed_tokens[0].swap_config.retain_min_amount": maxUint64,
	},
	relayer.Stellar: {
		"max_fee": maxInt32, "min_balance": maxInt64, "timeout_seconds": maxInt64, "swap_config.min_balance_threshold": maxUint64,
		"allowed_tokens[0].metadata.decimals": maxUint32, "allowed_tokens[0].max_allowed_fee": maxUint64,
		"allowed_tokens[0].swap_config.min_amount": maxUint64, "allowed_tokens[0].swap_config.max_amount": maxUint64,
		"allowed_tokens[0].swap_config.retain_min_amount": maxUint64,
	},
}

const (
	maxInt32  = "2147483647"
	maxInt64  = "9223372036854775807"
	maxUint32 = "4294967295"
	maxUint64 = "18446744073709551615"
	max256    = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
)

// withPolicy returns the complete request with one policy field set to a literal. It
// has no ID, so that it can be sent more than once.
func withPolicy(t *testing.T, networkType relayer.NetworkType, path, literal string) string {
	t.Helper()
	document := parse(t, complete[networkType])
	delete(document, "id")
	for _, leaf := range leaves("", document, nil) {
		if leaf.path == "policies."+path {
			leaf.set(json.RawMessage("0"))
			leaf.set("@")
			return strings.Replace(encode(t, document), `"@"`, literal, 1)
		}
	}
	t.Fatalf("no field %s in a %s policy", path, networkType)
	return ""
}

func TestCreate_IntegerBounds(t *testing.T) {
	s := serve(t)
	for networkType, fields := range integerFields {
		for path, largest := range fields {
			accepted := map[string]string{ // by the literal sent, the literal returned
				"0": "0", "-0": "0", "0.0": "0", "0e999999999": "0", "5.0": "5", "50e-1": "5", "1e1": "10", "1E+1": "10", "0.5e1": "5",
				largest: largest, largest + ".0": largest, largest + "0e-1": largest,
			}
			for sent, served := range accepted {
				got := s.do("POST", collection, withPolicy(t, networkType, path, sent))
				if got.status != http.StatusCreated {
					t.Errorf("%s %s = %s returned %d %s", networkType, path, sent, got.status, got.body)
					continue
				}
				name := path[strings.LastIndex(path, ".")+1:]
				if !strings.Contains(got.body, `"`+name+`":`+served) {
					t.Errorf("%s %s = %s is returned as another number: %s", networkType, path, sent, got.body)
				}
			}
			before := s.contents()
			tooLarge := "must be at most " + largest
			if largest == max256 {
				tooLarge = "must be at most 2^256-1"
			}
			rejected := map[string]string{
				increment(largest): tooLarge, "1e78": tooLarge, "1e999999999": tooLarge, "1e99999999999999999999": tooLarge,
				"-1": "must be 0 or more", "-1e999999999": "must be 0 or more", "-5.0": "must be 0 or more",
				"0.5": "must be a whole number", "1e-1": "must be a whole number", "5e-999999999": "must be a whole number",
				largest + ".5": "must be a whole number",
				"true":         "must be a number",
			}
			for _, digits := range []string{`"5"`, `""`} {
				if largest != max256 {
					rejected[digits] = "must be a number"
				}
			}
			for sent, message := range rejected {
				got := s.do("POST", collection, withPolicy(t, networkType, path, sent))
				wantFailure(t, got, http.StatusBadRequest, "Bad Request")
				wantProblem(t, got, "policies."+path, message)
			}
			if s.contents() != before {
				t.Fatalf("%s %s: a rejected request changed the registry", networkType, path)
			}
		}
	}
}

// increment adds one to a decimal number.
func increment(digits string) string {
	carried := []byte(digits)
	for i := len(carried) - 1; i >= 0; i-- {
		if carried[i] != '9' {
			carried[i]++
			return string(carried)
		}
		carried[i] = '0'
	}
	return "1" + string(carried)
}

// TestCreate_WeiStrings: amounts in wei are also accepted as strings of decimal digits,
// and returned as numbers.
func TestCreate_WeiStrings(t *testing.T) {
	s := serve(t)
	for sent, served := range map[string]string{
		`"0"`: "0", `"100000000000"`: "100000000000", `"1000000000000000000000"`: "1000000000000000000000", `"` + max256 + `"`: max256,
		`"007"`: "7", `"\u0037"`: "7",
	} {
		for path := range integerFields[relayer.EVM] {
			got := s.do("POST", collection, withPolicy(t, relayer.EVM, path, sent))
			if got.status != http.StatusCreated || !regexp.MustCompile(`"`+path+`":`+served+`[,}]`).MatchString(got.body) {
				t.Errorf("%s = %s returned %d %s", path, sent, got.status, got.body)
			}
		}
	}
	before := s.contents()
	const message = "must be a number or a string of decimal digits"
	for sent, want := range map[string]string{
		`""`: message, `"-1"`: message, `"+1"`: message, `"1e18"`: message, `"1.0"`: message, `" 1"`: message, `"1 "`: message, `"0x10"`: message, `"one"`: message,
		`"` + increment(max256) + `"`: "must be at most 2^256-1", `"1` + strings.Repeat("0", 500) + `"`: "must be at most 2^256-1",
	} {
		for path := range integerFields[relayer.EVM] {
			got := s.do("POST", collection, withPolicy(t, relayer.EVM, path, sent))
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			wantProblem(t, got, "policies."+path, want)
		}
	}
	if s.contents() != before {
		t.Error("a rejected request changed the registry")
	}
}

func TestCreate_ExactWei(t *testing.T) {
	s := serve(t)
	for sent, served := range map[string]string{
		"1e21": "1000000000000000000000", "1e+21": "1000000000000000000000", "1000000000000000000000": "1000000000000000000000",
		max256: max256, "9007199254740993": "9007199254740993",
	} {
		for _, field := range []string{"gas_price_cap", "min_balance"} {
			created := s.do("POST", collection, minimal(`,"policies":{"`+field+`":`+sent+`}`))
			if want := `"policies":{"` + field + `":` + served + `}`; !strings.Contains(created.body, want) {
				t.Errorf("%s = %s: %s is not in %s", field, sent, want, created.body)
			}
			read := s.do("GET", created.header.Get("Location"), "")
			if read.body != created.body {
				t.Errorf("created %s\nread %s", created.body, read.body)
			}
		}
	}
}

// TestCreate_InvalidRequest has a case for each rule of the contract's section
// "Reading a request" that the tests of types and bounds leave out.
func TestCreate_InvalidRequest(t *testing.T) {
	s := serve(t)
	for _, c := range slices.Concat(invalidJSON, invalidMembers, invalidFields, invalidPolicies, missingFields(t)) {
		t.Run(c.name, func(t *testing.T) {
			s.t = t
			got := s.do("POST", collection, c.body)
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			if c.want.message == anyMessage {
				if len(decode[relayer.Failure](t, got.body).Errors) != 1 {
					t.Errorf("want one problem: %s", got.body)
				}
				return
			}
			wantProblem(t, got, c.want.field, c.want.message)
		})
	}
	s.t = t
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}

// invalidRequest is a body of a create with one problem.
type invalidRequest struct {
	name string
	body string
	want problem
}

type problem struct{ field, message string }

// anyMessage accepts every message, because encoding/json writes the text.
const anyMessage = ""

var invalidJSON = []invalidRequest{
	{"empty body", "", problem{"", "the body must be a JSON object, not empty"}},
	{"white space", " \n", problem{"", "the body must be a JSON object, not empty"}},
	{"null", "null", problem{"", "the body must be a JSON object"}},
	{"array", "[" + minimal("") + "]", problem{"", "the body must be a JSON object"}},
	{"string", `"x"`, problem{"", "the body must be a JSON object"}},
	{"two objects", minimal("") + minimal(""), problem{"", "the body must be one JSON object with nothing after it"}},
	{"trailing data", minimal("") + "x", problem{"", "the body must be one JSON object with nothing after it"}},
	{"trailing NUL", minimal("") + "\x00", problem{"", "the body must be one JSON object with nothing after it"}},
	{"byte order mark", "\uFEFF" + minimal(""), problem{"", anyMessage}},
	{"comment", minimal("/**/"), problem{"", anyMessage}},
	{"trailing comma", minimal(","), problem{"", anyMessage}},
	{"single quotes", strings.ReplaceAll(minimal(""), `"`, "'"), problem{"", anyMessage}},
	{"control character in a string", minimal(",\"notification_id\":\"a\nb\""), problem{"", anyMessage}},
	{"leading zero", minimal(`,"policies":{"min_balance":01}`), problem{"", anyMessage}},
	{"hexadecimal", minimal(`,"policies":{"min_balance":0x1}`), problem{"", anyMessage}},
	{"NaN", minimal(`,"policies":{"min_balance":NaN}`), problem{"", anyMessage}},
	{"bad UTF-8 in a value", minimal(",\"notification_id\":\"a\xffb\""), problem{"", "the body must be UTF-8"}},
	{"bad UTF-8 in a name", minimal(",\"a\xff\":1"), problem{"", "the body must be UTF-8"}},
	{"encoded surrogate", minimal(",\"notification_id\":\"\xed\xa0\x80\""), problem{"", "the body must be UTF-8"}},
	{"half a surrogate pair", minimal(`,"notification_id":"\ud83d"`), problem{"notification_id", "must not contain half a surrogate pair"}},
	{"surrogates the wrong way round", minimal(`,"notification_id":"\ude00\ud83d"`), problem{"notification_id", "must not contain half a surrogate pair"}},
	{"NUL in a string", minimal(`,"notification_id":"a\u0000b"`), problem{"notification_id", "must not contain NUL"}},
	{"NUL in a list", minimal(`,"policies":{"whitelist_receivers":["a","\u0000"]}`), problem{"policies.whitelist_receivers[1]", "must not contain NUL"}},
	{"nesting 33 deep", minimal(`,"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32)), problem{"", "the body must not nest deeper than 32 levels"}},
	{"nesting 100000 deep", strings.Repeat(`{"a":`, 100000), problem{"", "the body must not nest deeper than 32 levels"}},
	{"nesting 32 deep is allowed", minimal(`,"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31)), problem{"x", "is not a known field"}},
}

var invalidMembers = []invalidRequest{
	{"unknown field", minimal(`,"color":1`), problem{"color", "is not a known field"}},
	{"empty name", minimal(`,"":1`), problem{"", "must not have a member with an empty name"}},
	{"empty name in a policy", minimal(`,"policies":{"":1}`), problem{"policies", "must not have a member with an empty name"}},
	{"a name that looks like a path", minimal(`,"policies.gas_price_cap":1,"policies":{"gas_price_cap":-1}`), problem{"policies.gas_price_cap", "must be 0 or more"}},
	{"a name below another", minimal(`,"a":1,"a.b":2`), problem{"a.b", "is not a known field"}},
	{"an index below a name", minimal(`,"a":1,"a[0]":2`), problem{"a[0]", "is not a known field"}},
	{"folded case", minimal(`,"ID":"x"`), problem{"ID", `is not a known field, did you mean "id"?`}},
	{"folded case next to the right name", minimal(`,"Name":"x"`), problem{"Name", `is not a known field, did you mean "name"?`}},
	{"folded by Unicode", minimal(`,"ſigner_id":"x"`), problem{"ſigner_id", `is not a known field, did you mean "signer_id"?`}},
	{"unknown field of an endpoint", minimal(`,"custom_rpc_urls":[{"url":"https://a"},{"url":"https://a","key":1}]`), problem{"custom_rpc_urls[1].key", "is not a known field"}},
	{"response field address", minimal(`,"address":"0x0"`), problem{"address", "is not a known field"}},
	{"response field system_disabled", minimal(`,"system_disabled":false`), problem{"system_disabled", "is not a known field"}},
	{"response field disabled_reason", minimal(`,"disabled_reason":null`), problem{"disabled_reason", "is not a known field"}},
	{"duplicate field", minimal(`,"name":"n"`), problem{"name", "must not be given more than once"}},
	{"duplicate by escape", minimal(`,"n\u0061me":"n"`), problem{"name", "must not be given more than once"}},
	{"duplicate null", minimal(`,"id":null,"id":null`), problem{"id", "must not be given more than once"}},
	{"duplicate policies", minimal(`,"policies":{},"policies":{}`), problem{"policies", "must not be given more than once"}},
	{"duplicate field of a policy", minimal(`,"policies":{"min_balance":1,"min_balance":1}`), problem{"policies.min_balance", "must not be given more than once"}},
	{"duplicate field of an endpoint", minimal(`,"custom_rpc_urls":[{"url":"https://a","url":"https://a"}]`), problem{"custom_rpc_urls[0].url", "must not be given more than once"}},
}

var invalidFields = []invalidRequest{
	{"id empty", minimal(`,"id":""`), problem{"id", "must not be empty"}},
	{"id of 65", minimal(`,"id":"` + strings.Repeat("a", 65) + `"`), problem{"id", "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"}},
	{"id with a dot", minimal(`,"id":"a.b"`), problem{"id", "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"}},
	{"id with a slash", minimal(`,"id":"a/b"`), problem{"id", "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"}},
	{"id with a newline", minimal(`,"id":"a\n"`), problem{"id", "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"}},
	{"id not ASCII", minimal(`,"id":"é"`), problem{"id", "must be 1 to 64 characters of A-Z a-z 0-9 _ and -"}},
	{"network type unknown", strings.Replace(minimal(""), "evm", "bitcoin", 1), problem{"network_type", "must be one of evm, solana, stellar"}},
	{"network type in capitals", strings.Replace(minimal(""), "evm", "EVM", 1), problem{"network_type", "must be one of evm, solana, stellar"}},
	{"notification_id empty", minimal(`,"notification_id":""`), problem{"notification_id", "must not be empty"}},
	{"endpoint null", minimal(`,"custom_rpc_urls":[null]`), problem{"custom_rpc_urls[0]", "must be an object"}},
	{"endpoint without url", minimal(`,"custom_rpc_urls":[{}]`), problem{"custom_rpc_urls[0].url", "is required"}},
	{"endpoint url null", minimal(`,"custom_rpc_urls":[{"url":null}]`), problem{"custom_rpc_urls[0].url", "is required and must not be null"}},
	{"endpoint url empty", minimal(`,"custom_rpc_urls":[{"url":""}]`), problem{"custom_rpc_urls[0].url", "must not be empty"}},
	{"endpoint url relative", minimal(`,"custom_rpc_urls":[{"url":"/v2/key"}]`), problem{"custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"}},
	{"endpoint url without host", minimal(`,"custom_rpc_urls":[{"url":"https:///v2"}]`), problem{"custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"}},
	{"endpoint url javascript", minimal(`,"custom_rpc_urls":[{"url":"javascript:alert(1)"}]`), problem{"custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"}},
	{"endpoint url file", minimal(`,"custom_rpc_urls":[{"url":"file://host/etc"}]`), problem{"custom_rpc_urls[0].url", "must be an absolute http, https, ws or wss URL with a host"}},
	{"endpoint url metadata", minimal(`,"custom_rpc_urls":[{"url":"http://169.254.169.254/latest"}]`), problem{"custom_rpc_urls[0].url", "must not point at a cloud metadata service"}},
	{"endpoint url unspecified", minimal(`,"custom_rpc_urls":[{"url":"http://0.0.0.0:8545"}]`), problem{"custom_rpc_urls[0].url", "must not point at the unspecified address"}},
	{"weight below 0", minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":-0.5}]`), problem{"custom_rpc_urls[0].weight", "must be 0 or more"}},
	{"weight above 100", minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":100.5}]`), problem{"custom_rpc_urls[0].weight", "must be at most 100"}},
	{"weight beyond a float", minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":1e999}]`), problem{"custom_rpc_urls[0].weight", "must be a number that a 64-bit float can hold"}},
}

var invalidPolicies = []invalidRequest{
	{"solana field in an evm policy", minimal(`,"policies":{"max_signatures":1}`), problem{"policies.max_signatures", "is not a known field"}},
	{"evm field in a solana policy", solana(`{"gas_price_cap":1}`), problem{"policies.gas_price_cap", "is not a known field"}},
	{"evm field in a stellar policy", stellar(`{"eip1559_pricing":true}`), problem{"policies.eip1559_pricing", "is not a known field"}},
	{"policy field null of another network", minimal(`,"policies":{"max_signatures":null}`), problem{"policies.max_signatures", "is not a known field"}},
	{"policies an array", minimal(`,"policies":[]`), problem{"policies", "must be an object"}},
	{"list with null", minimal(`,"policies":{"whitelist_receivers":[null]}`), problem{"policies.whitelist_receivers[0]", "must be a string"}},
	{"solana strategy unknown", solana(`{"fee_payment_strategy":"nobody"}`), problem{"policies.fee_payment_strategy", "must be one of user, relayer"}},
	{"solana strategy empty", solana(`{"fee_payment_strategy":""}`), problem{"policies.fee_payment_strategy", "must be one of user, relayer"}},
	{"stellar strategy unknown", stellar(`{"fee_payment_strategy":"User"}`), problem{"policies.fee_payment_strategy", "must be one of user, relayer"}},
	{"solana swap strategy unknown", solana(`{"swap_config":{"strategy":"jupiter"}}`), problem{"policies.swap_config.strategy", "must be one of jupiter-swap, jupiter-ultra, noop"}},
	{"solana priority level unknown", solana(`{"swap_config":{"jupiter_swap_options":{"priority_level":"low"}}}`), problem{"policies.swap_config.jupiter_swap_options.priority_level", "must be one of medium, high, veryHigh"}},
	{"stellar swap strategy unknown", stellar(`{"swap_config":{"strategies":["order-book","x"]}}`), problem{"policies.swap_config.strategies[1]", "must be one of order-book, soroswap"}},
	{"token without mint", solana(`{"allowed_tokens":[{"mint":"m"},{}]}`), problem{"policies.allowed_tokens[1].mint", "is required"}},
	{"token without asset", stellar(`{"allowed_tokens":[{}]}`), problem{"policies.allowed_tokens[0].asset", "is required"}},
	{"kind unknown", stellar(`{"allowed_tokens":[{"asset":"a","metadata":{"kind":"classic"}}]}`), problem{"policies.allowed_tokens[0].metadata.kind", `must be "native", {"classic":…} or {"contract":…}`}},
	{"kind empty", stellar(`{"allowed_tokens":[{"asset":"a","metadata":{"kind":{}}}]}`), problem{"policies.allowed_tokens[0].metadata.kind", `must be "native", {"classic":…} or {"contract":…}`}},
	{"kind both", stellar(`{"allowed_tokens":[{"asset":"a","metadata":{"kind":{"classic":{"code":"c","issuer":"i"},"contract":{"contract_id":"c"}}}}]}`), problem{"policies.allowed_tokens[0].metadata.kind", `must be "native", {"classic":…} or {"contract":…}`}},
	{"kind without issuer", stellar(`{"allowed_tokens":[{"asset":"a","metadata":{"kind":{"classic":{"code":"c"}}}}]}`), problem{"policies.allowed_tokens[0].metadata.kind.classic.issuer", "is required"}},
}

// missingFields leaves out each required field, sets it to null, and to the empty string.
func missingFields(t *testing.T) []invalidRequest {
	var requests []invalidRequest
	for _, name := range []string{"name", "network", "network_type", "paused", "signer_id"} {
		document := parse(t, minimal(""))
		delete(document, name)
		requests = append(requests, invalidRequest{name + " missing", encode(t, document), problem{name, "is required"}})
		document[name] = nil
		requests = append(requests, invalidRequest{name + " null", encode(t, document), problem{name, "is required and must not be null"}})
		if name == "paused" || name == "network_type" {
			continue
		}
		document[name] = ""
		requests = append(requests, invalidRequest{name + " empty", encode(t, document), problem{name, "must not be empty"}})
	}
	return requests
}

func solana(policies string) string {
	return `{"name":"n","network":"devnet","network_type":"solana","paused":false,"signer_id":"s","policies":` + policies + `}`
}

func stellar(policies string) string {
	return `{"policies":` + policies + `,"name":"n","network":"testnet","network_type":"stellar","paused":false,"signer_id":"s"}`
}

// TestCreate_ValidRequest has unusual requests that must be accepted.
func TestCreate_ValidRequest(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct{ body, want string }{
		"paused false":                 {minimal(""), `"paused":false`},
		"optional fields null":         {minimal(`,"id":null,"notification_id":null,"custom_rpc_urls":null,"policies":null`), `"signer_id":"s","policies":{}`},
		"policy fields null":           {minimal(`,"policies":{"gas_price_cap":null,"whitelist_receivers":null}`), `"policies":{}`},
		"weight null":                  {minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":null}]`), `[{"url":"https://a","weight":100}]`},
		"weight of 0":                  {minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":0}]`), `[{"url":"https://a","weight":0}]`},
		"weight with a fraction":       {minimal(`,"custom_rpc_urls":[{"url":"https://a","weight":0.5}]`), `[{"url":"https://a","weight":0.5}]`},
		"empty lists":                  {minimal(`,"policies":{"whitelist_receivers":[]}`), `"policies":{"whitelist_receivers":[]}`},
		"id of 1":                      {minimal(`,"id":"_"`), `"id":"_"`},
		"id of 64":                     {minimal(`,"id":"` + strings.Repeat("Z", 64) + `"`), `"id":"` + strings.Repeat("Z", 64) + `"`},
		"policies before network_type": {stellar(`{"max_fee":1}`), `"policies":{"max_fee":1}`},
		"solana default strategy":      {solana(`null`), `"policies":{"fee_payment_strategy":"user"}`},
		"stellar has no default":       {stellar(`{}`), `"policies":{}`},
		"any receiver without rules":   {minimal(`,"policies":{"whitelist_receivers":["not an address",""]}`), `["not an address",""]`},
		"name beyond ASCII":            {`{"name":"\ud83d\ude00 é <b>","network":"x","network_type":"evm","paused":true,"signer_id":"\u0001"}`, `"name":"😀 é <b>"`},
		"a local node":                 {minimal(`,"custom_rpc_urls":[{"url":"http://127.0.0.1:8545"},{"url":"ws://localhost/"},{"url":"http://10.0.0.1/"}]`), `"http://10.0.0.1/"`},
		"white space around":           {" \r\n\t" + minimal("") + "\n ", `"name":"n"`},
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			got := s.do("POST", collection, c.body)
			if got.status != http.StatusCreated || !strings.Contains(got.body, c.want) {
				t.Errorf("got %d %s\nwithout %s", got.status, got.body, c.want)
			}
		})
	}
}

func TestCreate_TruncatedBody(t *testing.T) {
	s := serve(t)
	for networkType, body := range complete {
		for length := range len(body) {
			if got := s.do("POST", collection, body[:length]); got.status != http.StatusBadRequest {
				t.Fatalf("%s cut at %d returned %d", networkType, length, got.status)
			}
		}
	}
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}

// TestCreate_HostileBody: the memory that a body costs is proportional to its size.
func TestCreate_HostileBody(t *testing.T) {
	s := serve(t)
	const room = 1<<20 - 300
	for name, body := range map[string]string{
		"a long unknown name":     minimal(`,"` + strings.Repeat(".", room) + `":1`),
		"a long name of brackets": minimal(`,"` + strings.Repeat("[", room) + `":1`),
		"many empty endpoints":    minimal(`,"custom_rpc_urls":[{}` + strings.Repeat(`,{}`, room/3-1) + `]`),
		"many wrong endpoints":    minimal(`,"custom_rpc_urls":[1` + strings.Repeat(`,1`, room/2-1) + `]`),
		"many empty URLs":         minimal(`,"custom_rpc_urls":[{"url":""}` + strings.Repeat(`,{"url":""}`, room/11-1) + `]`),
		"many bad receivers":      minimal(`,"policies":{"whitelist_receivers":["\u0000"` + strings.Repeat(`,"\u0000"`, room/9-1) + `]}`),
		"a number of many digits": minimal(`,"policies":{"min_balance":1` + strings.Repeat("0", room) + `}`),
		"a long exponent":         minimal(`,"policies":{"min_balance":1e` + strings.Repeat("9", room) + `}`),
		"many escapes":            minimal(`,"id":"` + strings.Repeat(`\u0041`, room/6) + `"`),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := s.do("POST", collection, body)
			runtime.ReadMemStats(&after)
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			// A parser with quadratic cost needs 300 times the size of the body or more.
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 100<<20 {
				t.Errorf("allocated %d MiB", allocated>>20)
			}
		})
	}
}

func TestCreate_ProblemLimit(t *testing.T) {
	s := serve(t)
	var body strings.Builder
	body.WriteString(`{"a0":1`)
	for i := 1; i < 5000; i++ {
		body.WriteString(`,"a` + strconv.Itoa(i) + `":1`)
	}
	got := s.do("POST", collection, body.String()+"}")
	problems := decode[relayer.Failure](t, got.body).Errors
	if len(problems) != 1001 || problems[1000].Message != "only the first 1000 problems are listed" {
		t.Errorf("%d problems, the last %+v", len(problems), problems[len(problems)-1])
	}
}

func TestHandler_RawRequests(t *testing.T) {
	s := serve(t)
	const headers = "Host: x\r\nAuthorization: Bearer " + validToken + "\r\nContent-Type: application/json\r\nConnection: close\r\n"
	// A client that closes its side ends a request that is not complete.
	hangUp := (*net.TCPConn).CloseWrite
	wait := func(*net.TCPConn) error { return nil }
	for name, c := range map[string]struct {
		request string
		finish  func(*net.TCPConn) error
		want    int
	}{
		"a body shorter than Content-Length": {"POST " + collection + " HTTP/1.1\r\n" + headers + "Content-Length: 500\r\n\r\n" + minimal(""), hangUp, 400},
		"a chunk that ends early":            {"POST " + collection + " HTTP/1.1\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\nff\r\n{", hangUp, 400},
		"a path with a raw ..":               {"GET /api/v1/relayers/.. HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"an absolute URL as target":          {"GET http://x" + collection + " HTTP/1.1\r\n" + headers + "\r\n", wait, 200},
		"CONNECT":                            {"CONNECT x:1 HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
		"a star as path":                     {"GET * HTTP/1.1\r\n" + headers + "\r\n", wait, 404},
	} {
		t.Run(name, func(t *testing.T) {
			got := raw(t, s, c.request, c.finish)
			if got.status != c.want {
				t.Errorf("returned %d, want %d: %s", got.status, c.want, got.body)
			}
			wantResponse(t, "GET", got)
		})
	}
	if contents := s.contents(); contents != "" {
		t.Errorf("something was stored:\n%s", contents)
	}
}
