package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// damagedStore is a store whose first record is damaged.
type damagedStore struct{ relayer.Store }

func (s damagedStore) List(ctx context.Context, q relayer.StoreQuery) (relayer.Listing, error) {
	if q.Offset < 2 && q.After == 0 && q.Limit > 0 {
		return relayer.Listing{}, &relayer.CorruptError{Sequence: 1, Err: errors.New("damaged")}
	}
	return s.Store.List(ctx, q)
}

// The number of relayers needs no relayer, so a damaged one does not hide it.
func TestList_TotalWithDamagedRecord(t *testing.T) {
	db := memory.New()
	createIn(t, managerOn(t, db), "r-1", "n")
	s := serveManager(t, managerOn(t, damagedStore{db}), validTokens)
	for query, want := range map[string]relayer.Pagination{
		"":        {CurrentPage: 1, TotalItems: 1},
		"&page=2": {CurrentPage: 2, TotalItems: 1},
		"&after=": {TotalItems: 1},
	} {
		got := s.expect(http.StatusOK, "GET", collection+"?per_page=0"+query, "").body
		if page := decode[envelope[[]relayer.Relayer]](t, got); *page.Pagination != want || strings.Contains(got, `"position":"`) != (query == "&after=") {
			t.Errorf("%s: the response is %s", query, got)
		}
	}
}

func TestList_Pages(t *testing.T) {
	s := serveAs(t, validTokens, []relayer.Option{relayer.WithMaxPerPage(100)}, httpapi.WithRateLimit(0, 0))
	for i := range 25 {
		// The IDs sort in the reverse order of creation.
		s.create(minimal(fmt.Sprintf(`,"id":"r-%02d"`, 24-i)))
	}

	for _, c := range []struct {
		query string
		first int // the number of the page's first relayer, in creation order
		count int
		want  relayer.Pagination
	}{
		{"", 0, 10, relayer.Pagination{CurrentPage: 1, PerPage: 10, TotalItems: 25}},
		{"?page=0", 0, 10, relayer.Pagination{CurrentPage: 1, PerPage: 10, TotalItems: 25}},
		{"?page=2", 10, 10, relayer.Pagination{CurrentPage: 2, PerPage: 10, TotalItems: 25}},
		{"?page=3", 20, 5, relayer.Pagination{CurrentPage: 3, PerPage: 10, TotalItems: 25}},
		{"?page=4", 0, 0, relayer.Pagination{CurrentPage: 4, PerPage: 10, TotalItems: 25}},
		{"?page=4294967295&per_page=4294967295", 0, 0, relayer.Pagination{CurrentPage: 4294967295, PerPage: 100, TotalItems: 25}},
		{"?per_page=0", 0, 0, relayer.Pagination{CurrentPage: 1, PerPage: 0, TotalItems: 25}},
		{"?per_page=1&page=25", 24, 1, relayer.Pagination{CurrentPage: 25, PerPage: 1, TotalItems: 25}},
		{"?per_page=100", 0, 25, relayer.Pagination{CurrentPage: 1, PerPage: 100, TotalItems: 25}},
		{"?per_page=101", 0, 25, relayer.Pagination{CurrentPage: 1, PerPage: 100, TotalItems: 25}},
		{"?page=002", 10, 10, relayer.Pagination{CurrentPage: 2, PerPage: 10, TotalItems: 25}},
		{"?page=%32", 10, 10, relayer.Pagination{CurrentPage: 2, PerPage: 10, TotalItems: 25}},
		{"?utm_source=x&page=2", 10, 10, relayer.Pagination{CurrentPage: 2, PerPage: 10, TotalItems: 25}},
	} {
		t.Run(c.query, func(t *testing.T) {
			s.t = t
			got := s.expect(http.StatusOK, "GET", collection+c.query, "")
			page := decode[envelope[[]relayer.Relayer]](t, got.body)
			if *page.Pagination != c.want {
				t.Errorf("pagination is %+v, want %+v", *page.Pagination, c.want)
			}
			if len(page.Data) != c.count || page.Data == nil {
				t.Fatalf("%d relayers, want %d: %s", len(page.Data), c.count, got.body)
			}
			for i, r := range page.Data {
				if want := fmt.Sprintf("r-%02d", 24-c.first-i); r.ID != want {
					t.Errorf("relayer %d is %s, want %s", i, r.ID, want)
				}
			}
		})
	}
}

// cursorPage is a page of a list by cursors.
type cursorPage struct {
	Data       []relayer.Relayer
	Next       *string
	Position   *string
	Pagination map[string]int
}

func (s *service) after(cursor, more string) cursorPage {
	s.t.Helper()
	got := s.expect(http.StatusOK, "GET", collection+"?after="+url.QueryEscape(cursor)+more, "")
	return decode[cursorPage](s.t, got.body)
}

func (p cursorPage) ids() (ids []string) {
	for _, r := range p.Data {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestList_Cursor(t *testing.T) {
	s := serveAs(t, validTokens, []relayer.Option{relayer.WithMaxPerPage(100)})
	for i := range 5 {
		s.create(minimal(fmt.Sprintf(`,"id":"r-%d"`, i)))
	}
	first := s.after("", "&per_page=2")
	if want := map[string]int{"per_page": 2, "total_items": 5}; fmt.Sprint(first.Pagination) != fmt.Sprint(want) {
		t.Errorf("the pagination is %v, want %v", first.Pagination, want)
	}
	if !slices.Equal(first.ids(), []string{"r-0", "r-1"}) || first.Next == nil || first.Position == nil || *first.Position == "" {
		t.Fatalf("the first page is %+v", first)
	}
	second := s.after(*first.Next, "&per_page=2")
	third := s.after(*second.Next, "&per_page=2")
	if !slices.Equal(second.ids(), []string{"r-2", "r-3"}) || !slices.Equal(third.ids(), []string{"r-4"}) {
		t.Errorf("the pages are %q and %q", second.ids(), third.ids())
	}
	if third.Next != nil || third.Position == nil {
		t.Errorf("the last page is %+v", third)
	}
	if full := s.after("", "&per_page=5"); len(full.Data) != 5 || full.Next != nil {
		t.Errorf("a full last page is %+v", full)
	}
	if none := s.after("", "&per_page=0"); none.Data == nil || len(none.Data) != 0 || none.Next != nil || none.Position == nil || none.Pagination["total_items"] != 5 {
		t.Errorf("per_page=0: %+v", none)
	}
	if most := s.after("", "&per_page=4294967295"); most.Pagination["per_page"] != 100 {
		t.Errorf("the pagination is %v", most.Pagination)
	}
	filtered := s.after(*first.Next, "&id=r-0&id=r-4")
	if !slices.Equal(filtered.ids(), []string{"r-4"}) || filtered.Pagination["total_items"] != 2 {
		t.Errorf("with a filter: %+v", filtered)
	}
	plain := s.do("GET", collection+"?page=1", "").body
	if strings.Contains(plain, `"position"`) || strings.Contains(plain, `"next"`) {
		t.Errorf("without after: %s", plain)
	}
}

// TestList_PositionResumesStream: a stream from the position of a page has exactly the
// changes after the page, if its selection is the same.
func TestList_PositionResumesStream(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(0, 0))
	s.create(minimal(`,"id":"before"`))
	all, filtered := s.after("", ""), s.after("", "&paused=false")
	s.create(minimal(`,"id":"r-1"`))
	s.patch(`{"paused":true}`)

	w := s.watch(with("Last-Event-ID", *all.Position))
	w.want("created", "r-1")
	w.want("updated", "r-1")
	again := s.after("", "")
	s.create(minimal(`,"id":"r-2"`))
	s.watch(with("Last-Event-ID", *again.Position)).want("created", "r-2")

	w = openStream(t, http.DefaultClient, s.url, "?paused=false", with("Last-Event-ID", *filtered.Position))
	w.want("created", "r-1")
	w.want("deleted", "r-1")
	w.want("created", "r-2")
	openStream(t, http.DefaultClient, s.url, "?paused=false", with("Last-Event-ID", *all.Position)).wantResync()
	s.watch(with("Last-Event-ID", *filtered.Position)).wantResync()
}

// serveFilters starts a registry with relayers that differ in every filter.
func serveFilters(t *testing.T) *service {
	t.Helper()
	s := serve(t, httpapi.WithRateLimit(0, 0))
	s.create(minimal(`,"id":"a","labels":{"team":"payments","owner":""}`))
	s.create(strings.Replace(minimal(`,"id":"b","notification_id":"alerts","labels":{"team":"risk"}`), "sepolia", "mainnet", 1))
	s.create(strings.Replace(solana(`null`), `"name":"n"`, `"name":"USDC payer","id":"c"`, 1))
	s.create(strings.Replace(minimal(`,"id":"d","labels":{"team":"payments"}`), `"paused":false,"signer_id":"s"`, `"paused":true,"signer_id":"other signer"`, 1))
	must(s.manager.Disable(t.Context(), "b", relayer.DisabledReason{Type: "x"}))(t)
	return s
}

// wantIDs checks the relayers and the total of a page.
func wantIDs(t *testing.T, got reply, total int, ids ...string) {
	t.Helper()
	page := decode[cursorPage](t, got.body)
	if got.status != http.StatusOK || !slices.Equal(page.ids(), ids) || page.Pagination["total_items"] != total {
		t.Errorf("got %d %q of %v, want %q of %d: %s", got.status, page.ids(), page.Pagination, ids, total, got.body)
	}
}

func TestList_Filters(t *testing.T) {
	s := serveFilters(t)
	for query, want := range map[string]string{
		"network=sepolia":                         "a d",
		"network_type=solana":                     "c",
		"signer_id=s":                             "a b c",
		"signer_id=other+signer":                  "d",
		"notification_id=alerts":                  "b",
		"paused=true":                             "d",
		"system_disabled=true":                    "b",
		"id=a&id=d&id=nobody":                     "a d",
		"label.team=payments":                     "a d",
		"label.team=payments&label.team=risk":     "a b d",
		"label.owner=":                            "a",
		"label.team=payments&paused=true":         "d",
		"search=usdc":                             "c",
		"search=usdc&search=A":                    "a c",
		"&&network=sepolia&":                      "a d",
		"network=sepolia&changes=true&page=1":     "a d",
		"lab%65l.team=payments&%6eetwork=sepolia": "a d",
	} {
		got := s.do("GET", collection+"?"+query, "")
		ids := strings.Fields(want)
		wantIDs(t, got, len(ids), ids...)
		if strings.Contains(got.body, "metadata") {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	wantIDs(t, s.do("GET", collection+"?signer_id=s&per_page=2&page=2", ""), 3, "c")
	wantIDs(t, s.do("GET", collection+"?signer_id=s&per_page=0", ""), 3)
	wantIDs(t, s.do("GET", collection+"?signer_id=s&page=9", ""), 3)
}

// TestQuery_Invalid: a request is refused, with all problems of its query.
func TestQuery_Invalid(t *testing.T) {
	s := serve(t, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	defer s.unchanged()()
	const (
		noNumber = "must be a whole number from 0 to 4294967295"
		noTime   = "must be a time such as 2026-01-02T15:04:05Z"
		noAction = "must be create, update, pause, resume, disable, enable or delete"
		noActor  = "must be 1 to 256 bytes of UTF-8 without control characters"
		noBool   = "must be true or false"
		noCursor = "must be empty, or the cursor of an earlier page"
		repeated = "must not be given more than once"
		encoding = "the query must be URL-encoded"
	)
	for _, c := range []struct{ path, queries, field, message string }{
		{collection, "page= page=-1 page=%2B1 page=1.0 page=0x1 page=1_0 page=4294967296 page=x page=%D9%A1", "page", noNumber},
		{collection, "page=1&page=1", "page", repeated},
		{collection, "page=%zz a=% page=1;per_page=2", "", encoding},
		{collection, "per_page=-1", "per_page", noNumber},
		{collection, "after=x after=-1 after=99999999999999999999 after=%20", "after", noCursor},
		{collection, "after=&page=1 page=0&after=", "after", "must not be given together with page"},
		{collection, "after=&after=", "after", repeated},
		{collection, "changes= changes=1 changes=True", "changes", noBool},
		{collection, "rpc_urls= rpc_urls=masked rpc_urls=Full", "rpc_urls", "must be full"},
		{collection, "rpc_urls=full&rpc_urls=full", "rpc_urls", repeated},
		{one, "changes=x", "changes", noBool},
		{one, "rpc_urls=x", "rpc_urls", "must be full"},
		{one, "changes=true&changes=true", "changes", repeated},
		{access, "x=%zz", "", encoding},
		{changes, "changes=x", "changes", noBool},
		{changes, "rpc_urls=x", "rpc_urls", "must be full"},
		{allHistory, "since=14:00 since= since=0001-01-01T00:00:00Z", "since", noTime},
		{allHistory, "until=x", "until", noTime},
		{allHistory, "action=bogus action= action=get action=reveal action=Pause", "action", noAction},
		{allHistory, "action=pause&action=resume", "action", repeated},
		{allHistory, "actor= actor=%ff actor=a%09b actor=" + strings.Repeat("a", 257), "actor", noActor},
		{allHistory, "before=0 before=-1 before=x", "before", "must be a revision: a whole number from 1"},
		{one + "/history", "per_page=x", "per_page", noNumber},
	} {
		for _, query := range strings.Fields(c.queries) {
			wantProblem(t, s.do("GET", c.path+"?"+query, ""), c.field, c.message)
			s.expect(http.StatusBadRequest, "HEAD", c.path+"?"+query, "")
		}
	}
	for _, write := range writes {
		path, _, _ := strings.Cut(write.path, "?")
		for _, query := range []string{"dry_run=1", "dry_run=", "dry_run=True", "dry_run"} {
			wantProblem(t, s.do(write.method, path+"?"+query, write.body), "dry_run", noBool)
		}
		wantProblem(t, s.do(write.method, path+"?dry_run=true&dry_run=true", write.body), "dry_run", repeated)
		wantProblem(t, s.do(write.method, path+"?dry_run=%zz", write.body), "", encoding)
	}
}

func TestList_InvalidFilter(t *testing.T) {
	s := serveFilters(t)
	for query, field := range map[string]string{
		"paused=maybe": "paused", "paused=": "paused", "paused=true&paused=x": "paused", "system_disabled=1": "system_disabled",
		"network_type=foo": "network_type", "network=": "network", "network=a%00b": "network",
		"id=a%20b": "id", "label.=x": "label.", "label.-a=x": "label.-a", "label.team=%0a": "label.team", "search=%ff": "search",
	} {
		for _, path := range []string{collection, changes} {
			got := s.do("GET", path+"?"+query, "")
			wantFailure(t, got, http.StatusBadRequest, "Bad Request")
			if problems := decode[failureBody](t, got.body).Errors; len(problems) != 1 || problems[0].Field != field {
				t.Errorf("%s?%s: the errors are %+v, want one of %q", path, query, problems, field)
			}
		}
	}
	got := s.do("GET", collection+"?page=x&paused=x&network_type=x", "")
	for _, field := range []string{"page", "paused", "network_type"} {
		if !strings.Contains(got.body, `"field":"`+field+`"`) {
			t.Errorf("%s is not named: %s", field, got.body)
		}
	}
	many := strings.Repeat("id=a&", 1000)
	wantIDs(t, s.do("GET", collection+"?"+many, ""), 1, "a")
	wantProblem(t, s.do("GET", collection+"?"+many+"network=x", ""), "", "the query must have at most 1000 filters")
}

// TestQuery_UnknownParameter: every response with an envelope names parameters that had no
// effect. A stream does so in its first event.
func TestQuery_UnknownParameter(t *testing.T) {
	const metadata = `"metadata":{"logs":[{"level":"warn","message":"the query parameter \"pausd\" is unknown and was ignored"}]}`
	s := serve(t, httpapi.WithEngineOperations())
	s.create(minimal(`,"id":"r-1"`))
	reads := []struct{ method, path, body string }{{"GET", collection, ""}, {"GET", access, ""}, {"GET", one, ""}, {"GET", one + "/history", ""}}
	for _, c := range append(reads, writes...) {
		got := s.do(c.method, withParameter(c.path, "pausd=true"), c.body)
		if got.status >= 300 || strings.Count(got.body, metadata) != 1 {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
	}
	for query, want := range map[string][]string{
		"pausd":           {"pausd"},
		"pausd=1&pausd=2": {"pausd"},
		"Paused=true&x=1": {"Paused", "x"},
		"=1":              {""},
		"a%22b=1&c%0Ad=1": {`a\"b`, `c\nd`},
		"dry_run=true":    {"dry_run"},
		"labels.team=x":   {"labels.team"},
		"paused%3Dtrue":   {"paused=true"},
		"%3Cscript%3E=1":  {"<script>"},
	} {
		got := decode[struct {
			Metadata struct {
				Logs []struct{ Level, Message string }
			}
		}](t, s.do("GET", collection+"?"+query, "").body)
		var messages []string
		for _, entry := range got.Metadata.Logs {
			messages = append(messages, entry.Message)
		}
		for i, name := range want {
			want[i] = `the query parameter "` + name + `" is unknown and was ignored`
		}
		if !slices.Equal(messages, want) {
			t.Errorf("%s: %q, want %q", query, messages, want)
		}
	}
	for count, want := range map[int]int{10: 10, 11: 11, 1000: 11} {
		var many strings.Builder
		for i := range count {
			fmt.Fprintf(&many, "p%d&", i)
		}
		got := s.do("GET", collection+"?"+many.String(), "").body
		if strings.Count(got, `"level"`) != want || strings.Contains(got, `"more query parameters are unknown and were ignored"`) != (count > 10) {
			t.Errorf("%d unknown parameters: %s", count, got)
		}
	}
	w := openStream(t, http.DefaultClient, s.url, "?pausd=true")
	if e := w.next(); e.name != "resync" || e.data != "{"+metadata+"}" {
		t.Errorf("the stream begins with %+v", e)
	}
	s.create(minimal(`,"id":"r-3"`))
	if e := w.want("created", "r-3"); strings.Contains(e.data, "metadata") {
		t.Errorf("the next event is %+v", e)
	}
}
