package relayer_test

import (
	"bytes"
	"database/sql/driver"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func TestRPCURL_Mask(t *testing.T) {
	tests := []struct{ url, want string }{
		{"https://eth-mainnet.g.alchemy.com/v2/KEY", "https://eth-mainnet.g.alchemy.com/***"},
		{"https://a.example", "https://a.example"},
		{"https://a.example/", "https://a.example/"},
		{"https://a.example//", "https://a.example/***"},
		{"https://a.example?", "https://a.example/***"},
		{"https://a.example/?k=v", "https://a.example/***"},
		{"https://a.example#f", "https://a.example/***"},
		{"https://a.example/***", "https://a.example/***"},
		{"https://a.example:8545", "https://a.example:8545"},
		{"https://a.example:8545/KEY", "https://a.example:8545/***"},
		{"https://a.example:/KEY", "https://a.example:/***"},
		{"https://user@a.example", "https://a.example"},
		{"https://user:pass@a.example/", "https://a.example/"},
		{"https://user:pa@ss@a.example:1/KEY", "https://a.example:1/***"},
		{"https://user:p%2F%40@a.example", "https://a.example"},
		{"wss://a.example/ws/KEY", "wss://a.example/***"},
		{"ws://127.0.0.1:8546/KEY", "ws://127.0.0.1:8546/***"},
		{"http://[::1]:8545/KEY", "http://[::1]:8545/***"},
		{"http://[2001:db8::1]", "http://[2001:db8::1]"},
		{"http://user:pass@[fe80::1%25eth0]:1/KEY", "http://[fe80::1%25eth0]:1/***"},
		{"HTTPS://A.Example/KEY", "https://A.Example/***"},
		{"https://a.example/KEY://b.example/", "https://a.example/***"},
		{"https://bücher.example/KEY", "https://bücher.example/***"},
		{"https://b33d000011112222333344445555aaaa.eth.rpc.example", "https://***.eth.rpc.example"},
		{"https://b33d000011112222333344445555aaaa.eth.rpc.example/", "https://***.eth.rpc.example/"},
		{"wss://user:pass@B33D000011112222333344445555AAAA.eth.rpc.example.:8546/KEY", "wss://***.eth.rpc.example.:8546/***"},
		{"https://eth.b33d000011112222333344445555aaaa.0a1b2c3d4e5f6a7b8c9d.rpc.example", "https://eth.***.***.rpc.example"},
		{"https://abcdefghijklmnopqrs1.rpc.example", "https://***.rpc.example"},
		{"https://abcdefghijklmnopqr1.rpc.example", "https://abcdefghijklmnopqr1.rpc.example"},
		{"https://abcdefghijklmnopqrstuvwxyz.rpc.example", "https://abcdefghijklmnopqrstuvwxyz.rpc.example"},
		{"https://01234567890123456789.rpc.example", "https://01234567890123456789.rpc.example"},
		{"https://a-label-with-hyphens-and-1-digit.rpc.example", "https://a-label-with-hyphens-and-1-digit.rpc.example"},
		{"https://b33d000011112222333344445555aaaa.example", "https://b33d000011112222333344445555aaaa.example"},
		{"https://b33d000011112222333344445555aaaa.example.:8545", "https://b33d000011112222333344445555aaaa.example.:8545"},
		{"https://rpc.example.b33d000011112222333344445555aaaa", "https://rpc.example.b33d000011112222333344445555aaaa"},
		{"https://xn--bcher-kva0123456789012345.rpc.example", "https://xn--bcher-kva0123456789012345.rpc.example"},
		{"https://b33d000011112222333344445555aaaa.bücher.example", "https://***.bücher.example"},
		{"https://b33d000011112222333344445555aaaa。eth。rpc．example:8545", "https://***.eth.rpc.example:8545"},
		{"https://zzzzzzzzzz0123456789.abcdefghij012345678⑨.example.com/", "https://***.***.example.com/"},
		{"https://ｂ33d000011112222333344445555aaaa.rpc.example", "https://***.rpc.example"},
		{"https://%EF%BD%8233d000011112222333344445555aaaa.rpc.example", "https://***.rpc.example"},
		{"https://b33d00001111\u00ad2222333344445555aaaa.rpc.example", "https://***.rpc.example"},
		{"https://***.rpc.example", "https://***.rpc.example"},
	}
	for _, test := range tests {
		u := relayer.RPCURL(test.url)
		if got := u.String(); got != test.want {
			t.Errorf("%s shows as %s, want %s", test.url, got, test.want)
		}
		if again := relayer.RPCURL(test.want).String(); again != test.want {
			t.Errorf("%s masked again is %s", test.want, again)
		}
		if u.IsMasked() {
			continue // not stored
		}
		req := minimal("a")
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: u}}
		m := newManager(t)
		r := mustCreate(t, m, req)
		if r.CustomRPCURLs[0].URL.Unmasked() != test.url {
			t.Errorf("%s became %s for the host", test.url, r.CustomRPCURLs[0].URL.Unmasked())
		}
		if want := treeText(t, test.want); !strings.Contains(storedDocument(t, m, "a"), `"url":`+want) {
			t.Errorf("%s: document %s, want %s", test.url, storedDocument(t, m, "a"), want)
		}
	}
}

// Text that is not a URL with a host may be secret as a whole.
func TestRPCURL_MaskOfInvalidURL(t *testing.T) {
	for _, text := range []string{
		"", "SECRET", "/SECRET", "//SECRET", "//SECRET/x", "SECRET.example", "SECRET:8545", "mailto:SECRET", "http:SECRET", "http:/SECRET", "http:///SECRET", "https://",
		"https://a.example:SECRET", "https://[SECRET", "https://a b/SECRET", "https://a.example/%SECRET", "https://SECRET\x00", "\x7fSECRET", "https://user:SECRET", "://SECRET",
		"https://SECRET\\@a.example", "1http://SECRET", "https://a.example&api-key=SECRET", "https://a.example;key=SECRET",
	} {
		if got := relayer.RPCURL(text).String(); got != "***" {
			t.Errorf("%q shows as %q", text, got)
		}
	}
}

const secretURL = "https://USERINFO:PASSWORD@HOSTKEY00000HOSTKEY1.rpc.example:8545/PATHKEY?QUERYKEY=QUERYVALUE#FRAGMENT"

// secrets returns the secret parts of secretURL, as text and in the encodings of verbs
// that do not fit.
func secrets() []string {
	var all []string
	for _, part := range []string{"USERINFO", "PASSWORD", "PATHKEY", "QUERYKEY", "QUERYVALUE", "FRAGMENT", "HOSTKEY", "HEADERKEY"} {
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

// wantPrintsMasked prints a value with all verbs.
func wantPrintsMasked(t *testing.T, value any) {
	t.Helper()
	for _, verb := range verbs {
		wantMasked(t, fmt.Sprintf("%s of %T", verb, value), fmt.Sprintf(verb, value))
	}
	wantMasked(t, fmt.Sprintf("Sprint of %T", value), fmt.Sprint(value, value))
	wantMasked(t, fmt.Sprintf("Sprintln of %T", value), fmt.Sprintln(value))
	wantMasked(t, fmt.Sprintf("an extra %T", value), fmt.Sprintf(strings.Repeat("%d", 0), value))
	wantMasked(t, fmt.Sprintf("an error with %T", value), fmt.Errorf("call: %v", value).Error())
}

// wantEncodedMasked encodes and logs a value, and returns the JSON and the log.
func wantEncodedMasked(t *testing.T, value any) map[string]string {
	t.Helper()
	encoded := string(must(json.Marshal(value))(t))
	wantMasked(t, fmt.Sprintf("JSON of %T", value), encoded)
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).With("v", value).WithGroup("g").Info(fmt.Sprint(value), "a", value, slog.Group("g", slog.Any("v", value)))
	}
	wantMasked(t, fmt.Sprintf("%T in a log", value), log.String())
	return map[string]string{"JSON": encoded, "log": log.String()}
}

// verbs are verbs that fit a string, and verbs that do not.
var verbs = []string{
	"%v", "%+v", "%#v", "%s", "%+s", "%#s", "%q", "%+q", "%#q", "%x", "%X", "% x", "%#x", "% #X", "%d", "%b", "%o", "%c", "%U", "%e", "%g", "%t", "%z",
	"%100v", "%-100s", "%.5s", "%.500v", "%05d", "% d",
}

// TestRPCURL_Printed prints the URL, and values that contain it, with all verbs.
func TestRPCURL_Printed(t *testing.T) {
	u := relayer.RPCURL(secretURL)
	const header = relayer.Secret("HEADERKEY")
	config := relayer.RPCConfig{URL: u, Weight: new(1.0), Headers: map[string]relayer.Secret{"X-Key": header}}
	r := relayer.Relayer{ID: "a", CustomRPCURLs: []relayer.RPCConfig{config}, Policy: &relayer.EVMPolicy{}}
	req := relayer.CreateRequest{CustomRPCURLs: []relayer.RPCConfig{config}}
	for _, value := range []any{
		u, &u, config, &config, r, &r, req, &req, []relayer.RPCURL{u}, [1]relayer.RPCURL{u}, header, new(header), config.Headers, []relayer.Secret{header},
		map[relayer.RPCURL]relayer.RPCURL{u: u}, map[string]any{"u": u},
	} {
		wantPrintsMasked(t, value)
	}
	for verb, want := range map[string]string{
		"%v": "https://***.rpc.example:8545/***", "%s": "https://***.rpc.example:8545/***", "%q": `"https://***.rpc.example:8545/***"`, "%#v": `"https://***.rpc.example:8545/***"`,
		"%+v": "https://***.rpc.example:8545/***", "%x": hex.EncodeToString([]byte("https://***.rpc.example:8545/***")), "%d": "%!d(string=https://***.rpc.example:8545/***)",
		"%34s": "  https://***.rpc.example:8545/***", "%-34s|": "https://***.rpc.example:8545/***  |", "%.5s": "https",
	} {
		if got := fmt.Sprintf(verb, u); got != want {
			t.Errorf("%s prints %q, want %q", verb, got, want)
		}
	}
	if got := fmt.Sprint((*relayer.RPCURL)(nil)); got != "<nil>" {
		t.Errorf("a nil URL prints %q", got)
	}
}

// TestRPCURL_EncodedAndLogged encodes and logs the URL and values that contain it.
func TestRPCURL_EncodedAndLogged(t *testing.T) {
	u := relayer.RPCURL(secretURL)
	req := withURLs("a", secretURL)
	req.CustomRPCURLs[0].Headers = map[string]relayer.Secret{"X-Key": "HEADERKEY"}
	m := newManager(t)
	r := mustCreate(t, m, req)
	if r.CustomRPCURLs[0].URL.Unmasked() != secretURL || r.CustomRPCURLs[0].Headers["X-Key"].Unmasked() != "HEADERKEY" {
		t.Fatalf("the host gets %s", r.CustomRPCURLs[0].URL.Unmasked())
	}
	const url, headers = `"https://***.rpc.example:8545/***"`, `"headers":{"X-Key":"***"}`
	values := []any{u, &u, map[string]any{"u": u}, must(m.List(t.Context(), relayer.ListQuery{}))(t), r.CustomRPCURLs, r, *r}
	for i, value := range values {
		encoded := wantEncodedMasked(t, value)["JSON"]
		if !strings.Contains(encoded, url) || i > 3 && !strings.Contains(encoded, headers) {
			t.Errorf("%T as JSON is without the URL or the headers: %s", value, encoded)
		}
	}
	wantMasked(t, "XML", string(must(xml.Marshal(r.CustomRPCURLs[0]))(t)))
	wantMasked(t, "the document", storedDocument(t, m, "a"))
}

// What the documentation says to bypass the mask does so.
func TestRPCURL_BypassesOfMask(t *testing.T) {
	u := relayer.RPCURL(secretURL)
	var encoded bytes.Buffer
	mustSucceed(t, gob.NewEncoder(&encoded).Encode(u))
	argument := must(driver.DefaultParameterConverter.ConvertValue(u))(t)
	pointer, wrapped, text := "%p", "%w", strings.ToLower("%S") // variables, because vet and staticcheck refuse the constants
	type endpoint struct{ URL relayer.RPCURL }
	for _, shown := range []string{
		encoded.String(), fmt.Sprint(argument), fmt.Sprintf(pointer, u), fmt.Sprintf(wrapped, u),
		fmt.Sprint(struct{ u relayer.RPCURL }{u}), fmt.Sprint(struct{ s relayer.Secret }{"PATHKEY"}),
		fmt.Sprintf(text, struct{ Endpoint *endpoint }{&endpoint{u}}),
	} {
		if !strings.Contains(shown, "PATHKEY") {
			t.Errorf("the URL or header is not in %s", shown)
		}
	}
}

// urlProblem returns the message with which a URL is rejected, or "". It fails unless
// Create and CreateDocument report it for the URL, without quoting it.
func urlProblem(t *testing.T, text string) string {
	t.Helper()
	m := newManager(t)
	_, err := m.Create(t.Context(), withURLs("", "https://ok.example", text))
	_, wireErr := m.Documents().Create(t.Context(), []byte(evmBody(`"custom_rpc_urls":[{"url":"https://ok.example"},{"url":`+treeText(t, text)+`}]`)))
	if err == nil && wireErr == nil {
		return ""
	}
	problems := fieldErrors(t, err)
	wantFields(t, problems, "custom_rpc_urls[1].url")
	if wire := fieldErrors(t, wireErr); len(wire) != 1 || wire[0] != problems[0] {
		t.Errorf("%q: over the wire %+v, in Go %+v", text, wire, problems)
	}
	return problems[0].Message
}

func TestRPCURL_Invalid(t *testing.T) {
	for _, text := range []string{
		"javascript:alert(1)", "javascript://SECRET.example/%0aalert(1)", "data:text/plain,SECRET", "file:///SECRET", "file://host/SECRET", "ftp://SECRET.example/", "gopher://SECRET.example",
		"unix:///SECRET.sock", "httpx://SECRET.example", "http+unix://SECRET.example", "mailto:SECRET@a.example",
		"SECRET", "SECRET.example", "SECRET.example:8545", "localhost:8545", "/SECRET", "//SECRET.example/", "?SECRET", "#SECRET",
		"http:", "http:SECRET", "http:/SECRET", "http://", "http:///SECRET", "http://?SECRET", "http://#SECRET", "http://:8545/SECRET", "http://user:SECRET@/", "http://user:SECRET@:8545/",
		"http://[]/SECRET", "http://[::1/SECRET", "http://::1/SECRET", "http://[SECRET]:x/", "http://[::1]SECRET/", "http://[fd00:ec2::254%25]/SECRET", "http://[::%25]/SECRET",
		"http://a.example:0/SECRET", "http://a.example:65536/SECRET", "http://a.example:99999999999999999999/", "http://a.example:-1/SECRET", "http://a.example:SECRET/", "http://a.example:80:80/",
		" http://SECRET.example", "http://SECRET.example ", "http://SEC RET.example", "http://a.example/SEC RET", "http://a.example/SECRET\n", "http://a.example/\tSECRET", "http://a.example/SECRET\x01",
		"http://a.example/SECRET\x7f", "ht\ntp://SECRET.example", "http://SECRET%2eexample/", "http://a.example/%zzSECRET", "http://SECRET\\a.example/",
		"http://169.254.169.254/SECRET", "http://metadata.google.internal/SECRET", "http://0/SECRET", "http://7147006462/SECRET",
		"https://a.example/\u0085x", "https://a.example/\u00a0x", "https://a.example/\u2028x", "https://a\u202e.example/",
	} {
		t.Run(text, func(t *testing.T) {
			message := urlProblem(t, text)
			if message == "" {
				t.Error("accepted")
			}
			for _, part := range []string{"SECRET", "a.example", "alert", "8545", "65536", "javascript", "ftp", "invalid URL", "parse"} {
				if strings.Contains(message, part) {
					t.Errorf("message %q repeats %q", message, part)
				}
			}
		})
	}
	if problems := problemsOf(t, evmBody(`"custom_rpc_urls":[{"url":""}]`)); problems[0].Message != "must not be empty" {
		t.Errorf("empty: %+v", problems)
	}
}

func TestRPCURL_Valid(t *testing.T) {
	for _, text := range []string{
		"http://a", "https://a.example", "ws://a.example/ws", "wss://a.example", "HTTPS://A.EXAMPLE", "hTTp://a.example", "https://a.example.", "https://xn--bcher-kva.example", "https://bücher.example/",
		"http://localhost:8545", "http://127.0.0.1:8545", "http://10.0.0.1", "http://192.168.0.1", "http://172.17.0.1", "http://[::1]:8545", "http://[fe80::1%25eth0]:8545", "http://host.docker.internal:8545",
		"http://a.example:1", "http://a.example:65535", "http://a.example:", "http://a_b.example", "https://user:pass@a.example", "https://a.example/v2/KEY?k=v&l=%20#f", "https://a.example/ü", "https://a.example/{id}",
		"http://eth-mainnet:8545", "http://169.254.169.253", "http://169.254.169.25", "http://169.254.1.1", "http://168.63.129.17", "http://100.100.100.201", "http://192.0.0.193", "http://[fd00:ec2::253]",
		"http://0.0.0.1", "http://1", "http://[::2]", "http://[64:ff9b::a00:1]", "http://[2002:a00:1::]", "http://[::ffff:10.0.0.1]", "http://[::ffff:127.0.0.1]",
		"http://metadata.example", "http://metadata.google.internal.example", "http://my-metadata", "http://169.254.169.254.example",
		"http://１２７.0.0.1", "http://ｌocalhost", "http://[64:ff9b:1:a00:0:100::]",
		"http://0xg", "http://1.0xg", "http://1a", "http://a.1b", "http://1.2.3.4.example", "http://0x.example", "http://4294967295", "http://255.16777215",
	} {
		if message := urlProblem(t, text); message != "" {
			t.Errorf("%s is rejected: %s", text, message)
		}
	}
}

const keyHeader = `"custom_rpc_urls":[{"url":"https://a.example/v2/KEY","headers":{"X-Key":"SECRET-1","authorization":"Bearer SECRET-2"}},{"url":"https://b.example"}]`

// The values of headers are in the private part only: in Go, and in documents with full URLs.
func TestHeaders_EveryWrite(t *testing.T) {
	ctx := t.Context()
	key := func(r *relayer.Relayer) relayer.Secret { return r.CustomRPCURLs[0].Headers["X-Key"] }
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		created := mustCreateDocument(t, m, evmBody(`"id":"r",`+keyHeader))
		const shown = `"custom_rpc_urls":[{"url":"https://a.example/***","weight":100,"headers":{"X-Key":"***","authorization":"***"}},{"url":"https://b.example","weight":100}]`
		if !strings.Contains(string(created.JSON), shown) {
			t.Errorf("stored %s", created.JSON)
		}
		full := must(m.Documents().WithFullURLs().Get(ctx, "r"))(t)
		const revealed = `{"url":"https://a.example/v2/KEY","weight":100,"headers":{"X-Key":"SECRET-1","authorization":"Bearer SECRET-2"}}`
		if full.SealError != nil || !strings.Contains(string(full.JSON), revealed) {
			t.Errorf("revealed %s, error %v", full.JSON, full.SealError)
		}
		r := mustGet(t, m, "r")
		if r.CustomRPCURLs[0].Headers["authorization"].Unmasked() != "Bearer SECRET-2" || r.CustomRPCURLs[1].Headers != nil {
			t.Fatalf("got %v", r)
		}
		if unchanged := must(m.Patch(ctx, "r", []byte(`{`+keyHeader+`}`)))(t); unchanged.Revision != r.Revision {
			t.Errorf("the same headers made revision %d", unchanged.Revision)
		}
		rotate := updating(func(r *relayer.Relayer) { r.CustomRPCURLs[0].Headers["X-Key"] = "SECRET-3" })
		for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
			if rotated := must(rotate(m, ctx, "r", options...))(t); fmt.Sprint(rotated.LastChange.Changed) != "[custom_rpc_urls]" || key(rotated) != "SECRET-3" {
				t.Errorf("rotated %v", rotated)
			}
		}
		if paused := must(m.Pause(ctx, "r"))(t); key(paused) != "SECRET-3" {
			t.Errorf("paused %v", paused)
		}
		if urls := must(m.RPCURLs(ctx, "r"))(t); len(urls) != 2 || len(urls[0].Headers) != 2 {
			t.Errorf("RPC URLs %v", urls)
		}
		if found := checked(t, m); len(found) > 0 {
			t.Errorf("Check found %q", found)
		}
		past, _, err := m.History(ctx, relayer.HistoryQuery{ID: "r"})
		if !errors.Is(err, errors.ErrUnsupported) && (err != nil || len(past) != 3) {
			t.Fatalf("history %v, error %v", past, err)
		}
		for _, change := range past {
			for _, value := range change.Relayer.CustomRPCURLs[0].Headers {
				if !value.IsMasked() {
					t.Errorf("the history has a value of %v", change)
				}
			}
		}
		if r := must(m.Patch(ctx, "r", []byte(`{"custom_rpc_urls":[{"url":"https://a.example/v2/KEY"}]}`)))(t); r.CustomRPCURLs[0].Headers != nil {
			t.Errorf("without headers %v", r)
		}
		if rec := storedRecord(t, store, "r"); string(rec.Private) != `{"custom_rpc_urls":[{"url":"https://a.example/v2/KEY","weight":100}]}` {
			t.Errorf("the private part is %s", rec.Private)
		}
	})
}

func TestHeaders_Refused(t *testing.T) {
	many := func(count int) string {
		var members []string
		for i := range count {
			members = append(members, fmt.Sprintf(`"X-%d":"v"`, i))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for headers, want := range map[string]string{
		`[]`: "", `"x"`: "", many(17): "", `{"X-Key":"` + strings.Repeat("x", 4092) + `"}`: "",
		`{"":"SECRET"}`: "", `{"X Key":"SECRET"}`: ".X Key", `{"X:Key":"SECRET"}`: ".X:Key", `{"Schlüssel":"SECRET"}`: ".Schlüssel", `{"X\n":"SECRET"}`: ".X\n",
		`{"host":"SECRET"}`: ".host", `{"Connection":"SECRET"}`: ".Connection", `{"CONTENT-LENGTH":"1"}`: ".CONTENT-LENGTH", `{"Transfer-Encoding":"x"}`: ".Transfer-Encoding",
		`{"upgrade":"x"}`: ".upgrade", `{"te":"x"}`: ".te", `{"Trailer":"x"}`: ".Trailer",
		`{"X-Key":"SECRET","x-key":"SECRET"}`: ".x-key", `{"X-Key":"SECRET","X-Key":"SECRET"}`: ".X-Key",
		`{"X-Key":5}`: ".X-Key", `{"X-Key":null}`: ".X-Key", `{"X-Key":""}`: ".X-Key", `{"X-Key":" SECRET"}`: ".X-Key", `{"X-Key":"SECRET "}`: ".X-Key",
		`{"X-Key":"SECRET\r\nX: y"}`: ".X-Key", `{"X-Key":"SECRÉT"}`: ".X-Key", `{"X-Key":"SECRET\u007f"}`: ".X-Key", `{"X-Key":"SECRET\tx"}`: ".X-Key",
		`{"X-Key":"***"}`: ".X-Key",
	} {
		member := `"custom_rpc_urls":[{"url":"https://a.example"},{"url":"https://b.example","headers":` + headers + `}]`
		problems := wantRefused(t, member, []string{"custom_rpc_urls[1].headers" + want})
		if strings.Contains(problems[0].Message, "SECR") {
			t.Errorf("the message %q has a value", problems[0].Message)
		}
	}
	for _, headers := range []string{many(16), `{"X-Key":"` + strings.Repeat("x", 4091) + `"}`, "{\"!#$%&'*+-.^_`|~9z\":\"a b\"}"} {
		mustCreateDocument(t, newManager(t), evmBody(`"custom_rpc_urls":[{"url":"https://b.example","headers":`+headers+`}]`))
	}
}

// A masked value that is sent back is refused on its field, however it is sent.
func TestHeaders_MaskedSentBack(t *testing.T) {
	m := newManager(t)
	mustCreateDocument(t, m, evmBody(`"id":"r",`+keyHeader))
	const masked = `"custom_rpc_urls":[{"url":"https://a.example/v2/KEY","headers":{"X-Key":"***","authorization":"new"}}]`
	req := withURLs("new", "https://a.example")
	req.CustomRPCURLs[0].Headers = map[string]relayer.Secret{"X-Key": "***"}
	for _, err := range []error{
		second(m.Patch(t.Context(), "r", []byte(`{`+masked+`}`))),
		second(updating(func(r *relayer.Relayer) { r.CustomRPCURLs[0].Headers["X-Key"] = "***" })(m, t.Context(), "r")),
		second(m.Create(t.Context(), req)),
	} {
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[0].headers.X-Key")
	}
	if r := mustGet(t, m, "r"); r.CustomRPCURLs[0].Headers["X-Key"] != "SECRET-1" || r.Revision != 1 {
		t.Errorf("got %v", r)
	}
}

// A document that shows a header that is not stored is damaged.
func TestHeaders_Damaged(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	mustCreateDocument(t, m, evmBody(`"id":"r",`+keyHeader))
	editRecord(t, store, "r", func(rec *relayer.Record) {
		rec.Document = bytes.Replace(rec.Document, []byte(`"X-Key"`), []byte(`"X"`), 1)
	})
	if _, err := m.RPCURLs(t.Context(), "r"); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("a header without a value: error %v", err)
	}
}
