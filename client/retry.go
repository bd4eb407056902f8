package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptrace"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

type failure struct {
	err error

	// isTemporary means that another attempt may succeed.
	isTemporary bool

	// isUnknown means that the outcome is unknown: the server may have processed the
	// request.
	isUnknown bool

	// isOfServer means that the response is one of the API, not of a proxy.
	isOfServer bool

	// wait is the least time before another attempt.
	wait time.Duration
}

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
	if t.left <= 0 {
		return false
	}
	wait += wire.BackOff(t.made)
	end := time.Now().Add(wait)
	if deadline, ok := ctx.Deadline(); end.After(t.lastEnd) || ok && end.After(deadline) {
		return false
	}
	t.left--
	t.made++
	return wire.Sleep(ctx, wait)
}

// do sends the request until it succeeds, fails for good, or the attempts are exhausted. A
// write of unknown outcome is sent again only if it is repeatable.
func (c *Client) do(ctx context.Context, req *request, attempts *attempts) (*response, *failure) {
	for isUnknown := false; ; {
		resp, failed := c.attempt(ctx, req)
		if failed == nil {
			return resp, nil
		}
		isUnknown = isUnknown || failed.isUnknown
		failed.isUnknown = isUnknown
		if !failed.isTemporary || isUnknown && !req.isRepeatable {
			return nil, failed
		}
		if !attempts.next(ctx, failed.wait) {
			failed.err = cmp.Or(ctx.Err(), failed.err)
			return nil, failed
		}
	}
}

func (c *Client) attempt(ctx context.Context, req *request) (*response, *failure) {
	if err := ctx.Err(); err != nil {
		return nil, &failure{err: err}
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	wasSent := true // unless the transport reports that it has no connection
	sent, err := req.http(httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		GetConn: func(string) { wasSent = false },
		GotConn: func(httptrace.GotConnInfo) { wasSent = true },
	}), c)
	if err != nil {
		return nil, &failure{err: err}
	}
	received, err := c.http.Do(sent)
	if err != nil {
		return nil, c.transportFailure(ctx, req, withoutURL(err), wasSent)
	}
	resp, err := c.readResponse(req, received)
	if err != nil {
		return nil, c.bodyFailure(ctx, req, received.StatusCode, err)
	}
	return judge(resp)
}

// judge decides what a complete response means.
func judge(resp *response) (*response, *failure) {
	req := resp.request
	if !resp.isSuccess() {
		return nil, &failure{
			err:         errorOf(resp),
			isTemporary: resp.isTemporary(),
			isUnknown:   !resp.isRejection(),
			isOfServer:  resp.isFailure(),
			wait:        resp.retryAfter(),
		}
	}
	if err := req.decode(resp); err != nil {
		return nil, &failure{err: req.errorf("%w", err), isUnknown: true}
	}
	if resp.relayer != nil && req.wantID != "" && resp.relayer.ID != req.wantID {
		return nil, &failure{err: req.errorf("%w", errOtherRelayer), isUnknown: true}
	}
	return resp, nil
}

// transportFailure returns the failure of a request without a response. An error of the
// caller's context is returned as such.
func (c *Client) transportFailure(ctx context.Context, req *request, err error, wasSent bool) *failure {
	failed := &failure{isTemporary: true, isUnknown: wasSent}
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
	return failed
}

func (c *Client) bodyFailure(ctx context.Context, req *request, status int, err error) *failure {
	if errors.Is(err, errTooLarge) {
		return &failure{err: req.errorf("status %d: %w", status, err), isUnknown: true}
	}
	failed := c.transportFailure(ctx, req, err, true)
	if ctx.Err() == nil {
		failed.err = req.errorf("status %d: %w: the response is incomplete", status, relayer.ErrUnavailable)
	}
	return failed
}
