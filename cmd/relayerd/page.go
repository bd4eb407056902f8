package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// pageFile is the web page. It is one file and loads no other.
//
//go:embed page.html
var pageFile string

// newPage serves the web page. The page contains no relayers: it requests them from
// the API, with the token that the user enters.
func newPage() http.Handler {
	// Browsers convert line ends to \n before they compute the hash.
	content := strings.ReplaceAll(pageFile, "\r\n", "\n")
	policy := contentSecurityPolicy(content)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Length", strconv.Itoa(len(content)))
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		// A cached page could be shown with the policy of another version.
		header.Set("Cache-Control", "no-store")
		_, _ = w.Write([]byte(content))
	})
}

// contentSecurityPolicy allows only the page's own script and style, and requests to
// its own server. Injected markup could load, run and send nothing.
func contentSecurityPolicy(page string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hashSource(page, `<script type="module">`, "</script>"),
		"style-src " + hashSource(page, "<style>", "</style>"),
		"connect-src 'self'",
		// The icon is an empty data URL, so that browsers request no file.
		"img-src data:",
		"form-action 'none'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// hashSource returns the source that allows the element between start and end.
func hashSource(page, start, end string) string {
	_, rest, _ := strings.Cut(page, start)
	text, _, _ := strings.Cut(rest, end)
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
