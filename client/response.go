package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

type response struct {
	request  *request
	status   int
	header   http.Header
	envelope *envelope // nil if the body is not one

	relayer *relayer.Relayer // of a response with a single one
}

// isMissingRelayer reports whether the server has no relayer with the ID of the request.
func (p *response) isMissingRelayer() bool {
	id := p.request.id
	return p.status == http.StatusNotFound && id != "" && p.text() == wire.Message(http.StatusNotFound, id)
}

// isUnsupported reports whether the server does not have the route of the request.
func (p *response) isUnsupported() bool {
	switch p.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return p.request.isOptional && !p.isMissingRelayer()
	default:
		return false
	}
}

// envelope is the body of a success or a failure. OpenZeppelin Relayer sends the
// text of a failure as error, package httpapi as message.
type envelope struct {
	Success    *bool               `json:"success"`
	Data       json.RawMessage     `json:"data"`
	Change     *wire.Change        `json:"change"`  // of a single relayer
	Changes    []wire.Change       `json:"changes"` // of a page
	Pagination *relayer.Pagination `json:"pagination"`
	Next       relayer.Cursor      `json:"next"`
	Position   *string             `json:"position"`
	Sealed     []string            `json:"sealed"` // IDs of relayers whose URLs cannot be opened
	Message    json.RawMessage     `json:"message"`
	Error      json.RawMessage     `json:"error"`
	Errors     json.RawMessage     `json:"errors"`
	Metadata   json.RawMessage     `json:"metadata"`
}

// setChange sets what is known of the last change of a relayer.
func setChange(r *relayer.Relayer, c wire.Change) {
	r.Revision, r.LastChange, r.PausedBy = c.Revision, c.Info(), c.PausedBy.Info()
}

var errTooLarge = errors.New("the response is larger than the limit of 16 MiB")

// readResponse reads the body to its end, so that the connection can be used again.
func (c *Client) readResponse(req *request, received *http.Response) (*response, error) {
	defer func() { _ = received.Body.Close() }()
	if received.StatusCode < http.StatusOK {
		// The body is the connection, which neither ends nor follows the context.
		return &response{request: req, status: received.StatusCode, header: received.Header}, nil
	}
	body, err := io.ReadAll(io.LimitReader(received.Body, c.maxResponseBytes+1))
	if err != nil {
		return nil, err
	}
	resp := &response{request: req, status: received.StatusCode, header: received.Header}
	if int64(len(body)) > c.maxResponseBytes {
		return resp, errTooLarge
	}
	if !isJSON(resp.header) {
		return resp, nil
	}
	var decoded envelope
	if err := json.Unmarshal(body, &decoded); err == nil && decoded.Success != nil {
		resp.envelope = &decoded
	}
	return resp, nil
}

func isJSON(header http.Header) bool { return hasMediaType(header, "application/json") }

func hasMediaType(header http.Header, want string) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == want
}

func (p *response) isSuccess() bool {
	return p.status/100 == 2 && p.envelope != nil && *p.envelope.Success
}

func (p *response) isFailure() bool { return p.envelope != nil && !*p.envelope.Success }

// isRejection reports whether the response proves that the request had no effect. A proxy
// also responds with 5xx after it has lost the server.
func (p *response) isRejection() bool {
	if p.status == http.StatusServiceUnavailable {
		return p.isFailure()
	}
	return p.status/100 == 3 || p.status/100 == 4
}

// isOfProxy reports whether a proxy has not reached the server.
func (p *response) isOfProxy() bool { return p.status/100 == 5 && p.envelope == nil }

// isTemporary reports whether the request may succeed later. A success without an envelope is
// one of a proxy, or was truncated.
func (p *response) isTemporary() bool {
	switch p.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	case http.StatusOK:
		return p.envelope == nil
	default:
		return p.isOfProxy()
	}
}

func (p *response) requestID() string {
	if id := p.header.Get("X-Request-Id"); isPlain(id) && p.request.sanitize(id) == id {
		return id
	}
	return p.request.requestID
}

// describe returns what the response is, without its body.
func (p *response) describe() string {
	if message := p.message(); message != "" {
		return message
	}
	if p.status < http.StatusOK {
		return "the server switched to another protocol"
	}
	if p.envelope == nil && isJSON(p.header) {
		return "the body is not a JSON object with a success member"
	}
	if p.envelope == nil {
		return fmt.Sprintf("the Content-Type is %s, not application/json", p.contentType())
	}
	return "the response has no message"
}

func (p *response) contentType() string {
	return strconv.Quote(p.request.sanitize(p.header.Get("Content-Type")))
}

// message returns the text of a failure, for errors.
func (p *response) message() string { return p.request.sanitize(p.text()) }

func (p *response) text() string {
	if p.envelope == nil {
		return ""
	}
	for _, member := range []json.RawMessage{p.envelope.Message, p.envelope.Error} {
		var text string
		if json.Unmarshal(member, &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// warningsOf returns the messages of the metadata of a response or an event.
func warningsOf(encoded json.RawMessage) string {
	var metadata struct {
		Logs []struct{ Message string }
	}
	_ = json.Unmarshal(encoded, &metadata) // another server may send another form
	var all strings.Builder
	for _, log := range metadata.Logs {
		all.WriteString(log.Message + "\n")
	}
	return all.String()
}

func (p *response) validationError() error {
	var fields []relayer.FieldError
	if json.Unmarshal(p.envelope.Errors, &fields) != nil || len(fields) == 0 {
		return &relayer.ValidationError{Fields: []relayer.FieldError{{Message: p.describe()}}}
	}
	for i := range fields {
		fields[i].Field = p.request.sanitize(fields[i].Field)
		fields[i].Message = p.request.sanitize(fields[i].Message)
	}
	return &relayer.ValidationError{Fields: fields}
}

// longestWait is far below the largest duration, so that sums of waits do not overflow.
const longestWait = math.MaxInt32 * time.Second

// retryAfter returns the wait of Retry-After, in seconds or as a date, or 0.
func (p *response) retryAfter() time.Duration {
	value := strings.TrimSpace(p.header.Get("Retry-After"))
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err == nil || errors.Is(err, strconv.ErrRange) { // then it is the maximum
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(0, time.Until(date)), longestWait)
	}
	return 0
}

var (
	errNoData       = errors.New("the response has no usable data")
	errOtherRelayer = errors.New("the response has a relayer with another ID than requested")
)

func decodeSingle(p *response) error {
	r, err := decodeRelayer(p.envelope.Data)
	if err != nil {
		return err
	}
	if p.envelope.Change != nil {
		setChange(r, *p.envelope.Change)
	}
	if p.request.isDryRun { // its change has no revision
		r.Revision, _ = strconv.ParseUint(strings.Trim(p.header.Get("ETag"), `W/"`), 10, 64)
	}
	p.relayer = r
	return p.checkURLs(r)
}

// decodeNothing accepts a success without looking at its data.
func decodeNothing(*response) error { return nil }

func decodeRelayer(data json.RawMessage) (*relayer.Relayer, error) {
	r := new(relayer.Relayer)
	if err := json.Unmarshal(data, r); err != nil || r.ID == "" {
		// The error of the decoder may quote what it read.
		return nil, errNoData
	}
	return r, nil
}
