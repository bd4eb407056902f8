package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// pageFile is the page for people. It is one file and asks for no other.
//
//go:embed page.html
var pageFile string

// newPage answers with the page. It tells nothing of relayers: what it shows it
// asks the API for, with the token that it is given in the browser.
func newPage() http.Handler {
	// Browsers hash what they have read, in which every line ends with \n alone.
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
		// A page that was kept could outlive the server whose policy it came with.
		header.Set("Cache-Control", "no-store")
		// A client that is gone cannot be told so.
		_, _ = w.Write([]byte(content))
	})
}

// contentSecurityPolicy lets the page run its own script and style and talk to
// its own server, and nothing else: markup that got into it could load nothing,
// run nothing and send nothing anywhere.
func contentSecurityPolicy(page string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src " + hashSource(page, `<script type="module">`, "</script>"),
		"style-src " + hashSource(page, "<style>", "</style>"),
		"connect-src 'self'",
		// The icon is an empty data URL, so that browsers do not ask for a file.
		"img-src data:",
		"form-action 'none'",
		"base-uri 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// hashSource is the source that allows the one element between start and end.
func hashSource(page, start, end string) string {
	_, rest, _ := strings.Cut(page, start)
	text, _, _ := strings.Cut(rest, end)
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
