package relayer_test

import (
	"fmt"
	"strings"
	"testing"
)

// nested returns an object that nests depth levels deep, arrays inside.
func nested(depth int) string {
	return `{"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

// TestNotAnObject covers bodies of which there is nothing to say field by
// field.
func TestNotAnObject(t *testing.T) {
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
		"too deep":              nested(33),
		"far too deep":          nested(100_000),
		"too deep and cut":      strings.Repeat("[", 100_000),
		"too deep in policies":  evmBody(`"policies":` + nested(32)),
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

// TestDepth: 32 levels are read, so that the field is blamed and not the body.
func TestDepth(t *testing.T) {
	wantFields(t, problemsOf(t, nested(32)), "x", "name", "network", "network_type", "paused", "signer_id")
	wantFields(t, problemsOf(t, evmBody(`"policies":`+nested(31))), "policies.x")
	wantFields(t, problemsOf(t, evmBody(`"policies":{"gas_price_cap":`+nested(30)+`}`)), "policies.gas_price_cap")
	// Brackets in strings nest nothing.
	mustCreateDocument(t, newManager(t), evmBody(fmt.Sprintf("%q:%q", "notification_id", `\"`+strings.Repeat("[{", 50))))
}

// TestTruncated cuts a full request at every byte.
func TestTruncated(t *testing.T) {
	for _, full := range fullRelayers {
		for end := range len(full.request) {
			wantFields(t, problemsOf(t, full.request[:end]), "")
		}
	}
}

// TestUnkeepableText covers strings that JSON can write and nothing can keep.
func TestUnkeepableText(t *testing.T) {
	const token = `"policies":{"allowed_tokens":[{"mint":"m","symbol":%s}],"allowed_accounts":["ok",%s],"swap_config":{"cron_schedule":%s}}`
	for _, bad := range []string{
		`"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00"`, `"\uDBFF"`, `"\uDFFFx"`, `"\ud800\ud800\udc00"`, `"\udc00\ud800"`, `"\ud800\n\udc00"`,
		`"\ud800x\udc00"`, `"\ud800\\udc00"`, `"\ud83d\ude00\ud83d"`,
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
