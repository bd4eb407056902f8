package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Watch returns the changes of the relayers that the query selects, like
// [relayer.Manager.Watch], until ctx is done. Without a position it connects before it
// returns, so that a consumer that calls Watch, then reads All, and then ranges over the
// changes, does not miss one. The last change of a relayer has its current state.
//
// The time of a change is that at which the client sent its request, plus the duration that
// the server reports. So it is a lower bound, by the clock of this machine alone, whatever
// delays the stream. It is zero until the server reports a duration.
//
// Watch reconnects when the connection is lost, or silent for three heartbeats, and resumes
// after the last change that it has yielded. If the response takes longer than a second, the times
// are early by up to that delay. Watch then opens a second connection, and uses the first until the
// second responds faster. It does not end while
// the server is unavailable, nor if a load balancer responds in its place, for example with
// 404 or a web page. Only before the first connection, such a response ends Watch after the
// time of [WithRetries]. A Retry-After counts as at most 5 minutes.
//
// Any error ends the sequence: that of ctx; [relayer.ErrGap] if the server could not send
// changes, or the connection of the call failed and a later one succeeded; [ErrUnauthorized] if
// the server rejects the token; one that matches [errors.ErrUnsupported] if the server has no
// change feed, like OpenZeppelin Relayer, or does not select changes.
//
// The sequence can be ranged over once; a second range gets an error. Until the first, and
// until the range ends, it holds a connection, which ctx releases.
func (c *Client) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	w := newWatcher(c, query)
	if query.After == "" && w.rejected == nil {
		if failed := w.connect(ctx); failed != nil && !failed.isTemporary {
			w.rejected = failed
		}
		w.isStart = w.stream != nil
	}
	var isRanged atomic.Bool
	return func(yield func(relayer.Change, error) bool) {
		if isRanged.Swap(true) {
			yield(named(relayer.ActionWatch, "", relayer.Change{}, errRangedTwice))
			return
		}
		defer w.disconnect()
		for ctx.Err() == nil {
			change, failed := w.next(ctx)
			switch {
			case failed != nil && failed.isTemporary:
				wire.Sleep(ctx, min(failed.wait, maxReconnectWait)+wire.BackOff(w.failures))
				w.failures++
			case failed != nil:
				yield(named(relayer.ActionWatch, "", relayer.Change{}, cmp.Or(ctx.Err(), failed.err)))
				return
			case change != nil && !yield(*change, nil):
				return
			}
		}
		yield(named(relayer.ActionWatch, "", relayer.Change{}, ctx.Err()))
	}
}

// maxReconnectWait bounds the effect of Retry-After, which may be wrong by years.
const maxReconnectWait = 5 * time.Minute

var errRangedTwice = errors.New("client: the changes can be ranged over once: call Watch again")

// watcher follows the change feed over several connections.
type watcher struct {
	client   *Client
	selector relayer.Selector
	stream   *eventStream // nil while there is no connection
	lastID   string
	isStart  bool     // the feed begins with the stream: its resync event is no gap
	rejected *failure // the first connection, or the query
	failures int      // since the last change or long connection

	// complete is the time up to which the consumer has all changes with the next event. It
	// remains true over connections: an event without a time does not change it.
	complete time.Time

	hasHeartbeats bool // the consumer gets them
	hasConnected  bool
	proxyLimit    time.Time // no retries after it before the first connection; zero until a failure of a proxy
}

func newWatcher(c *Client, query relayer.WatchQuery) *watcher {
	w := &watcher{client: c, selector: query.Selector, lastID: query.After, hasHeartbeats: query.Heartbeats}
	if err := query.Selector.Err(); err != nil {
		w.rejected = &failure{err: err}
	}
	return w
}

// next returns the change of the next event, or nil if it has none.
func (w *watcher) next(ctx context.Context) (*relayer.Change, *failure) {
	if w.rejected != nil {
		return nil, w.rejected
	}
	if w.stream != nil && w.lastID != "" && w.stream.isOutdated() {
		w.disconnect()
	}
	if w.stream == nil {
		if failed := w.connect(ctx); failed != nil {
			return nil, failed
		}
	}
	w.replaceLate(ctx)
	e, err := w.stream.next()
	if err == nil {
		change, err := w.change(e)
		if err != nil {
			return nil, &failure{err: fmt.Errorf("GET %s: %w", watchPath, err)}
		}
		return change, nil
	}
	if time.Since(w.stream.began) > longConnection {
		w.failures = 0
	}
	w.disconnect()
	return nil, &failure{err: fmt.Errorf("GET %s: %w", watchPath, err), isTemporary: !errors.Is(err, errTooLarge)}
}

// longConnection is the duration of a connection that ends a series of failures.
const longConnection = 10 * time.Second

func (w *watcher) disconnect() {
	if w.stream != nil {
		w.stream.close()
		w.stream, w.isStart = nil, false
	}
}

// connect opens a stream that begins after the last event.
func (w *watcher) connect(ctx context.Context) (failed *failure) {
	w.stream, failed = w.open(ctx, w.client.timeout)
	return failed
}

// The time of the response after which a stream is late, and the first wait between two
// attempts to replace it.
const (
	lateResponse = time.Second
	replaceWait  = 5 * time.Second
)

// replaceLate replaces a stream whose response was late. Events that the old stream has not
// returned are in the new one, which begins after the last event.
func (w *watcher) replaceLate(ctx context.Context) {
	old := w.stream
	if !old.isLate || w.lastID == "" || time.Now().Before(old.replaceAt) {
		return
	}
	stream, failed := w.open(ctx, lateResponse)
	if failed != nil {
		old.replaceAt = time.Now().Add(old.replaceWait)
		old.replaceWait *= 2
		return
	}
	w.disconnect()
	w.stream = stream
}

// open connects a stream. It fails if the token and the response take longer than timeout.
func (w *watcher) open(ctx context.Context, timeout time.Duration) (*eventStream, *failure) {
	c := w.client
	req := c.urls.of(newRequest(http.MethodGet, watchPath, nil))
	req.isOptional = true
	addFilters(req.query, w.selector)
	streamCtx, cancel := context.WithCancelCause(ctx)
	// A stream has no deadline. Its token, its response, and the body of a failure have one.
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	sent, err := req.http(streamCtx, c)
	if err != nil {
		isLate := ctx.Err() == nil && streamCtx.Err() != nil
		cancel(nil)
		return nil, &failure{err: err, isTemporary: isLate}
	}
	sent.Header.Set("Accept", eventStreamType)
	if w.lastID != "" && isHeaderValue(w.lastID) {
		sent.Header.Set("Last-Event-ID", w.lastID)
	}
	began := time.Now()
	received, err := c.stream.Do(sent)
	if err == nil && streamCtx.Err() != nil {
		_ = received.Body.Close()
		err = context.Cause(streamCtx)
	}
	if err == nil && received.StatusCode == http.StatusOK && hasMediaType(received.Header, eventStreamType) {
		w.hasConnected = true
		return newEventStream(received.Body, cancel, c.maxResponseBytes, began), nil
	}
	defer cancel(nil)
	if err != nil {
		return nil, w.tolerate(c.transportFailure(ctx, req, withoutURL(err), false))
	}
	return nil, w.rejection(ctx, req, received)
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
	resp, err := c.readResponse(req, received)
	if err != nil {
		return w.tolerate(c.bodyFailure(ctx, req, received.StatusCode, err))
	}
	failed := &failure{err: errorOf(resp), wait: resp.retryAfter()}
	switch resp.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		failed.isTemporary = true
	case http.StatusOK:
		failed.err = newResponseError(resp, fmt.Errorf("the Content-Type is %s, not %s", resp.contentType(), eventStreamType))
	default:
		failed.isTemporary = resp.status/100 == 5 && !resp.isUnsupported()
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

// eventData is the data of an event.
type eventData struct {
	CompleteMS *uint64         `json:"complete_ms"` // since the server got the request
	Relayer    json.RawMessage `json:"relayer"`
	Change     wire.Change     `json:"change"`
	Sealed     []string        `json:"sealed"`
	Metadata   json.RawMessage `json:"metadata"`
}

// change returns the change of the event, or nil if it has none.
func (w *watcher) change(e event) (*relayer.Change, error) {
	kind, isRepeated := relayer.ChangeKind(e.kind), e.hasID && e.id == w.lastID // each position is sent once
	if e.hasID && kind != resyncKind {
		w.lastID = e.id
	}
	isKnown := kind == relayer.ChangeCreated || kind == relayer.ChangeUpdated || kind == relayer.ChangeDeleted
	if !isKnown && kind != resyncKind && kind != relayer.ChangeHeartbeat {
		return nil, nil
	}
	var data eventData
	if json.Unmarshal(e.data, &data) != nil {
		return nil, errNoData
	}
	if w.client.urls == fullURLs && strings.Contains(warningsOf(data.Metadata), wire.IgnoredParameter(rpcURLsParameter)) {
		return nil, errNoFullURLs
	}
	if ms := data.CompleteMS; ms != nil && *ms < maxCompleteMS {
		w.complete = w.stream.began.Add(time.Duration(*ms) * time.Millisecond)
	}
	isStart := w.isStart
	w.isStart = isStart && kind == relayer.ChangeHeartbeat
	switch {
	case kind == resyncKind && !isStart:
		return nil, relayer.ErrGap
	case kind == relayer.ChangeHeartbeat && w.hasHeartbeats && data.CompleteMS != nil:
		return &relayer.Change{Kind: kind, Position: w.lastID, Time: w.complete}, nil
	case !isKnown || isRepeated:
		return nil, nil
	}
	w.failures = 0
	r, err := data.decodeRelayer(kind)
	if err == nil && kind != relayer.ChangeDeleted && !w.selector.Matches(r) {
		err = unsupportedSelector(w.selector) // the server has ignored the selector
	}
	return &relayer.Change{Kind: kind, Relayer: r, Position: w.lastID, Time: w.complete}, err
}

// maxCompleteMS bounds complete_ms, so its conversion to a duration cannot overflow.
const maxCompleteMS = 1 << 43

// decodeRelayer returns the relayer of an event. One that ceases to match the selector has only
// its ID.
func (d eventData) decodeRelayer(kind relayer.ChangeKind) (*relayer.Relayer, error) {
	r, err := decodeRelayer(d.Relayer)
	if err != nil && kind == relayer.ChangeDeleted {
		var identified struct{ ID string }
		if json.Unmarshal(d.Relayer, &identified) == nil && identified.ID != "" {
			r, err = &relayer.Relayer{ID: identified.ID}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	setChange(r, d.Change)
	if len(d.Sealed) > 0 {
		markSealed(r)
	}
	return r, nil
}
