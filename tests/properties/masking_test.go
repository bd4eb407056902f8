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

// The secret parts of a URL consist of the secret letters, and nothing else of a
// relayer contains them. A byte of them in an output is therefore a leak. User info
// allows only ASCII, so that its letter must not occur in the names of Go types
// either, which %#v prints.
const (
	secretLetters = "ŵẃẁẅ"
	secretASCII   = "Z"
	openLetters   = "abcdefghijklmnopqrstuvwxy0123456789"
)

// secretForms returns the bytes of the secret letters in plain and escaped form.
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
// secret letters and delimiters. A label of its host may begin with one.
type secretURL struct {
	full   string
	origin string // scheme, host and port: may be shown
	isBare bool   // nothing follows the host, except a slash
}

func drawURL(t *rapid.T) secretURL {
	scheme := rapid.SampledFrom([]string{"http", "https", "ws", "wss", "HTTPS", "Ws"}).Draw(t, "scheme")
	host := rapid.SampledFrom([]string{"rpc.example", "127.0.0.1", "[::1]", "[fe80::1%25eth0]", "a", "xn--bcher-kva.example"}).Draw(t, "host")
	port := rapid.SampledFrom([]string{"", ":1", ":8545", ":65535"}).Draw(t, "port")
	shown := host
	if label := rapid.StringMatching(`(Z[Z]{18,30}[0-9]{1,5})?`).Draw(t, "label"); label != "" && strings.HasSuffix(host, "example") {
		host, shown = label+".x."+host, "***.x."+host
	}
	user := rapid.StringMatching(`(Z[Z:@!$&'()*+,;=._~-]{0,8}@)?`).Draw(t, "user")
	path := rapid.StringMatching(`(/[ŵẃẁẅ/@:;.*%5B-]{0,8})?`).Filter(hasOnlyWholeEscapes).Draw(t, "path")
	query := rapid.StringMatching(`(\?[ŵẃẁẅ/@:;=&?*+-]{0,8})?`).Draw(t, "query")
	fragment := rapid.StringMatching(`(#[ŵẃẁẅ/@:;=&?*+-]{0,8})?`).Draw(t, "fragment")
	return secretURL{
		full:   scheme + "://" + user + host + port + path + query + fragment,
		origin: strings.ToLower(scheme) + "://" + shown + port,
		isBare: strings.Trim(path+query+fragment, "/") == "" && len(path+query+fragment) < 2,
	}
}

// hasOnlyWholeEscapes reports whether every percent sign begins an escape. A URL
// with another one is invalid. 5B is a bracket, which no output contains either.
func hasOnlyWholeEscapes(path string) bool {
	return !strings.Contains(strings.ReplaceAll(path, "%5B", ""), "%")
}

// masked returns the URL as the contract masks it.
func (u secretURL) masked() string {
	switch {
	case !u.isBare:
		return u.origin + "/***"
	case strings.HasSuffix(u.full, "/"):
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
		req.CustomRPCURLs = append(req.CustomRPCURLs, relayer.RPCConfig{URL: relayer.RPCURL(u.full), Weight: rapid.Ptr(rapid.Float64Range(0, 100), true).Draw(t, "weight")})
	}
	return req
}

// TestMasking_EveryOutput checks that no output of a relayer contains a byte of the
// secret parts.
func TestMasking_EveryOutput(t *testing.T) {
	forms := secretForms()
	rapid.Check(t, func(t *rapid.T) {
		isFull := func(u secretURL) bool { return !relayer.RPCURL(u.full).IsMasked() } // *** can be the mark of a mask
		urls := rapid.SliceOfN(rapid.Custom(drawURL).Filter(isFull), 1, 4).Draw(t, "urls")
		req := drawRequest(t, urls)
		ctx := context.Background()
		manager := must(relayer.New(memory.New()))(t)
		r, err := manager.Create(ctx, req)
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		for i, u := range urls {
			if got := string(r.CustomRPCURLs[i].URL); got != u.full {
				t.Fatalf("host code gets %s for %s", got, u.full)
			}
			if got := r.CustomRPCURLs[i].URL.String(); got != u.masked() {
				t.Fatalf("%s is masked as %s, want %s", u.full, got, u.masked())
			}
		}
		for name, output := range outputs(t, manager, r, req) {
			for _, form := range forms {
				if strings.Contains(output, form) {
					t.Fatalf("%s contains %q: %s", name, form, output)
				}
			}
			if !strings.Contains(output, r.ID) {
				t.Fatalf("%s does not contain the ID: %s", name, output)
			}
		}
	})
}

// outputs returns a relayer in every form in which it can leave the process, except
// as host code that asks for the full URL.
func outputs(t *rapid.T, manager *relayer.Manager, r *relayer.Relayer, req relayer.CreateRequest) map[string]string {
	ctx := context.Background()
	all := make(map[string]string)
	one, err := manager.Documents().Get(ctx, r.ID)
	many, listErr := manager.Documents().List(ctx, relayer.ListQuery{})
	encoded, encodeErr := json.Marshal(r)
	if err := errors.Join(err, listErr, encodeErr); err != nil {
		t.Fatal(err)
	}
	all["document"], all["page"], all["JSON"] = string(one.JSON), string(many.Documents[0].JSON), string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%.40s", "%d"} {
		all[verb] = fmt.Sprintf("%s "+verb, r.ID, r)
		all[verb+" by value"] = fmt.Sprintf("%s "+verb, r.ID, *r)
		all[verb+" of the request"] = fmt.Sprintf("%s "+verb, r.ID, req)
		all[verb+" of the URLs"] = fmt.Sprintf("%s "+verb, r.ID, r.CustomRPCURLs)
	}
	all["Println"] = fmt.Sprintln(r.ID, r.CustomRPCURLs[0].URL)
	var text, object bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: withoutTime}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, options), slog.NewJSONHandler(&object, options)} {
		log := slog.New(handler).With("relayer", r, "url", r.CustomRPCURLs[0].URL)
		log.Info(r.ID, "urls", r.CustomRPCURLs, slog.Group("g", "value", *r, "request", req))
	}
	all["text log"], all["JSON log"] = text.String(), object.String()

	_, err = manager.Create(ctx, req)
	if !errors.Is(err, relayer.ErrExists) {
		t.Fatalf("second create: error %v, want ErrExists", err)
	}
	all["error of a taken ID"] = r.ID + err.Error()
	invalid := req
	invalid.CustomRPCURLs = slices.Clone(req.CustomRPCURLs)
	for i := range invalid.CustomRPCURLs {
		invalid.CustomRPCURLs[i].URL = rapid.SampledFrom([]relayer.RPCURL{"x", " ", "\x7f"}).Draw(t, "invalid prefix") + invalid.CustomRPCURLs[i].URL
	}
	if _, err = manager.Create(ctx, invalid); !errors.Is(err, relayer.ErrInvalid) {
		t.Fatalf("create with invalid URLs: error %v, want ErrInvalid", err)
	}
	all["error of an invalid URL"] = r.ID + err.Error()
	return all
}

// withoutTime removes the time of a log line, which ends in the secret letter.
func withoutTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}
