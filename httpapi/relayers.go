package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

func (a *API) getRelayer(x *exchange, r *http.Request) response {
	document, err := x.documents().Get(x, x.relayerID)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	tag := entityTag(document.Revision)
	if matchesAny(r.Header["If-None-Match"], tag) {
		return notModified(tag)
	}
	a.logSealed(x, document)
	return x.document(http.StatusOK, document).withHeader("Etag", tag)
}

func (a *API) createRelayer(x *exchange, r *http.Request) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	body, rejection := a.readJSON(x, r, jsonType)
	if rejection != nil {
		return *rejection
	}
	document, err := x.manager.Documents().Create(x, body, options...)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if x.query.is("dry_run", "true") {
		return x.document(http.StatusOK, document)
	}
	x.relayerID = document.ID
	return x.document(http.StatusCreated, document).
		withHeader("Location", location(r, document.ID)).
		withHeader("Etag", entityTag(document.Revision))
}

func (a *API) listRelayers(x *exchange, r *http.Request) response {
	q := x.query.list()
	isEmpty := q.PerPage == 0 // a ListQuery with 0 relayers per page is that of the default
	q.PerPage = max(q.PerPage, 1)
	page, err := x.documents().List(x, q)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	documents := page.Documents
	if isEmpty {
		documents, page.Pagination.PerPage, page.Next = nil, 0, ""
	}
	body := appendDocuments(x.startBody(), documents)
	if q.After != nil {
		body = appendCursors(body, page)
	}
	if x.query.is("changes", "true") {
		changes := make([]wire.Change, len(documents))
		for i, document := range documents {
			changes[i] = changeOf(document)
		}
		body = append(append(body, `,"changes":`...), encodeJSON(changes)...)
	}
	a.logSealed(x, documents...)
	body = appendSealed(body, documents...)
	return x.success(http.StatusOK, appendPagination(body, page.Pagination))
}

// list returns what a list asks for.
func (q query) list() relayer.ListQuery {
	asked := relayer.ListQuery{Selector: q.selector, PerPage: intOf(q.number("per_page", relayer.DefaultPerPage))}
	if q.values.Has("page") {
		asked.Page = max(1, intOf(q.number("page", 1)))
	}
	if q.values.Has("after") {
		asked.After = new(relayer.Cursor(q.values.Get("after")))
	}
	return asked
}

// intOf converts a number for platforms whose int has 32 bits.
func intOf(number uint64) int { return int(min(number, math.MaxInt)) }

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

func appendCursors(body []byte, page *relayer.DocumentPage) []byte {
	if page.Next != "" {
		body = append(append(body, `,"next":`...), encodeJSON(page.Next)...)
	}
	return append(append(body, `,"position":`...), encodeJSON(page.Position)...)
}

// changeOf returns the last change of a relayer.
func changeOf(document relayer.Document) wire.Change {
	return wire.ChangeOf(document.LastChange(), document.PausedBy())
}

// appendChange adds the last change of the relayer of a body, if the query asks for it. That of
// a dry run has what would change.
func (x *exchange) appendChange(body []byte, document relayer.Document) []byte {
	if !x.query.is("changes", "true") {
		return body
	}
	return append(append(body, `,"change":`...), encodeJSON(changeOf(document))...)
}

// appendSealed adds the IDs of the relayers whose RPC URLs could not be opened.
func appendSealed(body []byte, documents ...relayer.Document) []byte {
	var ids []string
	for i := range documents {
		if documents[i].SealError != nil {
			ids = append(ids, documents[i].ID)
		}
	}
	if len(ids) == 0 {
		return body
	}
	return append(append(body, `,"sealed":`...), encodeJSON(ids)...)
}

func appendPagination(body []byte, p relayer.Pagination) []byte {
	body = append(body, `,"pagination":{`...)
	if p.CurrentPage > 0 {
		body = append(strconv.AppendInt(append(body, `"current_page":`...), int64(p.CurrentPage), 10), ',')
	}
	body = strconv.AppendInt(append(body, `"per_page":`...), int64(p.PerPage), 10)
	body = strconv.AppendInt(append(body, `,"total_items":`...), int64(p.TotalItems), 10)
	return append(body, '}')
}

func (a *API) patchRelayer(x *exchange, r *http.Request) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	body, rejection := a.readJSON(x, r, jsonType, mergePatchType)
	if rejection != nil && rejection.status == http.StatusUnsupportedMediaType {
		return rejection.withHeader("Accept-Patch", mergePatchType+", "+jsonType)
	}
	if rejection != nil {
		return *rejection
	}
	document, err := x.manager.Documents().Patch(x, x.relayerID, body, options...)
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
	document, err := x.manager.Documents().Delete(x, x.relayerID, options...)
	if err != nil {
		return a.conditionalErrorResponse(x, r, err)
	}
	body := append(x.startBody(), `"Relayer deleted successfully"`...)
	if x.query.is("dry_run", "true") {
		body = x.appendChange(body, document)
	}
	return x.success(http.StatusOK, body)
}

func (a *API) pauseRelayers(x *exchange, r *http.Request) response {
	return a.setAll(x, r, x.manager.PauseAll)
}

func (a *API) resumeRelayers(x *exchange, r *http.Request) response {
	return a.setAll(x, r, x.manager.ResumeAll)
}

// setAll pauses or resumes the relayers that the filters select. A client that goes away does not
// stop it.
func (a *API) setAll(x *exchange, r *http.Request, set func(context.Context, relayer.Selector, ...relayer.WriteOption) (relayer.BulkResult, error)) response {
	options, err := x.writeOptions(r)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if x.query.is("all", "true") {
		options = append(options, relayer.AllRelayers())
	}
	if x.query.values.Has("paused_by") {
		options = append(options, relayer.PausedBy(x.query.values.Get("paused_by")))
	}
	// It may take longer than the server gives a response. Without the method, its timeout applies.
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.SetWriteDeadline(time.Time{})
	result, err := set(context.WithoutCancel(x.Context), x.query.selector, options...)
	_ = control.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	sent := wire.Bulk{RequestID: result.RequestID, Changed: result.Changed, Unchanged: result.Unchanged, Failed: []wire.BulkFailure{}}
	for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
		sent.Failed = append(sent.Failed, wire.BulkFailure{ID: id, Message: a.failedMessage(x, r, result.Failed[id])})
	}
	return x.success(http.StatusOK, append(x.startBody(), encodeJSON(sent)...))
}

// failedMessage returns the message about a relayer that could not be changed. It logs a fault.
func (a *API) failedMessage(x *exchange, r *http.Request, err error) string {
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return strings.TrimPrefix(invalid.Error(), relayer.ErrInvalid.Error()+": ")
	}
	return wire.Message(a.conditionalErrorResponse(x, r, err).status, "")
}

// writeOptions returns the condition and the reason of the header, and the dry run of the
// query.
func (x *exchange) writeOptions(r *http.Request) ([]relayer.WriteOption, error) {
	options := conditions(r.Header)
	if x.query.is("dry_run", "true") {
		options = append(options, relayer.DryRun())
	}
	return withReason(options, r.Header)
}

// withReason adds the reason of X-Change-Reason, if there is one.
func withReason(options []relayer.WriteOption, header http.Header) ([]relayer.WriteOption, error) {
	values := header["X-Change-Reason"]
	switch {
	case len(values) == 0:
		return options, nil
	case len(values) > 1:
		return nil, invalid("the X-Change-Reason must not be given more than once")
	}
	reason := relayer.Reason(values[0])
	_, err := relayer.NewWriteSettings(reason)
	if problem, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return nil, invalid("the X-Change-Reason " + problem.Fields[0].Message)
	}
	return append(options, reason), err
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

// readJSON returns the body of a request whose Content-Type is one of the types, or the response
// that rejects it.
func (a *API) readJSON(x *exchange, r *http.Request, types ...string) (body []byte, rejection *response) {
	problem := ""
	switch {
	case !hasMediaType(r, types...):
		problem = "the Content-Type must be " + strings.Join(types, " or ")
	case isEncoded(r):
		problem = "the Content-Encoding must be identity"
	default:
		return a.readBody(x, r)
	}
	unsupported := invalidRequest(http.StatusUnsupportedMediaType, relayer.FieldError{Message: problem})
	return nil, &unsupported
}

// isEncoded reports whether the body has a content coding, such as gzip.
func isEncoded(r *http.Request) bool {
	codings := strings.Split(strings.Join(r.Header["Content-Encoding"], ","), ",")
	return slices.ContainsFunc(codings, func(coding string) bool {
		coding = strings.TrimSpace(coding)
		return coding != "" && !strings.EqualFold(coding, "identity")
	})
}

// readBody acquires the bytes of the body before it reads it. [API.bytesLimited] releases them.
func (a *API) readBody(x *exchange, r *http.Request) (body []byte, rejection *response) {
	tooLarge := invalidRequest(http.StatusRequestEntityTooLarge, relayer.FieldError{
		Message: fmt.Sprintf("the body must be at most %d bytes", a.maxBodyBytes),
	})
	if r.ContentLength > a.maxBodyBytes {
		return nil, &tooLarge
	}
	size := r.ContentLength
	if size < 0 { // unknown
		size = a.maxBodyBytes
	}
	if !a.pending.tryAcquire(x.caller, size) {
		overloaded := a.refuse(x, r, a.pending)
		return nil, &overloaded
	}
	x.pendingBytes = size
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, r.Body, a.maxBodyBytes))
	if err == nil {
		x.isBodyRead = true
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
