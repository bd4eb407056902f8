package relayer_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestMask pins what of a URL is shown.
func TestMask(t *testing.T) {
	tests := []struct{ url, want string }{
		{"https://eth-mainnet.g.alchemy.com/v2/KEY", "https://eth-mainnet.g.alchemy.com/***"},
		{"https://a.example", "https://a.example"},
		{"https://a.example/", "https://a.example/"},
		{"https://a.example//", "https://a.example/***"},
		{"https://a.example/.", "https://a.example/***"},
		{"https://a.example/%2F", "https://a.example/***"},
		{"https://a.example?k", "https://a.example/***"},
		{"https://a.example?", "https://a.example/***"},
		{"https://a.example/?k=v", "https://a.example/***"},
		{"https://a.example#f", "https://a.example/***"},
		{"https://a.example/#f", "https://a.example/***"},
		{"https://a.example/***", "https://a.example/***"},
		{"https://a.example:8545", "https://a.example:8545"},
		{"https://a.example:8545/", "https://a.example:8545/"},
		{"https://a.example:8545/KEY", "https://a.example:8545/***"},
		{"https://a.example:/KEY", "https://a.example:/***"},
		{"https://user@a.example", "https://a.example"},
		{"https://user:pass@a.example/", "https://a.example/"},
		{"https://user:pa@ss@a.example:1/KEY", "https://a.example:1/***"},
		{"https://:pass@a.example?k", "https://a.example/***"},
		{"https://user:p%2F%40@a.example", "https://a.example"},
		{"wss://a.example/ws/KEY", "wss://a.example/***"},
		{"ws://127.0.0.1:8546/KEY", "ws://127.0.0.1:8546/***"},
		{"http://[::1]:8545/KEY", "http://[::1]:8545/***"},
		{"http://[2001:db8::1]", "http://[2001:db8::1]"},
		{"http://user:pass@[fe80::1%25eth0]:1/KEY", "http://[fe80::1%25eth0]:1/***"},
		{"HTTPS://A.Example/KEY", "https://A.Example/***"},
		{"https://a.example/KEY://b.example/", "https://a.example/***"},
		{"https://a.example?u=https://b.example/", "https://a.example/***"},
		{"https://bücher.example/KEY", "https://bücher.example/***"},
	}
	for _, test := range tests {
		u := relayer.RPCURL(test.url)
		if got := u.String(); got != test.want {
			t.Errorf("%s shows as %s, want %s", test.url, got, test.want)
		}
		if again := relayer.RPCURL(test.want).String(); again != test.want {
			t.Errorf("%s masked again is %s", test.want, again)
		}
		req := minimal("a")
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: u}}
		m := newManager(t)
		r := mustCreate(t, m, req)
		if string(r.CustomRPCURLs[0].URL) != test.url {
			t.Errorf("%s became %s for the host", test.url, string(r.CustomRPCURLs[0].URL))
		}
		if want := treeText(t, test.want); !strings.Contains(storedDocument(t, m, "a"), `"url":`+want) {
			t.Errorf("%s: document %s, want %s", test.url, storedDocument(t, m, "a"), want)
		}
	}
}

// TestMaskOfNoURL: what is no URL with a host may be all secret.
func TestMaskOfNoURL(t *testing.T) {
	for _, text := range []string{
		"", "SECRET", "/SECRET", "//SECRET", "//SECRET/x", "SECRET.example", "SECRET:8545", "mailto:SECRET", "http:SECRET", "http:/SECRET", "http:///SECRET", "https://",
		"https://a.example:SECRET", "https://[SECRET", "https://a b/SECRET", "https://a.example/%SECRET", "https://SECRET\x00", "\x7fSECRET", "https://user:SECRET", "://SECRET",
		"https://SECRET\\@a.example", "1http://SECRET",
	} {
		if got := relayer.RPCURL(text).String(); got != "***" {
			t.Errorf("%q shows as %q", text, got)
		}
	}
}

const secretURL = "https://USERINFO:PASSWORD@rpc.example:8545/PATHKEY?QUERYKEY=QUERYVALUE#FRAGMENT"

// secrets are the parts of secretURL that never show, in plain and as a wrong
// verb would write them.
func secrets() []string {
	var all []string
	for _, part := range []string{"USERINFO", "PASSWORD", "PATHKEY", "QUERYKEY", "QUERYVALUE", "FRAGMENT"} {
		all = append(all, part, hex.EncodeToString([]byte(part)), strings.ToUpper(hex.EncodeToString([]byte(part))),
			strings.Trim(fmt.Sprint([]byte(part)), "[]"), strings.ReplaceAll(fmt.Sprintf("% x", part), " ", ", 0x"))
	}
	return all
}

func wantMasked(t *testing.T, how, shown string) {
	t.Helper()
	for _, secret := range secrets() {
		if strings.Contains(shown, secret) {
			t.Errorf("%s shows %s in %s", how, secret, shown)
		}
	}
}

// verbs are those that print a URL, and those that fmt says are wrong for it.
var verbs = []string{
	"%v", "%+v", "%#v", "%s", "%+s", "%#s", "%q", "%+q", "%#q", "%x", "%X", "% x", "%#x", "% #X", "%d", "%b", "%o", "%c", "%U", "%e", "%g", "%t", "%z",
	"%100v", "%-100s", "%.5s", "%.500v", "%05d", "% d",
}

// TestPrintedMasked prints the URL, and what holds it, with verbs right and
// wrong.
func TestPrintedMasked(t *testing.T) {
	u := relayer.RPCURL(secretURL)
	config := relayer.RPCConfig{URL: u, Weight: new(1.0)}
	r := relayer.Relayer{ID: "a", CustomRPCURLs: []relayer.RPCConfig{config}, Policies: &relayer.EVMPolicy{}}
	req := relayer.CreateRequest{CustomRPCURLs: []relayer.RPCConfig{config}}
	values := []any{u, &u, config, &config, r, &r, req, &req, []relayer.RPCURL{u}, [1]relayer.RPCURL{u}, map[relayer.RPCURL]relayer.RPCURL{u: u}, map[string]any{"u": u}}
	for _, value := range values {
		for _, verb := range verbs {
			wantMasked(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
		}
		wantMasked(t, fmt.Sprintf("Sprint of %T", value), fmt.Sprint(value, value))
		wantMasked(t, fmt.Sprintf("Sprintln of %T", value), fmt.Sprintln(value))
		wantMasked(t, fmt.Sprintf("an extra %T", value), fmt.Sprintf(strings.Repeat("%d", 0), value))
		wantMasked(t, fmt.Sprintf("an error with %T", value), fmt.Errorf("call: %v", value).Error())
	}
	for verb, want := range map[string]string{
		"%v": "https://rpc.example:8545/***", "%s": "https://rpc.example:8545/***", "%q": `"https://rpc.example:8545/***"`, "%#v": `"https://rpc.example:8545/***"`,
		"%+v": "https://rpc.example:8545/***", "%x": hex.EncodeToString([]byte("https://rpc.example:8545/***")), "%d": "%!d(string=https://rpc.example:8545/***)",
		"%30s": "  https://rpc.example:8545/***", "%-30s|": "https://rpc.example:8545/***  |", "%.5s": "https",
	} {
		if got := fmt.Sprintf(verb, u); got != want {
			t.Errorf("%s prints %q, want %q", verb, got, want)
		}
	}
	var none *relayer.RPCURL
	if got := fmt.Sprint(none); got != "<nil>" {
		t.Errorf("a nil URL prints %q", got)
	}
}

// TestEncodedMasked encodes and logs the URL and what holds it.
func TestEncodedMasked(t *testing.T) {
	u := relayer.RPCURL(secretURL)
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: u}}
	m := newManager(t)
	r := mustCreate(t, m, req)
	if string(r.CustomRPCURLs[0].URL) != secretURL {
		t.Fatalf("the host gets %s", string(r.CustomRPCURLs[0].URL))
	}
	page, err := m.List(context.Background(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		"URL": u, "pointer": &u, "config": r.CustomRPCURLs, "relayer": r, "relayer by value": *r, "page": page,
		"envelope": relayer.Envelope[*relayer.Relayer]{Success: true, Data: r}, "map": map[string]any{"u": u},
	} {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		wantMasked(t, name+" as JSON", string(encoded))
		if !strings.Contains(string(encoded), `"https://rpc.example:8545/***"`) {
			t.Errorf("%s as JSON is without the URL: %s", name, encoded)
		}
		var out bytes.Buffer
		options := &slog.HandlerOptions{Level: slog.LevelDebug}
		for _, handler := range []slog.Handler{slog.NewTextHandler(&out, options), slog.NewJSONHandler(&out, options)} {
			log := slog.New(handler)
			log.Info("m", name, value)
			log.With("v", value).WithGroup("g").Info("m", slog.Group("g", slog.Any("v", value)))
			log.Info(fmt.Sprint(value))
		}
		wantMasked(t, name+" in a log", out.String())
	}
	encoded, err := xml.Marshal(r.CustomRPCURLs[0])
	if err != nil {
		t.Fatal(err)
	}
	wantMasked(t, "XML", string(encoded))
	wantMasked(t, "the document", storedDocument(t, m, "a"))
}

// TestMaskedRelayerDecodes: what a client gets is masked and stays so.
func TestMaskedRelayerDecodes(t *testing.T) {
	m := newManager(t)
	document := mustCreateDocument(t, m, evmBody(`"id":"a"`, `"custom_rpc_urls":[{"url":"`+secretURL+`"}]`))
	var r relayer.Relayer
	if err := json.Unmarshal(document.JSON, &r); err != nil || string(r.CustomRPCURLs[0].URL) != "https://rpc.example:8545/***" {
		t.Errorf("decoded %+v, %v", r, err)
	}
}

// TestPrintedMaskedBelowPointers prints relayers and requests that a list or a
// struct holds by pointer: with a verb that is wrong for a pointer, fmt asks no
// method of what is below it.
func TestPrintedMaskedBelowPointers(t *testing.T) {
	config := relayer.RPCConfig{URL: secretURL, Weight: new(1.0)}
	r := relayer.Relayer{ID: "a", CustomRPCURLs: []relayer.RPCConfig{config}, Policies: &relayer.EVMPolicy{}}
	req := relayer.CreateRequest{CustomRPCURLs: []relayer.RPCConfig{config}}
	for _, value := range []any{
		&relayer.Page{Relayers: []*relayer.Relayer{&r}}, []*relayer.Relayer{&r}, map[string]*relayer.Relayer{"a": &r}, struct{ R *relayer.Relayer }{&r},
		[]*relayer.CreateRequest{&req}, []*relayer.RPCConfig{&config}, relayer.Envelope[*relayer.Relayer]{Data: &r},
	} {
		for _, verb := range verbs {
			if shown := fmt.Sprintf(verb, value); strings.Contains(shown, "PATHKEY") {
				t.Fatalf("%s of %T shows the path", verb, value)
			}
		}
	}
}
