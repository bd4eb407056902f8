package properties

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// Secret parts of a URL are written with these letters, and nothing else of a
// relayer is: a byte of them in what is shown can only come from there. User
// info takes ASCII alone, so that its letter must be missing from the names of
// Go types too, which %#v prints.
const (
	secretLetters = "ŵẃẁẅ"
	secretASCII   = "Z"
	openLetters   = "abcdefghijklmnopqrstuvwxy0123456789"
)

// secretForms are the bytes of the secret letters, and what they become
// where bytes are escaped.
func secretForms() []string {
	forms := []string{secretASCII, fmt.Sprintf("%%%X", secretASCII)}
	for _, letter := range secretLetters {
		text := string(letter)
		for _, b := range []byte(text) {
			forms = append(forms, string([]byte{b}), fmt.Sprintf("%%%02X", b), fmt.Sprintf("%%%02x", b), fmt.Sprintf(`\x%02x`, b))
		}
		forms = append(forms, fmt.Sprintf(`\u%04x`, letter), fmt.Sprintf(`\u%04X`, letter))
	}
	return forms
}

// secretURL is a URL whose path, query, fragment and user info are made of
// secret letters and delimiters.
type secretURL struct {
	whole  string
	origin string // scheme, host and port: what may show
	isBare bool   // nothing after the host but at most a slash
}

func drawURL(t *rapid.T) secretURL {
	scheme := rapid.SampledFrom([]string{"http", "https", "ws", "wss", "HTTPS", "Ws"}).Draw(t, "scheme")
	host := rapid.SampledFrom([]string{"rpc.example", "127.0.0.1", "[::1]", "[fe80::1%25eth0]", "a", "xn--bcher-kva.example"}).Draw(t, "host")
	port := rapid.SampledFrom([]string{"", ":1", ":8545", ":65535"}).Draw(t, "port")
	user := rapid.StringMatching(`(Z[Z:@!$&'()*+,;=._~-]{0,8}@)?`).Draw(t, "user")
	path := rapid.StringMatching(`(/[ŵẃẁẅ/@:;.*%5B-]{0,8})?`).Filter(escapesAreWhole).Draw(t, "path")
	query := rapid.StringMatching(`(\?[ŵẃẁẅ/@:;=&?*+-]{0,8})?`).Draw(t, "query")
	fragment := rapid.StringMatching(`(#[ŵẃẁẅ/@:;=&?*+-]{0,8})?`).Draw(t, "fragment")
	return secretURL{
		whole:  scheme + "://" + user + host + port + path + query + fragment,
		origin: strings.ToLower(scheme) + "://" + host + port,
		isBare: strings.Trim(path+query+fragment, "/") == "" && len(path+query+fragment) < 2,
	}
}

// escapesAreWhole: a lone per cent sign makes no URL. 5B is a bracket, which
// shows nowhere else either.
func escapesAreWhole(path string) bool {
	return !strings.Contains(strings.ReplaceAll(path, "%5B", ""), "%")
}

// wantedMask is the contract's mask, from the parts that went into the URL.
func (u secretURL) wantedMask() string {
	switch {
	case !u.isBare:
		return u.origin + "/***"
	case strings.HasSuffix(u.whole, "/"):
		return u.origin + "/"
	default:
		return u.origin
	}
}

func drawRequest(t *rapid.T, urls []secretURL) relayer.CreateRequest {
	open := rapid.StringMatching(`[` + openLetters + `]{1,8}`)
	req := relayer.CreateRequest{
		ID: open.Draw(t, "id"), Name: open.Draw(t, "name"), Network: open.Draw(t, "network"), SignerID: open.Draw(t, "signer"),
		NetworkType: rapid.SampledFrom([]relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar}).Draw(t, "network type"),
	}
	for _, u := range urls {
		req.CustomRPCURLs = append(req.CustomRPCURLs, relayer.RPCConfig{URL: relayer.RPCURL(u.whole), Weight: rapid.Ptr(rapid.Float64Range(0, 100), true).Draw(t, "weight")})
	}
	return req
}

// TestSecretsNeverShow: no byte of the secret parts comes out, whatever the way.
func TestSecretsNeverShow(t *testing.T) {
	forms := secretForms()
	rapid.Check(t, func(t *rapid.T) {
		urls := rapid.SliceOfN(rapid.Custom(drawURL), 1, 4).Draw(t, "urls")
		req := drawRequest(t, urls)
		ctx := context.Background()
		manager, err := relayer.New(memory.New())
		if err != nil {
			t.Fatal(err)
		}
		r, err := manager.Create(ctx, req)
		if err != nil {
			t.Fatalf("refused: %v", err)
		}
		for i, u := range urls {
			if got := string(r.CustomRPCURLs[i].URL); got != u.whole {
				t.Fatalf("%s became %s for the host", u.whole, got)
			}
			if got := r.CustomRPCURLs[i].URL.String(); got != u.wantedMask() {
				t.Fatalf("%s shows as %s, want %s", u.whole, got, u.wantedMask())
			}
		}
		for way, shown := range waysOut(t, manager, r, req) {
			for _, form := range forms {
				if strings.Contains(shown, form) {
					t.Fatalf("%s shows %q in %s", way, form, shown)
				}
			}
			if !strings.Contains(shown, r.ID) {
				t.Fatalf("%s shows nothing: %s", way, shown)
			}
		}
	})
}

// waysOut returns the relayer as everything writes it that is not host code
// asking for the whole URL.
func waysOut(t *rapid.T, manager *relayer.Manager, r *relayer.Relayer, req relayer.CreateRequest) map[string]string {
	ctx := context.Background()
	ways := make(map[string]string)
	one, _, err := manager.AppendDocument(ctx, nil, r.ID)
	many, _, listErr := manager.AppendDocuments(ctx, nil, 1, 10)
	encoded, encodeErr := json.Marshal(r)
	envelope, envelopeErr := json.Marshal(relayer.Envelope[relayer.Relayer]{Success: true, Data: *r})
	if err := errors.Join(err, listErr, encodeErr, envelopeErr); err != nil {
		t.Fatal(err)
	}
	ways["document"], ways["page"], ways["JSON"], ways["envelope"] = string(one), string(many), string(encoded), string(envelope)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%.40s", "%d"} {
		ways[verb] = fmt.Sprintf("%s "+verb, r.ID, r)
		ways[verb+" by value"] = fmt.Sprintf("%s "+verb, r.ID, *r)
		ways[verb+" of the request"] = fmt.Sprintf("%s "+verb, r.ID, req)
		ways[verb+" of the URLs"] = fmt.Sprintf("%s "+verb, r.ID, r.CustomRPCURLs)
	}
	ways["Println"] = fmt.Sprintln(r.ID, r.CustomRPCURLs[0].URL)
	var text, object bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: withoutTime}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, options), slog.NewJSONHandler(&object, options)} {
		log := slog.New(handler).With("relayer", r, "url", r.CustomRPCURLs[0].URL)
		log.Info(r.ID, "urls", r.CustomRPCURLs, slog.Group("g", "value", *r, "request", req))
	}
	ways["text log"], ways["JSON log"] = text.String(), object.String()

	_, err = manager.Create(ctx, req)
	if !errors.Is(err, relayer.ErrExists) {
		t.Fatalf("created twice: %v", err)
	}
	ways["error of a taken id"] = r.ID + err.Error()
	wrong := req
	wrong.CustomRPCURLs = slices.Clone(req.CustomRPCURLs)
	for i := range wrong.CustomRPCURLs {
		wrong.CustomRPCURLs[i].URL = rapid.SampledFrom([]relayer.RPCURL{"x", " ", "\x7f"}).Draw(t, "spoil") + wrong.CustomRPCURLs[i].URL
	}
	if _, err = manager.Create(ctx, wrong); !errors.Is(err, relayer.ErrInvalid) {
		t.Fatalf("spoiled URLs accepted: %v", err)
	}
	ways["error of a wrong URL"] = r.ID + err.Error()
	return ways
}

// withoutTime leaves out the time of a log line, which ends in the secret
// letter.
func withoutTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// TestMaskIsFinal: masking what is masked changes nothing, whatever the text.
func TestMaskIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.Custom(drawURL), func(u secretURL) string { return u.whole })).Draw(t, "text")
		masked := relayer.RPCURL(text).String()
		if again := relayer.RPCURL(masked).String(); again != masked {
			t.Fatalf("%q shows as %q, and that as %q", text, masked, again)
		}
	})
}
