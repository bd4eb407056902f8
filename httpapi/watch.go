package httpapi

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/go-relayer/relayer"
)

// sendTimeout bounds how long one send waits for a client that does not read.
const sendTimeout = 10 * time.Second

// WithMaxWatchers sets how many clients may follow the changes concurrently, at least
// 1. The default is 1,000. A further one is rejected with 503 and Retry-After. Actors share
// the limit as [WithMaxInFlight] describes. To disable the change feed, refuse
// [relayer.ActionWatch] with [WithAuthorizer].
func WithMaxWatchers(limit int) Option {
	return option(limit >= 1, "the maximum of watchers must be at least 1", func(s *settings) { s.watchers.total = int64(limit) })
}

// Drain ends all change streams, and rejects new ones with 503 and Retry-After. Other requests
// are not affected. Register it with [http.Server.RegisterOnShutdown]: otherwise open streams
// delay [http.Server.Shutdown] until its deadline. It returns without waiting.
func (a *API) Drain() { a.drain() }

// watchRelayers streams the changes as Server-Sent Events. It sends its response
// itself, except for one that rejects the request.
func (a *API) watchRelayers(x *exchange) response {
	rejection := failure(http.StatusServiceUnavailable).withHeader("Retry-After", "5")
	if a.draining.Err() != nil {
		return rejection
	}
	if !a.watchers.tryAcquire(x.caller, 1) {
		a.refuse(x, a.watchers)
		return rejection
	}
	defer a.watchers.add(x.caller, -1)
	if x.request.Method == http.MethodHead {
		x.startStream()
		return response{}
	}
	s := &eventStream{api: a, x: x, control: http.NewResponseController(x.ResponseWriter), permitted: time.Now()}
	return s.run(x.input.selector)
}

// eventStream is a stream of changes to one client.
type eventStream struct {
	api     *API
	x       *exchange
	control *http.ResponseController

	lastID    string            // that the client has
	permitted time.Time         // when the stream was permitted last
	metadata  *relayer.Metadata // of the next event: the warnings of the response
}

// run returns when the client, the feed or the API ends the stream.
func (s *eventStream) run(filters relayer.Selector) (rejection response) {
	ctx, cancel := context.WithCancel(s.x)
	defer cancel()
	defer context.AfterFunc(s.api.draining, cancel)()
	documents := s.x.documents()
	query := relayer.WatchQuery{Selector: filters, After: s.x.request.Header.Get("Last-Event-ID"), Heartbeats: true}
	// The feed begins before the response, and again before a resync event: a client that
	// reads all relayers after either misses no change.
	changes := documents.Watch(ctx, query)
	// These replace the deadlines of the server, which are for whole requests. The read deadline is
	// for a request body, which net/http discards before the header is sent.
	deadline := time.Now().Add(sendTimeout)
	if err := errors.Join(s.control.SetReadDeadline(deadline), s.control.SetWriteDeadline(deadline)); err != nil {
		return s.api.errorResponse(s.x, fmt.Errorf("the ResponseWriter of the host cannot stream: %w", err))
	}
	defer func() { // bounds the time that net/http takes to send the end of the response
		_ = s.control.SetWriteDeadline(time.Now().Add(sendTimeout))
	}()
	s.x.startStream()
	s.metadata = s.x.input.warnings()
	// The header shows the client and proxies that the stream has begun. When a read deadline passes,
	// net/http cancels the context of the request.
	if s.send() != nil || s.control.SetReadDeadline(time.Time{}) != nil {
		return response{}
	}
	for s.lastID = query.After; ctx.Err() == nil; {
		if query.After == "" && s.sendResync() != nil {
			break
		}
		err := s.follow(changes)
		if !errors.Is(err, relayer.ErrGap) {
			if ctx.Err() == nil && !errors.Is(err, errStreamEnd) {
				s.api.logFault(s.x, fmt.Errorf("the change feed has ended: %w", err))
			}
			break
		}
		query.After = ""
		changes = documents.Watch(ctx, query)
	}
	return response{}
}

// errStreamEnd reports that the client, the permission or a limit has ended the stream.
var errStreamEnd = errors.New("the stream has ended")

// follow sends the changes of a feed, and returns why it ends.
func (s *eventStream) follow(changes iter.Seq2[relayer.Change, error]) error {
	for change, err := range changes {
		if err != nil {
			return err
		}
		if !s.isPermitted() || s.sendChange(change) != nil {
			return errStreamEnd
		}
	}
	return errStreamEnd
}

// permissionInterval and the 5 seconds between two heartbeats (15 without the store) are the
// longest time that a stream stays open after its permission was withdrawn.
const permissionInterval = 10 * time.Second

// isPermitted asks the Authenticator and the Authorizer again from time to time. It reports
// whether a new request would be accepted for the same relayers.
func (s *eventStream) isPermitted() bool {
	if time.Since(s.permitted) < permissionInterval {
		return true
	}
	s.permitted = time.Now()
	actor, err := s.api.identify(s.x)
	if err != nil {
		s.api.authFailure(s.x, err)
		return false
	}
	now, err := s.api.permission(relayer.WithActor(s.x, actor), s.x, actor)
	if err != nil {
		s.api.logFault(s.x, err)
	}
	return err == nil && now.isAllowed && now.within.String() == s.x.within.String()
}

// event is the data of an event, without its relayer.
type event struct {
	ETag   string              `json:"etag,omitempty"`
	Change *relayer.ChangeInfo `json:"change,omitempty"`
	Sealed []string            `json:"sealed,omitempty"`

	// Complete is the number of milliseconds from the arrival of the request to the time up to
	// which the stream is complete. It is omitted if the time is before the arrival: clients
	// expect no negative number.
	Complete *int64 `json:"complete_ms,omitempty"`

	Metadata *relayer.Metadata `json:"metadata,omitempty"` // of the first event
}

// sendResync sends an event without an ID, so that a client that reconnects before it has read
// all relayers gets it, or the changes, again.
func (s *eventStream) sendResync() error {
	return s.sendEvent(event{}, relayer.Change{Kind: "resync"}, nil)
}

// sendChange sends the event of a change or a heartbeat. It returns an error if the stream ends.
func (s *eventStream) sendChange(c relayer.Change) error {
	if c.Kind == relayer.ChangeHeartbeat {
		if c.Time.Before(s.x.received) {
			return nil
		}
		return s.sendEvent(event{}, c, nil)
	}
	pending, size := s.api.pending, int64(len(c.Document.JSON))
	if !pending.tryAcquire(s.x.caller, size) {
		s.api.refuse(s.x, pending)
		_ = s.sendResync()
		return errStreamEnd
	}
	defer pending.add(s.x.caller, -size)
	s.api.logSealed(s.x, c.Document)
	document := c.Document.JSON
	if document == nil { // the relayer is no longer selected
		document = encodeJSON(map[string]string{"id": c.Document.ID})
	}
	e := event{ETag: entityTag(c.Document.Revision), Change: s.x.lastChange(c.Document), Sealed: sealedOf(c.Document)}
	return s.sendEvent(e, c, document)
}

// sendEvent sends the event of a change. The document of its relayer, which may be large, is not
// copied.
func (s *eventStream) sendEvent(e event, c relayer.Change, document []byte) error {
	text := (*s.x.buffer)[:0]
	if c.Position != "" && c.Position != s.lastID { // it has advanced
		s.lastID = c.Position
		text = fmt.Appendf(text, "id: %s\n", c.Position)
	}
	if duration := c.Time.Sub(s.x.received); duration >= 0 {
		e.Complete = new(duration.Milliseconds())
	}
	e.Metadata, s.metadata = s.metadata, nil
	text = fmt.Appendf(text, "event: %s\ndata: %s", c.Kind, encodeJSON(e))
	if document == nil {
		return s.send(append(text, "\n\n"...))
	}
	return s.send(append(text[:len(text)-len("}")], `,"relayer":`...), document, []byte("}\n\n"))
}

func (x *exchange) startStream() {
	header := x.startResponse(http.StatusOK, "text/event-stream")
	// A proxy that compresses or buffers the events would delay them.
	header.Set("Cache-Control", "no-store, no-transform")
	header.Set("X-Accel-Buffering", "no")
	x.WriteHeader(http.StatusOK)
}

// send sends a part of the stream, unless the client does not read it in time. Between two
// parts there is no deadline, because the one of HTTP/2 would end the stream.
func (s *eventStream) send(part ...[]byte) error {
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
