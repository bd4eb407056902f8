package httpapi

import (
	_ "embed"
	"net/http"
)

const openAPIPath = "/api/v1/openapi.json"

// openAPIDocument describes the API in OpenAPI 3.1.
//
//go:embed openapi.json
var openAPIDocument []byte

// isOpenAPI reports whether the request is for the document. Only one spelling of
// the path counts, so that no other path bypasses authentication.
func isOpenAPI(r *http.Request) bool {
	return r.URL.Path == openAPIPath && r.URL.RawPath == ""
}

func serveOpenAPI(*exchange) response {
	return response{status: http.StatusOK, body: openAPIDocument}
}
