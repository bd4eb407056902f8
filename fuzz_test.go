package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// FuzzCreateDocument requires a relayer or a list of problems for any bytes. A request
// for an accepted relayer must have the same result again.
func FuzzCreateDocument(f *testing.F) {
	for _, full := range fullRelayers {
		f.Add([]byte(full.request))
		f.Add([]byte(full.request[:len(full.request)/2]))
		f.Add([]byte(full.document))
	}
	f.Add([]byte(evmBody(`"labels":{"team":"payments","a/b.c":"<é>","":1,"x":"\n"}`)))
	f.Add([]byte(evmBody(`"labels":{"b":"2","B":"1","a/b.c_d-e":"","0":"x","a":"<é&\u2713> %,|="}`)))
	f.Add([]byte(evmBody(`"policies":{"gas_price_cap":1e999999999,"min_balance":-0.0}`)))
	f.Add([]byte(evmBody(`"policies":{"gas_price_cap":"007","min_balance":"1e18"}`)))
	f.Add([]byte(evmBody(`"id":"\ud800"`, `"Name":1`, `"name":null`, `"":[[[]]]`)))
	f.Add([]byte(body("solana", `"policies":{"allowed_tokens":[{"mint":"","decimals":256}]}`)))
	f.Add([]byte(body("stellar", `"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":{}}}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx := context.Background()
		m := newManager(t)
		document, err := m.Documents().Create(ctx, body)
		if err != nil {
			var invalid *relayer.ValidationError
			if !errors.As(err, &invalid) || len(invalid.Fields) == 0 {
				t.Fatalf("error %v (%T)", err, err)
			}
			return
		}
		var shown relayer.Relayer
		if err := json.Unmarshal(document.JSON, &shown); err != nil {
			t.Fatalf("%v\nin document %s", err, document.JSON)
		}
		r := must(m.Get(ctx, document.ID))(t)
		again := newManager(t)
		mustCreate(t, again, requestFor(r))
		if got := storedDocument(t, again, r.ID); got != string(document.JSON) {
			t.Fatalf("through Go\n%s\nwant\n%s", got, document.JSON)
		}
		request := must(requestFor(r).MarshalUnmasked())(t)
		wire, err := newManager(t).Documents().Create(ctx, request)
		if err != nil || string(wire.JSON) != string(document.JSON) {
			t.Fatalf("over the wire\n%s\n%v, want\n%s", wire.JSON, err, document.JSON)
		}
	})
}

// FuzzRPCURLMask composes a URL whose secrets consist of a letter that occurs nowhere
// else, and searches all outputs for that letter.
func FuzzRPCURLMask(f *testing.F) {
	f.Add("https", "rpc.example:8545", "user:pass", "/v2/KEY", "k=v", "fragment")
	f.Add("WSS", "[fe80::1%25eth0]:1", "a@b", "", "", "")
	f.Add("http", "127.0.0.1", "", "//..//;x", "?&?", "#")
	f.Add("http", "a", ":", "/", "", "f")
	f.Add("https", "bücher.example", "", "/://b.example@c/", "://x", "://")
	f.Fuzz(func(t *testing.T, scheme, host, user, path, query, fragment string) {
		scheme, host = strings.Map(dropSecret, scheme), strings.Map(dropSecret, host)
		userinfo := disguised(strings.Map(dropSecret, user)) + "@"
		whole := scheme + "://" + userinfo + host + "/" + disguised(path) + "?" + disguised(query) + "#" + disguised(fragment)
		checkMask(t, relayer.RPCURL(whole))
		// Invalid or ambiguous URLs must not panic, and masking them again must change
		// nothing.
		for _, text := range []string{scheme + user + host + path + query + fragment, scheme + "://" + host + path + query, user} {
			if shown := relayer.RPCURL(text).String(); shown != "***" && relayer.RPCURL(shown).String() != shown {
				t.Errorf("%q shows as %q, and that as %q", text, shown, relayer.RPCURL(shown))
			}
		}
	})
}

// checkMask searches every output for the secret letter.
func checkMask(t *testing.T, u relayer.RPCURL) {
	t.Helper()
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: u}}
	m := newManager(t)
	r, err := m.Create(context.Background(), req)
	if err != nil {
		if strings.ContainsAny(err.Error(), "Z") || strings.ContainsAny(u.String(), "Z") {
			t.Errorf("%q shows as %s or in %v", string(u), u, err)
		}
		return
	}
	if u.String() == "***" {
		t.Errorf("%q is accepted and not shown at all", string(u))
	}
	if !strings.Contains(string(u), "Z") {
		t.Fatalf("%q has no secret", string(u))
	}
	encoded := must(json.Marshal(r))(t)
	for _, way := range []string{u.String(), storedDocument(t, m, "a"), string(encoded), fmt.Sprintf("%v %+v %#v %s %q %d", r, r, r, u, u, u)} {
		if strings.Contains(way, "Z") {
			t.Errorf("%q shows in %s", string(u), way)
		}
	}
}

// dropSecret removes the secret letter and the delimiters of user information and host.
func dropSecret(r rune) rune {
	if strings.ContainsRune("Zz/?#@", r) {
		return -1
	}
	return r
}

// disguised replaces all ASCII characters except the delimiters of a URL by the secret
// letter.
func disguised(text string) string {
	return "Z" + strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune("@:/?#&=;.", r) {
			return 'Z'
		}
		return r
	}, text)
}

// FuzzParseAmount compares ParseAmount with arithmetic on rational numbers, and with the
// JSON decoding of the same number.
func FuzzParseAmount(f *testing.F) {
	for _, text := range slices.Concat(slices.Collect(maps.Keys(rightAmounts())), wrongIntegers(maxAmount, overMaxAmount), wrongDigits, []string{
		"1e18", "1E+21", "1.5e3", "0.000000000000000001e18", "1e77", "1" + strings.Repeat("0", 100) + "e-100", "1e1.5", "5e", "5e+", "1e", ".5", "5.",
		"", " ", "-", "+5", "05", "00", "--5", "5-", "0x10", "1_000", "1,000", "NaN", "Infinity", "null", "nullx", "５", "5 ", " 5", "5\n", "5 5", "5,", "5}", "\x005",
		"1.15792089237316195423570985008687907853269984665640564039457584007913129639936e77", `"5`, `5"`,
	}) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := relayer.ParseAmount(text)
		var decoded relayer.Amount
		decodeErr := decoded.UnmarshalJSON([]byte(text))
		isNumber := text != "null" && !strings.HasPrefix(text, `"`)
		if isNumber && ((err == nil) != (decodeErr == nil) || decoded != amount) {
			t.Errorf("%q parses as %v, %v and decodes as %v, %v", text, amount, err, decoded, decodeErr)
		}
		if err == nil {
			again, err := relayer.ParseAmount(amount.String())
			if err != nil || !reflect.DeepEqual(again, amount) {
				t.Errorf("%q is %s, and that is %s, %v", text, amount, again, err)
			}
		}
		if want := exactAmount(text); (err == nil) != (want != nil) {
			t.Errorf("%q parses as %s, %v, want %v", text, amount, err, want)
		} else if want != nil && amount.Big().Cmp(want) != 0 {
			t.Errorf("%q parses as %s, want %s", text, amount, want)
		}
		checkDigits(t, text)
	})
}

// checkDigits decodes the text as a JSON string, which must be decimal digits.
func checkDigits(t *testing.T, text string) {
	t.Helper()
	encoded := must(json.Marshal(text))(t)
	var amount relayer.Amount
	err := json.Unmarshal(encoded, &amount)
	want, isInteger := new(big.Int).SetString(text, 10)
	isAmount := isInteger && !strings.ContainsAny(text, "+-_") && want.BitLen() <= 256 && len(text) <= 400
	if (err == nil) != isAmount || isAmount && amount.Big().Cmp(want) != 0 {
		t.Errorf("%s decodes as %s, %v", encoded, amount, err)
	}
	document, err := newManager(t).Documents().Create(t.Context(), []byte(evmBody(`"policies":{"min_balance":`+string(encoded)+`}`)))
	if (err == nil) != isAmount || isAmount && !strings.HasSuffix(string(document.JSON), `"policies":{"min_balance":`+want.String()+`}}`) {
		t.Errorf("%s was accepted as %s, %v", encoded, document.JSON, err)
	}
}

// exactAmount returns the amount of text, or nil if it is not an amount.
func exactAmount(text string) *big.Int {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if size, _ := strconv.Atoi(exponent); !json.Valid([]byte(text)) || strings.Trim(text, "0123456789+-.eE") != "" || len(text) > 400 || size < -400 || size > 400 {
		return nil
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() || value.Sign() < 0 || value.Num().BitLen() > 256 {
		return nil
	}
	return value.Num()
}

// FuzzPatchDocument applies any bytes to a relayer of each network type. Either the
// patch is rejected and nothing changes; or it is applied, applying it again changes
// nothing, and the fields that cannot be patched are unchanged.
func FuzzPatchDocument(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"name":"m","paused":true}`, `{"name":null}`, `{"policies":null}`, `{"policies":{"gas_price_cap":1e21,"min_balance":null}}`, `{"policies":{"gas_price_cap":"7","min_balance":""}}`,
		`{"custom_rpc_urls":null}`, `{"custom_rpc_urls":[{"url":"https://rpc.example/***"}]}`, `{"custom_rpc_urls":[{"url":"https://u:p@h/k","weight":0}]}`,
		`{"notification_id":"x"}`, `{"notification_id":null}`, `{"id":"x"}`, `{"system_disabled":true}`, `{"disabled_reason":null}`,
		`{"policies":{"swap_config":{"strategy":"noop","jupiter_swap_options":{"priority_level":"high"}}}}`,
		`{"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":{"contract":{"contract_id":"c"}}}}]}}`,
		`{"policies":{"allowed_tokens":[{"mint":"a","symbol":null}]},"policies":{}}`, `{"a":{"b":null}}`, `[]`, `null`,
		`{"labels":{"team":null,"new":"x"}}`, `{"labels":null}`, `{"labels":{"a":"x","a":null}}`, `{"labels":{"team":{"a":null}}}`, `{"name":"\ud800"}`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		m := registry(t)
		for _, networkType := range relayer.NetworkTypes() {
			before := must(m.Patch(t.Context(), string(networkType), []byte(`{"labels":{"team":"payments"}}`)))(t)
			patched, err := m.Documents().Patch(t.Context(), before.ID, patch)
			after := mustGet(t, m, before.ID)
			if err != nil {
				var invalid *relayer.ValidationError
				if !errors.As(err, &invalid) || len(invalid.Fields) == 0 {
					t.Fatalf("%s: %v", patch, err)
				}
				if !reflect.DeepEqual(after, before) {
					t.Fatalf("%s was rejected and changed %v to %v", patch, before, after)
				}
				continue
			}
			if after.ID != before.ID || after.Network != before.Network || after.NetworkType != before.NetworkType || after.SignerID != before.SignerID ||
				after.Address != before.Address || after.SystemDisabled || after.DisabledReason != nil {
				t.Fatalf("%s changed %v to %v", patch, before, after)
			}
			again, err := m.Documents().Patch(t.Context(), before.ID, patch)
			if err != nil || again.Revision != patched.Revision || string(again.JSON) != string(patched.JSON) {
				t.Fatalf("%s once gave %s, and again %s, %v", patch, patched.JSON, again.JSON, err)
			}
			var shown relayer.Relayer
			if err := json.Unmarshal(patched.JSON, &shown); err != nil {
				t.Fatalf("%s gave %s: %v", patch, patched.JSON, err)
			}
		}
	})
}
