package httpapi_test

import (
	"fmt"
	"net/http"
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
			got := s.do("GET", collection+c.query, "")
			if got.status != http.StatusOK {
				t.Fatalf("returned %d: %s", got.status, got.body)
			}
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
