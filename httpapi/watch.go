package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// defaultMaxWatchers is the limit of [WithMaxWatchers] if it is not set.
const defaultMaxWatchers = 1000

const (
	// heartbeatInterval is shorter than the idle timeouts of common proxies. It is also
	// the longest time that a stream stays open after its token was revoked.
	heartbeatInterval = 15 * time.Second

	// sendTimeout bounds how long a client that does not read keeps its stream.
	sendTimeout = 10 * time.Second
)

// WithMaxWatchers sets how many clients may follow the changes concurrently, at least
// 1. The default is 1,000. A further one is rejected with 503 and Retry-After. To
// disable the change feed, refuse [ActionWatch] with [WithAuthorizer].
func WithMaxWatchers(limit int) Option {
	return func(a *API) error {
		if limit < 1 {
			return errors.New("httpapi: the limit of watchers must be at least 1")
		}
		a.watchers.limit = int64(limit)
		return nil
	}
}

// Drain ends all change streams, and rejects new ones with 503 and Retry-After. Other
// requests are not affected. Register it with [http.Server.RegisterOnShutdown]:
// otherwise open streams delay [http.Server.Shutdown] until its deadline. It returns
// without waiting, and further calls do nothing.
func (a *API) Drain() { a.drain() }

// watchRelayers streams the changes as Server-Sent Events. It sends its response
// itself, except for one that rejects the request.
func (a *API) watchRelayers(x *exchange, r *http.Request) response {
	if a.draining.Err() != nil || !a.watchers.tryAcquire(1) {
		return failure(http.StatusServiceUnavailable).withHeader("Retry-After", "5")
	}
	defer a.watchers.release(1)
	if r.Method == http.MethodHead {
		x.startStream()
		return response{}
	}
	return a.stream(eventStream{x, http.NewResponseController(x.ResponseWriter)}, r)
}

// stream returns when the client, the feed or the API ends the stream.
func (a *API) stream(s eventStream, r *http.Request) (rejection response) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(a.draining, cancel)
	defer stop()

	after := lastEventID(r.Header)
	changes := a.manager.WatchDocuments(ctx, after)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	arrived := make(chan arrival)
	following.Go(func() { a.follow(ctx, changes, arrived) })

	if err := s.setDeadlines(); err != nil {
		return a.errorResponse(s.x, r, fmt.Errorf("the ResponseWriter of the host cannot stream: %w", err))
	}
	defer s.finish()
	err := s.start(after)
	heartbeats := time.NewTicker(heartbeatInterval)
	defer heartbeats.Stop()
	for err == nil { // an error means that the client is gone or does not read
		select {
		case <-ctx.Done():
			return response{}
		case <-heartbeats.C:
			if !a.mayStillWatch(ctx, s.x, r) {
				return response{}
			}
			err = s.send(append(s.buffer(), heartbeat...))
		case next := <-arrived:
			if next.isEnd() {
				a.logEnd(s.x, r, next.err)
				return response{}
			}
			err = a.sendArrival(s, next)
			if next.isCutOff {
				return response{}
			}
		}
	}
	return response{}
}

// mayStillWatch checks the token and the authorizer again, and reports whether a new
// request would be accepted.
func (a *API) mayStillWatch(ctx context.Context, x *exchange, r *http.Request) bool {
	principal, err := a.auth.authenticate(ctx, r, a.guesses)
	if err != nil {
		return false
	}
	x.principal = principal
	return a.authorize == nil || a.authorize(ctx, Access{Principal: principal, Action: ActionWatch}) == nil
}

func (a *API) logEnd(x *exchange, r *http.Request, err error) {
	if err != nil {
		a.logFault(x, r, fmt.Errorf("the change feed has ended: %w", err))
	}
}

// lastEventID returns the position at which the client resumes. It returns "" if there
// is none or it is invalid: the client then gets a resync event first.
func lastEventID(header http.Header) string {
	values := header["Last-Event-Id"]
	if len(values) == 1 && isPosition(values[0]) {
		return values[0]
	}
	return ""
}

// isPosition reports whether text can be a position. No other text may become a line
// of a stream.
func isPosition(text string) bool {
	return wire.IsToken(text) && len(text) <= relayer.MaxPositionLength
}

// arrival is one item of the feed. The zero arrival is its end.
type arrival struct {
	change   relayer.DocumentChange
	err      error
	isCutOff bool // a gap that ends the stream, because of too many pending bytes
}

func (n arrival) isGap() bool { return n.isCutOff || errors.Is(n.err, relayer.ErrGap) }

func (n arrival) isEnd() bool { return n.change.Kind == "" && !n.isGap() }

// size returns how much of the limit of pending bytes the arrival uses.
func (n arrival) size() int64 { return int64(len(n.change.Document.JSON)) }

// follow sends the items of the feed, and finally its end, until ctx is done. It acquires
// the pending bytes of each item, which the receiver releases. It recovers a panic of the
// store, which would end the process in this goroutine.
func (a *API) follow(ctx context.Context, changes iter.Seq2[relayer.DocumentChange, error], arrived chan<- arrival) {
	send := func(next arrival) (ok bool) {
		select {
		case arrived <- next:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var end arrival
	defer func() {
		if cause := recover(); cause != nil {
			end.err = &panicError{cause, debug.Stack()}
		}
		send(end)
	}()
	for change, err := range changes {
		next := arrival{change: change, err: err}
		if next.isEnd() {
			end.err = err
			return
		}
		if !a.pending.tryAcquire(next.size()) {
			end.isCutOff = true
			return
		}
		if !send(next) {
			a.pending.release(next.size())
			return
		}
	}
}

const (
	heartbeat = ": heartbeat\n\n"

	// resync has no id line, so that a client that reconnects before it has read all
	// relayers gets the event again.
	resync = "event: resync\ndata: {}\n\n"
)

// appendHead appends the event up to the document.
func (n arrival) appendHead(dst []byte) []byte {
	if isPosition(n.change.Position) {
		dst = append(append(append(dst, "id: "...), n.change.Position...), '\n')
	}
	dst = append(append(append(dst, "event: "...), n.change.Kind...), '\n')
	dst = append(dst, `data: {"etag":`...)
	dst = strconv.AppendQuote(dst, entityTag(n.change.Document.Revision))
	return append(dst, `,"relayer":`...)
}

// oneLine replaces the line breaks of a document, which would end the line of the event.
// JSON contains them only between its tokens.
func oneLine(document []byte) []byte {
	if !bytes.ContainsAny(document, "\r\n") {
		return document
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(document, []byte("\r"), []byte(" ")), []byte("\n"), []byte(" "))
}

// eventStream is a response of Server-Sent Events.
type eventStream struct {
	x       *exchange
	control *http.ResponseController
}

// Header values of a stream. By default, nginx would delay its events.
var (
	contentTypeEvents = []string{"text/event-stream"}
	noBuffering       = []string{"no"}
)

// startStream sends the header of a stream.
func (x *exchange) startStream() {
	x.startResponse(http.StatusOK, contentTypeEvents)["X-Accel-Buffering"] = noBuffering
	x.WriteHeader(http.StatusOK)
}

// setDeadlines replaces those of the server, which are for whole requests. The read
// deadline is for a request body, which net/http discards before the header is sent.
func (s eventStream) setDeadlines() error {
	deadline := time.Now().Add(sendTimeout)
	return errors.Join(s.control.SetReadDeadline(deadline), s.control.SetWriteDeadline(deadline))
}

// start sends the header and the first bytes, which show the client and proxies that
// the stream has begun.
func (s eventStream) start(after string) error {
	s.x.startStream()
	first := append(s.buffer(), heartbeat...)
	if after == "" {
		first = append(first, resync...)
	}
	if err := s.send(first); err != nil {
		return err
	}
	// When the read deadline passes, net/http cancels the context of the request.
	return s.control.SetReadDeadline(time.Time{})
}

// buffer returns the empty buffer of the exchange.
func (s eventStream) buffer() []byte { return (*s.x.buffer)[:0] }

// sendArrival sends the event of an arrival and releases its pending bytes. The document,
// which may be large, is not copied.
func (a *API) sendArrival(s eventStream, n arrival) error {
	defer a.pending.release(n.size())
	if n.isGap() {
		return s.send([]byte(resync))
	}
	return s.send(n.appendHead(s.buffer()), oneLine(n.change.Document.JSON), []byte("}\n\n"))
}

// send sends a part of the stream, unless the client does not read it in time. Between two
// parts there is no deadline, because the one of HTTP/2 would end the stream.
func (s eventStream) send(part ...[]byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	for _, piece := range part {
		n, err := s.x.Write(piece)
		s.x.bytes += n
		if err != nil {
			return err
		}
	}
	return errors.Join(s.control.Flush(), s.control.SetWriteDeadline(time.Time{}))
}

// finish bounds the time that net/http takes to send the end of the response.
func (s eventStream) finish() { _ = s.control.SetWriteDeadline(time.Now().Add(sendTimeout)) }
