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

// TestHandler_Compression checks that both forms of each file have the same content, and that a cache
// gets 304.
func TestHandler_Compression(t *testing.T) {
	t.Parallel()
	for path := range pagePaths(t) {
		for accepted, encoding := range map[string]string{"": "", "br": "", "gzip": "gzip", "br, gzip;q=0.5": "gzip"} {
			response := requestPage(t, http.MethodGet, path, "Accept-Encoding", accepted)
			if got := response.Header.Get("Content-Encoding"); got != encoding || response.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s for %q has the encoding %q, want %q", path, accepted, got, encoding)
			}
			if encoding == "gzip" {
				reader, err := gzip.NewReader(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				response.Body = reader
			}
			if got, want := pageOf(t, response), pageOf(t, requestPage(t, http.MethodGet, path)); got != want {
				t.Errorf("%s for %q has another content", path, accepted)
			}
			again := requestPage(t, http.MethodGet, path, "Accept-Encoding", accepted, "If-None-Match", response.Header.Get("ETag"))
			if again.StatusCode != http.StatusNotModified || pageOf(t, again) != "" {
				t.Errorf("%s for %q with its ETag returned %d", path, accepted, again.StatusCode)
			}
		}
	}
}

// TestPage_LoadsOnlyItsFiles checks that the document names files of the page, which
// exist, and that no file has inline code.
func TestPage_LoadsOnlyItsFiles(t *testing.T) {
	t.Parallel()
	page := pageOf(t, requestPage(t, http.MethodGet, "/"))
	loaded := regexp.MustCompile(`\s(?:src|href)="(assets/[^"]+)"`).FindAllStringSubmatch(page, -1)
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
		if path != "/assets/api.js" && strings.Contains(content, "sessionStorage") {
			t.Errorf("%s uses sessionStorage: only api.js has the token", path)
		}
		if found := regexp.MustCompile(`(textContent|innerText|ariaLabel|document\.title) \+?= |createTextNode`).FindString(content); found != "" && path != "/assets/dom.js" {
			t.Errorf("%s has %q: only dom.js writes texts, after it has replaced what reorders them", path, found)
		}
		if strings.Contains(content, "localStorage") {
			t.Errorf("%s uses localStorage: the page stores nothing but the token, if the user chose that", path)
		}
	}
}

// TestPage_CompressedSize checks that the first load of the page stays small.
func TestPage_CompressedSize(t *testing.T) {
	t.Parallel()
	const most = 60_000
	total := 0
	for path := range pagePaths(t) {
		total += len(pageOf(t, requestPage(t, http.MethodGet, path, "Accept-Encoding", "gzip")))
	}
	t.Logf("%d bytes compressed", total)
	if total > most {
		t.Errorf("the page has %d bytes compressed, want at most %d", total, most)
	}
}
