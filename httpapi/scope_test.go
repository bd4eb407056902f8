package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

// The callers of a registry with two teams. The ID of an actor is its token.
const (
	reader     = "reader"      // reads all relayers
	writer     = "writer"      // may do everything
	teamReader = "team-reader" // reads those of the team payments
	teamWriter = "team-writer" // may do everything with them
)

var payments = relayer.Selector{}.Where("label.team", "payments")

// scopes is the Authorizer of the callers.
func scopes(_ context.Context, access httpapi.Access) (httpapi.Decision, error) {
	within := payments
	if access.Actor.ID == reader || access.Actor.ID == writer {
		within = relayer.Selector{}
	}
	isReader := access.Actor.ID == reader || access.Actor.ID == teamReader
	if isReader && access.Action.IsWrite() {
		return httpapi.Decision{}, nil
	}
	return httpapi.Allow(within), nil
}

// scopedBody is a create request of a relayer of a team.
func scopedBody(id, team string) string {
	return minimal(`,"id":"` + id + `","labels":{"team":"` + team + `"},"custom_rpc_urls":[{"url":"https://rpc.example/` + id + `-secret"}]`)
}

// serveScoped starts a registry with the relayers in-1 and in-2 of the team payments, and,
// if asked for, relayers of the team risk.
func serveScoped(t *testing.T, withOthers bool) *service {
	t.Helper()
	s := serveAs(t, anyToken, nil,
		httpapi.WithAuthorizer(scopes), httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	for _, id := range []string{"in-1", "in-2"} {
		s.as(writer, "POST", collection, scopedBody(id, "payments"))
	}
	if withOthers {
		for _, id := range []string{"out-1", "out-2"} {
			s.as(writer, "POST", collection, scopedBody(id, "risk"))
		}
	}
	return s
}

// as sends a request of a caller, or without a token if it has no name.
func (s *service) as(caller, method, path, body string, headers ...header) reply {
	s.t.Helper()
	authorization := as(caller)
	if caller == "" {
		authorization = with("Authorization")
	}
	return s.do(method, path, body, append([]header{authorization}, headers...)...)
}

// text returns everything of a response except for the request ID, the date and the ID of
// the relayer.
func (r reply) text(id string) string {
	header := r.header.Clone()
	header.Del("X-Request-Id")
	header.Del("Date")
	var lines strings.Builder
	_ = header.Write(&lines)
	text := fmt.Sprintf("%d\n%s\n%s", r.status, &lines, r.body)
	if id == "" {
		return text
	}
	return strings.ReplaceAll(text, id, "ID")
}

// relayerRequests are requests about one relayer, and the status if the relayer exists and
// the action is permitted.
var relayerRequests = []struct {
	method, path, body string
	header             header
	isWrite            bool
	want               int
}{
	{"GET", "", "", with("X"), false, 200},
	{"HEAD", "", "", with("X"), false, 200},
	{"GET", "", "", with("If-None-Match", "*"), false, 304},
	{"GET", "?unknown=1", "", with("X"), false, 200},
	{"PATCH", "", `{"name":"m"}`, with("X"), true, 200},
	{"PATCH", "?dry_run=true", `{"name":"m"}`, with("X"), true, 200},
	{"PATCH", "", `{}`, with("X"), true, 200},
	{"PATCH", "", `{"paused":true}`, with("If-Match", "*"), true, 200},
	{"PATCH", "", `{"name":"m"}`, with("If-Match", `"0"`), true, 412},
	{"PATCH", "", `{"name":""}`, with("X"), true, 400},
	{"PATCH", "", `{"labels":{"team":"risk","x":1}}`, with("X"), true, 400},
	{"PATCH", "", `{`, with("X"), true, 400},
	{"PATCH", "", strings.Repeat(" ", 2<<20), with("X"), true, 413},
	{"PATCH", "", `{"name":"m"}`, with("Content-Type", "text/plain"), true, 415},
	{"PATCH", "?dry_run=x", `{"name":"m"}`, with("X"), true, 400},
	{"DELETE", "", "", with("X"), true, 200},
	{"DELETE", "?dry_run=true", "", with("X"), true, 200},
	{"DELETE", "", "", with("If-Match", `"0"`), true, 412},
	{"GET", "?rpc_urls=full", "", with("X"), false, 200},
	{"HEAD", "?rpc_urls=full", "", with("X"), false, 200},
	{"GET", "?rpc_urls=full", "", with("If-None-Match", "*"), false, 200},
	{"GET", "?rpc_urls=x", "", with("X"), false, 400},
	{"GET", "?changes=true", "", with("X"), false, 200},
	{"GET", "/history", "", with("X"), false, 200},
	{"HEAD", "/history?per_page=0", "", with("X"), false, 200},
	{"GET", "/history?before=x", "", with("X"), false, 400},
	{"PUT", "/disabled_reason", `{"type":"x"}`, with("X"), true, 200},
	{"PUT", "/disabled_reason", `{"type":""}`, with("X"), true, 400},
	{"PUT", "/disabled_reason", `{"type":"x"}`, with("If-Match", `"0"`), true, 412},
	{"DELETE", "/disabled_reason", "", with("X"), true, 200},
	{"DELETE", "/disabled_reason", "", with("If-Match", `"0"`), true, 412},
	{"POST", "", "", with("X"), true, 405},
}

// TestScope_Matrix: for a caller with a scope the whole response about a relayer outside is
// the one about an unknown relayer.
func TestScope_Matrix(t *testing.T) {
	for _, caller := range []string{"", reader, writer, teamReader, teamWriter} {
		for _, r := range relayerRequests {
			s := serveScoped(t, true)
			send := func(id string) reply {
				return s.as(caller, r.method, collection+"/"+id+r.path, r.body, r.header)
			}
			inside, outside, unknown := send("in-1"), send("out-1"), send("non-1")
			name := fmt.Sprintf("%q: %s %s %.20s %v", caller, r.method, r.path, r.body, r.header)

			isScoped := caller == teamReader || caller == teamWriter
			isReader := caller == reader || caller == teamReader
			wantInside, wantOutside := r.want, r.want
			switch {
			case caller == "":
				wantInside, wantOutside = 401, 401
			case r.want == 405:
			case isReader && r.isWrite:
				wantInside, wantOutside = 403, 403
			case isScoped:
				wantOutside = unknown.status
			}
			if inside.status != wantInside || outside.status != wantOutside {
				t.Errorf("%s: inside %d, outside %d, want %d and %d", name, inside.status, outside.status, wantInside, wantOutside)
			}
			if !isScoped && caller != "" && !(isReader && r.isWrite) {
				continue
			}
			if got, want := outside.text("out-1"), unknown.text("non-1"); got != want {
				t.Errorf("%s: outside\n%s\nunknown\n%s", name, got, want)
			}
			if isScoped && wantInside < 300 && unknown.status != 404 && r.want != 405 {
				t.Errorf("%s: an unknown relayer returned %d", name, unknown.status)
			}
		}
	}
}

// TestScope_Lists: to a caller with a scope a registry with relayers outside looks like one
// without them.
func TestScope_Lists(t *testing.T) {
	full, empty := serveScoped(t, true), serveScoped(t, false)
	for _, caller := range []string{teamReader, teamWriter} {
		for _, query := range []string{
			"", "?per_page=0", "?page=2", "?per_page=1&page=2", "?per_page=1&page=3", "?search=o", "?search=out", "?search=secret",
			"?id=out-1", "?id=in-1&id=out-1", "?label.team=risk", "?label.team=payments&label.team=risk", "?label.other=x", "?network=sepolia", "?paused=false", "?unknown=1",
		} {
			for _, method := range []string{"GET", "HEAD"} {
				got, want := full.as(caller, method, collection+query, ""), empty.as(caller, method, collection+query, "")
				if got.status != http.StatusOK || got.text("") != want.text("") {
					t.Errorf("%s %s %s:\n%s\nwithout others\n%s", caller, method, query, got.text(""), want.text(""))
				}
			}
		}
		if total := `"total_items":2}`; !strings.Contains(full.as(caller, "GET", collection, "").body, total) {
			t.Errorf("%s has another total than %s", caller, total)
		}
	}
	if got := full.as(reader, "GET", collection, ""); !strings.Contains(got.body, `"total_items":4}`) {
		t.Errorf("without a scope: %s", got.body)
	}
}

// TestScope_MovedIn: what is known of the change that moved a relayer into the scope has no
// paths of fields, which would show the fields that it had before. A caller without a scope, and
// later changes, have them.
func TestScope_MovedIn(t *testing.T) {
	s := serveScoped(t, true)
	w := openStream(t, http.DefaultClient, s.url, "?changes=true", with("Authorization", "Bearer "+teamReader))
	w.wantResync()
	requests := []string{collection + "/out-1?changes=true", collection + "?changes=true&id=out-1", collection + "/out-1/history?per_page=1", collection + ":history?per_page=1"}
	patch := func(body string) {
		t.Helper()
		s.expect(http.StatusOK, "PATCH", collection+"/out-1", body, as(writer))
	}
	want := func(caller, paths string) {
		t.Helper()
		for _, path := range requests {
			if got := s.as(caller, "GET", path, ""); got.status != http.StatusOK || strings.Contains(got.body, `"changed":`) != (paths != "") || !strings.Contains(got.body, paths) {
				t.Errorf("%s of %s: %d %s, want the paths %s", path, caller, got.status, got.body, paths)
			}
		}
	}
	patch(`{"labels":{"hidden":"x"}}`)
	patch(`{"labels":{"team":"payments","hidden":null}}`)
	want(teamReader, "")
	want(reader, `"changed":["labels.hidden","labels.team"]`)
	patch(`{"labels":{"owner":"ci"}}`)
	want(teamReader, `"changed":["labels.owner"]`)
	if moved := w.want("created", "out-1"); !strings.Contains(moved.data, `"change":{`) || strings.Contains(moved.data, `"changed":`) {
		t.Errorf("the event is %s", moved.data)
	}
	if later := w.want("updated", "out-1"); !strings.Contains(later.data, `"changed":["labels.owner"]`) {
		t.Errorf("the event is %s", later.data)
	}
}

// TestScope_Stream: a stream has only relayers inside. One that leaves the scope is deleted,
// with nothing of its later state.
func TestScope_Stream(t *testing.T) {
	s := serveScoped(t, true)
	w := s.watch(with("Authorization", "Bearer "+teamReader))
	all := s.watch(with("Authorization", "Bearer "+reader))
	w.wantResync()
	all.wantResync()
	patch := func(id, body string) {
		t.Helper()
		s.expect(http.StatusOK, "PATCH", collection+"/"+id, body, as(writer))
	}
	patch("out-1", `{"name":"hidden-1"}`)
	patch("in-1", `{"name":"visible-1"}`)
	patch("in-1", `{"name":"hidden-2","labels":{"team":"risk"}}`)
	patch("in-1", `{"name":"hidden-3"}`)
	patch("out-1", `{"labels":{"team":"payments"},"name":"visible-2"}`)
	s.as(writer, "DELETE", collection+"/in-1", "")
	s.as(writer, "POST", collection, scopedBody("out-3", "risk"))
	s.as(writer, "DELETE", collection+"/out-2", "")
	s.as(writer, "DELETE", collection+"/out-1", "")
	s.as(writer, "POST", collection, scopedBody("end", "payments"))

	events := []event{w.want("updated", "in-1"), w.want("deleted", "in-1"), w.want("created", "out-1"), w.want("deleted", "out-1"), w.want("created", "end")}
	if left := events[1].data; !strings.HasSuffix(left, `,"relayer":{"id":"in-1"}}`) {
		t.Errorf("the relayer that left is %s", left)
	}
	for i, name := range map[int]string{0: "visible-1", 2: "visible-2", 3: "visible-2"} {
		if !strings.Contains(events[i].data, name) {
			t.Errorf("event %d is %+v, without %s", i, events[i], name)
		}
	}
	for _, e := range events {
		for _, secret := range []string{"hidden", "risk", "out-2", "out-3", "-secret"} {
			if strings.Contains(e.data, secret) {
				t.Errorf("%s is in %+v", secret, e)
			}
		}
	}
	for _, id := range []string{"out-1", "in-1", "in-1", "in-1", "out-1", "in-1", "out-3", "out-2", "out-1", "end"} {
		if e := all.next(); !strings.Contains(e.data, `"id":"`+id+`"`) {
			t.Errorf("the stream without a scope has %+v, want %s", e, id)
		}
	}
}
