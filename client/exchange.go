package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

const (
	collectionPath   = "/api/v1/relayers"
	rpcURLsParameter = "rpc_urls"
)

// request is an HTTP request, which may be sent several times, always with the same ID.
type request struct {
	method    string
	path      string // below the base URL
	query     url.Values
	header    http.Header
	id        string // of the relayer; empty for the collection
	body      []byte
	requestID string

	isRepeatable bool // even if its outcome is unknown
	isDryRun     bool
	isDelete     bool

	revisions []uint64 // of the condition; nil is no condition
	since     uint64   // the changes up to this revision are known, and none is the write

	token  string    // of the last attempt
	began  time.Time // when the last attempt was sent, after the token was known
	isLost bool      // the server may have processed an attempt
}

// newRequest returns a request about one relayer, or about the collection if id is empty, or about
// what is below them.
func newRequest(method, id, below string, body []byte) *request {
	path := collectionPath
	if id != "" {
		path += "/" + id
	}
	requestID := rand.Text()
	return &request{
		method: method, path: path + below, query: url.Values{"changes": {"true"}}, id: id, body: body, requestID: requestID,
		header:       http.Header{"Accept": {"application/json"}, "X-Request-Id": {requestID}},
		isRepeatable: method == http.MethodGet, isDelete: method == http.MethodDelete && below == "",
	}
}

// set sets a parameter of the query if it has a value.
func (r *request) set(name, value string, hasValue bool) {
	if hasValue {
		r.query.Set(name, value)
	}
}

func (r *request) String() string { return r.method + " " + r.path }

// errorf returns an error that names the request.
func (r *request) errorf(format string, values ...any) error {
	return fmt.Errorf("%s (request %s): "+format, append([]any{r, r.requestID}, values...)...)
}

// setOptions adds the conditions, the reason and the dry run of a write.
func (r *request) setOptions(settings relayer.WriteSettings) {
	if settings.Revisions != nil {
		var tags []string
		for _, revision := range slices.Compact(slices.Sorted(slices.Values(settings.Revisions))) {
			tags = append(tags, `"`+strconv.FormatUint(revision, 10)+`"`)
		}
		r.header.Set("If-Match", cmp.Or(strings.Join(tags, ", "), `"0"`)) // an empty list is revision 0, which no relayer has
	}
	if settings.Reason != "" {
		r.header.Set("X-Change-Reason", settings.Reason)
	}
	if settings.DryRun {
		r.query.Set("dry_run", "true")
		r.isRepeatable, r.isDryRun = true, true
	}
}

func (r *request) http(ctx context.Context, c *Client) (*http.Request, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the request is invalid")
	}
	sent.URL.RawQuery, sent.Header = r.query.Encode(), r.header.Clone()
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if c.token == nil {
		return sent, nil
	}
	if r.token, err = c.token(ctx); err == nil && !wire.IsToken(r.token) {
		err = errors.New(badToken)
	}
	if err != nil {
		return nil, r.errorf("no token: %w", mask.Error(err))
	}
	sent.Header.Set("Authorization", "Bearer "+r.token)
	return sent, nil
}

const maxMessageLength = 300

// sanitize makes text of a server fit for errors and logs: without the RPC URLs that hide
// recognizes, the token and control characters, and not too long.
func (r *request) sanitize(hide func(string) string, text string) string {
	if r.token != "" {
		text = strings.ReplaceAll(text, r.token, mask.Hidden)
	}
	text = wire.Printable(strings.ToValidUTF8(hide(mask.Bounded(text)), "?"), ' ')
	if len(text) > maxMessageLength {
		text = mask.Shortened(text, maxMessageLength) + "…"
	}
	return text
}

// failure describes why a request, or its last attempt, failed.
type failure struct {
	err         error
	isTemporary bool          // another attempt may succeed
	isUnknown   bool          // the server may have processed the attempt
	isOfServer  bool          // the response is one of the API, not of a proxy
	isUnsent    bool          // the request could not be made, for example without a token
	wait        time.Duration // the least time before another attempt
}

func (f *failure) cause() error {
	if f == nil {
		return nil
	}
	return f.err
}

// attempts counts the attempts of a call.
type attempts struct {
	most    int // after the first
	made    int
	lastEnd time.Time // no wait may end later
}

func (c *Client) newAttempts() *attempts {
	return &attempts{most: c.maxAttempts - 1, lastEnd: time.Now().Add(c.maxRetryTime)}
}

// next waits before another attempt: exponential backoff with full jitter, after the
// wait that the server asks for. It reports false if there is no other attempt.
func (t *attempts) next(ctx context.Context, wait time.Duration) bool {
	wait += wire.BackOff(t.made)
	end := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); t.made >= t.most || end.After(t.lastEnd) || ok && end.After(deadline) {
		return false
	}
	t.made++
	return wire.Sleep(ctx, wait)
}

// do sends the request until it succeeds, fails for good, or the attempts are exhausted, and
// decodes the response. A write of unknown outcome is sent again only if it is repeatable.
func do[T any](ctx context.Context, c *Client, req *request, attempts *attempts, decode func(*response) (T, error)) (T, *failure) {
	for {
		resp, failed := c.attempt(ctx, req)
		if failed == nil {
			result, err := decode(resp)
			if err == nil {
				return result, nil
			}
			failed = &failure{err: req.errorf("%w", err), isUnknown: true}
		}
		req.isLost = req.isLost || failed.isUnknown
		if !failed.isTemporary || failed.isUnknown && !req.isRepeatable {
			return *new(T), failed
		}
		if !attempts.next(ctx, failed.wait) {
			failed.err = cmp.Or(ctx.Err(), failed.err)
			return *new(T), failed
		}
	}
}

func (c *Client) attempt(ctx context.Context, req *request) (*response, *failure) {
	if err := ctx.Err(); err != nil {
		return nil, &failure{err: err}
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	received, failed := c.send(ctx, limited, req)
	if failed != nil {
		return nil, failed
	}
	resp, failed := c.readResponse(ctx, req, received)
	if failed == nil && (resp.status/100 != 2 || resp.envelope == nil || !resp.envelope.Success) {
		failed = resp.failure()
	}
	return resp, failed
}

// send sends the request. Both contexts end it: ctx is the context of the call, and limited adds
// the time limit of the request. If ctx ends a sent request, send returns its error as such.
func (c *Client) send(ctx, limited context.Context, req *request) (*http.Response, *failure) {
	failed := &failure{isTemporary: true, isUnknown: true}
	sent, err := req.http(httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GetConn: func(string) { failed.isUnknown = false }, // until there is a connection
		GotConn: func(httptrace.GotConnInfo) { failed.isUnknown = true },
	}), c)
	if err != nil { // the source of tokens may have taken too long
		return nil, &failure{err: err, isUnsent: true, isTemporary: ctx.Err() == nil && limited.Err() != nil}
	}
	req.began = time.Now()
	received, err := c.http.Do(sent)
	if err == nil {
		return received, nil
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the URL: errors name the request
	}
	_, isUntrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case ctx.Err() != nil:
		failed.err, failed.isTemporary = ctx.Err(), false
	case isUntrusted:
		failed.err, failed.isTemporary = req.errorf("%w", err), false
	case context.Cause(limited) == context.DeadlineExceeded: // and not a timeout of the transport
		failed.err = req.errorf("%w: no response within %s", relayer.ErrUnavailable, c.timeout)
	default:
		failed.err = req.errorf("%w: %s", relayer.ErrUnavailable, req.sanitize(mask.Text, err.Error()))
	}
	return nil, failed
}

var errTooLarge = errors.New("the response is larger than the limit of 32 MiB")

// readResponse reads a body of JSON to its end, or to the limit, so the connection can be used
// again. Another body, such as the page of a proxy, is not read: it may have no end, like the
// connection after status 101.
func (c *Client) readResponse(ctx context.Context, req *request, received *http.Response) (*response, *failure) {
	defer func() { _ = received.Body.Close() }()
	resp := &response{request: req, status: received.StatusCode, header: received.Header}
	if resp.status < http.StatusOK || !hasMediaType(resp.header, "application/json") {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(received.Body, c.maxResponseBytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, &failure{err: ctx.Err(), isUnknown: true}
	case err != nil:
		return nil, &failure{err: req.errorf("status %d: %w: the response is incomplete", resp.status, relayer.ErrUnavailable), isTemporary: true, isUnknown: true}
	case int64(len(body)) > c.maxResponseBytes:
		return nil, &failure{err: req.errorf("status %d: %w", resp.status, errTooLarge), isUnknown: true}
	}
	if decoded := new(relayer.Envelope); json.Unmarshal(body, decoded) == nil {
		resp.envelope = decoded
	}
	return resp, nil
}

func hasMediaType(header http.Header, want string) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == want
}

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
	if !wire.IsToken(id) || len(id) > 128 || p.request.sanitize(mask.Text, id) != id {
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
		return fmt.Errorf("the server does not offer this operation, or the base URL may be wrong (it ends before /api/v1): %s: %w",
			p.describe(), errors.ErrUnsupported)
	case err == ErrUnauthorized, err == ErrForbidden:
		return err
	case err == relayer.ErrUnavailable, p.status == http.StatusTooManyRequests, p.status/100 == 5 && p.envelope == nil:
		return fmt.Errorf("%w: %s", relayer.ErrUnavailable, p.describe())
	case p.status == http.StatusOK:
		return fmt.Errorf("the base URL may be wrong (it ends before /api/v1): %s", p.describe())
	case p.envelope == nil, p.envelope.Success, err == nil, err == relayer.ErrOutcomeUnknown:
		return errors.New(p.describe())
	case err == relayer.ErrInvalid:
		invalid := &relayer.ValidationError{Fields: p.envelope.Errors}
		if len(invalid.Fields) == 0 {
			invalid.Fields = []relayer.FieldError{{Message: p.text()}}
		}
		for i, problem := range invalid.Fields {
			invalid.Fields[i].Field, invalid.Fields[i].Message = p.request.sanitize(mask.Field, problem.Field), p.request.sanitize(mask.Text, problem.Message)
		}
		return invalid
	}
	return err
}

// isUnsupported reports whether the server does not have the route of the request.
func (p *response) isUnsupported() bool {
	isMissing := p.request.id != "" && p.text() == wire.Message(http.StatusNotFound, p.request.id) // the relayer
	return p.status == http.StatusNotFound && !isMissing || p.status == http.StatusMethodNotAllowed || p.status == http.StatusNotImplemented
}

// describe returns the message of the response, or what the response is.
func (p *response) describe() string {
	if message := p.request.sanitize(mask.Text, p.text()); message != "" {
		return message
	}
	return fmt.Sprintf("the body is not one of the API, and its Content-Type is %q", p.request.sanitize(mask.Text, p.header.Get("Content-Type")))
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

// checkURLs returns an error if the server has ignored that full RPC URLs were requested. It
// marks those that the server could not open and that do not show that they are masked.
func (r *request) checkURLs(hasChanges bool, metadata *relayer.Metadata, sealed []string, relayers ...*relayer.Relayer) error {
	isIgnored := func(entry relayer.LogEntry) bool { return entry.Message == wire.IgnoredParameter(rpcURLsParameter) }
	if r.query.Has(rpcURLsParameter) && (!hasChanges || metadata != nil && slices.ContainsFunc(metadata.Logs, isIgnored)) {
		return fmt.Errorf("the server does not return full RPC URLs: %w", errors.ErrUnsupported)
	}
	for _, of := range relayers {
		for i, endpoint := range of.CustomRPCURLs {
			if slices.Contains(sealed, of.ID) {
				of.CustomRPCURLs[i].URL = relayer.RPCURL(mask.Marked(endpoint.URL.Unmasked()))
			}
		}
	}
	return nil
}
