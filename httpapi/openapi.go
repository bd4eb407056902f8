package httpapi

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"sync"
)

const openAPIPath = "/api/v1/openapi.json"

// openAPIDocument describes the API in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPIDocument []byte

var openAPITag = sync.OnceValue(func() string {
	digest := sha256.Sum256(openAPIDocument)
	return `"` + hex.EncodeToString(digest[:16]) + `"`
})

// isOpenAPI reports whether the request is for the document. Only one spelling of
// the path counts, so that no other path bypasses authentication.
func isOpenAPI(r *http.Request) bool {
	return r.URL.Path == openAPIPath && r.URL.RawPath == ""
}

func serveOpenAPI(_ *exchange, r *http.Request) response {
	tag := openAPITag()
	if matchesAny(r.Header["If-None-Match"], tag) {
		return notModified(tag)
	}
	return response{status: http.StatusOK, body: openAPIDocument}.withHeader("Etag", tag)
}
