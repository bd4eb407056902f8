package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/strictjson"
	"github.com/go-relayer/relayer/internal/wire"
)

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
	var sent struct {
		Type    string `json:"type" wire:"nonempty"`
		Details string `json:"details" wire:"optional"`
	}
	if problem := strictjson.Check(x.input.body); problem != "" {
		return a.errorResponse(x, invalid("the body "+problem))
	}
	var found wire.Problems
	decoder := strictjson.Decoder{Problems: &found.Problems}
	decoder.Decode(x.input.body, &sent)
	if err := found.Err(); err != nil {
		return a.errorResponse(x, err)
	}
	reason := relayer.DisabledReason{Type: relayer.DisabledReasonType(sent.Type), Details: sent.Details}
	disabled, err := x.manager.Documents().Disable(x, x.relayerID, reason, x.input.options...)
	return a.changed(x, disabled, reasonError(err))
}

func (a *API) enableRelayer(x *exchange) response {
	enabled, err := x.manager.Documents().Enable(x, x.relayerID, x.input.options...)
	return a.changed(x, enabled, err)
}

// reasonError names the fields of a reason as the client wrote them.
func reasonError(err error) error {
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		return err
	}
	fields := slices.Clone(invalid.Fields)
	for i := range fields {
		fields[i].Field = strings.TrimPrefix(fields[i].Field, "disabled_reason.")
	}
	return &relayer.ValidationError{Fields: fields}
}

func (a *API) pauseRelayers(x *exchange) response { return a.setAll(x, x.manager.PauseAll) }

func (a *API) resumeRelayers(x *exchange) response { return a.setAll(x, x.manager.ResumeAll) }

// setAll pauses or resumes the relayers that the filters select. A client that goes away does not
// stop it.
func (a *API) setAll(x *exchange, set func(context.Context, relayer.Selector, ...relayer.WriteOption) (relayer.BulkResult, error)) response {
	// It may take longer than the server gives a response. Without the method, its timeout applies.
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.SetWriteDeadline(time.Time{})
	result, err := set(context.WithoutCancel(x.Context), x.input.selector, x.input.options...)
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
	reasons := header["X-Change-Reason"]
	switch {
	case len(reasons) == 0:
		return options, nil
	case len(reasons) > 1:
		return nil, invalid("the X-Change-Reason must not be given more than once")
	}
	reason := relayer.Reason(reasons[0])
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
	tooLarge := fmt.Sprintf("the body must be at most %d bytes", a.maxBodyBytes)
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
		return invalid(http.StatusRequestEntityTooLarge, tooLarge)
	case !a.pending.tryAcquire(x.caller, size):
		return a.refuse(x, a.pending)
	}
	x.pendingBytes = size
	body, err := io.ReadAll(http.MaxBytesReader(x.ResponseWriter, x.request.Body, a.maxBodyBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return invalid(http.StatusRequestEntityTooLarge, tooLarge)
	}
	if err != nil {
		return invalid(http.StatusBadRequest, "the body could not be read to its end")
	}
	x.input.body = body
	return response{}
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
