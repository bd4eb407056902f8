package main

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// pageFiles is the web page: a document that loads one style sheet and the modules of
// one script.
//
//go:embed page
var pageFiles embed.FS

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// contentSecurityPolicy allows only scripts and styles in files of this server, and
// requests to it. Injected markup could load, run and send nothing.
var contentSecurityPolicy = strings.Join([]string{
	"default-src 'none'",
	"script-src 'self'",
	"style-src 'self'",
	"connect-src 'self'",
	// The icon is an empty data URL, so that browsers request no file.
	"img-src data:",
	"form-action 'none'",
	"base-uri 'none'",
	"frame-ancestors 'none'",
	"require-trusted-types-for 'script'",
	"trusted-types 'none'",
}, "; ")

// newPage returns the handlers of the web page by path: the document at / and its
// other files under /page/. The page contains no relayers: it requests them from the
// API, with the token that the user enters.
func newPage() map[string]http.Handler {
	handlers := make(map[string]http.Handler)
	// Reading an embedded file cannot fail.
	names, _ := fs.Glob(pageFiles, "page/*")
	for _, name := range names {
		content, _ := pageFiles.ReadFile(name)
		address := "/" + name
		if name == "page/index.html" {
			address = "/"
		}
		handlers[address] = pageFile(contentTypes[path.Ext(name)], content)
	}
	return handlers
}

func pageFile(contentType string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Type", contentType)
		header.Set("Content-Length", strconv.Itoa(len(content)))
		header.Set("Content-Security-Policy", contentSecurityPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		// A cached file could belong to another version of the page.
		header.Set("Cache-Control", "no-store")
		_, _ = w.Write(content)
	})
}
