// Package page is the web page of the registry, for operators: a list of the relayers, their
// policies and history, and the actions of an incident. A host mounts it next to the API of
// package httpapi:
//
//	mux.Handle("/registry/", http.StripPrefix("/registry", api))
//	mux.Handle("/admin/", http.StripPrefix("/admin", page.Handler("/registry/api/v1")))
//
// The page contains no relayers. It requests them from the API, with the bearer token that the
// user enters, so that it can do what that token may do.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"strings"
	"time"
)

// assets has the document, one style sheet and the modules of one script.
//
//go:embed assets
var assets embed.FS

var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
}

// contentSecurityPolicy allows only scripts and styles in files of this server, and
// requests to it. This blocks injected scripts, styles and requests to other servers.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src data:; " + // the icon is an empty data URL, so browsers request no file
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Option configures the handler that [Handler] returns. The zero Option has no effect.
type Option struct{ name, value string }

// WithName shows a name, such as production, in the header and in the title of the page, so that
// users see which registry they change.
func WithName(name string) Option { return Option{"data-name", name} }

// TrustHost is for an API with httpapi.TrustHost, or an Authenticator, that reads what a browser sends
// by itself: a cookie or HTTP Basic authentication. The page then asks for no token. Wrap the API in
// [http.CrossOriginProtection]: browsers send such credentials with requests of other sites too.
func TrustHost() Option { return Option{"data-trust-host", "true"} }

// Handler returns the web page: its document at /, and its files below /assets/. A path with a
// prefix needs [http.StripPrefix]. apiPath is the path of the API for a browser, such as
// /registry/api/v1. It may be relative to the page, such as api/v1, which also works behind a
// proxy that adds a prefix.
func Handler(apiPath string, options ...Option) http.Handler {
	attributes := ` data-api="` + html.EscapeString(strings.TrimSuffix(apiPath, "/")) + `"`
	for _, option := range options {
		if option.name != "" {
			attributes += " " + option.name + `="` + html.EscapeString(option.value) + `"`
		}
	}
	files := make(map[string]http.Handler)
	names, _ := fs.Glob(assets, "assets/*") // the pattern is valid
	for _, name := range names {
		content, _ := assets.ReadFile(name) // an embedded file can be read
		served := "/" + name
		if name == "assets/index.html" {
			served = "/"
			content = bytes.Replace(content, []byte("<html"), []byte("<html"+attributes), 1)
		}
		files[served] = newFile(contentTypes[path.Ext(name)], content)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, isFound := files[r.URL.Path]
		switch {
		case !isFound:
			http.NotFound(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		default:
			file.ServeHTTP(w, r)
		}
	})
}

// newFile returns the handler of a file of the page, with its compressed form.
func newFile(contentType string, content []byte) http.HandlerFunc {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	_, _ = writer.Write(content) // a buffer takes every write
	_ = writer.Close()
	caching := "no-cache" // a copy could belong to another version of the page: ask each time
	if strings.HasPrefix(contentType, "text/html") {
		caching = "no-store" // no browser keeps the page, and what is entered in it, for its back button
	}
	header := http.Header{
		"Content-Type":            {contentType},
		"Content-Security-Policy": {contentSecurityPolicy},
		"X-Content-Type-Options":  {"nosniff"},
		"X-Frame-Options":         {"DENY"},
		"Referrer-Policy":         {"no-referrer"},
		"Cache-Control":           {caching},
		"Vary":                    {"Accept-Encoding"},
		// It is weak, because both forms have the same tag.
		"Etag": {fmt.Sprintf(`W/"%x"`, sha256.Sum256(content))},
	}
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), header)
		served := content
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			served = compressed.Bytes()
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(served))
	}
}
