package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Watch returns the changes of the relayers that the query selects, like
// [relayer.Manager.Watch], until ctx is done. Without a position it connects before it
// returns, so a consumer that calls Watch, then reads All, and then ranges over the
// changes, does not miss one. The last change of a relayer has its current state.
//
// The time of a change is that at which the client sent its request, plus the duration that
// the server reports. So it is a lower bound, by the clock of this machine alone, whatever
// delays the stream. It is zero until the server reports a duration.
//
// Watch reconnects when the connection is lost, or silent for three heartbeats, and resumes
// after the last change that it has yielded. If the response takes longer than a second, the times
// are early by up to that delay. Watch then opens a second connection, and uses the first until the
// second responds faster. After its first connection it does not end while the server is
// unavailable, nor if a load balancer responds in its place, for example with 404 or a web page. A
// Retry-After counts as at most 5 minutes.
//
// Any error ends the sequence: that of ctx; [relayer.ErrGap] if the server could not send
// changes, or the connection of the call failed and a later one succeeded; [ErrUnauthorized] if
// the server rejects the token; one that matches [errors.ErrUnsupported] if the server has no
// change feed, like OpenZeppelin Relayer.
//
// The sequence can be ranged over once; a second range gets an error. Until the first, and
// until the range ends, it holds a connection, which ctx releases.
func (c *Client) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	w := &watcher{client: c, query: query, lastID: query.After}
	if err := query.Selector.Err(); err != nil {
		w.rejected = &failure{err: err}
	} else if query.After == "" {
		failed := w.connect(ctx)
		w.isStart = failed == nil
		if failed != nil && !failed.isTemporary {
			w.rejected = failed
		}
	}
	return func(yield func(relayer.Change, error) bool) {
		defer func() {
			w.disconnect()
			w.rejected = &failure{err: errRangedTwice}
		}()
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
	client       *Client
	query        relayer.WatchQuery
	stream       *eventStream // nil while there is no connection
	lastID       string
	hasConnected bool
	isStart      bool     // the feed begins with the stream: its resync event is no gap
	rejected     *failure // the query, the first connection, or a second range
	failures     int      // since the last change or long connection

	// complete is the time up to which the consumer has all changes with the next event. It
	// remains true over connections: an event without a time does not change it.
	complete time.Time
}

// next returns the change of the next event, or nil if it has none.
func (w *watcher) next(ctx context.Context) (*relayer.Change, *failure) {
	if w.rejected != nil {
		return nil, w.rejected
	}
	if w.stream != nil && w.lastID != "" && hasClockStep(w.stream.began) {
		w.disconnect()
	}
	if w.stream == nil {
		if failed := w.connect(ctx); failed != nil {
			return nil, failed
		}
	}
	w.replace(ctx)
	e, err := w.stream.next()
	if err != nil {
		w.disconnect()
		return nil, &failure{err: fmt.Errorf("GET %s: %w", watchPath, err), isTemporary: !errors.Is(err, errTooLarge)}
	}
	change, err := w.change(e)
	if err != nil {
		return nil, &failure{err: fmt.Errorf("GET %s: %w", watchPath, err)}
	}
	return change, nil
}

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

// replaceWait is the first wait between two attempts to replace a stream.
const replaceWait = 5 * time.Second

// replace replaces a stream whose times are no longer exact, if another one responds at once.
// Events that the old stream has not returned are in the new one, which begins after the last event.
func (w *watcher) replace(ctx context.Context) {
	old := w.stream
	if w.lastID == "" || time.Now().Before(old.replaceAt) {
		return
	}
	stream, failed := w.open(ctx, lateResponse)
	if failed != nil {
		old.replaceAt = time.Now().Add(max(replaceWait, time.Since(old.began)))
		return
	}
	w.disconnect()
	w.stream = stream
}

// open connects a stream. It fails if the token and the response take longer than timeout.
func (w *watcher) open(ctx context.Context, timeout time.Duration) (*eventStream, *failure) {
	c := w.client
	req := newRequest(http.MethodGet, watchPath, nil).withURLs(c.fullURLs)
	req.isOptional = true
	addFilters(req.query, w.query.Selector)
	streamCtx, cancel := context.WithCancelCause(ctx)
	// A stream has no deadline. Its token, its response, and the body of a failure have one.
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	sent, err := req.http(streamCtx, c)
	if err != nil {
		isLate := ctx.Err() == nil && streamCtx.Err() != nil // the source of tokens took too long
		cancel(nil)
		return nil, &failure{err: err, isTemporary: isLate}
	}
	sent.Header.Set("Accept", eventStreamType)
	if wire.IsToken(w.lastID) {
		sent.Header.Set("Last-Event-ID", w.lastID)
	}
	began := time.Now()
	received, err := c.stream.Do(sent)
	if err == nil && received.StatusCode == http.StatusOK && hasMediaType(received.Header, eventStreamType) {
		w.hasConnected = true
		return newEventStream(received.Body, cancel, c.maxResponseBytes, began), nil
	}
	defer cancel(nil)
	failed := c.failureOf(ctx, req, received, err)
	failed.isTemporary = failed.isTemporary || w.hasConnected && !failed.isOfServer
	return nil, failed
}

const (
	eventStreamType = "text/event-stream"
	resyncKind      = "resync"
)

// failureOf returns the failure of a request for a stream.
func (c *Client) failureOf(ctx context.Context, req *request, received *http.Response, err error) *failure {
	if err != nil {
		return c.transportFailure(ctx, req, err, false)
	}
	if received.StatusCode == http.StatusOK && !hasMediaType(received.Header, "application/json") {
		_ = received.Body.Close() // it may have no end
		received.Body = http.NoBody
	}
	resp, failed := c.readResponse(ctx, req, received)
	if failed != nil {
		return failed
	}
	failed = resp.failure()
	failed.isOfServer = resp.envelope != nil
	if resp.status == http.StatusOK {
		failed.err = resp.error(fmt.Errorf("the Content-Type is %s, not %s", resp.contentType(), eventStreamType))
	}
	failed.isTemporary = resp.status == http.StatusTooManyRequests || resp.status == http.StatusRequestTimeout ||
		resp.status/100 == 5 && !resp.isUnsupported()
	return failed
}

// eventData is the data of an event.
type eventData struct {
	CompleteMS *uint64            `json:"complete_ms"` // since the server got the request
	Relayer    json.RawMessage    `json:"relayer"`
	Change     relayer.ChangeInfo `json:"change"`
	Sealed     []string           `json:"sealed"`
	Metadata   *relayer.Metadata  `json:"metadata"`
}

var changeKinds = []relayer.ChangeKind{relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted}

// change returns the change of the event, or nil if it has none.
func (w *watcher) change(e event) (*relayer.Change, error) {
	kind := relayer.ChangeKind(e.kind)
	isChange, isHeartbeat := slices.Contains(changeKinds, kind), kind == relayer.ChangeHeartbeat
	if !isChange && !isHeartbeat && kind != resyncKind {
		return nil, nil
	}
	var data eventData
	if json.Unmarshal(e.data, &data) != nil {
		return nil, errNoData
	}
	if w.client.fullURLs && ignores(data.Metadata, rpcURLsParameter) {
		return nil, errNoFullURLs
	}
	isStart := w.isStart
	w.isStart = isStart && isHeartbeat
	if kind == resyncKind {
		if !isStart {
			return nil, relayer.ErrGap
		}
		return nil, nil
	}
	if e.hasID {
		w.lastID = e.id
	}
	if ms := data.CompleteMS; ms != nil && *ms < maxCompleteMS {
		w.complete = w.stream.began.Add(time.Duration(*ms) * time.Millisecond)
	}
	if isChange || time.Since(w.stream.began) > longConnection {
		w.failures = 0
	}
	if isHeartbeat && !(w.query.Heartbeats && data.CompleteMS != nil) {
		return nil, nil
	}
	r, err := data.decodeRelayer(kind)
	return &relayer.Change{Kind: kind, Relayer: r, Position: w.lastID, Time: w.complete}, err
}

const (
	// longConnection is the duration of a connection that ends a series of failures.
	longConnection = 3 * time.Second

	// maxCompleteMS bounds complete_ms, so its conversion to a duration cannot overflow.
	maxCompleteMS = 1 << 43
)

// decodeRelayer returns the relayer of an event, or nil for a heartbeat. One that ceases to match
// the selector has only its ID.
func (d eventData) decodeRelayer(kind relayer.ChangeKind) (*relayer.Relayer, error) {
	if kind == relayer.ChangeHeartbeat {
		return nil, nil
	}
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
