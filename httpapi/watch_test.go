package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storeutil"
)

// patience is the longest time to wait for an event over TCP.
const patience = 20 * time.Second

// event is a Server-Sent Event. Its data is without the member complete_ms.
type event struct {
	id, name, data string
	milliseconds   string // complete_ms
}

// stream is an open stream of changes.
type stream struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Reader
	cancel   context.CancelFunc
	listener *pipes // in a bubble
}

// watch opens a stream that must be accepted.
func (s *service) watch(headers ...header) *stream {
	s.t.Helper()
	return openStream(s.t, http.DefaultClient, s.url, "", headers...)
}

func openStream(t *testing.T, client *http.Client, url, query string, headers ...header) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request := must(http.NewRequestWithContext(ctx, "GET", url+changes+query, nil))(t)
	request.Header.Set("Authorization", "Bearer "+validToken)
	for _, h := range headers {
		request.Header[http.CanonicalHeaderKey(h.name)] = h.values
	}
	response := must(client.Do(request))(t)
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("watch returned %d %v", response.StatusCode, response.Header)
	}
	wantHeaders(t, reply{response.StatusCode, response.Header, ""})
	return &stream{t: t, response: response, lines: bufio.NewReader(response.Body), cancel: cancel}
}

// read returns the next event.
func (w *stream) read() (event, error) {
	defer time.AfterFunc(patience, w.cancel).Stop()
	return readEvent(w.lines)
}

var completeMS = regexp.MustCompile(`,?"complete_ms":(\d+)`)

// readEvent returns the next event. The handler sends id, event and data in this order, and
// nothing else: no comments.
func readEvent(lines *bufio.Reader) (event, error) {
	var e event
	for _, field := range []struct {
		name  string
		value *string
	}{{"id", &e.id}, {"event", &e.name}, {"data", &e.data}, {"", nil}} {
		start, err := lines.Peek(1)
		if err == nil && field.name == "id" && start[0] != 'i' {
			continue
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if name != field.name {
			return e, fmt.Errorf("unexpected line %q", line)
		}
		if field.value != nil {
			*field.value = value
		}
	}
	if found := completeMS.FindStringSubmatch(e.data); found != nil {
		e.data, e.milliseconds = strings.Replace(e.data, found[0], "", 1), found[1]
	}
	return e, nil
}

// next returns the next event, past heartbeats.
func (w *stream) next() event {
	w.t.Helper()
	for {
		e, err := w.read()
		if err != nil {
			w.t.Fatalf("reading an event: %v", err)
		}
		if e.name != "heartbeat" {
			return e
		}
	}
}

// want expects an event of a relayer and returns it.
func (w *stream) want(name, id string) event {
	w.t.Helper()
	e := w.next()
	if e.name != name || !strings.Contains(e.data, `"id":"`+id+`"`) {
		w.t.Fatalf("got %+v, want %s %s", e, name, id)
	}
	return e
}

func (w *stream) wantResync() {
	w.t.Helper()
	if e := w.next(); e != (event{name: "resync", data: "{}"}) {
		w.t.Fatalf("got %+v, want resync", e)
	}
}

// wantEnd expects that the server ends the stream.
func (w *stream) wantEnd() {
	w.t.Helper()
	for {
		e, err := w.read()
		if errors.Is(err, context.Canceled) {
			w.t.Fatal("the stream does not end")
		}
		if err != nil {
			return
		}
		if e.name != "" {
			w.t.Fatalf("got %+v, want the end", e)
		}
	}
}

// TestWatch_Events: a stream has each change as its response has it. It is not a request in flight.
func TestWatch_Events(t *testing.T) {
	s := serve(t, httpapi.WithMaxInFlight(1))
	w := s.watch()
	w.wantResync()
	created := s.do("POST", collection, minimal(`,"id":"r-1","custom_rpc_urls":[{"url":"https://rpc.example/v2/key"}]`))
	patched := s.do("PATCH", one, `{"paused":true}`)
	s.do("DELETE", one, "")
	ids := make(map[string]bool)
	for i, expected := range []struct {
		name string
		from reply
	}{{"created", created}, {"updated", patched}, {"deleted", patched}} {
		e := w.want(expected.name, "r-1")
		data := decode[struct {
			ETag    string
			Relayer json.RawMessage
		}](t, e.data)
		if tag := expected.from.header.Get("ETag"); (data.ETag == tag) == (expected.name == "deleted") {
			t.Errorf("event %d has the ETag %s, the relayer had %s", i, data.ETag, tag)
		}
		if body := `{"success":true,"data":` + string(data.Relayer) + `}`; body != expected.from.body {
			t.Errorf("event %d has\n%s\nthe response was\n%s", i, body, expected.from.body)
		}
		if e.id == "" || ids[e.id] || strings.Contains(e.data, `"change"`) {
			t.Errorf("event %d is %+v", i, e)
		}
		ids[e.id] = true
	}
}

// TestWatch_UnknownLastEventID: the client gets one resync event, and then the changes.
func TestWatch_UnknownLastEventID(t *testing.T) {
	s := serve(t)
	first := s.watch()
	first.wantResync()
	s.create(minimal(`,"id":"r-1"`))
	id := first.want("created", "r-1").id
	for i, values := range [][]string{
		{""}, {"7"}, {id + "0"}, {"another" + id}, {"not an id"}, {strings.Repeat("9", 129)}, {strings.Repeat("9", 128)}, {"\xff"},
	} {
		w := s.watch(with("Last-Event-ID", values...))
		w.wantResync()
		s.create(minimal(fmt.Sprintf(`,"id":"next-%d"`, i)))
		w.want("created", fmt.Sprintf("next-%d", i))
	}
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 10 s", what)
}

// TestDrain: streams end, new ones are rejected, and Shutdown does not wait.
func TestDrain(t *testing.T) {
	api, manager := newAPI(t, validTokens)
	server := httptest.NewUnstartedServer(recorded(api))
	server.Config.RegisterOnShutdown(api.Drain)
	server.Start()
	s := &service{t: t, manager: manager, url: server.URL}
	w := s.watch()
	w.wantResync()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := server.Config.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	w.wantEnd()
	api.Drain()
	for _, method := range []string{"GET", "HEAD"} {
		recorder := serveHTTP(t.Context(), api, method, changes, "")
		if recorder.Code != http.StatusServiceUnavailable || recorder.Header().Get("Retry-After") == "" {
			t.Errorf("%s after Drain returned %d", method, recorder.Code)
		}
	}
}

// scriptedFeed is a store whose feed is a function.
type scriptedFeed struct {
	relayer.Store
	feed func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error]
}

func (f scriptedFeed) Watch(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
	return f.feed(ctx, after)
}

// serveFeed serves a feed that yields the items and then waits for the end of its
// context. An error ends a sequence; the next one continues after it.
func serveFeed(t *testing.T, items ...func() (relayer.RecordChange, error)) *service {
	t.Helper()
	manager := managerOn(t, scriptedFeed{memory.New(), func(ctx context.Context, _ string) iter.Seq2[relayer.RecordChange, error] {
		return func(yield func(relayer.RecordChange, error) bool) {
			for len(items) > 0 {
				change, err := items[0]()
				items = items[1:]
				if !yield(change, err) || err != nil {
					return
				}
			}
			<-ctx.Done()
		}
	}})
	return serveManager(t, manager, validTokens)
}

func changeOf(id, position, document string) func() (relayer.RecordChange, error) {
	return func() (relayer.RecordChange, error) {
		rec := relayer.Record{ID: id, Revision: 1, Document: []byte(document), Private: []byte(`"key-secret"`)}
		return relayer.RecordChange{Kind: relayer.ChangeCreated, Record: rec, Position: position}, nil
	}
}

func failing(err error) func() (relayer.RecordChange, error) {
	return func() (relayer.RecordChange, error) { return relayer.RecordChange{}, err }
}

// TestWatch_Gap: a client that reads all relayers after the resync event of a gap misses
// no change: the feed that follows began before.
func TestWatch_Gap(t *testing.T) {
	began := make(chan string, 3)
	manager := managerOn(t, scriptedFeed{memory.New(), func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
		began <- after
		return func(yield func(relayer.RecordChange, error) bool) {
			if after == "" {
				<-ctx.Done()
				return
			}
			created, err := changeOf("r-1", "p-1", validDocument("r-1"))()
			if yield(created, err) {
				yield(relayer.RecordChange{}, relayer.ErrGap)
			}
		}
	}})
	s := serveManager(t, manager, validTokens)
	w := s.watch(with("Last-Event-ID", "p-0"))
	w.want("created", "r-1")
	w.wantResync()
	for _, want := range []string{"p-0", ""} {
		select {
		case after := <-began:
			if after != want {
				t.Errorf("a feed began after %q, want %q", after, want)
			}
		default:
			t.Errorf("no feed began after %q before the resync event", want)
		}
	}
}

// validDocument is a document as the Manager stores it.
func validDocument(id string) string {
	return `{"id":"` + id + `","name":"n","network":"x","network_type":"evm","address":"","paused":false,"system_disabled":false,"signer_id":"s","policies":{}}`
}

// TestWatch_FeedEnds: the stream ends with the feed, and the log has the cause.
func TestWatch_FeedEnds(t *testing.T) {
	for name, item := range map[string]func() (relayer.RecordChange, error){
		"store broke": failing(errors.New("store broke")),
		"unavailable": failing(relayer.ErrUnavailable),
		"feed broke":  func() (relayer.RecordChange, error) { panic("feed broke") },
	} {
		s := serveFeed(t, changeOf("r-1", "p", validDocument("r-1")), item)
		w := s.watch()
		w.wantResync()
		w.want("created", "r-1")
		w.wantEnd()
		eventually(t, "the cause is in the log", func() bool { return strings.Contains(s.log.String(), name) })
	}
}

// TestWatch_ResponseWriterWithoutDeadlines: the response says so before a stream begins.
func TestWatch_ResponseWriterWithoutDeadlines(t *testing.T) {
	log := new(syncBuffer)
	api, _ := newAPI(t, validTokens, httpapi.WithLogger(newLogger(log)))
	recorder := serveHTTP(t.Context(), recorded(api), "GET", changes, "")
	got := reply{recorder.Code, recorder.Header(), recorder.Body.String()}
	wantResponse(t, "GET", got)
	wantFailure(t, got, http.StatusInternalServerError, "Internal Server Error")
	if !strings.Contains(log.String(), "cannot stream") {
		t.Errorf("the log is %s", log)
	}
}

// pipes is a listener whose connections have no buffer. They work in the fake time of
// a synctest bubble.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

func newPipes() *pipes {
	p := &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accepted <- server
	return client
}

// watchInBubble serves a registry in a synctest bubble, with the time limits of
// relayerd, and opens a stream.
func watchInBubble(t *testing.T, auth httpapi.Authenticator, options ...httpapi.Option) (*relayer.Manager, *httpapi.API, *stream) {
	t.Helper()
	api, manager := newAPI(t, auth, options...)
	return manager, api, serveInBubble(t, api).watch(t, "")
}

func serveInBubble(t *testing.T, api http.Handler) *pipes {
	t.Helper()
	listener, server := newPipes(), &http.Server{Handler: api, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener
}

// watch opens a stream on a new connection, of which no more is read than what the test reads.
func (p *pipes) watch(t *testing.T, query string, headers ...header) *stream {
	t.Helper()
	w := openStream(t, &http.Client{Transport: p.transport()}, "http://pipe", query, headers...)
	w.listener = p
	return w
}

func (p *pipes) transport() *http.Transport {
	return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return p.dial(), nil }}
}

// readUntilEnd counts the events by name, until the stream ends.
func (w *stream) readUntilEnd() (counts map[string]int, err error) {
	defer time.AfterFunc(time.Hour, w.cancel).Stop() // of a stream that should have ended
	counts = make(map[string]int)
	for {
		e, err := w.read()
		if err != nil {
			return counts, err
		}
		counts[e.name]++
	}
}

func createIn(t *testing.T, manager *relayer.Manager, id, name string) {
	t.Helper()
	request := relayer.CreateRequest{ID: id, Name: name, Network: "x", NetworkType: relayer.EVM, SignerID: "s"}
	must(manager.Create(t.Context(), request))(t)
}

// TestWatch_IdleOverHTTP2: a deadline of HTTP/2 ends a stream even if nothing is sent. None may be
// left, neither of the server nor of an event: an unreachable store sends no heartbeats.
func TestWatch_IdleOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := managerOn(t, scriptedFeed{memory.New(), func(context.Context, string) iter.Seq2[relayer.RecordChange, error] {
			return func(yield func(relayer.RecordChange, error) bool) {
				for range 3 {
					time.Sleep(14 * time.Second)
					if !yield(changeOf("r-1", "p", validDocument("r-1"))()) {
						return
					}
				}
			}
		}})
		transport := serveInBubble(t, apiOn(t, manager, validTokens)).transport()
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(true)
		t.Cleanup(transport.CloseIdleConnections)
		w := openStream(t, &http.Client{Transport: transport}, "http://pipe", "")
		if w.response.ProtoMajor != 2 {
			t.Fatalf("the protocol is %s", w.response.Proto)
		}
		w.wantResync()
		for range 3 {
			w.want("created", "r-1")
		}
	})
}

// TestWatch_ClientStopsReading: the stream ends 10 seconds after the client stops, and
// other watchers get every change.
func TestWatch_ClientStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager, _, stalled := watchInBubble(t, validTokens, httpapi.WithMaxWatchers(4))
		healthy := stalled.listener.watch(t, "")
		received := make(chan map[string]int)
		go func() {
			counts, _ := healthy.readUntilEnd()
			received <- counts
		}()
		for i := range 5000 {
			createIn(t, manager, fmt.Sprintf("r-%d", i), "n")
			time.Sleep(time.Millisecond)
		}
		time.Sleep(6 * time.Second)
		// The stalled stream has ended: there is room for another.
		stalled.listener.watch(t, "").cancel()
		if counts, err := stalled.readUntilEnd(); err == nil || counts["created"] > 0 {
			t.Errorf("the stalled stream had %v, error %v", counts, err)
		}
		healthy.cancel()
		if counts := <-received; counts["created"] != 5000 || counts["resync"] != 1 {
			t.Errorf("the healthy stream had %v", counts)
		}
	})
}

// TestWatch_BodyNotSent: a request that announces a body and does not send it occupies
// no stream.
func TestWatch_BodyNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, _, w := watchInBubble(t, validTokens, httpapi.WithMaxWatchers(1))
		w.cancel()
		synctest.Wait()
		silent := w.listener.dial()
		defer silent.Close()
		go func() { _, _ = io.Copy(io.Discard, silent) }()
		fmt.Fprintf(silent, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n", changes, validToken)
		time.Sleep(12 * time.Second)
		w.listener.watch(t, "").cancel()
	})
}

// TestWatch_PermissionEnds: a stream ends within 15 seconds if its token is revoked, or if the
// authorizer refuses it, permits other relayers or no full RPC URLs, or fails. A fault and a refusal are logged.
func TestWatch_PermissionEnds(t *testing.T) {
	unavailable := fmt.Errorf("directory broke: %w", relayer.ErrUnavailable)
	for name, c := range map[string]struct {
		token   error // of the authenticator, later
		outcome func() (httpapi.Decision, error)
		action  relayer.Action
		log     string
	}{
		"revoked token":       {httpapi.ErrUnauthorized, allow, "", ""},
		"authenticator fault": {errors.New("directory broke"), allow, "", "authenticator: directory broke"},
		"refusal":             {nil, refuse, relayer.ActionWatch, "action=watch"},
		"refusal of URLs":     {nil, refuse, relayer.ActionReveal, "action=reveal"},
		"error":               {nil, failingWith(unavailable), relayer.ActionWatch, "directory broke"},
		"panic":               {nil, func() (httpapi.Decision, error) { panic("directory broke") }, relayer.ActionWatch, "directory broke"},
		"another scope": {nil, func() (httpapi.Decision, error) {
			return httpapi.Allow(relayer.Selector{}.Where("network", "x")), nil
		}, relayer.ActionWatch, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, begun := new(syncBuffer), time.Now()
				isLater := func() bool { return time.Since(begun) > 20*time.Second }
				authenticate := func(r *http.Request) (relayer.Actor, error) {
					if isLater() && c.token != nil {
						return relayer.Actor{}, c.token
					}
					actor, err := validTokens(r)
					actor.Attributes = map[string][]string{"later": {strconv.FormatBool(isLater())}}
					return actor, err
				}
				authorize := func(ctx context.Context, access httpapi.Access) (httpapi.Decision, error) {
					if actor, _ := relayer.ActorFrom(ctx); !reflect.DeepEqual(actor.Attributes, access.Actor.Attributes) {
						t.Errorf("the actor of the context has %v, want %v", actor.Attributes, access.Actor.Attributes)
					}
					if access.Actor.ID != "alice" || access.Action != relayer.ActionWatch && access.Action != c.action || access.ID != "" {
						t.Errorf("access %+v", access)
					}
					if isLater() && access.Action == c.action {
						return c.outcome()
					}
					return allow()
				}
				api, _ := newAPI(t, authenticate, httpapi.WithAuthorizer(authorize), httpapi.WithLogger(newLogger(log)), httpapi.WithEngineOperations())
				query := ""
				if c.action == relayer.ActionReveal {
					query = "?rpc_urls=full"
				}
				counts, err := serveInBubble(t, api).watch(t, query).readUntilEnd()
				if took := time.Since(begun); errors.Is(err, io.EOF) == (name == "panic") || counts["heartbeat"] < 4 || took < 20*time.Second || took > 35*time.Second {
					t.Errorf("after %v the stream had %v, error %v", took, counts, err)
				}
				if logged := log.String(); !strings.Contains(logged, c.log) || (logged == "") != (c.log == "") {
					t.Errorf("the log is %s, want %q", log, c.log)
				}
			})
		})
	}
}

// TestWatch_RequestLog: a stream is logged when it ends, with its duration and size.
func TestWatch_RequestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(syncBuffer)
		_, api, w := watchInBubble(t, validTokens, httpapi.WithRequestLog(newLogger(log)))
		time.AfterFunc(2*time.Second, api.Drain) // before the first heartbeat
		if _, err := w.readUntilEnd(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
		synctest.Wait()
		text := log.String()
		for _, want := range []string{"status=200", "bytes=24", "took=2s", `route="GET ` + changes + `"`, "principal=alice"} {
			if strings.Count(text, want) != 1 {
				t.Errorf("%q is not in the log once: %s", want, text)
			}
		}
	})
}

// TestWatch_Time: each change and each heartbeat has the milliseconds from the arrival of the
// request to the moment up to which the stream is complete. An idle stream stays open past the time
// limits of the server, with a heartbeat at least every 5 seconds.
func TestWatch_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		manager, _, w := watchInBubble(t, slowTokens(1500*time.Millisecond))
		if e := must(w.read())(t); e.name != "resync" || e.milliseconds != "" {
			t.Fatalf("got %+v", e)
		}
		time.AfterFunc(10*time.Minute+345678*time.Microsecond-time.Since(begun), func() { createIn(t, manager, "r-1", "n") })
		last, heartbeats := time.Since(begun), 0
		for {
			e := must(w.read())(t)
			now := time.Since(begun)
			milliseconds, err := strconv.ParseInt(e.milliseconds, 10, 64)
			if err != nil || milliseconds != now.Milliseconds() {
				t.Errorf("after %v: %+v, error %v", now, e, err)
			}
			if now-last > 5*time.Second {
				t.Errorf("%v passed without an event", now-last)
			}
			if last = now; e.name == "heartbeat" {
				heartbeats++
				continue
			}
			if e.name != "created" || e.milliseconds != "600345" || heartbeats < 119 {
				t.Errorf("after %d heartbeats: %+v", heartbeats, e)
			}
			break
		}
		w.cancel()
	})
}

// slowTokens accepts validToken, the first time after a delay.
func slowTokens(delay time.Duration) httpapi.Authenticator {
	return func(r *http.Request) (relayer.Actor, error) {
		time.Sleep(delay)
		delay = 0
		return validTokens(r)
	}
}

// TestWatch_TimeBeforeArrival: a change that the stream got up to a moment before the arrival
// of the request has no time, which would claim a later moment. A heartbeat of then is not sent.
func TestWatch_TimeBeforeArrival(t *testing.T) {
	old := time.Now()
	change := func(at time.Time) func() (relayer.RecordChange, error) {
		return func() (relayer.RecordChange, error) {
			c, err := changeOf("r-1", "p", validDocument("r-1"))()
			c.Time = at
			return c, err
		}
	}
	heartbeat := func() (relayer.RecordChange, error) {
		return relayer.RecordChange{Kind: relayer.ChangeHeartbeat, Position: "q", Time: old}, nil
	}
	w := serveFeed(t, change(old), heartbeat, change(time.Now().Add(time.Hour))).watch(with("Last-Event-ID", "o"))
	if e, err := w.read(); err != nil || e.name != "created" || e.milliseconds != "" || e.id != "p" {
		t.Errorf("got %+v, error %v", e, err)
	}
	e, err := w.read()
	if milliseconds, parseErr := strconv.Atoi(e.milliseconds); err != nil || parseErr != nil || e.name != "created" || milliseconds < 3_500_000 || milliseconds > 3_600_000 {
		t.Errorf("got %+v, errors %v, %v", e, err, parseErr)
	}
}

// TestWatch_HeartbeatPosition: a heartbeat has the position if it has advanced over changes
// that are not selected, so that the stream resumes behind them.
func TestWatch_HeartbeatPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := managerOn(t, nil)
		page := must(manager.List(t.Context(), relayer.ListQuery{Selector: relayer.Selector{}.Where("network", "other")}))(t)
		api := apiOn(t, manager, validTokens)
		listener := serveInBubble(t, api)
		open := func(id string) *stream { return listener.watch(t, "?network=other", with("Last-Event-ID", id)) }
		w := open(page.Position)
		if e := must(w.read())(t); e.name != "heartbeat" || e.milliseconds == "" || e.id != "" {
			t.Errorf("without a change the heartbeat is %+v", e)
		}
		createIn(t, manager, "r-1", "n")
		advanced := must(w.read())(t)
		if advanced.name != "heartbeat" || advanced.milliseconds == "" || advanced.id == "" || advanced.id == page.Position {
			t.Errorf("after a change the heartbeat is %+v", advanced)
		}
		if e := must(w.read())(t); e.name != "heartbeat" || e.id != "" {
			t.Errorf("the next heartbeat is %+v", e)
		}
		w.cancel()
		for i := range 1024 { // the first change is no longer retained
			createIn(t, manager, "n-"+strconv.Itoa(i), "n")
		}
		w = open(page.Position)
		if e := must(w.read())(t); e.name != "resync" {
			t.Errorf("from the position of the list: %+v", e)
		}
		w.cancel()
		w = open(advanced.id)
		if e := must(w.read())(t); e.name != "heartbeat" || e.id == "" {
			t.Errorf("from the position of the heartbeat: %+v", e)
		}
		w.cancel()
	})
}

// brokenWriter is a ResponseWriter whose writes fail, but not its flushes.
type brokenWriter struct {
	blockedWriter
	isBroken *atomic.Bool
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.isBroken.Load() {
		return 0, net.ErrClosed
	}
	return len(p), nil
}

// TestWatch_Released: when the handler of a stream returns, its watch of the store has ended,
// and the stream uses nothing of a limit.
func TestWatch_Released(t *testing.T) {
	for _, name := range []string{"drain", "client is gone", "revoked", "write fails"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				watching := 0
				feed := new(storeutil.Feed)
				store := scriptedFeed{memory.New(), func(ctx context.Context, after string) iter.Seq2[relayer.RecordChange, error] {
					watching++
					return func(yield func(relayer.RecordChange, error) bool) {
						defer func() { watching-- }()
						feed.Watch(ctx, after)(yield)
						time.Sleep(time.Second) // such as the release of a connection
					}
				}}
				var isRevoked, isBroken atomic.Bool
				authenticate := func(r *http.Request) (relayer.Actor, error) {
					if isRevoked.Load() {
						return relayer.Actor{}, httpapi.ErrUnauthorized
					}
					return validTokens(r)
				}
				api := apiOn(t, managerOn(t, store), authenticate, httpapi.WithMaxWatchers(1), httpapi.WithMaxPendingBytes(300))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(time.Second, func() {
					change, _ := changeOf("r-1", "p", validDocument("r-1"))()
					feed.Publish(change)
				})
				time.AfterFunc(time.Minute, func() {
					switch name {
					case "drain":
						api.Drain()
					case "client is gone":
						cancel()
					case "revoked":
						isRevoked.Store(true)
					default:
						isBroken.Store(true)
					}
				})
				w := &brokenWriter{blockedWriter{statusWriter: statusWriter{header: make(http.Header)}}, &isBroken}
				api.ServeHTTP(w, newRequest(ctx, "GET", changes, ""))
				if watching != 0 {
					t.Errorf("%d watches of the store have not ended", watching)
				}
				isRevoked.Store(false)
				for range 2 { // HEAD uses nothing either
					got := serveHTTP(t.Context(), api, "HEAD", changes, "")
					if name != "drain" && (got.Code != http.StatusOK || got.Header().Get("Content-Type") != "text/event-stream") {
						t.Errorf("another stream returned %d %v", got.Code, got.Header())
					}
				}
				if got := serveHTTP(t.Context(), api, "GET", collection, ""); got.Code != http.StatusOK {
					t.Errorf("a list returned %d", got.Code)
				}
			})
		})
	}
}
