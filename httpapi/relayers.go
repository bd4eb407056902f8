package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
)

// get answers one relayer (spec section 4.1).
func (a *api) get(x *exchange, r *http.Request) response {
	id := r.PathValue("relayer_id")
	body, revision, err := a.manager.AppendDocument(&x.ctx, x.begin(), id)
	if errors.Is(err, relayer.ErrNotFound) {
		return unknownRelayer(id)
	}
	if err != nil {
		return a.failureOf(x, r, err)
	}
	tag := entityTag(revision)
	if matchesAny(r.Header["If-None-Match"], tag) {
		return response{status: http.StatusNotModified}.with("Etag", tag)
	}
	return x.success(http.StatusOK, body).with("Etag", tag)
}

// create adds a relayer (spec section 4.2).
func (a *api) create(x *exchange, r *http.Request) response {
	if !hasMediaType(r, jsonType) {
		return invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: "the Content-Type must be " + jsonType})
	}
	body, refusal := a.readBody(x, r)
	if refusal != nil {
		return *refusal
	}
	document, err := a.manager.CreateDocument(&x.ctx, body)
	if err != nil {
		return a.failureOf(x, r, err)
	}
	return x.success(http.StatusCreated, append(x.begin(), document.JSON...)).
		with("Location", location(r, document.ID)).
		with("Etag", entityTag(document.Revision))
}

// list answers a page of relayers (spec section 4.3).
func (a *api) list(x *exchange, r *http.Request) response {
	query, err := parseListQuery(r.URL.RawQuery)
	if err != nil {
		return a.failureOf(x, r, err)
	}
	body, pagination, err := a.manager.AppendDocuments(&x.ctx, append(x.begin(), '['), query.page, query.perPage)
	if err != nil {
		return a.failureOf(x, r, err)
	}
	body = append(body, `],"pagination":`...)
	return x.success(http.StatusOK, append(body, encode(pagination)...))
}

// patch changes a relayer by a merge patch.
func (a *api) patch(x *exchange, r *http.Request) response {
	if !hasMediaType(r, jsonType, mergePatchType) {
		message := "the Content-Type must be " + jsonType + " or " + mergePatchType
		return invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: message}).with("Accept-Patch", mergePatchType+", "+jsonType)
	}
	body, refusal := a.readBody(x, r)
	if refusal != nil {
		return *refusal
	}
	id := r.PathValue("relayer_id")
	document, err := a.manager.PatchDocument(&x.ctx, id, body, conditions(r.Header)...)
	if err != nil {
		return a.changeFailure(x, r, id, err)
	}
	return x.success(http.StatusOK, append(x.begin(), document.JSON...)).with("Etag", entityTag(document.Revision))
}

// remove deletes a relayer.
func (a *api) remove(x *exchange, r *http.Request) response {
	id := r.PathValue("relayer_id")
	if err := a.manager.Delete(&x.ctx, id, conditions(r.Header)...); err != nil {
		return a.changeFailure(x, r, id, err)
	}
	return x.success(http.StatusOK, append(x.begin(), `"Relayer deleted successfully"`...))
}

// changeFailure answers a change of one relayer that failed with err.
func (a *api) changeFailure(x *exchange, r *http.Request, id string, err error) response {
	switch {
	case errors.Is(err, relayer.ErrNotFound):
		return unknownRelayer(id)
	case errors.Is(err, relayer.ErrConflict) && len(r.Header["If-Match"]) > 0:
		return failure(http.StatusPreconditionFailed, messagePreconditionFailed)
	default:
		return a.failureOf(x, r, err)
	}
}

func unknownRelayer(id string) response {
	return failure(http.StatusNotFound, "Relayer with ID "+id+" not found")
}

const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
)

// hasMediaType tells whether the body is of one of the types, whatever their
// parameters.
func hasMediaType(r *http.Request, types ...string) bool {
	values := r.Header["Content-Type"]
	if len(values) != 1 {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(values[0])
	return err == nil && slices.Contains(types, mediaType)
}

// readBody reads a body that is not too large, or returns what to answer.
func (a *api) readBody(x *exchange, r *http.Request) ([]byte, *response) {
	tooLarge := invalidRequest(http.StatusRequestEntityTooLarge, relayer.FieldError{
		Message: fmt.Sprintf("the body must be at most %d bytes", a.maxBodyBytes),
	})
	if r.ContentLength > a.maxBodyBytes {
		return nil, &tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, a.maxBodyBytes))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &tooLarge
	}
	refusal := invalidRequest(http.StatusBadRequest, relayer.FieldError{Message: "the body could not be read to its end"})
	return nil, &refusal
}

// location is the path of a relayer just created, as the client sees it: below
// whatever prefix the request came in under. [http.StripPrefix] leaves that in
// RequestURI alone, in front of the three segments of the path that was routed,
// however those are escaped.
func location(r *http.Request, id string) string {
	var prefix string
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		prefix = asked.EscapedPath()
		for range 3 {
			prefix = prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
		}
	}
	return prefix + "/api/v1/relayers/" + id
}
