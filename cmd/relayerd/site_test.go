package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-relayer/relayer/page"
	"github.com/go-relayer/relayer/store/memory"
)

// TestSite_Page checks that the page has its paths, and the API all other paths and methods.
func TestSite_Page(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	site := newSite(t.Context(), api, memory.New(), map[string]http.Handler{"/": page.Handler("api/v1")})
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/", http.StatusOK}, {"HEAD", "/", http.StatusOK}, {"GET", "/assets/main.js", http.StatusOK},
		{"GET", "/assets/", http.StatusNotFound}, {"GET", "/assets/other.js", http.StatusNotFound}, {"GET", "/assets", http.StatusTeapot},
		{"GET", "/index.html", http.StatusTeapot}, {"GET", "/page/main.js", http.StatusTeapot}, {"GET", "/api/v1/relayers", http.StatusTeapot},
		{"POST", "/", http.StatusTeapot}, {"OPTIONS", "/", http.StatusTeapot}, {"ODD", "/assets/main.js", http.StatusTeapot},
	} {
		response := httptest.NewRecorder()
		site.ServeHTTP(response, httptest.NewRequest(c.method, c.path, nil))
		if response.Code != c.want {
			t.Errorf("%s %s returned %d, want %d", c.method, c.path, response.Code, c.want)
		}
	}
}
