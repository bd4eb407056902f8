package page_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/page"
)

var mounted = http.StripPrefix("/admin", page.Handler("/registry/api/v1/", page.WithName(`"prod" <1>`), page.TrustHost()))

// requestPage sends a request to the page, mounted below a prefix.
func requestPage(t *testing.T, method, path string, headers ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(method, "/admin"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	response := httptest.NewRecorder()
	mounted.ServeHTTP(response, request)
	return response.Result()
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
	paths := map[string]string{"/": "text/html; charset=utf-8", "/assets/page.css": "text/css; charset=utf-8"}
	scripts, err := filepath.Glob("assets/*.js")
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
		caching := "no-cache"
		if path == "/" {
			caching = "no-store"
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			response := requestPage(t, method, path)
			if response.StatusCode != http.StatusOK || response.ContentLength < 500 {
				t.Errorf("%s %s returned %d with %d bytes", method, path, response.StatusCode, response.ContentLength)
			}
			for name, want := range map[string]string{
				"Content-Type": contentType,
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; " +
					"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
				"X-Content-Type-Options": "nosniff",
				"X-Frame-Options":        "DENY",
				"Referrer-Policy":        "no-referrer",
				"Cache-Control":          caching,
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

func TestHandler_OtherPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/assets", "/assets/", "/assets/index.html", "/assets/../page.go", "/assets/other.js", "/index.html"} {
		if response := requestPage(t, http.MethodGet, path); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s returned %d", path, response.StatusCode)
		}
	}
}

func TestHandler_OtherMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "ODD"} {
		response := requestPage(t, method, "/")
		if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s / returned %d with %v", method, response.StatusCode, response.Header)
		}
	}
}

// TestHandler_Options checks that the document has what the host has set, as text.
func TestHandler_Options(t *testing.T) {
	t.Parallel()
	want := `<html data-api="/registry/api/v1" data-name="&#34;prod&#34; &lt;1&gt;" data-trust-host="true" lang="en">`
	if document := pageOf(t, requestPage(t, http.MethodGet, "/")); !strings.Contains(document, want) {
		t.Errorf("the document is %.200s, want %s", document, want)
	}
	plain := httptest.NewRecorder()
	page.Handler("api/v1", page.Option{}).ServeHTTP(plain, httptest.NewRequest(http.MethodGet, "/", nil))
	if want := `<html data-api="api/v1" lang="en">`; !strings.Contains(plain.Body.String(), want) {
		t.Errorf("the document is %.200s, want %s", plain.Body, want)
	}
}

// TestHandler_Compression checks that both forms of each file have the same content, that a cache gets
// 304, and that the first load stays small.
func TestHandler_Compression(t *testing.T) {
	t.Parallel()
	const most = 60_000
	total := 0
	for path := range pagePaths(t) {
		plain := pageOf(t, requestPage(t, http.MethodGet, path))
		for accepted, encoding := range map[string]string{"": "", "br": "", "gzip": "gzip", "br, gzip;q=0.5": "gzip"} {
			response := requestPage(t, http.MethodGet, path, "Accept-Encoding", accepted)
			if got := response.Header.Get("Content-Encoding"); got != encoding || response.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q has the encoding %q, want %q", path, accepted, got, encoding)
			}
			got := pageOf(t, response)
			if encoding == "gzip" {
				total += len(got) / 2 // two of the values ask for it
				reader, err := gzip.NewReader(strings.NewReader(got))
				if err != nil {
					t.Fatal(err)
				}
				got = pageOf(t, &http.Response{Body: reader})
			}
			if got != plain {
				t.Errorf("%s for %q has another content", path, accepted)
			}
			again := requestPage(t, http.MethodGet, path, "Accept-Encoding", accepted, "If-None-Match", response.Header.Get("ETag"))
			if again.StatusCode != http.StatusNotModified || pageOf(t, again) != "" {
				t.Errorf("%s for %q with its ETag returned %d", path, accepted, again.StatusCode)
			}
		}
	}
	if total == 0 || total > most {
		t.Errorf("the page has %d bytes compressed, want at most %d", total, most)
	}
}

// TestPage_OwnFiles checks that the document names files of the page, which exist, that no file has
// inline code, and that none loads, stores or writes markup.
func TestPage_OwnFiles(t *testing.T) {
	t.Parallel()
	loaded := regexp.MustCompile(`\s(?:src|href)="(assets/[^"]+)"`).FindAllStringSubmatch(pageOf(t, requestPage(t, http.MethodGet, "/")), -1)
	if len(loaded) != 2 {
		t.Errorf("the document loads %q", loaded)
	}
	for _, file := range loaded {
		if pagePaths(t)["/"+file[1]] == "" {
			t.Errorf("%s does not exist", file[1])
		}
	}
	for path, contentType := range pagePaths(t) {
		content := pageOf(t, requestPage(t, http.MethodGet, path))
		patterns := map[string]string{
			"inline script":      `(?i)<script(?:\s[^>]*)?>[^<]`,
			"inline style":       `(?i)<style|\sstyle\s*=`,
			"address":            `(?i)\b(https?|wss?|ftp):|["'(=]//`,
			"file":               `(?i)url\(|@import|\bimport\(|from '[^.]`,
			"markup from text":   `innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc`,
			"code from text":     `\beval\b|\bFunction\(`,
			"storage":            `localStorage|indexedDB|\bcookie|caches\.|serviceWorker|history\.state|State'?\]?\([^n]`, // a state of null
			"rounding of number": `parseFloat|toFixed|toLocaleString`,
		}
		if strings.HasPrefix(contentType, "text/html") {
			patterns["handler"] = `(?i)<[^>]*\son[a-z]+\s*=`
		}
		if path != "/assets/api.js" { // only this file has the token
			patterns["token"] = `sessionStorage`
		}
		if path != "/assets/dom.js" { // only this file writes texts, after it has replaced what reorders them
			patterns["text of others"] = `(textContent|innerText|ariaLabel|document\.title) \+?= |createTextNode`
		}
		for name, pattern := range patterns {
			if found := regexp.MustCompile(pattern).FindString(content); found != "" {
				t.Errorf("%s: %s has %q", name, path, found)
			}
		}
	}
}
