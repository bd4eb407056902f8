package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

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
