package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// failure describes why a request, or its last attempt, failed.
type failure struct {
	err         error
	isTemporary bool          // another attempt may succeed
	isUnknown   bool          // the server may have processed the attempt
	isOfServer  bool          // the response is one of the API, not of a proxy
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
	left    int
	made    int
	lastEnd time.Time // no wait may end later
}

func (c *Client) newAttempts() *attempts {
	return &attempts{left: c.maxAttempts - 1, lastEnd: time.Now().Add(c.maxRetryTime)}
}

// next waits before another attempt: exponential backoff with full jitter, after the
// wait that the server asks for. It reports false if there is no other attempt.
func (t *attempts) next(ctx context.Context, wait time.Duration) bool {
	wait += wire.BackOff(t.made)
	end := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); t.left <= 0 || end.After(t.lastEnd) || ok && end.After(deadline) {
		return false
	}
	t.left--
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
	switch {
	case failed != nil:
		return nil, failed
	case resp.status/100 == 2 && resp.envelope != nil && resp.envelope.Success:
		return resp, nil
	default:
		return nil, resp.failure()
	}
}

// send sends the request. Both contexts end it: ctx is the context of the call, and limited adds the
// time limit of the request. An error of ctx is returned as such.
func (c *Client) send(ctx, limited context.Context, req *request) (*http.Response, *failure) {
	failed := &failure{isTemporary: true, isUnknown: true}
	sent, err := req.http(httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GetConn: func(string) { failed.isUnknown = false }, // until there is a connection
		GotConn: func(httptrace.GotConnInfo) { failed.isUnknown = true },
	}), c)
	if err != nil { // the source of tokens may have taken too long
		return nil, &failure{err: err, isTemporary: ctx.Err() == nil && limited.Err() != nil}
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
	case errors.Is(err, context.DeadlineExceeded):
		failed.err = req.errorf("%w: no response within %s", relayer.ErrUnavailable, c.timeout)
	default:
		failed.err = req.errorf("%w: %s", relayer.ErrUnavailable, req.sanitize(err.Error()))
	}
	return nil, failed
}

var errTooLarge = errors.New("the response is larger than the limit of 16 MiB")

// readResponse reads the body to its end, so the connection can be used again.
func (c *Client) readResponse(ctx context.Context, req *request, received *http.Response) (*response, *failure) {
	defer func() { _ = received.Body.Close() }()
	resp := &response{request: req, status: received.StatusCode, header: received.Header}
	if resp.status < http.StatusOK {
		return resp, nil // the body is the connection, which neither ends nor follows the context
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
	if decoded := new(relayer.Envelope); hasMediaType(resp.header, "application/json") && json.Unmarshal(body, decoded) == nil {
		resp.envelope = decoded
	}
	return resp, nil
}

func hasMediaType(header http.Header, want string) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == want
}
