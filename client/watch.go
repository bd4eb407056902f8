package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/go-relayer/relayer"
)

// Watch returns the changes from the call on, until ctx is done; it then ends without an
// error. It connects before it returns, so that the recipe of [relayer.Manager.Watch]
// works: call Watch, then read All, then range over the changes. The last change of a
// relayer has its current state.
//
// Watch reconnects when the connection is lost, or silent for longer than three
// heartbeats, and resumes after the last change that it has yielded. It yields
// [relayer.ErrGap] in place of changes that the server could not send. If the connection
// of the call failed, changes made before the first connection are such a gap. After ErrGap,
// and after the error of a change that cannot be decoded, the sequence continues.
//
// Any other error is the last. Watch ends if the server rejects the request, for example
// with [ErrUnauthorized]. It does not end while the server is unavailable, nor if a load
// balancer responds in its place, for example with 404 or a web page. Only before the
// first connection, such a response ends Watch after the time of [WithRetries]. A
// Retry-After counts as at most 5 minutes. If the server has no change feed, like
// OpenZeppelin Relayer, the error matches [errors.ErrUnsupported].
//
// The sequence can be ranged over once. Until then, and until the range ends, it holds a
// connection, which ctx releases.
func (c *Client) Watch(ctx context.Context) iter.Seq2[relayer.Change, error] {
	return c.WatchAfter(ctx, "")
}

// WatchAfter resumes [Client.Watch] after the Position of an earlier change, like
// [relayer.Manager.WatchAfter]. Unless the position is empty, it connects when the range
// begins.
func (c *Client) WatchAfter(ctx context.Context, position string) iter.Seq2[relayer.Change, error] {
	w := &watcher{client: c, lastID: position}
	if position == "" {
		w.start(ctx)
	}
	return func(yield func(relayer.Change, error) bool) {
		defer w.disconnect()
		for ctx.Err() == nil {
			e, failed := w.next(ctx)
			switch {
			case failed == nil:
				if !w.deliver(e, yield) {
					return
				}
			case failed.isTemporary:
				sleep(ctx, min(failed.wait, maxReconnectWait)+backOff(w.failures))
				w.failures++
			case ctx.Err() == nil:
				yield(relayer.Change{}, failed.err)
				return
			}
		}
	}
}

// maxReconnectWait bounds the effect of Retry-After, which may be wrong by years.
const maxReconnectWait = 5 * time.Minute

// watcher follows the change feed over several connections.
type watcher struct {
	client   *Client
	stream   *eventStream // nil while there is no connection
	lastID   string
	pending  *event   // read by start
	rejected *failure // by start
	failures int      // since the last change or long connection

	hasConnected bool
	proxyLimit   time.Time // no retries after it before the first connection; zero until a failure of a proxy
}

// start opens the first stream. Its resync event marks the start of the feed.
func (w *watcher) start(ctx context.Context) {
	first, failed := w.next(ctx)
	switch {
	case failed != nil && !failed.isTemporary:
		w.rejected = failed
	case failed == nil && first.kind != resyncKind:
		w.pending = &first
	case failed == nil:
		w.lastID = first.id
	}
}

// next returns the next event.
func (w *watcher) next(ctx context.Context) (event, *failure) {
	if w.rejected != nil {
		return event{}, w.rejected
	}
	if w.pending != nil {
		e := *w.pending
		w.pending = nil
		return e, nil
	}
	if w.stream == nil {
		if failed := w.connect(ctx); failed != nil {
			return event{}, failed
		}
	}
	e, err := w.stream.next()
	if err == nil {
		return e, nil
	}
	if time.Since(w.stream.opened) > longestBackOff {
		w.failures = 0
	}
	w.disconnect()
	return event{}, &failure{err: fmt.Errorf("client: GET %s: %w", watchPath, err), isTemporary: !errors.Is(err, errTooLarge)}
}

func (w *watcher) disconnect() {
	if w.stream != nil {
		w.stream.close()
		w.stream = nil
	}
}

// connect opens a stream that begins after the last event.
func (w *watcher) connect(ctx context.Context) *failure {
	c := w.client
	req := newRequest(http.MethodGet, watchPath, nil)
	streamCtx, cancel := context.WithCancelCause(ctx)
	sent, err := req.http(streamCtx, c)
	if err != nil {
		cancel(nil)
		return &failure{err: err}
	}
	sent.Header.Set("Accept", eventStreamType)
	if w.lastID != "" && isHeaderValue(w.lastID) {
		sent.Header.Set("Last-Event-ID", w.lastID)
	}
	// Only a stream has no deadline; the body of a failure has.
	timer := time.AfterFunc(c.timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	received, err := c.stream.Do(sent)
	if err == nil && received.StatusCode == http.StatusOK && hasMediaType(received.Header, eventStreamType) {
		w.hasConnected = true
		w.stream = &eventStream{
			body:    received.Body,
			lines:   bufio.NewReader(received.Body),
			cancel:  cancel,
			maxSize: c.maxResponseBytes,
			opened:  time.Now(),
		}
		return nil
	}
	defer cancel(nil)
	if err != nil {
		return w.tolerate(c.transportFailure(ctx, req, withoutURL(err), false))
	}
	return w.rejection(ctx, req, received)
}

const (
	eventStreamType = "text/event-stream"
	resyncKind      = "resync"
)

// rejection returns the failure of a response that is not a stream. A response without an
// envelope is one of a proxy.
func (w *watcher) rejection(ctx context.Context, req *request, received *http.Response) *failure {
	c := w.client
	if received.StatusCode == http.StatusOK && !isJSON(received.Header) {
		_ = received.Body.Close() // it may have no end
		received.Body = http.NoBody
	}
	resp, err := c.readResponse(received)
	if err != nil {
		return w.tolerate(c.bodyFailure(ctx, req, received.StatusCode, err))
	}
	failed := &failure{err: errorOf(req, resp), wait: resp.retryAfter()}
	switch resp.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		failed.err = newResponseError(req, resp, fmt.Errorf("the server has no change feed: %w", errors.ErrUnsupported))
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		failed.isTemporary = true
	case http.StatusOK:
		failed.err = newResponseError(req, resp, fmt.Errorf("the Content-Type is %s, not %s", resp.contentType(), eventStreamType))
	default:
		failed.isTemporary = resp.status/100 == 5
	}
	if resp.envelope == nil {
		return w.tolerate(failed)
	}
	return failed
}

// tolerate makes the failure of a proxy temporary, before the first connection only for
// the time of [WithRetries].
func (w *watcher) tolerate(failed *failure) *failure {
	if w.proxyLimit.IsZero() {
		w.proxyLimit = time.Now().Add(w.client.maxRetryTime)
	}
	if w.hasConnected || time.Now().Before(w.proxyLimit) {
		failed.isTemporary = true
	}
	return failed
}

// deliver yields the change or the gap of the event. It reports false if the consumer
// stops the iteration.
func (w *watcher) deliver(e event, yield func(relayer.Change, error) bool) bool {
	switch kind := relayer.ChangeKind(e.kind); kind {
	case resyncKind:
		// Without an ID, a connection that is lost before the consumer has read all
		// relayers begins with another resync.
		w.lastID = e.id
		return yield(relayer.Change{}, relayer.ErrGap)
	case relayer.Created, relayer.Updated, relayer.Deleted:
		w.failures = 0
		if e.hasID {
			w.lastID = e.id
		}
		return yield(decodeChange(kind, e))
	default:
		return true
	}
}

func decodeChange(kind relayer.ChangeKind, e event) (relayer.Change, error) {
	var decoded struct {
		ETag    string          `json:"etag"`
		Relayer json.RawMessage `json:"relayer"`
	}
	if err := json.Unmarshal(e.data, &decoded); err != nil {
		return relayer.Change{}, fmt.Errorf("client: GET %s: %w", watchPath, errNoData)
	}
	r, err := decodeRelayer(decoded.Relayer)
	if err != nil {
		return relayer.Change{}, fmt.Errorf("client: GET %s: %w", watchPath, err)
	}
	r.Revision = revisionOf(decoded.ETag)
	return relayer.Change{Kind: kind, Relayer: r, Position: e.id}, nil
}
