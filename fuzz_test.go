package relayer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// FuzzCreateDocument: whatever the bytes, the answer is a relayer or a list of
// problems; and what was accepted can be asked for again with the same result.
func FuzzCreateDocument(f *testing.F) {
	for _, full := range fullRelayers {
		f.Add([]byte(full.request))
		f.Add([]byte(full.request[:len(full.request)/2]))
		f.Add([]byte(full.document))
	}
	f.Add([]byte(evmBody(`"policies":{"gas_price_cap":1e999999999,"min_balance":-0.0}`)))
	f.Add([]byte(evmBody(`"id":"\ud800"`, `"Name":1`, `"name":null`, `"":[[[]]]`)))
	f.Add([]byte(body("solana", `"policies":{"allowed_tokens":[{"mint":"","decimals":256}]}`)))
	f.Add([]byte(body("stellar", `"policies":{"allowed_tokens":[{"asset":"a","metadata":{"kind":{}}}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx := context.Background()
		m := newManager(t)
		document, err := m.CreateDocument(ctx, body)
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
		wire, err := newManager(t).CreateDocument(ctx, requestText(t, r))
		if err != nil || string(wire.JSON) != string(document.JSON) {
			t.Fatalf("over the wire\n%s\n%v, want\n%s", wire.JSON, err, document.JSON)
		}
	})
}

// requestText asks for a relayer like r, as JSON.
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
		"custom_rpc_urls": endpoints, "policies": r.Policies, "notification_id": r.NotificationID,
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

// FuzzRPCURLMask puts a URL together whose secrets are written in a letter that
// nothing else around it has, and looks for that letter in what is shown.
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
		// What is no URL, or another than it seems, at least does not panic and
		// shows the same when it is masked again.
		for _, text := range []string{scheme + user + host + path + query + fragment, scheme + "://" + host + path + query, user} {
			if shown := relayer.RPCURL(text).String(); shown != "***" && relayer.RPCURL(shown).String() != shown {
				t.Errorf("%q shows as %q, and that as %q", text, shown, relayer.RPCURL(shown))
			}
		}
	})
}

// checkMask looks for the secret letter on every way out.
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

// dropSecret takes away the secret letter and what would end user info or host.
func dropSecret(r rune) rune {
	if strings.ContainsRune("Zz/?#@", r) {
		return -1
	}
	return r
}

// disguised replaces all but the delimiters of a URL by the secret letter, and
// keeps what is not ASCII.
func disguised(text string) string {
	return "Z" + strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune("@:/?#&=;.", r) {
			return 'Z'
		}
		return r
	}, text)
}

// FuzzParseAmount compares with arithmetic on big rationals, and the JSON form
// with the text.
func FuzzParseAmount(f *testing.F) {
	for _, text := range []string{"0", "5", "5.0", "50e-1", "1e21", "-0", "1e78", "0e99", "1.5", "-1", maxAmount, overMaxAmount, "", "+5", "05", "0x5", "1e", "5 "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amount, err := relayer.ParseAmount(text)
		var decoded relayer.Amount
		decodeErr := decoded.UnmarshalJSON([]byte(text))
		if text != "null" && (err == nil) != (decodeErr == nil) || decoded != amount {
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
	})
}

// exactAmount returns the amount that text is, or nil where it is none. It
// reports false for exponents that are too large to calculate with.
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
