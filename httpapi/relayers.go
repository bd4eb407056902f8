package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

func (a *API) getRelayer(x *exchange, r *http.Request) response {
	body, revision, err := a.manager.AppendDocument(r.Context(), x.startBody(), x.relayerID)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	tag := entityTag(revision)
	if matchesAny(r.Header["If-None-Match"], tag) {
		return response{status: http.StatusNotModified}.withHeader("Etag", tag)
	}
	return x.success(http.StatusOK, body).withHeader("Etag", tag)
}

func (a *API) createRelayer(x *exchange, r *http.Request) response {
	if !hasMediaType(r, jsonType) {
		return invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: "the Content-Type must be " + jsonType})
	}
	body, rejection := a.readBody(x, r)
	if rejection != nil {
		return *rejection
	}
	document, err := a.manager.CreateDocument(r.Context(), body)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	return x.success(http.StatusCreated, append(x.startBody(), document.JSON...)).
		withHeader("Location", location(r, document.ID)).
		withHeader("Etag", entityTag(document.Revision))
}

func (a *API) listRelayers(x *exchange, r *http.Request) response {
	query, err := parseListQuery(r.URL.RawQuery)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if query.revisions {
		return a.listWithRevisions(x, r, query)
	}
	body, pagination, err := a.manager.AppendDocuments(r.Context(), append(x.startBody(), '['), query.page, query.perPage)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	return x.success(http.StatusOK, appendPagination(append(body, ']'), pagination))
}

// listWithRevisions adds the revisions of the relayers, in their order, next to the data.
func (a *API) listWithRevisions(x *exchange, r *http.Request, query listQuery) response {
	documents, pagination, err := a.manager.ListDocuments(r.Context(), query.page, query.perPage)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	size := 0
	for _, document := range documents {
		size += len(document.JSON) + len(`,`)
	}
	body, revisions := append(slices.Grow(x.startBody(), size), '['), []byte(`],"revisions":[`)
	for i, document := range documents {
		if i > 0 {
			body, revisions = append(body, ','), append(revisions, ',')
		}
		body = append(body, document.JSON...)
		revisions = strconv.AppendUint(revisions, document.Revision, 10)
	}
	body = append(append(body, revisions...), ']')
	return x.success(http.StatusOK, appendPagination(body, pagination))
}

func appendPagination(body []byte, p relayer.Pagination) []byte {
	body = strconv.AppendUint(append(body, `,"pagination":{"current_page":`...), uint64(p.CurrentPage), 10)
	body = strconv.AppendUint(append(body, `,"per_page":`...), uint64(p.PerPage), 10)
	body = strconv.AppendInt(append(body, `,"total_items":`...), int64(p.TotalItems), 10)
	return append(body, '}')
}

func (a *API) patchRelayer(x *exchange, r *http.Request) response {
	if !hasMediaType(r, jsonType, mergePatchType) {
		message := "the Content-Type must be " + jsonType + " or " + mergePatchType
		return invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: message}).
			withHeader("Accept-Patch", mergePatchType+", "+jsonType)
	}
	body, rejection := a.readBody(x, r)
	if rejection != nil {
		return *rejection
	}
	document, err := a.manager.PatchDocument(r.Context(), x.relayerID, body, conditions(r.Header)...)
	if err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	return x.success(http.StatusOK, append(x.startBody(), document.JSON...)).withHeader("Etag", entityTag(document.Revision))
}

func (a *API) deleteRelayer(x *exchange, r *http.Request) response {
	if err := a.manager.Delete(r.Context(), x.relayerID, conditions(r.Header)...); err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	return x.success(http.StatusOK, append(x.startBody(), `"Relayer deleted successfully"`...))
}

// conditionalErrorResponse returns the response to a patch or delete that failed with
// err. A conflict without If-Match is contention: a later request may succeed.
func (a *API) conditionalErrorResponse(x *exchange, r *http.Request, err error) response {
	if errors.Is(err, relayer.ErrConflict) && len(r.Header["If-Match"]) == 0 {
		err = fmt.Errorf("%w: %w", relayer.ErrUnavailable, err)
	}
	return a.errorResponse(x, r, err)
}

const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
)

// hasMediaType reports whether the only Content-Type is one of the types, with any
// parameters.
func hasMediaType(r *http.Request, types ...string) bool {
	values := r.Header["Content-Type"]
	if len(values) != 1 {
		return false
	}
	mediaType, _, err := mime.ParseMediaType(values[0])
	return err == nil && slices.Contains(types, mediaType)
}

// readBody returns the body of the request, or the response that rejects it.
func (a *API) readBody(x *exchange, r *http.Request) (body []byte, rejection *response) {
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
	incomplete := invalidRequest(http.StatusBadRequest, relayer.FieldError{Message: "the body could not be read to its end"})
	return nil, &incomplete
}

// location returns the path of a created relayer as the client sees it, below the
// prefix of the request. [http.StripPrefix] removes the prefix from the URL and
// leaves it in RequestURI, in front of the three segments of the routed path.
func location(r *http.Request, id string) string {
	var prefix string
	if requested, err := url.ParseRequestURI(r.RequestURI); err == nil {
		prefix = requested.EscapedPath()
		for range 3 {
			prefix = prefix[:max(0, strings.LastIndexByte(prefix, '/'))]
		}
	}
	return prefix + "/api/v1/relayers/" + id
}
