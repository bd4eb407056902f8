package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// lastChange is a last change as a response has it.
type lastChange struct {
	Revision                    uint64
	Time, Actor, Action, Reason string
}

// wantChange checks a last change, except for its revision, which is returned.
func wantChange(t *testing.T, got lastChange, action, reason string) uint64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, got.Time)
	if err != nil || time.Since(at).Abs() > time.Minute || got.Revision == 0 {
		t.Errorf("the change is %+v, error %v", got, err)
	}
	if got.Actor != "alice" || got.Action != action || got.Reason != reason {
		t.Errorf("the change is %+v, want %s by alice because of %q", got, action, reason)
	}
	return got.Revision
}

func changesOf(t *testing.T, got reply) []lastChange {
	t.Helper()
	body := decode[struct {
		Change  *lastChange
		Changes []lastChange
	}](t, got.body)
	if body.Change != nil {
		return append(body.Changes, *body.Change)
	}
	return body.Changes
}

// TestChanges: every response with relayers says who changed them last, only if it is asked.
func TestChanges(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	w := openStream(t, http.DefaultClient, s.url, "?changes=true")
	w.wantResync()
	for _, c := range []struct{ method, path, body, kind, action string }{
		{"POST", collection, minimal(`,"id":"r-1"`), "created", "create"},
		{"PATCH", one, `{"name":"m"}`, "updated", "update"},
		{"PATCH", one, `{"paused":true}`, "updated", "pause"},
		{"PATCH", one, `{"paused":false}`, "updated", "resume"},
		{"PUT", one + "/disabled_reason", `{"type":"x"}`, "updated", "disable"},
		{"DELETE", one + "/disabled_reason", "", "updated", "enable"},
	} {
		reason := "because of " + c.action
		got := s.do(c.method, c.path+"?changes=true", c.body, with("X-Change-Reason", reason))
		list := changesOf(t, got)
		if len(list) != 1 {
			t.Fatalf("%s: %d %s", c.action, got.status, got.body)
		}
		revision := wantChange(t, list[0], c.action, reason)
		if want := fmt.Sprintf(`"%d"`, revision); got.header.Get("ETag") != want {
			t.Errorf("%s: the ETag is %s, want %s", c.action, got.header.Get("ETag"), want)
		}
		for _, path := range []string{one + "?changes=true", collection + "?changes=true", collection + "?after=&changes=true"} {
			if read := changesOf(t, s.do("GET", path, "")); len(read) != 1 || read[0] != list[0] {
				t.Errorf("GET %s: %+v, want %+v", path, read, list)
			}
		}
		for _, path := range []string{one, collection + "?changes=false", collection + "?after="} {
			if got := s.do("GET", path, "").body; strings.Contains(got, "alice") || strings.Contains(got, `"change`) {
				t.Errorf("GET %s: %s", path, got)
			}
		}
		event := w.want(c.kind, "r-1")
		if streamed := decode[struct{ Change lastChange }](t, event.data).Change; streamed != list[0] {
			t.Errorf("%s: the event is %+v, want %+v", c.action, streamed, list[0])
		}
	}
	s.do("DELETE", one+"?changes=true", "", with("X-Change-Reason", "gone"))
	wantChange(t, decode[struct{ Change lastChange }](t, w.want("deleted", "r-1").data).Change, "delete", "gone")
}

// TestChanges_Unknown: what is not known of a change, such as its position, is absent.
func TestChanges_Unknown(t *testing.T) {
	s := serveFeed(t, changeOf("r-1", "", validDocument("r-1")))
	w := openStream(t, http.DefaultClient, s.url, "?changes=true")
	w.wantResync()
	if e := w.want("created", "r-1"); e.id != "" || !strings.HasPrefix(e.data, `{"etag":"\"1\"","change":{"revision":1},"relayer":`) {
		t.Errorf("the event is %s", e.data)
	}
	plain := serveAs(t, validTokens, nil)
	must(plain.manager.Create(t.Context(), relayer.CreateRequest{ID: "r-1", Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s"}))(t)
	got := plain.do("GET", one+"?changes=true", "").body
	if !regexp.MustCompile(`,"change":\{"revision":1,"time":"[-0-9T:.]{19,23}Z","action":"create"\}\}$`).MatchString(got) {
		t.Errorf("without an actor and a reason: %s", got)
	}
}

// TestChangeReason: every write takes a reason of at most 256 characters.
func TestChangeReason(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations())
	s.create(minimal(`,"id":"r-1"`))
	longest := strings.Repeat("é", 256)
	for _, write := range writes {
		if got := s.do(write.method, write.path, write.body, with("X-Change-Reason", longest)); got.status >= 300 {
			t.Errorf("%s %s: %d %s", write.method, write.path, got.status, got.body)
		}
	}
	if stored, err := s.manager.Get(t.Context(), "r-2"); err != nil || stored.LastChange.Reason != longest {
		t.Errorf("stored %+v, error %v", stored, err)
	}
}

// past is an entry of a history. The history of one relayer does not repeat its ID.
type past struct {
	lastChange
	ID      string
	Changed []string
	Relayer json.RawMessage
}

type historyPage struct {
	Data []past
	Next *string
}

func (s *service) history(caller, path string) historyPage {
	s.t.Helper()
	return decode[historyPage](s.t, s.expect(http.StatusOK, "GET", path, "", as(caller)).body)
}

func TestHistory(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(0, 0))
	s.create(minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://user:pw@rpc.example/v2/key"}]`))
	s.patch(`{"paused":true}`)
	s.do("PATCH", one, `{"name":"m","labels":{"team":"payments"}}`, with("X-Change-Reason", "renamed"))
	s.patch(`{"custom_rpc_urls":[{"url":"https://user:pw@rpc.example/v2/key?a=b"}]}`)
	current := s.do("GET", one, "")
	s.do("DELETE", one, "")

	all := s.history(validToken, one+"/history")
	if len(all.Data) != 5 || all.Next != nil {
		t.Fatalf("the history is %+v", all)
	}
	for i, want := range []struct{ action, reason, changed string }{
		{"delete", "", "[]"}, {"update", "", "[custom_rpc_urls]"}, {"update", "renamed", "[labels.team name]"}, {"pause", "", "[paused]"}, {"create", "", "[]"},
	} {
		entry := all.Data[i]
		revision := wantChange(t, entry.lastChange, want.action, want.reason)
		if changed := fmt.Sprint(entry.Changed); changed != want.changed || i > 0 && revision >= all.Data[i-1].Revision {
			t.Errorf("entry %d is %+v, want %+v", i, entry, want)
		}
	}
	if got := s.do("GET", one+"/history", ""); strings.Contains(got.body, "paused_by") {
		t.Errorf("the history has who paused the relayer before other changes: %s", got.body)
	}
	if string(all.Data[0].Relayer) != "null" || `{"success":true,"data":`+string(all.Data[1].Relayer)+`}` != current.body {
		t.Errorf("the newest entries are %s\nand %s\nwant null and %s", all.Data[0].Relayer, all.Data[1].Relayer, current.body)
	}
	if name := decode[relayer.Relayer](t, string(all.Data[4].Relayer)).Name; name != "n" {
		t.Errorf("the relayer was created with the name %q", name)
	}

	if walked := s.walkHistory(validToken, one+"/history", "per_page=2"); encode(t, walked) != encode(t, all.Data) {
		t.Errorf("pages have\n%s\nwant\n%s", encode(t, walked), encode(t, all.Data))
	}
	if none := s.history(validToken, one+"/history?per_page=0"); none.Data == nil || len(none.Data) != 0 || none.Next != nil {
		t.Errorf("per_page=0: %+v", none)
	}
}

func TestHistory_Invalid(t *testing.T) {
	s := serve(t)
	s.create(minimal(`,"id":"r-1"`))
	for _, id := range []string{"nobody", "a.b"} {
		wantFailure(t, s.do("GET", collection+"/"+id+"/history", ""), http.StatusNotFound, "Relayer with ID "+id+" not found")
	}
	if got := s.do("GET", one+"/history?rpc_urls=full&changes=true", ""); strings.Count(got.body, "was ignored") != 2 {
		t.Errorf("unknown parameters: %s", got.body)
	}
	silent := serveManager(t, managerOn(t, noHistory{memory.New()}), validTokens)
	for _, path := range []string{one + "/history", allHistory} {
		wantFailure(t, silent.do("GET", path, ""), http.StatusNotFound, "Not Found")
		if got := silent.do("HEAD", path, ""); got.status != http.StatusNotFound {
			t.Errorf("HEAD of %s returned %d", path, got.status)
		}
	}
}

const allHistory = collection + ":history"

// walkHistory returns the entries of all pages.
func (s *service) walkHistory(caller, path, query string) (all []past) {
	s.t.Helper()
	for before := ""; ; {
		page := s.history(caller, path+"?"+query+before)
		all = append(all, page.Data...)
		if page.Next == nil {
			return all
		}
		before = "&before=" + *page.Next
	}
}

func TestHistory_Filters(t *testing.T) {
	s := serveScoped(t, true)
	s.as(teamWriter, "PATCH", collection+"/in-1", `{"paused":true}`)
	s.as(writer, "PATCH", collection+"/out-1", `{"paused":true}`)
	s.as(writer, "DELETE", collection+"/in-2", "")
	end := time.Now().UTC().Add(time.Second).Format(time.RFC3339Nano)
	for query, want := range map[string]string{
		"":                           "delete in-2, pause out-1, pause in-1, create out-2, create out-1, create in-2, create in-1",
		"action=pause":               "pause out-1, pause in-1",
		"actor=team-writer":          "pause in-1",
		"action=pause&actor=writer":  "pause out-1",
		"actor=nobody":               "",
		"since=2200-01-01T00:00:00Z": "",
		"until=2000-01-01T00:00:00Z": "",
		"since=2000-01-01T00:00:00Z": "delete in-2, pause out-1, pause in-1, create out-2, create out-1, create in-2, create in-1",
		"action=delete&until=" + end: "delete in-2",
		"action=delete&since=" + end: "",
	} {
		for _, perPage := range []string{"", "&per_page=1", "&per_page=2"} {
			entries := s.walkHistory(reader, allHistory, query+perPage)
			var got []string
			for _, e := range entries {
				got = append(got, string(e.Action)+" "+e.ID)
			}
			if joined := strings.Join(got, ", "); joined != want {
				t.Errorf("%s%s: %s, want %s", query, perPage, joined, want)
			}
		}
	}
}

// TestHistory_ScopeMatrix compares both histories with a model: a caller sees a change if its
// scope has the relayer before or after it, and the relayer if its scope has it after.
func TestHistory_ScopeMatrix(t *testing.T) {
	type step struct{ id, before, after string } // the teams; empty: no relayer
	steps := []step{
		{"inside", "", "payments"}, {"outside", "", "risk"}, {"moved-in", "", "risk"}, {"moved-out", "", "payments"},
		{"deleted", "", "payments"}, {"deleted-outside", "", "risk"}, {"both", "", "payments"},
		{"inside", "payments", "payments"}, {"outside", "risk", "risk"}, {"moved-in", "risk", "risk"}, {"moved-in", "risk", "payments"},
		{"moved-out", "payments", "risk"}, {"moved-out", "risk", "risk"}, {"deleted", "payments", ""}, {"deleted-outside", "risk", ""},
		{"both", "payments", "risk"}, {"both", "risk", ""}, {"both", "", "payments"},
	}
	s := serveScoped(t, false)
	for i, c := range steps {
		path := collection + "/" + c.id
		var got reply
		switch {
		case c.before == "":
			got = s.as(writer, "POST", collection, scopedBody(c.id, c.after))
		case c.after == "":
			got = s.as(writer, "DELETE", path, "")
		default:
			got = s.as(writer, "PATCH", path, fmt.Sprintf(`{"name":"n-%d","labels":{"team":%q}}`, i, c.after))
		}
		if got.status >= 300 {
			t.Fatalf("%+v: %d %s", c, got.status, got.body)
		}
	}
	for _, caller := range []string{reader, writer, teamReader, teamWriter} {
		isScoped := caller == teamReader || caller == teamWriter
		selects := func(team string) bool { return team == "payments" || team != "" && !isScoped }
		want := make(map[string][]string) // by ID; all of them under ""
		for _, c := range slices.Backward(steps) {
			if selects(c.before) || selects(c.after) {
				entry := fmt.Sprint(c.id, " ", selects(c.after))
				want[c.id], want[""] = append(want[c.id], entry), append(want[""], entry)
			}
		}
		for _, id := range []string{"", "inside", "outside", "moved-in", "moved-out", "deleted", "deleted-outside", "both"} {
			path := allHistory
			if id != "" {
				path = collection + "/" + id + "/history"
			}
			if len(want[id]) == 0 {
				wantFailure(t, s.as(caller, "GET", path, ""), http.StatusNotFound, "Relayer with ID "+id+" not found")
				continue
			}
			for _, perPage := range []string{"per_page=1", "per_page=3", "per_page=100"} {
				entries := s.walkHistory(caller, path, perPage)
				var got []string
				for _, e := range entries {
					if e.ID != "in-1" && e.ID != "in-2" {
						got = append(got, fmt.Sprint(cmp.Or(e.ID, id), " ", string(e.Relayer) != "null"))
					}
				}
				if !slices.Equal(got, want[id]) {
					t.Errorf("%s %s %s:\n%q\nwant\n%q", caller, path, perPage, got, want[id])
				}
			}
		}
	}
}
