package httpapi

import (
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

func (a *API) getRelayer(x *exchange, r *http.Request) response {
	x.ignoreQuery(r)
	document, err := x.manager.GetDocument(x, x.relayerID)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	tag := entityTag(document.Revision)
	if matchesAny(r.Header["If-None-Match"], tag) {
		return notModified(tag)
	}
	return x.document(http.StatusOK, document).withHeader("Etag", tag)
}

func (a *API) createRelayer(x *exchange, r *http.Request) response {
	document, rejection := a.create(x, r)
	if rejection != nil {
		return *rejection
	}
	x.relayerID = document.ID
	return x.document(http.StatusCreated, document).
		withHeader("Location", location(r, document.ID)).
		withHeader("Etag", entityTag(document.Revision))
}

func (a *API) validateRelayer(x *exchange, r *http.Request) response {
	document, rejection := a.create(x, r, relayer.DryRun())
	if rejection != nil {
		return *rejection
	}
	return x.document(http.StatusOK, document)
}

func (a *API) create(x *exchange, r *http.Request, options ...relayer.WriteOption) (relayer.Document, *response) {
	x.ignoreQuery(r)
	body, rejection := a.readJSON(x, r)
	if rejection != nil {
		return relayer.Document{}, rejection
	}
	document, err := x.manager.CreateDocument(x, body, options...)
	if err != nil {
		failed := a.errorResponse(x, r, err)
		return relayer.Document{}, &failed
	}
	return document, nil
}

func (a *API) listRelayers(x *exchange, r *http.Request) response {
	q, err := parseListQuery(r.URL.RawQuery)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	x.unknown = q.unknown
	room := a.documents.Get().(*[]relayer.Document)
	defer a.putDocuments(room)
	// A ListQuery with 0 relayers per page is that of the default.
	perPage := max(q.perPage, 1)
	documents, pagination, err := x.manager.AppendDocuments(x, (*room)[:0], relayer.ListQuery{
		Selector: q.selector, Page: intOf(q.page), PerPage: intOf(perPage),
	})
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	*room = documents
	if q.perPage == 0 {
		documents, pagination.PerPage = nil, 0
	}
	body := appendDocuments(x.startBody(), documents)
	if q.revisions {
		body = appendRevisions(body, documents)
	}
	return x.success(http.StatusOK, appendPagination(body, pagination))
}

// maxPooledDocuments is the capacity of the largest slice that is kept for later pages.
const maxPooledDocuments = 1000

// putDocuments returns a slice to the pool, without the documents: the store may replace
// them.
func (a *API) putDocuments(room *[]relayer.Document) {
	if cap(*room) <= maxPooledDocuments {
		clear((*room)[:cap(*room)])
		a.documents.Put(room)
	}
}

// intOf converts a number for platforms whose int has 32 bits.
func intOf(number uint32) int { return int(min(uint64(number), math.MaxInt)) }

func appendDocuments(body []byte, documents []relayer.Document) []byte {
	size := len(`[]`)
	for i := range documents {
		size += len(documents[i].JSON) + len(`,`)
	}
	body = append(slices.Grow(body, size), '[')
	for i := range documents {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, documents[i].JSON...)
	}
	return append(body, ']')
}

func appendRevisions(body []byte, documents []relayer.Document) []byte {
	body = append(body, `,"revisions":[`...)
	for i, document := range documents {
		if i > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendUint(body, document.Revision, 10)
	}
	return append(body, ']')
}

func appendPagination(body []byte, p relayer.Pagination) []byte {
	body = strconv.AppendInt(append(body, `,"pagination":{"current_page":`...), int64(p.CurrentPage), 10)
	body = strconv.AppendInt(append(body, `,"per_page":`...), int64(p.PerPage), 10)
	body = strconv.AppendInt(append(body, `,"total_items":`...), int64(p.TotalItems), 10)
	return append(body, '}')
}

func (a *API) patchRelayer(x *exchange, r *http.Request) response {
	if !hasMediaType(r, jsonType, mergePatchType) {
		message := "the Content-Type must be " + jsonType + " or " + mergePatchType
		return invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: message}).
			withHeader("Accept-Patch", mergePatchType+", "+jsonType)
	}
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	body, rejection := a.readBody(x, r)
	if rejection != nil {
		return *rejection
	}
	document, err := x.manager.PatchDocument(x, x.relayerID, body, options...)
	if err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	return x.document(http.StatusOK, document).withHeader("Etag", entityTag(document.Revision))
}

func (a *API) deleteRelayer(x *exchange, r *http.Request) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if err := x.manager.Delete(x, x.relayerID, options...); err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	return x.success(http.StatusOK, append(x.startBody(), `"Relayer deleted successfully"`...))
}

// writeOptions returns the condition of If-Match and the dry run of the query.
func (x *exchange) writeOptions(r *http.Request) (options []relayer.WriteOption, err error) {
	q := query{options: [3]parameter{{name: "dry_run", isFlag: true}}}
	_, err = q.parse(r.URL.RawQuery)
	x.unknown = q.unknown
	options = conditions(r.Header)
	if q.options[0].isTrue() {
		options = append(options, relayer.DryRun())
	}
	return options, err
}

// ignoreQuery makes the response name the parameters of a query without known ones.
func (x *exchange) ignoreQuery(r *http.Request) {
	var q query
	_, _ = q.parse(r.URL.RawQuery) // the query is ignored, so that it need not be valid
	x.unknown = q.unknown
}

// conditionalErrorResponse returns the response to a change of one relayer that failed with
// err. A conflict without a condition is contention: a later request may succeed.
func (a *API) conditionalErrorResponse(x *exchange, r *http.Request, err error) response {
	if errors.Is(err, relayer.ErrConflict) && len(conditions(r.Header)) == 0 {
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

// readJSON returns the JSON body of the request, or the response that rejects it.
func (a *API) readJSON(x *exchange, r *http.Request) (body []byte, rejection *response) {
	if !hasMediaType(r, jsonType) {
		unsupported := invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: "the Content-Type must be " + jsonType})
		return nil, &unsupported
	}
	return a.readBody(x, r)
}

func (a *API) readBody(x *exchange, r *http.Request) (body []byte, rejection *response) {
	tooLarge := invalidRequest(http.StatusRequestEntityTooLarge, relayer.FieldError{
		Message: fmt.Sprintf("the body must be at most %d bytes", a.maxBodyBytes),
	})
	if r.ContentLength > a.maxBodyBytes {
		return nil, &tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, a.maxBodyBytes))
	if err == nil {
		x.bodyRead = true
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
