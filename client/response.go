package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// response is a complete response.
type response struct {
	request  *request
	status   int
	header   http.Header
	envelope *relayer.Envelope // nil if the body is not one
}

// failure returns the failure for the response. A proxy can respond with 5xx after it has lost the
// server, and with 200 in place of the server.
func (p *response) failure() *failure {
	isOfServer := p.envelope != nil && !p.envelope.Success
	isRejection := p.status/100 == 3 || p.status/100 == 4 || p.status == http.StatusServiceUnavailable && isOfServer
	id := p.header.Get("X-Request-Id")
	if !wire.IsToken(id) || len(id) > 128 || p.request.sanitize(id) != id {
		id = p.request.requestID
	}
	return &failure{
		err:         &ResponseError{Status: p.status, RequestID: id, RetryAfter: p.retryAfter(), request: p.request.String(), err: p.cause()},
		isTemporary: p.status == http.StatusTooManyRequests || p.status == http.StatusServiceUnavailable || p.envelope == nil && (p.status == http.StatusOK || p.status/100 == 5),
		isUnknown:   !isRejection,
		isOfServer:  isOfServer,
		wait:        p.retryAfter(),
	}
}

// cause returns the error for the status. A proxy responds with most statuses too.
func (p *response) cause() error {
	err := wire.ErrorOf(p.status)
	switch {
	case p.isUnsupported():
		return fmt.Errorf("the server does not offer this operation: %w", errors.ErrUnsupported)
	case err == ErrUnauthorized, err == ErrForbidden:
		return err
	case err == relayer.ErrUnavailable, p.status == http.StatusTooManyRequests, p.status/100 == 5 && p.envelope == nil:
		return fmt.Errorf("%w: %s", relayer.ErrUnavailable, p.describe())
	case p.status == http.StatusOK, err == relayer.ErrNotFound && !p.isMissingRelayer():
		return fmt.Errorf("the base URL may be wrong (it ends before /api/v1): %s", p.describe())
	case p.envelope == nil, p.envelope.Success, err == nil, err == relayer.ErrOutcomeUnknown:
		return errors.New(p.describe())
	case err == relayer.ErrInvalid:
		invalid := &relayer.ValidationError{Fields: p.envelope.Errors}
		if len(invalid.Fields) == 0 {
			invalid.Fields = []relayer.FieldError{{Message: p.text()}}
		}
		for i, problem := range invalid.Fields {
			invalid.Fields[i].Field, invalid.Fields[i].Message = p.request.sanitize(problem.Field), p.request.sanitize(problem.Message)
		}
		return invalid
	}
	return err
}

// isMissingRelayer reports whether the server has no relayer with the ID of the request.
func (p *response) isMissingRelayer() bool {
	return p.status == http.StatusNotFound && p.request.id != "" && p.text() == wire.Message(http.StatusNotFound, p.request.id)
}

// isUnsupported reports whether the server does not have the route of the request.
func (p *response) isUnsupported() bool {
	hasNoRoute := p.status == http.StatusNotFound || p.status == http.StatusMethodNotAllowed || p.status == http.StatusNotImplemented
	return hasNoRoute && p.request.isOptional && !p.isMissingRelayer()
}

// describe returns the message of the response, or what the response is.
func (p *response) describe() string {
	if message := p.request.sanitize(p.text()); message != "" {
		return message
	}
	return fmt.Sprintf("the body is not one of the API, and its Content-Type is %q", p.request.sanitize(p.header.Get("Content-Type")))
}

// text returns the text of a failure, or "".
func (p *response) text() string {
	if p.envelope == nil {
		return ""
	}
	return cmp.Or(p.envelope.Message, p.envelope.Error)
}

// retryAfter returns the wait of Retry-After, or 0.
func (p *response) retryAfter() time.Duration {
	seconds, _ := strconv.ParseUint(p.header.Get("Retry-After"), 10, 31) // the maximum if it is larger
	return time.Duration(seconds) * time.Second
}

var errNoData = errors.New("the response has no usable data")

// single returns the relayer of the response, or nil for a delete.
func (p *response) single() (*relayer.Relayer, error) {
	if p.request.isDelete {
		return nil, nil
	}
	r, err := decodeRelayer(p.envelope.Data)
	if err == nil && r.ID != p.request.id {
		err = errors.New("the response has a relayer with another ID than requested")
	}
	if err != nil {
		return nil, err
	}
	if p.envelope.Change != nil {
		setChange(r, *p.envelope.Change)
	}
	if p.request.isDryRun { // its change has no revision
		r.Revision, _ = strconv.ParseUint(strings.Trim(p.header.Get("ETag"), `W/"`), 10, 64)
	}
	return r, p.request.checkURLs(p.envelope.Change != nil, p.envelope.Metadata, p.envelope.Sealed, r)
}

func decodeRelayer(data json.RawMessage) (*relayer.Relayer, error) {
	r := new(relayer.Relayer)
	if err := json.Unmarshal(data, r); err != nil || r.ID == "" {
		return nil, errNoData // the error of the decoder may quote what it read
	}
	return r, nil
}

// setChange sets what is known of the last change of a relayer.
func setChange(r *relayer.Relayer, info relayer.ChangeInfo) {
	r.Revision, r.LastChange = info.Revision, info
}
