package main

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/memory"
)

func requestPage(t *testing.T, method string) *http.Response {
	t.Helper()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := httptest.NewServer(newSite(t.Context(), api, memory.New(), http.NotFoundHandler()))
	t.Cleanup(server.Close)
	request, err := http.NewRequest(method, server.URL+"/", nil)
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

func TestPage_Headers(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		response := requestPage(t, method)
		if response.StatusCode != http.StatusOK || response.ContentLength < 1000 {
			t.Errorf("%s returned %d with %d bytes", method, response.StatusCode, response.ContentLength)
		}
		for name, want := range map[string]string{
			"Content-Type":           "text/html; charset=utf-8",
			"X-Content-Type-Options": "nosniff",
			"X-Frame-Options":        "DENY",
			"Referrer-Policy":        "no-referrer",
			"Cache-Control":          "no-store",
		} {
			if got := response.Header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
		if isEmpty := pageOf(t, response) == ""; isEmpty != (method == http.MethodHead) {
			t.Errorf("%s: the body is empty: %t", method, isEmpty)
		}
	}
}

func TestPage_OtherMethodsReachAPI(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "ODD"} {
		if response := requestPage(t, method); response.StatusCode != http.StatusTeapot {
			t.Errorf("%s / returned %d", method, response.StatusCode)
		}
	}
	server := start(t, token, "--db", "memory")
	if response, err := http.Post(server.url, "application/json", nil); err != nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("POST / without a token returned %v, error %v", response, err)
	}
	server.stop()
}

// elements returns the contents of all elements with a name.
func elements(page, name string) []string {
	var contents []string
	for _, found := range regexp.MustCompile(`(?s)<`+name+`[^>]*>(.*?)</`+name+`>`).FindAllStringSubmatch(page, -1) {
		contents = append(contents, found[1])
	}
	return contents
}

func TestPage_ContentSecurityPolicy(t *testing.T) {
	response := requestPage(t, http.MethodGet)
	page := pageOf(t, response)
	directives := strings.Split(response.Header.Get("Content-Security-Policy"), "; ")
	for _, want := range []string{
		"default-src 'none'", "connect-src 'self'", "form-action 'none'", "base-uri 'none'", "frame-ancestors 'none'",
		"require-trusted-types-for 'script'", "trusted-types 'none'",
	} {
		if !slices.Contains(directives, want) {
			t.Errorf("the policy lacks %s: %q", want, directives)
		}
	}
	for name, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		contents := elements(page, name)
		if len(contents) != 1 || len(contents[0]) < 500 {
			t.Fatalf("the page has %d elements %s", len(contents), name)
		}
		sum := sha256.Sum256([]byte(contents[0]))
		want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
		if !slices.Contains(directives, want) {
			t.Errorf("the policy lacks %s: %q", want, directives)
		}
	}
	for _, directive := range directives {
		if strings.Contains(directive, "unsafe") || strings.Contains(directive, "*") || strings.Contains(directive, "http") {
			t.Errorf("the policy has %s", directive)
		}
	}
}

// A checkout with \r\n line ends serves the same page with the same hashes.
func TestPage_LineEnds(t *testing.T) {
	defer func(original string) { pageFile = original }(pageFile)
	want := requestPage(t, http.MethodGet)
	pageFile = strings.ReplaceAll(pageFile, "\n", "\r\n")
	got := requestPage(t, http.MethodGet)
	if pageOf(t, got) != pageOf(t, want) || got.Header.Get("Content-Security-Policy") != want.Header.Get("Content-Security-Policy") {
		t.Error("the page differs")
	}
}

func TestPage_LoadsAndStoresNothing(t *testing.T) {
	for name, pattern := range map[string]string{
		"address":            `(?i)\b(https?|wss?|ftp):|["'(=]//`,
		"file":               `(?i)\ssrc\s*=|url\(|@import|\bimport\b`,
		"inline handler":     `(?i)<[^>]*\son[a-z]+\s*=`,
		"inline style":       `(?i)<[^>]*\sstyle\s*=`,
		"markup from text":   `innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc`,
		"code from text":     `\beval\b|\bFunction\(`,
		"storage":            `localStorage|sessionStorage|indexedDB|\bcookie|caches\.|serviceWorker|pushState|replaceState`,
		"rounding of number": `parseFloat|toFixed|toLocaleString`,
	} {
		if found := regexp.MustCompile(pattern).FindString(pageFile); found != "" {
			t.Errorf("%s: the page has %q", name, found)
		}
	}
}
