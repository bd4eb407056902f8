package httpapi_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

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

// clocks is a store of instances whose clocks differ.
type clocks struct {
	relayer.Store
	times map[string]time.Time // of the creates; zero is unknown
}

func (c clocks) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	if rec.Note = nil; !c.times[rec.ID].IsZero() {
		rec.Note = fmt.Appendf(nil, `{"time":%q,"action":"create"}`, c.times[rec.ID].UTC().Format(time.RFC3339Nano))
	}
	return c.Store.Create(ctx, rec)
}

// A change of an instance whose clock is behind, or of an unknown time, does not end a search.
func TestHistory_Clocks(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	manager := managerOn(t, clocks{memory.New(), map[string]time.Time{"early": since.Add(time.Second), "behind": since.Add(-59 * time.Second), "late": since}})
	s := serveManager(t, manager, anyToken, httpapi.WithRateLimit(0, 0))
	for _, id := range []string{"early", "behind", "unknown", "late"} {
		s.as(writer, "POST", collection, scopedBody(id, "risk"))
	}
	entries := s.walkHistory(reader, allHistory, "since="+since.Format(time.RFC3339))
	if len(entries) != 2 || entries[0].ID != "late" || entries[1].ID != "early" {
		t.Errorf("found %+v, want late and early", entries)
	}
}

// endlessHistory is a store with one change of the past, an endless number of times.
type endlessHistory struct {
	relayer.Store
	read *int
}

func (e endlessHistory) History(ctx context.Context, query relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	found, err := e.Store.History(ctx, relayer.HistoryQuery{Limit: 1})
	if err != nil {
		return nil, err
	}
	last := query.Before
	if last == 0 {
		last = 1 << 40
	}
	*e.read += query.Limit
	past := slices.Repeat(found, query.Limit)
	for i := range past {
		past[i].Record.Revision = last - uint64(i) - 1
	}
	return past, nil
}

// TestHistory_Bounded: a filter or a scope that selects nothing ends after a part of the
// history, and returns the cursor of the next request.
func TestHistory_Bounded(t *testing.T) {
	var read int
	manager := managerOn(t, endlessHistory{memory.New(), &read})
	s := serveManager(t, manager, anyToken, httpapi.WithAuthorizer(scopes), httpapi.WithRateLimit(0, 0))
	s.as(writer, "POST", collection, scopedBody("out-1", "risk"))
	for _, c := range []struct{ caller, query string }{{reader, "?actor=nobody"}, {teamReader, ""}, {teamReader, "?actor=nobody"}} {
		read = 0
		got := s.as(c.caller, "GET", allHistory+c.query, "")
		page := decode[historyPage](t, got.body)
		if got.status != http.StatusOK || len(page.Data) != 0 || page.Next == nil || read > 11_000 {
			t.Errorf("%s %s: read %d changes: %d %s", c.caller, c.query, read, got.status, got.body)
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
