package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
)

// A client returns the pages of its Manager, even of a selection.
func TestList_Pages(t *testing.T) {
	m := newManager(t, relayer.WithMaxPerPage(7))
	createTeams(t, m, 12)
	c := serve(t, m)
	for _, query := range []relayer.ListQuery{
		{}, {Page: 1, PerPage: 5}, {PerPage: 5}, {Page: 3, PerPage: 5}, {Page: 4, PerPage: 5}, {Page: 1}, {Page: 2, PerPage: 100},
		{Page: 4294967295, PerPage: math.MaxInt}, {After: new(relayer.Cursor), PerPage: 5}, {After: new(relayer.Cursor)},
		{Selector: where("label.team", "payments"), PerPage: 4, Page: 2},
		{Selector: where("label.team", "payments", "risk"), After: new(relayer.Cursor)},
		{Selector: where("label.team", "risk").Where("paused", "true")}, {Selector: where("search", "R00", "11")},
		{Selector: where("id", "r001", "r003", "unknown")}, {Selector: where("label.team", "a|b,c %=&")},
		{Selector: where("network")}, // selects nothing
	} {
		want := must(m.List(t.Context(), query))(t)
		got, err := c.List(t.Context(), query)
		if err != nil || got.Pagination != want.Pagination || !slices.Equal(ids(got.Relayers), ids(want.Relayers)) {
			t.Errorf("page %v: %+v, want %+v, error %v", query, got, want, err)
		}
		if query.After != nil && (got.Next != want.Next || got.Position != want.Position || got.Next == "" || got.Position == "") {
			t.Errorf("page %v: next %q at %q, want %q at %q", query, got.Next, got.Position, want.Next, want.Position)
		}
		if fmt.Sprint(got.Relayers[:min(1, len(got.Relayers))]) != "[]" && !reflect.DeepEqual(got.Relayers[0].LastChange, want.Relayers[0].LastChange) {
			t.Errorf("page %v: the last change is %v, want %v", query, got.Relayers[0].LastChange, want.Relayers[0].LastChange)
		}
		if !slices.Equal(revisionsOf(got), revisionsOf(want)) {
			t.Errorf("page %v: revisions %d, want %d", query, revisionsOf(got), revisionsOf(want))
		}
	}
}

// A server without revisions returns relayers with the Revision 0.
func TestList_NoRevisions(t *testing.T) {
	const two = `{"success":true,"data":[{"id":"a","network_type":"evm"},{"id":"b","network_type":"evm"}],%s"pagination":{"current_page":1,"per_page":100,"total_items":2}}`
	for revisions, want := range map[string][]uint64{
		``:                {0, 0},
		`"changes":null,`: {0, 0},
		`"changes":[{"revision":7},{"revision":0}],`: {7, 0},
		`"changes":[{"revision":7},{"revision":8}],`: {7, 8},
	} {
		c, s := scripted(t, nil, respondJSON(200, fmt.Sprintf(two, revisions)))
		page, err := c.List(t.Context(), relayer.ListQuery{PerPage: 100})
		if err != nil || !slices.Equal(revisionsOf(page), want) {
			t.Errorf("%s: %v, error %v, want %v", revisions, page, err, want)
		}
		var all []uint64
		for r := range each(t, c.All(t.Context(), relayer.Selector{})) {
			all = append(all, r.Revision)
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s: revisions %v, want %v", revisions, all, want)
		}
		if !strings.Contains(s.seen[0].path, "changes=true") {
			t.Errorf("requested %s", s.seen[0].path)
		}
	}
}

func TestList_InvalidQuery(t *testing.T) {
	c, s := scripted(t, nil, fail(500, ""))
	for field, query := range map[string]relayer.ListQuery{
		"page": {Page: -1}, "per_page": {PerPage: -1}, "owner": {Selector: relayer.Selector{}.Where("owner", "ci")},
	} {
		_, err := c.List(t.Context(), query)
		if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Field != field || len(s.seen) > 0 {
			t.Errorf("%s: error %v after %d requests", field, err, len(s.seen))
		}
	}
}

func ids(relayers []*relayer.Relayer) []string {
	list := []string{}
	for _, r := range relayers {
		list = append(list, r.ID)
	}
	return list
}

func TestList_InvalidResponse(t *testing.T) {
	const one = `{"success":true,"data":[{"id":"a","network_type":"evm"}]`
	for what, body := range map[string]string{
		"no pagination":   one + `}`,
		"no list":         `{"success":true,"data":null,"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
		"too few changes": strings.Replace(one, "{", `{"changes":[],`, 1) + `,"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
		"no relayers":     `{"success":true,"data":[1],"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
	} {
		c, _ := scripted(t, nil, respondJSON(200, body))
		n := 0
		for r, err := range c.All(t.Context(), relayer.Selector{}) {
			if n++; n > 1 || err == nil || r != nil {
				t.Fatalf("%s: %v, error %v", what, r, err)
			}
		}
	}
}

// createAll creates a number of relayers, and returns their IDs.
func createAll(t *testing.T, m *relayer.Manager, count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprint("r", i))
		must(m.Create(t.Context(), evm(ids[i])))(t)
	}
	return ids
}

// revisionsOf returns the revisions of the relayers of a page.
func revisionsOf(page *relayer.Page) (revisions []uint64) {
	for _, r := range page.Relayers {
		revisions = append(revisions, r.Revision)
	}
	return revisions
}

func TestAll_Break(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 3)
	for r, err := range serve(t, m).All(t.Context(), relayer.Selector{}) {
		if err != nil || r.ID != "r0" {
			t.Errorf("%v, error %v", r, err)
		}
		break
	}
}

// A failure ends the iteration after the relayers that were read.
func TestAll_FailureInTheMiddle(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 250)
	api, requests := handlerOf(t, m), 0
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests > 2 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, r)
	}), client.WithRetries(1, 0))
	n, failures := 0, 0
	for _, err := range c.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			failures++
		} else {
			n++
		}
	}
	if n < 150 || n >= 250 || failures != 1 {
		t.Errorf("%d relayers and %d failures", n, failures)
	}
}

// A server that returns the cursor of the request would be read without end.
func TestAll_SameCursor(t *testing.T) {
	page := respondJSON(200, `{"success":true,"data":[],"changes":[],"pagination":{"per_page":100,"total_items":1},"next":"c"}`)
	c, s := scripted(t, once, page, page, fail(403, "Forbidden"))
	if err := firstError(c.All(t.Context(), relayer.Selector{})); err == nil || !strings.Contains(err.Error(), "the same cursor again") {
		t.Errorf("error %v after %s", err, s.methods())
	}
}

// createTeams creates relayers of two teams, in turns.
func createTeams(t *testing.T, g relayer.Registry, count int) {
	t.Helper()
	for i := range count {
		req := evm(fmt.Sprintf("r%03d", i))
		req.Labels = map[string]string{"team": []string{"payments", "risk"}[i%2]}
		req.Paused = i%3 == 0
		must(g.Create(t.Context(), req))(t)
	}
}

func where(key string, values ...string) relayer.Selector {
	return relayer.Selector{}.Where(key, values...)
}

func allIDs(t *testing.T, g relayer.Registry, selector relayer.Selector) (all []string) {
	t.Helper()
	for r := range each(t, g.All(t.Context(), selector)) {
		all = append(all, r.ID)
	}
	return all
}

// OpenZeppelin Relayer ignores the parameters.
func TestSelector_OpenZeppelinRelayer(t *testing.T) {
	server := newPublicServer(150)
	for _, i := range []int{7, 140} {
		server.relayers[i]["paused"] = true
	}
	c := clientOf(t, server)
	if got := allIDs(t, c, where("paused", "true")); !slices.Equal(got, []string{"r7", "r140"}) {
		t.Errorf("all are %v", got)
	}
	for _, selector := range []relayer.Selector{where("paused", "true"), where("network", "sepolia")} { // none and all match
		if page, err := c.List(t.Context(), relayer.ListQuery{Selector: selector}); !errors.Is(err, errors.ErrUnsupported) || page != nil {
			t.Errorf("%s: page %v, error %v", selector, page, err)
		}
	}
}

// The changes of a selection keep a consumer's view equal to it.
func TestWatch_Selector(t *testing.T) {
	m := newManager(t)
	c := serve(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Watch(ctx, relayer.WatchQuery{Selector: where("label.team", "payments")})
	createTeams(t, m, 2)
	move := func(id, team string) {
		must(m.Patch(ctx, id, fmt.Appendf(nil, `{"labels":{"team":%q}}`, team)))(t)
	}
	move("r001", "payments")
	move("r000", "risk")
	must(m.Pause(ctx, "r001"))(t)
	if err := m.Delete(ctx, "r001"); err != nil {
		t.Fatal(err)
	}
	revisions := make(map[string]uint64)
	var got []string
	for change := range each(t, changes) {
		r := change.Relayer
		isKnown := change.Info.Action != "" && reflect.DeepEqual(change.Info, r.LastChange)
		if change.ID != r.ID || change.Kind != relayer.ChangeDeleted && !isKnown {
			t.Errorf("%+v of %v", change, r)
		}
		if change.Kind != relayer.ChangeDeleted && r.Revision <= revisions[r.ID] {
			t.Errorf("revision %d of %s after %d", r.Revision, r.ID, revisions[r.ID])
		}
		revisions[r.ID] = r.Revision
		if got = append(got, fmt.Sprint(change.Kind, " ", r.ID)); len(got) == 5 {
			break
		}
	}
	if want := []string{"created r000", "created r001", "deleted r000", "updated r001", "deleted r001"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v", got, want)
	}
}

func TestWatch_SelectsNothing(t *testing.T) {
	for change, err := range serve(t, newManager(t)).Watch(t.Context(), relayer.WatchQuery{Selector: where("network"), Heartbeats: true}) {
		if err != nil || change.Kind != relayer.ChangeHeartbeat {
			t.Errorf("%+v, error %v", change, err)
		}
		break
	}
}

func TestWatch_InvalidSelector(t *testing.T) {
	c, s := scripted(t, nil, fail(500, ""))
	wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{Selector: where("owner", "ci")}), relayer.ErrInvalid, "owner")
	for r, err := range c.All(t.Context(), where("owner", "ci")) {
		if !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%v, error %v", r, err)
		}
	}
	if len(s.seen) > 0 {
		t.Errorf("%d requests", len(s.seen))
	}
}

func TestLastChange(t *testing.T) {
	m := newManager(t)
	c, ctx := clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations())), t.Context()
	writes := []struct {
		reason string
		write  func(relayer.WriteOption) (*relayer.Relayer, error)
	}{
		{"Grund für alles", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Create(ctx, evm("a"), o) }},
		{"patched", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Patch(ctx, "a", []byte(`{"name":"n"}`), o)
		}},
		{"updated", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "m"; return nil }, o)
		}},
		{"paused", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Pause(ctx, "a", o) }},
		{"disabled", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Disable(ctx, "a", relayer.DisabledReason{Type: "x"}, o)
		}},
		{"enabled", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Enable(ctx, "a", o) }},
	}
	for _, w := range writes {
		got := must(w.write(relayer.Reason(w.reason)))(t)
		read := must(c.Get(ctx, "a"))(t)
		for _, want := range []*relayer.Relayer{must(m.Get(ctx, "a"))(t), read} {
			if !reflect.DeepEqual(got.LastChange, want.LastChange) || got.LastChange.Reason != w.reason || got.LastChange.Time.IsZero() || got.Revision != want.Revision {
				t.Errorf("%s: the last change is %+v, want %+v", w.reason, got.LastChange, want.LastChange)
			}
		}
	}
	must(c.Create(ctx, evm("b")))(t)
	if err := c.Delete(ctx, "a", relayer.Reason("deleted")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query relayer.HistoryQuery
		want  string // the reasons
	}{
		{relayer.HistoryQuery{ID: "a", Limit: 4}, "deleted, enabled, disabled, paused, updated, patched, Grund für alles"},
		{relayer.HistoryQuery{Limit: 4}, "deleted, , enabled, disabled, paused, updated, patched, Grund für alles"},
		{relayer.HistoryQuery{Action: relayer.ActionPause}, "paused"},
		{relayer.HistoryQuery{Actor: "nobody"}, ""},
		{relayer.HistoryQuery{Since: time.Now().Add(time.Hour)}, ""},
		{relayer.HistoryQuery{Until: time.Now().Add(-time.Hour)}, ""},
	} {
		var reasons []string
		query := test.query
		for isLast := false; !isLast; isLast = query.Before == 0 {
			want, wantNext, wantErr := m.History(ctx, query)
			got, next, err := c.History(ctx, query)
			if err != nil || wantErr != nil || next != wantNext || len(got) != len(want) {
				t.Fatalf("the history is %+v before %d, want %+v before %d, errors %v and %v", got, next, want, wantNext, err, wantErr)
			}
			for i, past := range got {
				expected := want[i]
				if past.Kind != expected.Kind || past.ID != expected.ID || !reflect.DeepEqual(past.Info, expected.Info) ||
					fmt.Sprint(past.Relayer) != fmt.Sprint(expected.Relayer) {
					t.Errorf("a revision is %+v, want %+v", past, expected)
				}
				reasons = append(reasons, past.Info.Reason)
			}
			query.Before = next
		}
		if got := strings.Join(reasons, ", "); got != test.want {
			t.Errorf("%+v: the reasons are %s, want %s", test.query, got, test.want)
		}
	}
}

func TestHistory_Errors(t *testing.T) {
	c := serve(t, newManager(t))
	for want, query := range map[error]relayer.HistoryQuery{
		relayer.ErrNotFound: {ID: "absent"}, relayer.ErrInvalid: {ID: "a", Limit: -1},
	} {
		if revisions, _, err := c.History(t.Context(), query); !errors.Is(err, want) {
			t.Errorf("%+v: %v, error %v, want %v", query, revisions, err, want)
		}
	}
	_, _, err := c.History(t.Context(), relayer.HistoryQuery{ID: "a/b"}) // it is not a path
	if !errors.Is(err, relayer.ErrNotFound) || !strings.Contains(err.Error(), `client: get "a/b": `) {
		t.Errorf("an impossible ID: error %v", err)
	}
	scripted, s := scripted(t, nil, respondJSON(200, `{"success":true,"data":[]}`))
	if _, _, err := scripted.History(t.Context(), relayer.HistoryQuery{}); err != nil || !strings.HasSuffix(s.seen[0].path, ":history") {
		t.Errorf("a query without values is sent as %s, error %v", s.seen[0].path, err)
	}
	public := clientOf(t, newPublicServer(1))
	for _, id := range []string{"r0", ""} {
		if revisions, _, err := public.History(t.Context(), relayer.HistoryQuery{ID: id}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("OpenZeppelin Relayer: history of %q: %v, error %v", id, revisions, err)
		}
	}
}
