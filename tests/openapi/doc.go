// Package openapi holds the OpenAPI document against what the handler really
// does: every exchange that the harness of package httpapi's test suite sees,
// failures included, must be one that the document describes, and there must be
// one for each answer that it describes.
//
// The suite is run anew for that. The go command knows nothing of it, and takes
// an old result for a new one where nothing but the suite has changed: -count=1
// makes it look again.
package openapi
