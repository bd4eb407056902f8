package plan_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/plan"
)

// publicConfig is a configuration file of OpenZeppelin Relayer.
const publicConfig = `{
  "relayers": [
    {
      "id": "sepolia-example",
      "name": "Sepolia Example",
      "network": "sepolia",
      "paused": false,
      "notification_id": "notification-example",
      "signer_id": "local-signer",
      "network_type": "evm",
      "custom_rpc_urls": ["https://eth-sepolia.example/v2/S3CRET", {"url": "https://backup.example/S3CRET", "weight": 50}],
      "policies": {"min_balance": 1e21, "gas_price_cap": 100000000000, "eip1559_pricing": true}
    },
    {
      "id": "solana-example",
      "name": "Solana Example",
      "network": "devnet",
      "paused": true,
      "signer_id": "local-signer",
      "network_type": "solana",
      "policies": {"allowed_tokens": [{"mint": "So11111111111111111111111111111111111111112"}]}
    }
  ],
  "notifications": [{"id": "notification-example", "type": "webhook", "url": "https://hook.example", "signing_key": {"type": "env", "value": "KEY"}}],
  "signers": [{"id": "local-signer", "type": "local", "config": {"path": "keys/local.json", "passphrase": {"type": "env", "value": "PASSPHRASE"}}}],
  "networks": "./config/networks",
  "plugins": []
}`

func parse(t testing.TB, text string) *plan.Config { return parseWith(t, text, nil) }

func parseWith(t testing.TB, text string, lookup func(string) (string, bool)) *plan.Config {
	t.Helper()
	return must(plan.Parse([]byte(text), lookup))(t)
}

func TestParse_PublicConfig(t *testing.T) {
	config := parse(t, publicConfig)
	if want := []string{"networks", "notifications", "plugins", "signers"}; !slices.Equal(config.Ignored, want) {
		t.Errorf("ignored %q, want %q", config.Ignored, want)
	}
	if len(config.Relayers) != 2 || config.Relayers[0].ID != "sepolia-example" || config.Relayers[1].ID != "solana-example" {
		t.Fatalf("relayers %v", config.Relayers)
	}
	want := []relayer.RPCConfig{{URL: "https://eth-sepolia.example/v2/S3CRET"}, {URL: "https://backup.example/S3CRET", Weight: new(50.0)}}
	if got := config.Relayers[0].CustomRPCURLs; !reflect.DeepEqual(got, want) {
		t.Errorf("endpoints %v", got)
	}
}

// relayerWith returns the JSON of a relayer with more members.
func relayerWith(id string, members ...string) string {
	all := append([]string{`"id":"` + id + `"`, `"name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s"`}, members...)
	return "{" + strings.Join(all, ",") + "}"
}

func TestParse_Problems(t *testing.T) {
	type problem = relayer.FieldError
	valid, anonymous := relayerWith("a"), strings.Replace(relayerWith("a"), `"id":"a",`, "", 1)
	for text, want := range map[string][]problem{
		``:                                   {{Message: "the file must be a JSON object, not empty"}},
		"\ufeff{}":                           {{Message: "the file must be a JSON object, which begins with {: convert it if it is YAML, has comments or a byte order mark"}},
		`[` + valid + `]`:                    {{Message: "the file must be a JSON object"}},
		"# relayers\nrelayers:\n  - id: a\n": {{Message: "the file must be a JSON object, which begins with {: convert it if it is YAML, has comments or a byte order mark"}},
		"{\n  \"relayers\": [],\n  \"é\":":   {{Message: "the file must be valid JSON: the error is at or before line 3, column 6"}},
		"{\"relayers\": [],\n":               {{Message: "the file must be valid JSON: the error is at or before line 1, column 17"}},
		`{"relayer":[]}`:                     {{Field: "relayers", Message: "is required"}},
		`{"relayers":null}`:                  {{Field: "relayers", Message: "is required"}},
		`{"relayers":{}}`:                    {{Field: "relayers", Message: "must be an array"}},
		`{"relayers":[]}]`:                   {{Message: "the file must be one JSON object with nothing after it"}},
		`{"relayers":[],"relayers":[` + valid + `]}`: {{Field: "relayers", Message: "must not be given more than once"}},
		`{"relayers":[1,` + valid + `,null]}`: {
			{Field: "relayers[0]", Message: "must be a JSON object"}, {Field: "relayers[2]", Message: "must be a JSON object"},
		},
		`{"relayers":[` + valid + `,` + anonymous + `,` + relayerWith("b") + `,` + valid + `]}`: {
			{Field: "relayers[1].id", Message: "is required"}, {Field: "relayers[3].id", Message: "must be unique: relayers[0] has the same"},
		},
		`{"relayers":[` + valid + `,` + relayerWith("b", `"policies":{"gas_price_cap":-1}`, `"x":1`, `"custom_rpc_urls":["ftp://a"]`) + `,` + relayerWith("c", `"name":""`) + `]}`: {
			{Field: "relayers[1].policies.gas_price_cap", Message: "must be 0 or more"},
			{Field: "relayers[1].x", Message: "is not a known field"},
			{Field: "relayers[1].custom_rpc_urls[0].url", Message: "must be an absolute http, https, ws or wss URL with a host"},
			{Field: "relayers[2].name", Message: "must not be given more than once"},
		},
	} {
		_, err := plan.Parse([]byte(text), nil)
		expectAllProblems(t, err, want)
	}
}

// expectAllProblems compares problems in any order.
func expectAllProblems(t *testing.T, err error, want []relayer.FieldError) {
	t.Helper()
	invalid, ok := err.(*relayer.ValidationError)
	if !ok {
		t.Fatalf("error %v is not a ValidationError", err)
	}
	byField := func(a, b relayer.FieldError) int { return strings.Compare(a.Field, b.Field) }
	if got := slices.SortedFunc(slices.Values(withoutCodes(invalid.Fields)), byField); !slices.Equal(got, slices.SortedFunc(slices.Values(want), byField)) {
		t.Errorf("problems %+v, want %+v", got, want)
	}
}

func TestParse_ReferencesAreText(t *testing.T) {
	config := parse(t, `{"signers":"${PASSPHRASE}","relayers":[`+relayerWith("a", `"custom_rpc_urls":[{"url":"https://x/${KEY}/${KEY}","headers":{"X-Key":"Bearer ${TOKEN}"}}]`, `"notification_id":"${B}"`)+`]}`)
	want := []relayer.RPCConfig{{URL: "https://x/${KEY}/${KEY}", Headers: map[string]relayer.Secret{"X-Key": "Bearer ${TOKEN}"}}}
	if got := config.Relayers[0].CustomRPCURLs; !reflect.DeepEqual(got, want) {
		t.Errorf("endpoints %v, want %v", got, want)
	}
	if want := []string{"KEY", "TOKEN"}; !slices.Equal(config.Unexpanded, want) {
		t.Errorf("unexpanded %q, want %q", config.Unexpanded, want)
	}
}

func TestParse_Lookup(t *testing.T) {
	variables := map[string]string{"KEY": secret + `"\{`, "NAME": "é${KEY}", "EMPTY": "", "SPLIT": "\xff"}
	env := func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
	config := parseWith(t, `{"plugins":"${UNSET}","relayers":[`+
		relayerWith("a", `"custom_rpc_urls":["https://x.example/\u0024{KEY}", {"weight":5, "url":"https://x.example/${NAME}-$KEY-${1}-", "headers":{"X-Key":"Bearer ${KEY}"}}]`)+`]}`, env)
	headers := map[string]relayer.Secret{"X-Key": "Bearer " + secret + `"\{`}
	want := []relayer.RPCConfig{{URL: "https://x.example/" + secret + `"\{`}, {URL: "https://x.example/é${KEY}-$KEY-${1}-", Weight: new(5.0), Headers: headers}}
	if got := config.Relayers[0].CustomRPCURLs; !reflect.DeepEqual(got, want) {
		t.Errorf("endpoints do not have the values of the variables: %v", got)
	}
	if len(config.Unexpanded) > 0 {
		t.Errorf("unexpanded %q", config.Unexpanded)
	}

	_, err := plan.Parse([]byte(`{"relayers":[`+relayerWith("a")+`,`+relayerWith("b", `"custom_rpc_urls":["https://x/",{"url":"https://x/${KEY}/${UNSET}/${OTHER}"},"${UNSET}","https://x/${SPLIT}","https://x/${EMPTY}",{"url":"https://x/","headers":{"X-Key":"Bearer ${UNSET}"}}]`)+`]}`), env)
	expectProblems(t, err,
		relayer.FieldError{Field: "relayers[1].custom_rpc_urls[1].url", Message: "refers to the environment variable UNSET, which is not set"},
		relayer.FieldError{Field: "relayers[1].custom_rpc_urls[2].url", Message: "refers to the environment variable UNSET, which is not set"},
		relayer.FieldError{Field: "relayers[1].custom_rpc_urls[3].url", Message: "refers to the environment variable SPLIT, whose value is not UTF-8"},
		relayer.FieldError{Field: "relayers[1].custom_rpc_urls[4].url", Message: "refers to the environment variable EMPTY, which is empty"},
		relayer.FieldError{Field: "relayers[1].custom_rpc_urls[5].headers.X-Key", Message: "refers to the environment variable UNSET, which is not set"})
}

// A file must not be able to show a variable of the environment to readers of the registry:
// a reference outside of an RPC URL and of the value of a header is ordinary text.
func TestParse_LookupOnlyInRPCURLs(t *testing.T) {
	env := func(name string) (string, bool) { t.Errorf("%s was looked up", name); return secret, true }
	config := parseWith(t, `{"relayers":[`+relayerWith("a", `"notification_id":"${KEY}"`, `"labels":{"team":"${KEY}"}`,
		`"policies":{"whitelist_receivers":["${KEY}"]}`)+`,`+strings.Replace(relayerWith("b"), `"name":"n"`, `"name":"${KEY}"`, 1)+`]}`, env)
	a, b := config.Relayers[0], config.Relayers[1]
	if a.NotificationID != "${KEY}" || a.Labels["team"] != "${KEY}" || a.Policy.(*relayer.EVMPolicy).WhitelistReceivers[0] != "${KEY}" || b.Name != "${KEY}" {
		t.Errorf("relayers %+v", config.Relayers)
	}
	for _, members := range []string{`"${KEY}" :1`, `"url":"${KEY}"`, `"policies":{"custom_rpc_urls":["${KEY}"]}`, `"custom_rpc_urls":{"url":"${KEY}"}`,
		`"custom_rpc_urls":[{"URL":"${KEY}"}]`, `"custom_rpc_urls":[["${KEY}"]]`, `"custom_rpc_urls":[{"url":"https://x/","headers":{"${KEY}":"x"}}]`, `"custom_rpc_urls":[{"url":{"url":"${KEY}"}}]`, `"custom_rpc_urls":[{"url":"https://x/","weight":"${KEY}"}]`} {
		if _, err := plan.Parse([]byte(`{"relayers":[`+relayerWith("a", members)+`]}`), env); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%s: error %v", members, err)
		}
	}
}

// A variable in the host would be shown to every reader.
func TestParse_LookupInHost(t *testing.T) {
	env := func(string) (string, bool) { return "https://SECRET.example", true }
	for url, isRefused := range map[string]bool{
		"https://${A}": true, "https://${A}/path": true, "https://x.${A}.example?k=1": true, "https://user:pw@${A}:8545": true,
		"${A}": false, "https://x.example/${A}": false, "https://x.example?k=${A}": false,
	} {
		_, err := plan.Parse([]byte(`{"relayers":[`+relayerWith("a", `"custom_rpc_urls":["`+url+`"]`)+`]}`), env)
		if got := err != nil && strings.Contains(err.Error(), "no variable in the host"); got != isRefused || (err != nil) != isRefused || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v, refused %t", url, err, isRefused)
		}
	}
}

// The value of a variable before the host does not become the host.
func TestParse_ValueBecomesHost(t *testing.T) {
	for value, isRefused := range map[string]bool{"SECRET/x": true, "8545?SECRET": true, "SECRET#": true, "http://SECRET/": true, "SE:CR@ET": false, "SECRET%2Fx": false} {
		for _, url := range []string{"https://${A}@x.example/", "https://user:${A}@x.example:8545"} {
			_, err := plan.Parse([]byte(`{"relayers":[`+relayerWith("a", `"custom_rpc_urls":["`+url+`"]`)+`]}`), func(string) (string, bool) { return value, true })
			if got := err != nil && strings.Contains(err.Error(), "changes the host"); got != isRefused || err != nil && strings.Contains(err.Error(), "SE") {
				t.Errorf("%s with %s: error %v, refused %t", url, value, err, isRefused)
			}
		}
	}
}

// The credentials of the program that applies a file are never part of an RPC URL.
func TestParse_LookupOfCredentials(t *testing.T) {
	env := func(name string) (string, bool) { t.Errorf("%s was looked up", name); return secret, true }
	for _, name := range []string{"API_KEY", "api_key", "RELAYERD_DB", "PGPASSWORD", "PGPASSFILE", "PG", "pgPassword"} {
		_, err := plan.Parse([]byte(`{"relayers":[`+relayerWith("a", `"custom_rpc_urls":["https://x/",{"url":"https://x/${`+name+`}"}]`)+`]}`), env)
		expectProblems(t, err, relayer.FieldError{Field: "relayers[0].custom_rpc_urls[1].url",
			Message: "refers to the environment variable " + name + ", which is a credential of this program and is never part of a relayer"})
	}
}

// An expanded value is not part of an error, even if it is invalid.
func TestParse_ExpandedValueInError(t *testing.T) {
	env := func(string) (string, bool) { return " " + secret + "\n", true }
	text := `{"relayers":[` + relayerWith("a", `"custom_rpc_urls":["${A}",{"url":"https://x/","headers":{"X-Key":"${A}"}}]`) + `,` + strings.Replace(relayerWith("${A}"), `"evm"`, `"${A}"`, 1) + `]}`
	_, err := plan.Parse([]byte(text), env)
	if err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) || !strings.Contains(err.Error(), "custom_rpc_urls[1].headers.X-Key must be visible ASCII") {
		t.Errorf("error %v", err)
	}
}

// The number of problems is bounded, as for a request.
func TestParse_ManyProblems(t *testing.T) {
	const count = 1_100
	invalid, requests := make([]string, count), make([]relayer.CreateRequest, count)
	for i := range count {
		invalid[i] = fmt.Sprintf(`{"id":"r%d"}`, i)
		requests[i].ID = fmt.Sprint("r", i)
	}
	repeated := strings.Repeat(","+relayerWith("a"), count)[1:]
	for name, parse := range map[string]func() error{
		"fields": func() error {
			_, err := plan.Parse([]byte(`{"relayers":[`+strings.Join(invalid, ",")+`]}`), nil)
			return err
		},
		"IDs": func() error { _, err := plan.Parse([]byte(`{"relayers":[`+repeated+`]}`), nil); return err },
		"types": func() error {
			_, err := plan.Parse([]byte(`{"relayers":[1`+strings.Repeat(",1", count)+`]}`), nil)
			return err
		},
		"requests": func() error { _, err := plan.New(t.Context(), newManager(t), requests, plan.Options{}); return err },
	} {
		problem, ok := errors.AsType[*relayer.ValidationError](parse())
		if !ok || len(problem.Fields) != 1001 || problem.Fields[1000] != (relayer.FieldError{Message: "only the first 1000 problems are listed"}) {
			t.Errorf("%s: error %.200v", name, problem)
		}
	}
	_, err := plan.Parse([]byte(`{"relayers":[1`+strings.Repeat(",1", 999)+`]}`), nil)
	if problem, ok := errors.AsType[*relayer.ValidationError](err); !ok || len(problem.Fields) != 1000 || problem.Fields[999].Field != "relayers[999]" {
		t.Errorf("exactly 1000 problems: %.200v", err)
	}
}
