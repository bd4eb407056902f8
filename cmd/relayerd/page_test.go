package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/memory"
)

func requestPage(t *testing.T, method, path string) *http.Response {
	t.Helper()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := httptest.NewServer(newSite(t.Context(), api, memory.New(), http.NotFoundHandler()))
	t.Cleanup(server.Close)
	request, err := http.NewRequest(method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

func pageOf(t *testing.T, response *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// pagePaths maps the paths of the page to their content types.
func pagePaths(t *testing.T) map[string]string {
	t.Helper()
	paths := map[string]string{"/": "text/html; charset=utf-8", "/page/page.css": "text/css; charset=utf-8"}
	scripts, err := filepath.Glob("page/*.js")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("%d scripts, error %v", len(scripts), err)
	}
	for _, name := range scripts {
		paths["/"+filepath.ToSlash(name)] = "text/javascript; charset=utf-8"
	}
	return paths
}

func TestPage_Headers(t *testing.T) {
	t.Parallel()
	for path, contentType := range pagePaths(t) {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			response := requestPage(t, method, path)
			if response.StatusCode != http.StatusOK || response.ContentLength < 500 {
				t.Errorf("%s %s returned %d with %d bytes", method, path, response.StatusCode, response.ContentLength)
			}
			for name, want := range map[string]string{
				"Content-Type":           contentType,
				"X-Content-Type-Options": "nosniff",
				"X-Frame-Options":        "DENY",
				"Referrer-Policy":        "no-referrer",
				"Cache-Control":          "no-store",
			} {
				if got := response.Header.Values(name); len(got) != 1 || got[0] != want {
					t.Errorf("%s %s: %s is %q, want %q", method, path, name, got, want)
				}
			}
			if isEmpty := pageOf(t, response) == ""; isEmpty != (method == http.MethodHead) {
				t.Errorf("%s %s: the body is empty: %t", method, path, isEmpty)
			}
		}
	}
}

// TestPage_OtherPathsReachAPI checks that only the files of the page are served.
func TestPage_OtherPathsReachAPI(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/page", "/page/", "/page/index.html", "/page/../page.go", "/page/other.js", "/index.html"} {
		if response := requestPage(t, http.MethodGet, path); response.StatusCode != http.StatusTeapot {
			t.Errorf("%s returned %d", path, response.StatusCode)
		}
	}
}

func TestPage_OtherMethodsReachAPI(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "ODD"} {
		if response := requestPage(t, method, "/"); response.StatusCode != http.StatusTeapot {
			t.Errorf("%s / returned %d", method, response.StatusCode)
		}
	}
	server := start(t, token, "--db", "memory")
	if response, err := http.Post(server.url, "application/json", nil); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST / without a token returned %v, error %v", response, err)
	}
	server.stop()
}

func TestPage_ContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	want := []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src data:", "form-action 'none'",
		"base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}
	for path := range pagePaths(t) {
		response := requestPage(t, http.MethodGet, path)
		if got := strings.Split(response.Header.Get("Content-Security-Policy"), "; "); !slices.Equal(got, want) {
			t.Errorf("%s: the policy is %q, want %q", path, got, want)
		}
	}
}

// TestPage_LoadsOnlyItsFiles checks that the document names files of the page, which
// exist, and that no file has inline code.
func TestPage_LoadsOnlyItsFiles(t *testing.T) {
	t.Parallel()
	page := pageOf(t, requestPage(t, http.MethodGet, "/"))
	loaded := regexp.MustCompile(`\s(?:src|href)="(page/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(loaded) != 2 {
		t.Errorf("the document loads %q", loaded)
	}
	for _, file := range loaded {
		if _, ok := pagePaths(t)["/"+file[1]]; !ok {
			t.Errorf("%s does not exist", file[1])
		}
	}
	for name, pattern := range map[string]string{
		"inline script": `(?i)<script(?:\s[^>]*)?>[^<]`,
		"inline style":  `(?i)<style|\sstyle\s*=`,
		"handler":       `(?i)<[^>]*\son[a-z]+\s*=`,
	} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("%s: the document has %q", name, found)
		}
	}
}

func TestPage_LoadsAndStoresNothing(t *testing.T) {
	t.Parallel()
	for path := range pagePaths(t) {
		content := pageOf(t, requestPage(t, http.MethodGet, path))
		for name, pattern := range map[string]string{
			"address":            `(?i)\b(https?|wss?|ftp):|["'(=]//`,
			"file":               `(?i)url\(|@import|\bimport\(|from '[^.]`,
			"markup from text":   `innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc`,
			"code from text":     `\beval\b|\bFunction\(`,
			"storage":            `indexedDB|\bcookie|caches\.|serviceWorker|pushState|replaceState`,
			"rounding of number": `parseFloat|toFixed|toLocaleString`,
		} {
			if found := regexp.MustCompile(pattern).FindString(content); found != "" {
				t.Errorf("%s: %s has %q", name, path, found)
			}
		}
		if path != "/page/api.js" && strings.Contains(content, "sessionStorage") {
			t.Errorf("%s uses sessionStorage: only api.js has the token", path)
		}
		if found := regexp.MustCompile(`(textContent|innerText|ariaLabel|document\.title) \+?= |createTextNode`).FindString(content); found != "" && path != "/page/dom.js" {
			t.Errorf("%s has %q: only dom.js writes texts, after it has replaced what reorders them", path, found)
		}
		if path != "/page/remembered.js" && strings.Contains(content, "localStorage") {
			t.Errorf("%s uses localStorage: only remembered.js stores IDs", path)
		}
	}
}

// The first load of the page stays small behind a proxy that compresses it.
func TestPage_CompressedSize(t *testing.T) {
	t.Parallel()
	const most = 60_000
	total := 0
	for path := range pagePaths(t) {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		_, _ = io.WriteString(writer, pageOf(t, requestPage(t, http.MethodGet, path)))
		_ = writer.Close()
		total += compressed.Len()
	}
	t.Logf("%d bytes compressed", total)
	if total > most {
		t.Errorf("the page has %d bytes compressed, want at most %d", total, most)
	}
}
