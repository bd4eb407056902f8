package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

const dryRun = "?dry_run=true"

// TestDryRun: the response is that of the write, and nothing is stored. That of a create is 200 without
// a Location.
func TestDryRun(t *testing.T) {
	refused := errors.New("")
	admit := func(_ context.Context, o relayer.Operation, old, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionDelete && old.Name == "pending" {
			return relayer.Refuse("transactions are pending")
		}
		if o.Action == relayer.ActionDelete && old.Name == "broken" {
			return refused
		}
		return nil
	}
	for _, c := range []struct {
		name, method, body string
		header             header
		want               int
	}{
		{"n", "PATCH", `{"name":"m"}`, with("X"), 200},
		{"n", "PATCH", `{"paused":true}`, with("X"), 200},
		{"n", "PATCH", `{}`, with("X"), 200},
		{"n", "PATCH", `{"name":""}`, with("X"), 400},
		{"n", "PATCH", `{"name":"m"}`, with("If-Match", `"0"`), 412},
		{"n", "PUT", `{"type":"x"}`, with("X"), 200},
		{"n", "DELETE", "", with("X"), 200},
		{"n", "DELETE", "", with("If-Match", `"0"`), 412},
		{"pending", "DELETE", "", with("X"), 400},
		{"broken", "DELETE", "", with("X"), 500},
		{"n", "POST", minimal(`,"id":"r-2","custom_rpc_urls":[{"url":"https://rpc.example/v2/key"}]`), with("X"), 200},
		{"n", "POST", minimal(`,"policies":{"gas_price_cap":-1}`), with("X"), 400},
		{"n", "POST", minimal(`,"id":"r-1"`), with("X"), 409},
		{"n", "POST", minimal(`,"notification_id":"` + strings.Repeat("x", 1<<20) + `"`), with("X"), 413},
		{"n", "POST", minimal(""), with("Content-Type", "text/plain"), 415},
	} {
		path := map[string]string{"POST": collection, "PUT": one + "/disabled_reason", "PATCH": one, "DELETE": one}[c.method]
		s := serveAs(t, validTokens, []relayer.Option{relayer.WithAdmission(admit)}, httpapi.WithEngineOperations())
		s.create(strings.Replace(minimal(`,"id":"r-1"`), `"name":"n"`, `"name":"`+c.name+`"`, 1))
		check, tag := s.unchanged(), s.do("GET", one, "").header.Get("ETag")
		send := func(query string) reply {
			got := s.do(c.method, path+query, c.body, c.header)
			if got.status == http.StatusCreated && query == "?dry_run=false" {
				got.header.Del("Location")
				got.status = http.StatusOK
			}
			if got.status != c.want {
				t.Errorf("%s %s%s returned %d, want %d: %s", c.method, c.body, query, got.status, c.want, got.body)
			}
			return got
		}
		dry := send("?dry_run=true")
		check()
		if c.method == "PATCH" && c.want == 200 && dry.header.Get("ETag") != tag {
			t.Errorf("%s: the ETag is %s, want the current %s", c.body, dry.header.Get("ETag"), tag)
		}
		real := send("?dry_run=false")
		if c.name == "pending" {
			wantProblem(t, real, "", "transactions are pending")
		}
		if c.want >= 400 {
			check()
		}
		dry.header.Del("ETag")
		real.header.Del("ETag")
		if dry.text("") != real.text("") {
			t.Errorf("%s %s: the dry run returned\n%s\nthe change\n%s", c.method, c.body, dry.text(""), real.text(""))
		}
	}
}

// numbering are keys whose results differ each time, as those of a cipher with a nonce.
type numbering struct {
	keyring.Keyring
	seals byte
}

func (n *numbering) Seal(_ context.Context, private, _ []byte) ([]byte, error) {
	n.seals++
	return append([]byte{n.seals}, private...), nil
}

func (*numbering) Open(_ context.Context, text, _ []byte) ([]byte, error) { return text[1:], nil }

// sealing returns a Manager on a store with these keys.
func sealing(t *testing.T, db relayer.Store, keys sealed.Keys) *relayer.Manager {
	t.Helper()
	return managerOn(t, must(sealed.New(db, keys))(t))
}

// TestDryRun_Changed: a dry run says what would change, also in the hidden part of an RPC URL,
// sealed or not.
func TestDryRun_Changed(t *testing.T) {
	for name, manager := range map[string]*relayer.Manager{"clear": managerOn(t, nil), "sealed": sealing(t, memory.New(), new(numbering))} {
		t.Run(name, func(t *testing.T) {
			s := serveManager(t, manager, validTokens, httpapi.WithEngineOperations())
			s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://rpc.example/v2/old"}],"labels":{"team":"a"}`))
			defer s.unchanged()()
			for _, c := range []struct{ method, path, body, want string }{
				{"PATCH", one, `{}`, `[]`},
				{"PATCH", one, `{"name":"n"}`, `[]`},
				{"PATCH", one, `{"name":"m","labels":{"team":null,"x":"y"}}`, `["labels.team","labels.x","name"]`},
				{"PATCH", one, `{"paused":false}`, `[]`},
				{"PATCH", one, `{"paused":true}`, `["paused"]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/old"}]}`, `[]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/new"}]}`, `["custom_rpc_urls"]`},
				{"PATCH", one, `{"custom_rpc_urls":[{"url":"https://rpc.example/v2/old","weight":1}]}`, `["custom_rpc_urls"]`},
				{"PUT", one + "/disabled_reason", `{"type":"x"}`, `["disabled_reason.details","disabled_reason.type","system_disabled"]`},
				{"DELETE", one + "/disabled_reason", "", `[]`},
				{"POST", collection, minimal(""), `["address","id","name","network","network_type","paused","policies","signer_id","system_disabled"]`},
				{"DELETE", one, "", `["address","custom_rpc_urls","id","labels.team","name","network","network_type","paused","policies","signer_id","system_disabled"]`},
			} {
				got := s.do(c.method, c.path+dryRun+"&changes=true", c.body)
				if want := `,"change":{"changed":` + c.want + `}}`; got.status != http.StatusOK || !strings.HasSuffix(got.body, want) || got.header.Get("Location") != "" {
					t.Errorf("%s %s %s returned %d %s, want %s", c.method, c.path, c.body, got.status, got.body, want)
				}
				if got := s.do(c.method, c.path+dryRun, c.body); strings.Contains(got.body, `"change"`) {
					t.Errorf("%s %s without changes=true returned %s", c.method, c.path, got.body)
				}
			}
		})
	}
}
