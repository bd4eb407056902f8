package openapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// kin checks exchanges with kin-openapi, an independent implementation. It uses
// document only to find the operation of an exchange.
type kin struct {
	document *document
	spec     *openapi3.T
}

func init() {
	openapi3filter.RegisterBodyDecoder(eventStream, func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		text, err := io.ReadAll(body)
		return string(text), err
	})
}

func newKin(t *testing.T, text []byte) kin {
	t.Helper()
	return kin{read(t, text), load(t, text)}
}

// check returns the problems that kin-openapi finds.
func (k kin) check(ctx context.Context, x exchange) error {
	found := k.document.find(x)
	request := httptest.NewRequestWithContext(ctx, x.Method, "/", bytes.NewReader(x.RequestBody))
	request.URL.RawQuery = x.Query
	request.Header = x.RequestHeader.Clone()
	input := &openapi3filter.RequestValidationInput{
		Request:    request,
		PathParams: found.parameters,
		Route: &routers.Route{
			Spec:      k.spec,
			Path:      found.path,
			PathItem:  k.spec.Paths.Value(found.path),
			Method:    x.Method,
			Operation: k.operation(found),
		},
		Options: &openapi3filter.Options{
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
			IncludeResponseStatus: true,
			SkipSettingDefaults:   true,
		},
	}
	problem := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 x.Status,
		Header:                 x.Header,
		Body:                   io.NopCloser(bytes.NewReader(x.Body)),
		Options:                input.Options,
	})
	if x.Status >= http.StatusBadRequest || found.described == "" {
		return problem
	}
	return errors.Join(problem, openapi3filter.ValidateRequest(ctx, input))
}

// operation returns the operation for kin-openapi. The responses for unknown methods
// and paths are in extensions, which kin-openapi does not read.
func (k kin) operation(found operation) *openapi3.Operation {
	if found.described != "" {
		method := strings.ToUpper(found.described[strings.LastIndexByte(found.described, '/')+1:])
		return k.spec.Paths.Value(found.path).GetOperation(method)
	}
	responses := openapi3.NewResponsesWithCapacity(4)
	for status := range k.document.at(found.responses) {
		component := k.document.resolve(found.responses + "/" + status)
		responses.Set(status, k.spec.Components.Responses[strings.TrimPrefix(component, "#/components/responses/")])
	}
	return &openapi3.Operation{Responses: responses}
}
