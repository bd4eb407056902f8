package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

func (a *API) getRelayer(x *exchange) response {
	document, err := x.documents().Get(x, x.relayerID)
	if err != nil {
		return a.errorResponse(x, err)
	}
	tag := entityTag(document.Revision)
	// Masked URLs, such as those that could not be opened before, have the same tag as full ones.
	if !x.input.is("rpc_urls", "full") && matchesAny(x.request.Header["If-None-Match"], tag) {
		return response{status: http.StatusNotModified}.withHeader("Etag", tag)
	}
	a.logSealed(x, document)
	return x.document(http.StatusOK, document).withHeader("Etag", tag)
}

func (a *API) listRelayers(x *exchange) response {
	perPage := intOf(x.input.number("per_page", relayer.DefaultPerPage))
	q := relayer.ListQuery{Selector: x.input.selector, PerPage: max(perPage, 1)} // 0 would be the default
	if x.input.values.Has("page") {
		q.Page = max(1, intOf(x.input.number("page", 1)))
	}
	if x.input.values.Has("after") {
		q.After = new(relayer.Cursor(x.input.values.Get("after")))
	}
	page, err := x.documents().List(x, q)
	if perPage == 0 && errors.Is(err, relayer.ErrCorrupt) {
		// A page past the end has no relayer that could be damaged.
		current := max(1, q.Page)
		if q.Page = math.MaxInt32; q.After != nil {
			q.After, q.Page, current = new(relayer.Cursor(strconv.FormatInt(math.MaxInt64, 10))), 0, 0
		}
		if page, err = x.documents().List(x, q); err == nil {
			page.Pagination.CurrentPage = current
		}
	}
	if err != nil {
		return a.errorResponse(x, err)
	}
	documents := page.Documents
	if perPage == 0 {
		documents, page.Pagination.PerPage, page.Next = nil, 0, ""
	}
	a.logSealed(x, documents...)
	envelope := relayer.Envelope{Sealed: sealedOf(documents...), Pagination: &page.Pagination}
	if q.After != nil {
		envelope.Next, envelope.Position = page.Next, &page.Position
	}
	if x.input.is("changes", "true") {
		envelope.Changes = make([]relayer.ChangeInfo, len(documents))
		for i, document := range documents {
			envelope.Changes[i] = document.LastChange()
		}
	}
	return x.success(http.StatusOK, appendDocuments(x.startBody(), documents), envelope)
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

// lastChange returns the last change of a relayer, if the query asks for it. That of a dry run
// has what would change.
func (x *exchange) lastChange(document relayer.Document) *relayer.ChangeInfo {
	if !x.input.is("changes", "true") {
		return nil
	}
	return new(document.LastChange())
}

// sealedOf returns the IDs of the relayers whose RPC URLs could not be opened.
func sealedOf(documents ...relayer.Document) (ids []string) {
	for i := range documents {
		if documents[i].SealError != nil {
			ids = append(ids, documents[i].ID)
		}
	}
	return ids
}

// getHistory returns the changes of one relayer or of all, newest first.
func (a *API) getHistory(x *exchange) response {
	q := x.input
	perPage := intOf(q.number("per_page", 20))
	changes, next, err := x.manager.Documents().History(x, relayer.HistoryQuery{
		ID: x.relayerID, Before: q.number("before", 0), Limit: max(perPage, 1),
		Actor: q.values.Get("actor"), Action: relayer.Action(q.values.Get("action")), Since: q.time("since"), Until: q.time("until"),
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return failure(http.StatusNotFound) // as an unknown path
	}
	if err != nil {
		return a.errorResponse(x, err)
	}
	if perPage == 0 {
		changes, next = nil, 0
	}
	body := append(x.startBody(), '[')
	for i, past := range changes {
		entry := struct {
			ID string `json:"id,omitempty"` // in the history of all relayers
			relayer.ChangeInfo
			Relayer json.RawMessage `json:"relayer"`
		}{past.Document.ID, past.Document.LastChange(), past.Document.JSON}
		entry.PausedBy = nil // it is not a part of this change
		if x.relayerID != "" {
			entry.ID = ""
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, encodeJSON(entry)...)
	}
	var envelope relayer.Envelope
	if next != 0 {
		envelope.Next = relayer.Cursor(strconv.FormatUint(next, 10))
	}
	return x.success(http.StatusOK, append(body, ']'), envelope)
}

func (a *API) createRelayer(x *exchange) response {
	created, err := x.manager.Documents().Create(x, x.input.body, x.input.options...)
	if err != nil {
		return a.errorResponse(x, err)
	}
	if x.input.is("dry_run", "true") {
		return x.document(http.StatusOK, created)
	}
	x.relayerID = created.ID
	return x.document(http.StatusCreated, created).
		withHeader("Location", location(x.request, created.ID)).
		withHeader("Etag", entityTag(created.Revision))
}

func (a *API) patchRelayer(x *exchange) response {
	patched, err := x.manager.Documents().Patch(x, x.relayerID, x.input.body, x.input.options...)
	return a.changed(x, patched, err)
}

// changed returns the response to a change of one relayer.
func (a *API) changed(x *exchange, document relayer.Document, err error) response {
	if err != nil {
		return a.errorResponse(x, err)
	}
	return x.document(http.StatusOK, document).withHeader("Etag", entityTag(document.Revision))
}

func (a *API) deleteRelayer(x *exchange) response {
	deleted, err := x.manager.Documents().Delete(x, x.relayerID, x.input.options...)
	if err != nil {
		return a.errorResponse(x, err)
	}
	var envelope relayer.Envelope
	if x.input.is("dry_run", "true") {
		envelope.Change = x.lastChange(deleted)
	}
	return x.success(http.StatusOK, append(x.startBody(), `"Relayer deleted successfully"`...), envelope)
}

func (a *API) disableRelayer(x *exchange) response {
	disabled, err := x.manager.Documents().Disable(x, x.relayerID, x.input.body, x.input.options...)
	return a.changed(x, disabled, err)
}

func (a *API) enableRelayer(x *exchange) response {
	enabled, err := x.manager.Documents().Enable(x, x.relayerID, x.input.options...)
	return a.changed(x, enabled, err)
}

func (a *API) pauseRelayers(x *exchange) response  { return a.setAll(x, x.manager.PauseAll) }
func (a *API) resumeRelayers(x *exchange) response { return a.setAll(x, x.manager.ResumeAll) }

// setAll pauses or resumes the relayers that the filters select. A client that goes away does not
// stop it.
func (a *API) setAll(x *exchange, set func(context.Context, relayer.Selector, ...relayer.WriteOption) (relayer.BulkResult, error)) response {
	// It may take longer than the server gives a response. Without the method, its timeout applies.
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.SetWriteDeadline(time.Time{})
	x.Context = context.WithoutCancel(x.Context)
	result, err := set(x, x.input.selector, x.input.options...)
	_ = control.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err != nil {
		return a.errorResponse(x, err)
	}
	sent := wire.Bulk{RequestID: result.RequestID, Changed: result.Changed, Unchanged: result.Unchanged, Failed: []wire.BulkFailure{}}
	for _, id := range slices.Sorted(maps.Keys(result.Failed)) {
		sent.Failed = append(sent.Failed, wire.BulkFailure{ID: id, Message: a.failedMessage(x, result.Failed[id])})
	}
	return x.success(http.StatusOK, append(x.startBody(), encodeJSON(sent)...), relayer.Envelope{})
}

// failedMessage returns the message about a relayer that could not be changed. It logs a fault.
func (a *API) failedMessage(x *exchange, err error) string {
	if invalid, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return strings.TrimPrefix(invalid.Error(), relayer.ErrInvalid.Error()+": ")
	}
	return wire.Message(a.errorResponse(x, err).status, "")
}

// writeOptions returns the condition and the reason of the header, and what the query of a write
// asks for.
func (x *exchange) writeOptions() ([]relayer.WriteOption, error) {
	header := x.request.Header
	options := conditions(header)
	if x.input.is("dry_run", "true") {
		options = append(options, relayer.DryRun())
	}
	if x.input.is("all", "true") {
		options = append(options, relayer.AllRelayers())
	}
	if x.input.values.Has("paused_by") {
		options = append(options, relayer.PausedBy(x.input.values.Get("paused_by")))
	}
	reason := relayer.Reason(strings.Join(header["X-Change-Reason"], "\n")) // several are not one line
	_, err := relayer.NewWriteSettings(reason)
	if problem, ok := errors.AsType[*relayer.ValidationError](err); ok {
		return nil, invalid("the X-Change-Reason " + problem.Fields[0].Message)
	}
	return append(options, reason), err
}

const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
)

// withBody reads the body, after it has acquired its bytes. The Content-Type must be one of the
// types, with any parameters. It returns the response to a request without such a body.
func (a *API) withBody(x *exchange, types []string) (rejection response) {
	invalid := func(status int, problem string) response {
		return failure(status, relayer.FieldError{Message: problem})
	}
	tooLarge := func(most int64) response {
		return invalid(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body must be at most %d bytes", most))
	}
	header, size := x.request.Header, x.request.ContentLength
	if size < 0 { // unknown
		size = a.maxBodyBytes
	}
	mediaType, _, err := mime.ParseMediaType(strings.Join(header["Content-Type"], ", "))
	isEncoded := func(coding string) bool { return coding != "" && !strings.EqualFold(coding, "identity") }
	switch {
	case err != nil || !slices.Contains(types, mediaType):
		return invalid(http.StatusUnsupportedMediaType, "the Content-Type must be "+strings.Join(types, " or "))
	case slices.ContainsFunc(header["Content-Encoding"], isEncoded):
		return invalid(http.StatusUnsupportedMediaType, "the Content-Encoding must be identity")
	case size > a.maxBodyBytes:
		return tooLarge(a.maxBodyBytes)
	case !a.pending.tryAcquire(x.caller, size):
		return a.refuse(x, a.pending)
	}
	x.pendingBytes = size
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.request.Body, a.maxBodyBytes))
	if exceeded, ok := errors.AsType[*http.MaxBytesError](err); ok { // the host can have a lower limit
		return tooLarge(exceeded.Limit)
	}
	if err != nil {
		return invalid(http.StatusBadRequest, "the body could not be read to its end")
	}
	x.input.body = body
	return response{}
}

// location returns where the client finds a created relayer, below the prefix of the
// request. [http.StripPrefix] removes the prefix from the URL and leaves it in RequestURI.
func location(r *http.Request, id string) string {
	requested, _, _ := strings.Cut(r.RequestURI, "?")
	return strings.TrimSuffix(requested, r.URL.EscapedPath()) + "/api/v1/relayers/" + id
}
