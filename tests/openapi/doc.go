// Package openapi compares the OpenAPI document with the handler. It runs the test
// suite of package httpapi and records every exchange, failures included. The
// document must describe each exchange, and the suite must provoke every response
// that the document describes.
//
// The cache of the go command does not cover that suite. Use -count=1 if only the suite
// has changed.
package openapi
