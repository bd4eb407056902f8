package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// TestValidate: the response is that of the create, and nothing is stored.
func TestValidate(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"taken"`))
	before := s.contents()
	for name, body := range map[string]string{
		"valid": minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://rpc.example/v2/key"}]`), "invalid": minimal(`,"policies":{"gas_price_cap":-1}`),
		"malformed": `{`, "taken": minimal(`,"id":"taken"`), "too large": minimal(`,"notification_id":"` + strings.Repeat("x", 1<<20) + `"`),
	} {
		validated := s.do("POST", validation, body)
		if after := s.contents(); after != before {
			t.Fatalf("%s: was %s\nis %s", name, before, after)
		}
		created := serveTaken(t).do("POST", collection, body)
		if name == "valid" {
			created.status = http.StatusOK
			created.header.Del("Location")
			created.header.Del("ETag")
		}
		if validated.text("") != created.text("") {
			t.Errorf("%s: validate returned\n%s\ncreate\n%s", name, validated.text(""), created.text(""))
		}
	}
	wantFailure(t, s.do("POST", validation, minimal(""), with("Content-Type", "text/plain")), http.StatusUnsupportedMediaType, "Bad Request")
	if got := s.do("POST", validation, minimal("")); decode[envelope[relayer.Relayer]](t, got.body).Data.ID == "" {
		t.Errorf("no ID is generated: %s", got.body)
	}
}

func serveTaken(t *testing.T) *service {
	t.Helper()
	s := serve(t)
	s.create(minimal(`,"id":"taken"`))
	return s
}

// TestDryRun: the response is that of the change, and nothing is stored.
func TestDryRun(t *testing.T) {
	refused := errors.New("")
	admit := func(_ context.Context, a relayer.Admission) error {
		if a.Action == relayer.ActionDelete && a.Old.Name == "pending" {
			return relayer.Refuse("transactions are pending")
		}
		if a.Action == relayer.ActionDelete && a.Old.Name == "broken" {
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
		{"n", "DELETE", "", with("X"), 200},
		{"n", "DELETE", "", with("If-Match", `"0"`), 412},
		{"pending", "DELETE", "", with("X"), 400},
		{"broken", "DELETE", "", with("X"), 500},
	} {
		s := serveAs(t, validTokens, []relayer.Option{relayer.WithAdmission(admit)})
		s.create(strings.Replace(minimal(`,"id":"r-1"`), `"name":"n"`, `"name":"`+c.name+`"`, 1))
		before, tag := s.contents(), s.do("GET", one, "").header.Get("ETag")
		send := func(query string) reply {
			got := s.do(c.method, one+query, c.body, with("Content-Type", "application/json"), c.header)
			if got.status != c.want {
				t.Errorf("%s %s%s returned %d, want %d: %s", c.method, c.body, query, got.status, c.want, got.body)
			}
			return got
		}
		dry := send("?dry_run=true")
		if after := s.contents(); after != before {
			t.Errorf("%s %s: was %s\nis %s", c.method, c.body, before, after)
		}
		if c.method == "PATCH" && c.want == 200 && dry.header.Get("ETag") != tag {
			t.Errorf("%s: the ETag is %s, want the current %s", c.body, dry.header.Get("ETag"), tag)
		}
		real := send("?dry_run=false")
		if c.name == "pending" {
			wantProblem(t, real, "", "transactions are pending")
		}
		if after := s.contents(); c.want >= 400 && after != before {
			t.Errorf("%s %s: was %s\nis %s", c.method, c.body, before, after)
		}
		dry.header.Del("ETag")
		real.header.Del("ETag")
		if dry.text("") != real.text("") {
			t.Errorf("%s %s: the dry run returned\n%s\nthe change\n%s", c.method, c.body, dry.text(""), real.text(""))
		}
	}
	s := serveTaken(t)
	for _, query := range []string{"?dry_run=1", "?dry_run=", "?dry_run=True", "?dry_run=true&dry_run=true"} {
		for _, method := range []string{"PATCH", "DELETE"} {
			got := s.do(method, collection+"/taken"+query, `{}`, with("Content-Type", "application/json"))
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
		}
	}
	if got := s.do("GET", collection+"/taken", ""); got.status != http.StatusOK {
		t.Errorf("after invalid dry runs the relayer returns %d", got.status)
	}
}
