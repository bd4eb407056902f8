package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"sync"
)

// openAPIPath is where the OpenAPI document is served.
const openAPIPath = "/api/v1/openapi.json"

// openAPIDocument describes the API in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPIDocument []byte

// openAPITag is the ETag of the document.
var openAPITag = sync.OnceValue(func() string {
	digest := sha256.Sum256(openAPIDocument)
	return `"` + hex.EncodeToString(digest[:16]) + `"`
})

// WithoutOpenAPI takes GET /api/v1/openapi.json away: the path becomes one of
// those that do not exist. The document is otherwise served to everybody,
// without a token and without a rate.
func WithoutOpenAPI() Option {
	return Option{func(a *api) error {
		a.openAPI = false
		return nil
	}}
}

// isOpenAPI tells whether the request is for the document. Only the plain
// spelling of the path counts, so that none leads past authentication to
// anything else.
func (a *api) isOpenAPI(r *http.Request) bool {
	return a.openAPI && r.URL.Path == openAPIPath && r.URL.RawPath == ""
}

// describe answers the OpenAPI document.
func describe(_ *exchange, r *http.Request) response {
	tag := openAPITag()
	if matchesAny(r.Header["If-None-Match"], tag) {
		return response{status: http.StatusNotModified}.with("Etag", tag)
	}
	return response{status: http.StatusOK, body: openAPIDocument}.with("Etag", tag)
}
