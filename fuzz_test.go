package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
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
	f.Add([]byte(evmBody(`"labels":{"b":"2","a":""}`)))
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
		r, err := m.Get(ctx, document.ID)
		if err != nil {
			t.Fatal(err)
		}
		again := newManager(t)
		mustCreate(t, again, requestFor(r))
		if got := storedDocument(t, again, r.ID); got != string(document.JSON) {
			t.Fatalf("through Go\n%s\nwant\n%s", got, document.JSON)
		}
		wire, err := newManager(t).Documents().Create(ctx, requestText(t, r))
		if err != nil || string(wire.JSON) != string(document.JSON) {
			t.Fatalf("over the wire\n%s\n%v, want\n%s", wire.JSON, err, document.JSON)
		}
	})
}

// requestText returns the JSON request for a relayer like r.
func requestText(t *testing.T, r *relayer.Relayer) []byte {
	t.Helper()
	type endpoint struct {
		URL    string   `json:"url"`
		Weight *float64 `json:"weight"`
	}
	var endpoints []endpoint
	if r.CustomRPCURLs != nil {
		endpoints = []endpoint{}
	}
	for _, config := range r.CustomRPCURLs {
		endpoints = append(endpoints, endpoint{string(config.URL), config.Weight})
	}
	members := map[string]any{
		"id": r.ID, "name": r.Name, "network": r.Network, "network_type": r.NetworkType, "paused": r.Paused, "signer_id": r.SignerID,
		"custom_rpc_urls": endpoints, "policies": r.Policy, "notification_id": r.NotificationID, "labels": r.Labels,
	}
	if r.NotificationID == "" {
		members["notification_id"] = nil
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
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
	for _, text := range []string{"0", "5", "5.0", "50e-1", "1e21", "-0", "1e78", "0e99", "1.5", "-1", maxAmount, overMaxAmount, "", "+5", "05", "0x5", "1e", "5 ", "\x005", `"5`, `5"`, `"5"`, `"\u0035"`} {
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
		if want, known := exactAmount(text); known && (err == nil) != (want != nil) {
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
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var amount relayer.Amount
	err = json.Unmarshal(encoded, &amount)
	want, isInteger := new(big.Int).SetString(text, 10)
	isAmount := isInteger && !strings.ContainsAny(text, "+-_") && want.BitLen() <= 256
	if (err == nil) != isAmount || isAmount && amount.Big().Cmp(want) != 0 {
		t.Errorf("%s decodes as %s, %v", encoded, amount, err)
	}
	document, err := newManager(t).Documents().Create(t.Context(), []byte(evmBody(`"policies":{"min_balance":`+string(encoded)+`}`)))
	if (err == nil) != isAmount || isAmount && !strings.HasSuffix(string(document.JSON), `"policies":{"min_balance":`+want.String()+`}}`) {
		t.Errorf("%s was accepted as %s, %v", encoded, document.JSON, err)
	}
}

// exactAmount returns the amount of text, or nil if it is not an amount. It returns
// false for exponents that are too large to compute.
func exactAmount(text string) (amount *big.Int, known bool) {
	if !json.Valid([]byte(text)) || strings.Trim(text, "0123456789+-.eE") != "" {
		return nil, true
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(exponent) > 4 {
		return nil, false
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() || value.Sign() < 0 || value.Num().BitLen() > 256 {
		return nil, true
	}
	return value.Num(), true
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
		m, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		for _, networkType := range []relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar} {
			before, err := m.Create(t.Context(), relayer.CreateRequest{
				ID: string(networkType), Name: "n", Network: "x", NetworkType: networkType, SignerID: "s",
				CustomRPCURLs: []relayer.RPCConfig{{URL: "https://user:pw@rpc.example/v2/key"}}, Labels: map[string]string{"team": "payments"},
			})
			if err != nil {
				t.Fatal(err)
			}
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

// FuzzRPCPolicy checks any host, and all IPv6 addresses that contain any IPv4 address.
func FuzzRPCPolicy(f *testing.F) {
	for _, host := range append([]string{"rpc.example", "a@b.example", "8.8.8.8", "[2606:4700::1]", "127.0.0.1／x", ""}, notPublicHosts...) {
		f.Add(host, uint32(0x7f000001), byte(1))
	}
	for i, ip := range notPublicIPv4 {
		f.Add("*.Rpc.example.", ip[0]<<24|ip[1]<<16|ip[2]<<8|ip[3], byte(i))
	}
	for _, host := range numericHosts {
		f.Add(host, uint32(0), byte(1))
	}
	f.Add("10.0.0.0", uint32(0x08080808), byte(0xff))
	f.Fuzz(func(t *testing.T, host string, ip uint32, choices byte) {
		checkAgreement(t, fuzzPolicy(host, ip, choices), host)
		checkNumericHost(t, strings.ToLower(host))
		checkCarriers(t, ip)
	})
}

// fuzzPolicy omits a list that New rejects.
func fuzzPolicy(host string, ip uint32, choices byte) relayer.RPCPolicy {
	has := func(choice int) bool { return choices>>choice&1 == 1 }
	policy := relayer.RPCPolicy{PublicOnly: has(0), RefuseUserInfo: has(1)}
	if has(3) {
		policy.AllowedAddresses = []netip.Prefix{netip.PrefixFrom(ipv4(ip), int(choices>>5)*4)}
	}
	if has(4) {
		policy.AllowedHosts = []string{host}
	}
	if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(policy)); err != nil {
		policy.AllowedHosts = nil
	}
	return policy
}

func ipv4(ip uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// checkAgreement fails unless every way to write a URL has the same result, and a URL
// with an address is accepted only if its dial is permitted.
func checkAgreement(t *testing.T, policy relayer.RPCPolicy, host string) {
	t.Helper()
	// JSON escapes these, and replaces those.
	if !utf8.ValidString(host) || strings.Contains(host, "\x00") || strings.Contains(host, "/***") {
		return
	}
	if policyProblem(t, policy, "http://"+host) != "" {
		return
	}
	address, err := netip.ParseAddr(literal(host))
	if err != nil {
		return
	}
	if err := policy.DialControl("tcp", netip.AddrPortFrom(address, 80).String(), nil); err != nil {
		t.Errorf("%+v accepts %q and refuses its dial: %v", policy, host, err)
	}
}

// checkCarriers fails if an address that is not public according to netip is accepted
// in any notation, or at the dial.
func checkCarriers(t *testing.T, ip uint32) {
	t.Helper()
	a := ipv4(ip)
	if !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified() {
		return
	}
	parts := [4]uint32{ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff}
	req := minimal("")
	for _, host := range append(spellings(parts[0], parts[1], parts[2], parts[3]), teredo(parts[0], parts[1], parts[2], parts[3])) {
		req.CustomRPCURLs = append(req.CustomRPCURLs, relayer.RPCConfig{URL: relayer.RPCURL("http://" + host)})
		address, err := netip.ParseAddr(literal(host))
		if err != nil {
			continue
		}
		if err := publicOnly.DialControl("tcp", netip.AddrPortFrom(address, 80).String(), nil); !errors.Is(err, relayer.ErrAddressRefused) {
			t.Errorf("dial of %s, which is %s: error %v", address, a, err)
		}
	}
	_, err := newManager(t, relayer.WithRPCPolicy(publicOnly)).Create(t.Context(), req)
	if rejected := len(fieldErrors(t, err)); rejected != len(req.CustomRPCURLs) {
		t.Errorf("of %d spellings of %s %d are rejected: %v", len(req.CustomRPCURLs), a, rejected, err)
	}
}

// checkNumericHost fails unless a host of digits, hex digits, x and dots is rejected if
// the WHATWG URL standard rejects it, and accepted if it is a name.
func checkNumericHost(t *testing.T, host string) {
	t.Helper()
	if strings.Trim(host, "0123456789abcdefx.") != "" || strings.Trim(host, ".") == "" || strings.Contains(host, "..") {
		return
	}
	isRefused := policyProblem(t, relayer.RPCPolicy{}, "http://"+host) != ""
	isNumeric, isValid := whatwgIPv4(host)
	if isNumeric && !isValid && !isRefused {
		t.Errorf("%s accepted, which is not a valid host", host)
	}
	if !isNumeric && isRefused {
		t.Errorf("%s is rejected, and is a name", host)
	}
}

// whatwgIPv4 follows the steps of the "ends in a number" checker and of the IPv4
// parser in section 3.5 of the WHATWG URL standard.
func whatwgIPv4(host string) (isNumeric, isValid bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	last := parts[len(parts)-1]
	if _, isNumber := whatwgNumber(last); !isNumber && (last == "" || strings.Trim(last, "0123456789") != "") {
		return false, false
	}
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if number, ok := whatwgNumber(part); !ok || len(parts) > 4 || number.BitLen() > bits {
			return true, false
		}
	}
	return true, true
}

func whatwgNumber(part string) (*big.Int, bool) {
	if part == "" {
		return nil, false
	}
	base := 10
	switch {
	case strings.HasPrefix(part, "0x"):
		part, base = part[2:], 16
	case len(part) > 1 && part[0] == '0':
		part, base = part[1:], 8
	}
	if part == "" {
		return new(big.Int), true
	}
	return new(big.Int).SetString(part, base)
}

// literal returns the host of a URL in the form of netip.
func literal(host string) string {
	return strings.ReplaceAll(strings.Trim(host, "[]"), "%25", "%")
}
