package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// defaultMaxWatchers is the limit of [WithMaxWatchers] if it is not set.
const defaultMaxWatchers = 1000

const (
	// heartbeatInterval is shorter than the idle timeouts of common proxies. It is also
	// the longest time that a stream stays open after its credentials were revoked.
	heartbeatInterval = 15 * time.Second

	// sendTimeout bounds how long a client that does not read keeps its stream.
	sendTimeout = 10 * time.Second
)

// WithMaxWatchers sets how many clients may follow the changes concurrently, at least
// 1. The default is 1,000. A further one is rejected with 503 and Retry-After. Actors share
// the limit as [WithMaxInFlight] describes. To disable the change feed, refuse
// [relayer.ActionWatch] with [WithAuthorizer].
func WithMaxWatchers(limit int) Option {
	return Option{func(s *settings) error { return setLimit(&s.watchers.total, "watchers", int64(limit)) }}
}

// Drain ends all change streams, and rejects new ones with 503 and Retry-After. Other
// requests are not affected. Register it with [http.Server.RegisterOnShutdown]:
// otherwise open streams delay [http.Server.Shutdown] until its deadline. It returns
// without waiting, and further calls do nothing.
func (a *API) Drain() { a.drain() }

// watchRelayers streams the changes as Server-Sent Events. It sends its response
// itself, except for one that rejects the request.
func (a *API) watchRelayers(x *exchange, r *http.Request) response {
	q := query{hasFilters: true}
	filters, err := q.parse(r.URL.RawQuery)
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	rejection := failure(http.StatusServiceUnavailable).withHeader("Retry-After", "5")
	if a.draining.Err() != nil {
		return rejection
	}
	if !a.watchers.tryAcquire(x.caller, 1) {
		a.refuse(x, r, a.watchers)
		return rejection
	}
	defer a.watchers.release(x.caller, 1)
	if r.Method == http.MethodHead {
		x.startStream()
		return response{}
	}
	x.unknown = q.unknown
	s := eventStream{x: x, control: http.NewResponseController(x.ResponseWriter), filters: filters}
	s.mark = markOf(x.within, filters)
	return a.stream(s, r)
}

// stream returns when the client, the feed or the API ends the stream.
func (a *API) stream(s eventStream, r *http.Request) (rejection response) {
	ctx, cancel := context.WithCancel(s.x)
	stop := context.AfterFunc(a.draining, cancel)
	defer stop()

	arrived := make(chan arrival)
	begun := s.beginFeed(ctx, s.resumeAfter(r.Header))
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { a.followAll(ctx, s, begun, arrived) })

	if err := s.setDeadlines(); err != nil {
		return a.errorResponse(s.x, r, fmt.Errorf("the ResponseWriter of the host cannot stream: %w", err))
	}
	defer s.finish()
	err := s.start()
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for err == nil { // an error means that the client is gone or does not read
		select {
		case <-ctx.Done():
			return response{}
		case <-ticker.C:
			if !a.mayStillWatch(s.x, r) {
				return response{}
			}
			err = s.send(append(s.buffer(), keepAlive...))
		case next := <-arrived:
			if next.isEnd() {
				if next.err != nil {
					a.logFault(s.x, r, fmt.Errorf("the change feed has ended: %w", next.err))
				}
				return response{}
			}
			err = a.sendArrival(s, next)
			if next.isCutOff {
				a.refuse(s.x, r, a.pending)
				return response{}
			}
		}
	}
	return response{}
}

// mayStillWatch asks the Authenticator and the Authorizer again, and reports whether a new
// request would be accepted for the same relayers.
func (a *API) mayStillWatch(x *exchange, r *http.Request) bool {
	actor, err := a.identify(x, r, a.guesses.credentials(r.Header))
	if err != nil {
		return false
	}
	decision, err := a.decide(x, Access{Actor: actor, Action: relayer.ActionWatch})
	return err == nil && decision.isAllowed && decision.within.String() == x.within.String()
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
	isGap    bool // the client must read all relayers again
	isCutOff bool // a gap that ends the stream, because of too many pending bytes
}

func (n arrival) isEnd() bool { return n.change.Kind == "" && !n.isGap }

// size returns how much of the limit of pending bytes the arrival uses.
func (n arrival) size() int64 { return int64(len(n.change.Document.JSON)) }

type feed struct {
	changes   iter.Seq2[relayer.DocumentChange, error]
	isResumed bool // it has all changes after the last event of the client
	began     time.Time
}

// beginFeed begins the changes after a position, or from the call on if it is empty.
func (s eventStream) beginFeed(ctx context.Context, after string) feed {
	query := relayer.WatchQuery{Selector: s.filters, After: after, Heartbeat: heartbeatInterval}
	return feed{s.x.manager.WatchDocuments(ctx, query), after != "", time.Now()}
}

// minFeedTime is the shortest time between two resync events, so that a store whose feed
// has a gap whenever it begins does not cause a busy loop.
const minFeedTime = time.Second

// followAll sends the items of the feed, and finally its end, until ctx is done. After a gap
// it begins the feed again before it sends the gap, so that the client, which then reads
// all relayers, misses no change. It recovers a panic of the store, which would end the
// process in this goroutine.
func (a *API) followAll(ctx context.Context, s eventStream, current feed, arrived chan<- arrival) {
	defer func() {
		if cause := recover(); cause != nil {
			deliver(ctx, arrived, arrival{err: &panicError{cause, debug.Stack()}})
		}
	}()
	for ctx.Err() == nil {
		if !current.isResumed && !deliver(ctx, arrived, arrival{isGap: true}) {
			return
		}
		end := a.follow(ctx, s.x.caller, current.changes, arrived)
		if !errors.Is(end.err, relayer.ErrGap) {
			deliver(ctx, arrived, end)
			return
		}
		if !current.isResumed {
			select {
			case <-time.After(time.Until(current.began.Add(minFeedTime))):
			case <-ctx.Done():
			}
		}
		current = s.beginFeed(ctx, "")
	}
}

// follow sends the changes of a feed and returns its end. It acquires the pending bytes of
// each change, which the receiver releases.
func (a *API) follow(ctx context.Context, by caller, changes iter.Seq2[relayer.DocumentChange, error], arrived chan<- arrival) (end arrival) {
	for change, err := range changes {
		if err != nil {
			return arrival{err: err}
		}
		next := arrival{change: change}
		if !a.pending.tryAcquire(by, next.size()) {
			return arrival{isGap: true, isCutOff: true}
		}
		if !deliver(ctx, arrived, next) {
			a.pending.release(by, next.size())
			return arrival{}
		}
	}
	return arrival{}
}

func deliver(ctx context.Context, arrived chan<- arrival, next arrival) bool {
	select {
	case arrived <- next:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	// keepAlive is sent even if the store is not reachable. A heartbeat is sent only if the
	// client has all changes.
	keepAlive = ": keep-alive\n\n"
	heartbeat = ": heartbeat\n\n"

	// resync has no id line, so that a client that reconnects before it has read all
	// relayers gets the event again.
	resync = "event: resync\ndata: {}\n\n"
)

func (s eventStream) appendHead(dst []byte, n arrival) []byte {
	if id := n.change.Position + s.mark; n.change.Position != "" && isPosition(id) {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(append(append(dst, "event: "...), n.change.Kind...), '\n')
	dst = append(dst, `data: {"etag":`...)
	dst = strconv.AppendQuote(dst, entityTag(n.change.Document.Revision))
	return append(dst, `,"relayer":`...)
}

// documentLine returns the document as a part of a line. That of a relayer that is no longer
// selected has only the ID. Line breaks, which JSON contains only between its tokens, would
// end the line.
func documentLine(document relayer.Document) []byte {
	switch {
	case document.JSON == nil:
		return encodeJSON(struct {
			ID string `json:"id"`
		}{document.ID})
	case !bytes.ContainsAny(document.JSON, "\r\n"):
		return document.JSON
	default:
		line := bytes.ReplaceAll(document.JSON, []byte("\r"), []byte(" "))
		return bytes.ReplaceAll(line, []byte("\n"), []byte(" "))
	}
}

type eventStream struct {
	x       *exchange
	control *http.ResponseController
	filters relayer.Selector

	// mark is the end of every event ID: it identifies the selection.
	mark string
}

// markOf returns the mark of a selection, which is empty if it has all relayers. An event
// ID of another selection cannot resume: changes that were not selected then are missing.
func markOf(within, filters relayer.Selector) string {
	if within.IsZero() && filters.IsZero() {
		return ""
	}
	digest := sha256.Sum256([]byte(within.String() + "\n" + filters.String()))
	return "~" + hex.EncodeToString(digest[:8])
}

// resumeAfter returns the position of the last event that the client has. It returns "" if
// there is none, or if it is invalid or of another selection.
func (s eventStream) resumeAfter(header http.Header) string {
	values := header["Last-Event-Id"]
	if len(values) != 1 || !isPosition(values[0]) {
		return ""
	}
	position, isSame := strings.CutSuffix(values[0], s.mark)
	if !isSame {
		return ""
	}
	return position
}

// Header values of a stream. By default, nginx would delay its events.
var (
	contentTypeEvents = []string{"text/event-stream"}
	noBuffering       = []string{"no"}
)

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
// the stream has begun, and name unknown query parameters.
func (s eventStream) start() error {
	s.x.startStream()
	first := append(s.buffer(), keepAlive...)
	for _, message := range unknownMessages(s.x.unknown) {
		first = append(append(append(first, ": "...), message...), "\n\n"...)
	}
	if err := s.send(first); err != nil {
		return err
	}
	// When the read deadline passes, net/http cancels the context of the request.
	return s.control.SetReadDeadline(time.Time{})
}

func (s eventStream) buffer() []byte { return (*s.x.buffer)[:0] }

// sendArrival sends the event of an arrival and releases its pending bytes. The document,
// which may be large, is not copied.
func (a *API) sendArrival(s eventStream, n arrival) error {
	defer a.pending.release(s.x.caller, n.size())
	switch {
	case n.isGap:
		return s.send([]byte(resync))
	case n.change.Kind == relayer.ChangeHeartbeat:
		return s.send([]byte(heartbeat))
	}
	return s.send(s.appendHead(s.buffer(), n), documentLine(n.change.Document), []byte("}\n\n"))
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
