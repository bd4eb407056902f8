package client

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Watch returns the changes of the relayers that the query selects, like [relayer.Manager.Watch],
// until ctx is done. Without a position, Watch reads the current position before it returns, with
// a page of one relayer. So a consumer that then reads All, and then ranges over the changes,
// misses none. A token that may not list relayers needs a position. The last change of a selected
// relayer has its current state.
//
// The time of a change is when the request of the stream was sent, plus the duration that the
// server reports. So it is a lower bound, by the clock of this machine alone, whatever delays the
// stream. It is zero until the server reports a duration.
//
// Watch reconnects when the connection is lost, is silent for three heartbeats, or reports times
// in the future, and resumes after the last change that it has yielded. If the response takes
// longer than a second, the times are early by up to that delay. Watch then tries other
// connections, and replaces the first by one that responds within a second. It waits while the
// server is unavailable. Once connected, it also waits while a load balancer responds for the
// server, for example with 404 or a web page. A Retry-After counts as at most 5 minutes.
//
// Any error ends the sequence: the error of ctx, or of reading the position; [relayer.ErrGap] if the
// server could not send changes; [ErrUnauthorized] if it rejects the token; one that matches
// [errors.ErrUnsupported] if it has no change feed or no positions, like OpenZeppelin Relayer.
//
// The sequence can be ranged over once; a second range gets an error. It holds a connection
// while it is ranged over.
func (c *Client) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	w := &watcher{client: c, query: query, lastID: query.After}
	err := query.Selector.Err()
	if err == nil && query.After == "" {
		w.lastID, err = c.position(ctx, query.Selector)
	}
	var isRanged atomic.Bool
	return func(yield func(relayer.Change, error) bool) {
		if isRanged.Swap(true) {
			yield(named(relayer.ActionWatch, "", relayer.Change{}, errRangedTwice))
			return
		}
		defer w.disconnect()
		for err == nil && ctx.Err() == nil {
			change, failed := w.next(ctx)
			switch {
			case failed != nil && failed.isTemporary:
				wire.Sleep(ctx, min(failed.wait, maxReconnectWait)+wire.BackOff(w.failures))
				w.failures++
			case failed != nil:
				err = failed.err
			case change != nil && !yield(*change, nil):
				return
			}
		}
		yield(named(relayer.ActionWatch, "", relayer.Change{}, cmp.Or(ctx.Err(), err)))
	}
}

var errRangedTwice = errors.New("the changes can be ranged over once: call Watch again")

// position returns the current position of the feed of a selection. The read has full RPC URLs if
// the stream has them: a position belongs to a selection, and the permission to read them may be
// for fewer relayers.
func (c *Client) position(ctx context.Context, selector relayer.Selector) (string, error) {
	page, err := c.list(ctx, relayer.ListQuery{Selector: selector, After: new(relayer.Cursor), PerPage: 1})
	if err == nil && page.Position == "" {
		err = fmt.Errorf("the server has no positions of changes: %w", errors.ErrUnsupported)
	}
	return page.Position, err
}

// maxReconnectWait bounds the effect of Retry-After, which may be wrong by years.
const maxReconnectWait = 5 * time.Minute

// watcher follows the change feed over several connections.
type watcher struct {
	client       *Client
	query        relayer.WatchQuery
	stream       *eventStream // nil while there is no connection
	lastID       string       // the position after which the next stream begins
	hasConnected bool
	failures     int // since the last change or long connection

	// complete is the time up to which the consumer has all changes with the next event. It
	// remains true over connections: an event without a time does not change it.
	complete time.Time
}

// next returns the change of the next event, or nil if it has none.
func (w *watcher) next(ctx context.Context) (change *relayer.Change, failed *failure) {
	if w.stream != nil && hasClockStep(w.stream.request.began) {
		w.disconnect()
	}
	if w.stream == nil {
		if w.stream, failed = w.open(ctx, w.client.timeout); failed != nil {
			return nil, failed
		}
	}
	w.replace(ctx)
	req := w.stream.request
	e, err := w.stream.next()
	if err != nil {
		w.disconnect()
		return nil, &failure{err: fmt.Errorf("%s: %w", req, err), isTemporary: !errors.Is(err, errTooLarge)}
	}
	if change, err = w.change(e); err != nil {
		w.disconnect()
		return nil, &failure{err: fmt.Errorf("%s: %w", req, err), isTemporary: err == errFuture}
	}
	return change, nil
}

func (w *watcher) disconnect() {
	if w.stream != nil {
		w.stream.cancel(nil)
		_ = w.stream.body.Close()
		w.stream = nil
	}
}

// replaceWait is the least wait between two attempts to replace a stream.
const replaceWait = 5 * time.Second

// replace replaces a stream whose times are no longer exact, if another one responds at once.
// Events that the old stream has not returned are in the new one, which begins after the last event.
func (w *watcher) replace(ctx context.Context) {
	old := w.stream
	if time.Now().Before(old.replaceAt) {
		return
	}
	stream, failed := w.open(ctx, lateResponse)
	if failed != nil {
		old.replaceAt = time.Now().Add(max(replaceWait, time.Since(old.request.began)))
		return
	}
	w.disconnect()
	w.stream = stream
}

const eventStreamType = "text/event-stream"

// open connects a stream that begins after the last event. It fails if the token and the response
// take longer than timeout. A stream has no deadline, but the body of a failure has one.
func (w *watcher) open(ctx context.Context, timeout time.Duration) (*eventStream, *failure) {
	c := w.client
	req := newRequest(http.MethodGet, "", ":watch", nil)
	req.set(rpcURLsParameter, "full", c.fullURLs)
	addFilters(req.query, w.query.Selector)
	req.header.Set("Accept", eventStreamType)
	if wire.IsToken(w.lastID) {
		req.header.Set("Last-Event-ID", w.lastID)
	}
	streamCtx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	received, failed := c.send(ctx, streamCtx, req)
	if failed == nil && received.StatusCode == http.StatusOK && hasMediaType(received.Header, eventStreamType) {
		w.hasConnected = true
		return newEventStream(received.Body, cancel, c.maxResponseBytes, req), nil
	}
	defer cancel(nil)
	if failed == nil {
		var resp *response
		if resp, failed = c.readResponse(ctx, req, received); failed == nil {
			failed = resp.failure()
			failed.isTemporary = resp.status == http.StatusTooManyRequests || resp.status == http.StatusRequestTimeout ||
				resp.status/100 == 5 && !resp.isUnsupported()
		}
	}
	// A load balancer responds while the server restarts.
	failed.isTemporary = failed.isTemporary || w.hasConnected && !failed.isOfServer && !failed.isUnsent
	return nil, failed
}

const resyncKind relayer.ChangeKind = "resync"

var eventKinds = []relayer.ChangeKind{relayer.ChangeCreated, relayer.ChangeUpdated, relayer.ChangeDeleted, relayer.ChangeHeartbeat, resyncKind}

// longConnection is the duration of a connection that ends a series of failures.
const longConnection = 3 * time.Second

// maxAheadMS is by how much more time can have passed on the server than here since the request. It
// is more if this machine was paused together with its clocks: the times of the stream are then wrong.
const maxAheadMS = 1000

var errFuture = errors.New("the change feed reports a time in the future")

// change returns the change of the event, or nil if it has none.
func (w *watcher) change(e event) (*relayer.Change, error) {
	kind, req := relayer.ChangeKind(e.kind), w.stream.request
	if !slices.Contains(eventKinds, kind) {
		return nil, nil
	}
	var data struct {
		CompleteMS *uint64            `json:"complete_ms"` // since the server got the request
		Relayer    json.RawMessage    `json:"relayer"`
		Change     relayer.ChangeInfo `json:"change"`
		Sealed     []string           `json:"sealed"`
		Metadata   *relayer.Metadata  `json:"metadata"`
	}
	if json.Unmarshal(e.data, &data) != nil {
		return nil, errNoData
	}
	if err := req.checkURLs(true, data.Metadata, nil); err != nil {
		return nil, err
	}
	if kind == resyncKind {
		return nil, relayer.ErrGap
	}
	isHeartbeat := kind == relayer.ChangeHeartbeat
	if data.CompleteMS != nil {
		if *data.CompleteMS > uint64(time.Since(req.began)/time.Millisecond)+maxAheadMS {
			return nil, errFuture
		}
		w.complete = req.began.Add(time.Duration(*data.CompleteMS) * time.Millisecond)
	}
	w.lastID = cmp.Or(e.id, w.lastID)
	if !isHeartbeat || time.Since(req.began) > longConnection {
		w.failures = 0
	}
	change := &relayer.Change{Kind: kind, Info: data.Change, Position: w.lastID, Time: w.complete}
	switch {
	case isHeartbeat && w.query.Heartbeats && data.CompleteMS != nil:
		return change, nil
	case isHeartbeat:
		return nil, nil
	}
	r, err := decodeRelayer(data.Relayer)
	if err != nil && kind == relayer.ChangeDeleted { // a relayer that ceases to match the selector has only its ID
		var identified struct{ ID string }
		if json.Unmarshal(data.Relayer, &identified) == nil && identified.ID != "" {
			r, err = &relayer.Relayer{ID: identified.ID}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	setChange(r, data.Change)
	change.ID, change.Relayer = r.ID, r
	return change, req.checkURLs(true, nil, data.Sealed, r)
}

// maxSilence is how long a stream may be silent: three heartbeats of package httpapi.
const maxSilence = 15 * time.Second

var errSilence = errors.New("the change feed is silent")

// event is one of the Server-Sent Events.
type event struct {
	id   string // "" if it has none that can be sent back
	kind string
	data []byte
}

// eventStream reads Server-Sent Events.
type eventStream struct {
	request *request // its times are too early by the duration of the request to the server
	body    io.ReadCloser
	lines   *bufio.Scanner
	cancel  context.CancelCauseFunc // ends the request, and a blocked read with it
	maxSize int64
	silence *time.Timer

	replaceAt time.Time // when its times are not exact enough
}

const (
	lateResponse = time.Second // the request may have taken as long
	maxStreamAge = time.Hour   // the clocks of client and server run at different rates
)

func newEventStream(body io.ReadCloser, cancel context.CancelCauseFunc, maxSize int64, req *request) *eventStream {
	s := &eventStream{body: body, cancel: cancel, maxSize: maxSize, request: req, replaceAt: req.began.Add(maxStreamAge)}
	if time.Since(req.began) > lateResponse {
		s.replaceAt = req.began
	}
	s.lines = bufio.NewScanner(s)
	s.lines.Buffer(nil, int(min(maxSize, math.MaxInt32)))
	s.silence = time.AfterFunc(maxSilence, func() { cancel(errSilence) })
	s.silence.Stop()
	return s
}

// Read reads the body. Each part of a slow line ends the silence.
func (s *eventStream) Read(p []byte) (int, error) {
	n, err := s.body.Read(p)
	s.silence.Reset(maxSilence)
	return n, err
}

// hasClockStep reports whether the times of a stream since a time are wrong.
func hasClockStep(since time.Time) bool { return wire.ClockStep(since).Abs() > time.Second }

// next returns the next event. It returns an error if the stream ends, is silent for too long, or
// sends an event that is too large. The time between two calls does not count as silence.
func (s *eventStream) next() (event, error) {
	s.silence.Reset(maxSilence)
	defer s.silence.Stop()
	begun := time.Now()
	var e event
	for size := 0; s.lines.Scan(); {
		line := s.lines.Bytes()
		if size += len(line) + 1; int64(size) > s.maxSize {
			return event{}, errTooLarge
		}
		isNothing := e.data == nil && (len(line) == 0 || line[0] == ':')
		switch {
		case isNothing && time.Since(begun) > maxSilence: // a proxy sends comments, and the server nothing
			return event{}, errSilence
		case len(line) > 0:
			e.add(line)
		case e.data != nil:
			return e, nil
		default:
			e, size = event{}, 0 // an event without data is ignored
		}
	}
	err := cmp.Or(s.lines.Err(), io.EOF)
	if errors.Is(err, bufio.ErrTooLong) {
		err = errTooLarge
	}
	return event{}, err
}

// add adds a line of the event.
func (e *event) add(line []byte) {
	name, value, _ := strings.Cut(string(line), ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case name == "id" && wire.IsToken(value):
		e.id = value
	case name == "event":
		e.kind = value
	case name == "data":
		e.data = append(append(e.data, value...), '\n')
	}
}
