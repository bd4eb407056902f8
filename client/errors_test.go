package client_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

var once = []client.Option{client.WithRetries(1, 0)}

// TestErrors_Responses sends a create, whose request has secrets, and checks the error of
// every kind of response.
func TestErrors_Responses(t *testing.T) {
	const invalid = `{"success":false,"data":null,"message":"Bad Request","errors":[{"field":"name","message":"must not be empty"},{"message":"other"}]}`
	fields := []relayer.FieldError{{Field: "name", Message: "must not be empty"}, {Message: "other"}}
	tests := map[string]struct {
		step  step
		is    error
		texts []string
	}{
		"invalid":              {respondJSON(400, invalid), relayer.ErrInvalid, []string{"400", "must not be empty"}},
		"too large a body":     {respondJSON(413, invalid), relayer.ErrInvalid, nil},
		"media type":           {respondJSON(415, invalid), relayer.ErrInvalid, nil},
		"public invalid":       {respondJSON(400, `{"success":false,"data":null,"error":"Bad https://rpc.example/v2/secret-key"}`), relayer.ErrInvalid, []string{"Bad https://rpc.example/***"}},
		"unauthorized":         {fail(401, "Unauthorized"), client.ErrUnauthorized, []string{"401"}},
		"unauthorized by HTML": {html(401), client.ErrUnauthorized, nil},
		"forbidden":            {fail(403, "Forbidden"), client.ErrForbidden, []string{"403"}},
		"exists":               {fail(409, "Relayer with this ID already exists"), relayer.ErrExists, nil},
		"unavailable":          {fail(503, "Service Unavailable"), relayer.ErrUnavailable, []string{"503", "Service Unavailable"}},
		"unknown route":        {fail(404, "Not Found"), errors.ErrUnsupported, []string{"404", "base URL may be wrong"}},
		"404 of a proxy":       {html(404), errors.ErrUnsupported, []string{"404", "text/html", "base URL may be wrong"}},
		"413 of a proxy":       {html(413), nil, []string{"413", "text/html"}},
		"redirect":             {respond(307, "", "", "Location", "https://elsewhere.example/"), nil, []string{"307"}},
		"control characters":   {fail(400, "a\x1b[31m\nb "+token), relayer.ErrInvalid, []string{"a [31m b ***"}},
		"a long message":       {fail(400, strings.Repeat("long ", 1000)), relayer.ErrInvalid, []string{"…"}},
		"a strange type":       {respond(400, "text/\x01"+token, "x"), nil, []string{"Content-Type"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := scripted(t, once, test.step)
			_, err := c.Create(t.Context(), evm("a"))
			if err == nil || test.is != nil && !errors.Is(err, test.is) {
				t.Fatalf("the error is %v, want one that matches %v", err, test.is)
			}
			if test.is == nil && (errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrInvalid)) {
				t.Errorf("the error %v matches one of package relayer", err)
			}
			if errors.Is(err, relayer.ErrOutcomeUnknown) {
				t.Errorf("the outcome of a rejected request is unknown: %v", err)
			}
			if response, ok := errors.AsType[*client.ResponseError](err); !ok || !strings.Contains(err.Error(), response.RequestID) || response.RequestID == "" {
				t.Errorf("%v does not name the response", err)
			}
			for _, text := range append(test.texts, "POST /api/v1/relayers") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is without %q", err, text)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			wantNoSecret(t, "the error", err.Error())
			if problem, ok := errors.AsType[*relayer.ValidationError](err); ok && strings.Contains(err.Error(), "other") && !reflect.DeepEqual(problem.Fields, fields) {
				t.Errorf("the fields are %+v", problem.Fields)
			}
		})
	}
}

// A server, or one that pretends to be it, may send back what it has received.
func TestErrors_EchoedSecrets(t *testing.T) {
	const plain, quoted = "Hunter2-plain", `Hunter2"quoted`
	echo := func(text string) step {
		encoded, _ := json.Marshal(text)
		return respondJSON(400, fmt.Sprintf(`{"success":false,"errors":[{"field":%s,"message":%s}]}`, encoded, encoded))
	}
	tests := map[string]struct {
		token string
		step  step
		want  string
	}{
		"a URL with a quote":       {plain, echo(`"https://rpc.example/a'secret-key" is down`), `"https://rpc.example/***" is down`},
		"a URL with a bracket":     {plain, echo("<https://rpc.example/a>secret-key>, or"), "<https://rpc.example/***>, or"},
		"a user with a quote":      {plain, echo("https://a'b:secret-key@rpc.example/"), "https://rpc.example/"},
		"a label key":              {plain, echo("labels.app.kubernetes.io/name"), "labels.app.kubernetes.io/name"},
		"a URL, quoted":            {plain, echo(`'https://rpc.example': refused`), `'https://rpc.example': refused`},
		"a token as scheme":        {plain, echo("x" + plain + "://rpc.example/secret-key"), "***"},
		"a quoted token as scheme": {quoted, echo(quoted + "://rpc.example/secret-key"), "***"},
		"a token in a media type":  {quoted, respond(400, "text/"+quoted, ""), "text/***"},
		"a token in an ID":         {plain, respondJSON(400, `{"success":false}`, "X-Request-Id", "id-"+plain), "status 400"},
	}
	for name, test := range tests {
		s := &script{steps: []step{test.step}}
		c := must(client.New("https://relayers.example", client.WithToken(test.token), client.WithHTTPClient(&http.Client{Transport: s})))(t)
		_, err := c.Create(t.Context(), evm("a"))
		text := fmt.Sprintf("%v %+v", err, errors.Unwrap(err))
		if strings.Contains(text, "secret-key") || strings.Contains(strings.ToLower(text), "hunter2") || !strings.Contains(text, test.want) {
			t.Errorf("%s: the error is %s, want %s", name, text, test.want)
		}
		if response, ok := errors.AsType[*client.ResponseError](err); !ok || response.RequestID != s.seen[0].header.Get("X-Request-Id") {
			t.Errorf("%s: the request ID of %v is not the one that was sent", name, err)
		}
	}
}

// TestErrors_Read checks the errors of a read that is not a success.
func TestErrors_Read(t *testing.T) {
	tests := map[string]struct {
		step  step
		is    error
		texts []string

		requestID string // if the server sets another
	}{
		"not found":         {notFound("a"), relayer.ErrNotFound, []string{"404"}, ""},
		"another ID":        {notFound("b"), nil, []string{"404"}, ""},
		"public":            {respondJSON(404, `{"success":false,"data":null,"error":"Relayer with ID a not found","pagination":null}`), relayer.ErrNotFound, nil, ""},
		"500":               {fail(500, "Internal Server Error", "X-Request-Id", "id-of-the-server"), nil, []string{"500"}, "id-of-the-server"},
		"502":               {html(502), relayer.ErrUnavailable, []string{"502", "text/html"}, ""},
		"500 of a proxy":    {html(500), relayer.ErrUnavailable, []string{"500", "text/html"}, ""},
		"504":               {respond(504, "", ""), relayer.ErrUnavailable, []string{"504"}, ""},
		"HTML":              {html(200), nil, []string{"200", "text/html", "base URL may be wrong"}, ""},
		"a success as text": {respond(200, "text/plain", `{"success":true,"data":{"id":"a","network_type":"evm"}}`), nil, []string{"200", "text/plain"}, ""},
		"a success as 500":  {respondJSON(500, `{"success":true,"data":{"id":"a","network_type":"evm"}}`), nil, []string{"500"}, ""},
		"no body":           {respond(200, "", ""), nil, []string{"200"}, ""},
		"not an envelope":   {respondJSON(200, `[1]`), nil, []string{"200", "not one of the API"}, ""},
		"truncated":         {truncated(200), relayer.ErrUnavailable, []string{"200", "incomplete"}, ""},
		"cut JSON":          {respondJSON(200, `{"success":tr`), nil, []string{"200"}, ""},
		"no data":           {respondJSON(200, `{"success":true,"data":null}`), nil, []string{"no usable data"}, ""},
		"other data":        {respondJSON(200, `{"success":true,"data":{"id":"a","network_type":5}}`), nil, []string{"no usable data"}, ""},
		"another relayer":   {respondJSON(200, `{"success":true,"data":{"id":"b","network_type":"evm"}}`), nil, []string{"another ID than requested"}, ""},
		"reset":             {reset, relayer.ErrUnavailable, []string{"connection reset"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := scripted(t, once, test.step)
			_, err := c.Get(t.Context(), "a")
			if err == nil || test.is != nil && !errors.Is(err, test.is) || test.is == nil && errors.Is(err, relayer.ErrNotFound) {
				t.Fatalf("the error is %v, want one that matches %v", err, test.is)
			}
			for _, text := range append(test.texts, "GET /api/v1/relayers/a", "request "+cmp.Or(test.requestID, s.seen[0].header.Get("X-Request-Id"))) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is without %q", err, text)
				}
			}
			wantNoSecret(t, "the error", err.Error())
			if strings.Contains(err.Error(), "relayers.example") {
				t.Errorf("%q repeats the URL", err)
			}
		})
	}
}

func TestErrors_RateLimit(t *testing.T) {
	waits := map[string]time.Duration{
		"7": 7 * time.Second, "": 0, "-1": 0, "x": 0, "99999999999": math.MaxInt32 * time.Second,
	}
	for header, want := range waits {
		c, _ := scripted(t, once, respond(429, "text/plain", "Too many requests, retry in 7s", "Retry-After", header))
		_, err := c.Get(t.Context(), "a")
		limited, ok := errors.AsType[*client.ResponseError](err)
		if !ok || limited.Status != 429 || limited.RetryAfter != want || !errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("Retry-After %q: the error is %v, want a wait of %s", header, err, want)
		}
		if want == 7*time.Second && !strings.Contains(fmt.Sprint(err), "wait 7s") {
			t.Errorf("%v does not say the wait", err)
		}
	}
}

func TestWithMaxResponseBytes_LargerResponse(t *testing.T) {
	body := `{"success":true,"data":{"id":"a","network_type":"evm","name":"` + strings.Repeat("x", 2000) + `"}}`
	c, _ := scripted(t, []client.Option{client.WithMaxResponseBytes(int64(len(body)) - 1)}, respondJSON(200, body))
	if _, err := c.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "larger than the limit") || len(err.Error()) > 500 {
		t.Errorf("the error is %v", err)
	}
	endless := &endlessBody{}
	c, _ = scripted(t, []client.Option{client.WithMaxResponseBytes(10)}, endless.of(respondJSON(200, body), -1))
	if _, err := c.Get(t.Context(), "a"); err == nil || !endless.isClosed || endless.read > 100_000 {
		t.Errorf("the connection is closed: %t, after %d bytes, error %v", endless.isClosed, endless.read, err)
	}
	c, _ = scripted(t, []client.Option{client.WithMaxResponseBytes(int64(len(body)))}, respondJSON(200, body))
	if _, err := c.Get(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

// A walk by cursors asks for fewer relayers if a page is too large, until one relayer is.
func TestAll_LargePages(t *testing.T) {
	m := newManager(t)
	for i := range 10 {
		req := evm(fmt.Sprint("r", i))
		req.Labels = map[string]string{}
		for name := range 10 {
			req.Labels[fmt.Sprint("label-", name)] = strings.Repeat("x", 100)
		}
		must(m.Create(t.Context(), req))(t)
	}
	read := 0
	for _, err := range serve(t, m, client.WithMaxResponseBytes(6000)).All(t.Context(), relayer.Selector{}) {
		must(read, err)(t)
		read++
	}
	if read != 10 {
		t.Errorf("%d relayers, want 10", read)
	}
	for _, c := range []struct {
		limit int64
		query relayer.ListQuery
	}{{500, relayer.ListQuery{After: new(relayer.Cursor)}}, {6000, relayer.ListQuery{}}} {
		_, err := serve(t, m, client.WithMaxResponseBytes(c.limit)).List(t.Context(), c.query)
		if err == nil || !strings.Contains(err.Error(), "larger than the limit") {
			t.Errorf("limit %d: error %v", c.limit, err)
		}
	}
}

// The error has the timeout of the transport, and not that the client had no response.
func TestErrors_TransportTimeout(t *testing.T) {
	c, _ := scripted(t, once, func(*http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("dial tcp 192.0.2.1:443: %w", context.DeadlineExceeded)
	})
	if _, err := c.Get(t.Context(), "a"); !errors.Is(err, relayer.ErrUnavailable) || !strings.Contains(err.Error(), "dial tcp 192.0.2.1:443") {
		t.Errorf("the error is %v", err)
	}
}

// A timeout that is not positive is none, as in net/http.
func TestWithHTTPClient_NoTimeout(t *testing.T) {
	server := httptest.NewServer(handlerOf(t, newManager(t)))
	defer server.Close()
	c := newClient(t, server.URL, client.WithHTTPClient(&http.Client{Timeout: -1}))
	must(c.List(t.Context(), relayer.ListQuery{}))(t)
}

// Details of any length are cut off before they are sent: an engine must not fail to disable.
func TestDisable_LongDetails(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 1)
	reason := relayer.DisabledReason{Type: relayer.RPCValidationFailed, Details: strings.Repeat("x", 2<<20) + "\x00"}
	if r := must(serveEngine(t, m).Disable(t.Context(), "r0", reason))(t); !r.SystemDisabled || len(r.DisabledReason.Details) > 16<<10 {
		t.Errorf("disabled: %t, with %d bytes", r.SystemDisabled, len(r.DisabledReason.Details))
	}
}

// The body of a 101 is a connection that ignores the context, even if it has a type.
func TestErrors_SwitchedProtocol(t *testing.T) {
	for _, contentType := range []string{"", "application/json"} {
		testSwitchedProtocol(t, contentType)
	}
}

func testSwitchedProtocol(t *testing.T, contentType string) {
	synctest.Test(t, func(t *testing.T) {
		opened, closed := 0, 0
		c, _ := scripted(t, nil, func(r *http.Request) (*http.Response, error) {
			resp, err := respond(101, contentType, "", "Connection", "Upgrade", "Upgrade", "other")(r)
			reader, writer := io.Pipe()
			opened++
			resp.Body = closer{reader, func() { closed++; _ = writer.Close() }}
			return resp, err
		})
		_, getErr := c.Get(t.Context(), "a")
		deleteErr := c.Delete(t.Context(), "a")
		for _, err := range []error{getErr, deleteErr, firstError(c.Watch(t.Context(), relayer.WatchQuery{After: "p0"}))} {
			if err == nil || !strings.Contains(err.Error(), "status 101") {
				t.Errorf("error %v", err)
			}
		}
		if !errors.Is(deleteErr, relayer.ErrOutcomeUnknown) || closed != opened {
			t.Errorf("a delete: error %v; %d of %d bodies are closed", deleteErr, closed, opened)
		}
	})
}

// A body that may have no end is closed, and not read.
func TestErrors_EndlessPage(t *testing.T) {
	for _, length := range []int64{-1, 0, 1 << 40} {
		endless := &endlessBody{}
		c, _ := scripted(t, once, endless.of(html(404), length))
		if _, err := c.Get(t.Context(), "a"); err == nil || !endless.isClosed || endless.read > 0 {
			t.Errorf("length %d: the connection is closed: %t, after %d bytes, error %v", length, endless.isClosed, endless.read, err)
		}
	}
}

func firstError[T any](items iter.Seq2[T, error]) error {
	for _, err := range items {
		return err
	}
	return nil
}

// endlessBody is a body of blanks, which do not go on for ever if a test fails.
type endlessBody struct {
	read     int
	isClosed bool
}

// of returns a step that has this body, and the length in its header.
func (b *endlessBody) of(step step, length int64) step {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := step(r)
		resp.ContentLength, resp.Body = length, b
		return resp, err
	}
}

func (b *endlessBody) Read(p []byte) (int, error) {
	if b.read > 1<<20 {
		return 0, io.EOF
	}
	b.read += len(p)
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func (b *endlessBody) Close() error { b.isClosed = true; return nil }

var busy = fail(503, "Service Unavailable", "Retry-After", "1")

func TestRetries_UntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, []client.Option{client.WithRetries(8, time.Minute)}, busy, fail(429, "Too Many Requests", "Retry-After", "3"), reset, html(502), html(521), respondJSON(200, `{"succ`), truncated(200), stored(t, evm("a"), 200, 7))
		start := time.Now()
		r, err := c.Get(t.Context(), "a")
		if err != nil || r.Revision != 7 {
			t.Fatalf("%v, error %v", r, err)
		}
		if waited := time.Since(start); waited < 4*time.Second || waited > 20*time.Second {
			t.Errorf("waited %s, want the 1 s and 3 s of Retry-After and a backoff", waited)
		}
		if got := s.methods(); got != "GET GET GET GET GET GET GET GET" {
			t.Errorf("sent %s", got)
		}
		for _, request := range s.seen {
			if request.header.Get("X-Request-Id") != s.seen[0].header.Get("X-Request-Id") || request.header.Get("X-Request-Id") == "" {
				t.Error("the attempts of one call have no common request ID")
			}
		}
	})
}

func TestRetries_Limits(t *testing.T) {
	tests := map[string]struct {
		options  []client.Option
		deadline time.Duration
		step     step
		most     time.Duration
		attempts int
	}{
		"default":                 {nil, 0, busy, 10 * time.Second, 5},
		"attempts":                {[]client.Option{client.WithRetries(2, time.Hour)}, 0, busy, 3 * time.Second, 2},
		"no retries":              {once, 0, busy, 0, 1},
		"time":                    {[]client.Option{client.WithRetries(100, 3*time.Second)}, 0, busy, 3 * time.Second, 0},
		"a wait beyond the time":  {nil, 0, fail(429, "", "Retry-After", "31"), 0, 1},
		"a wait of years":         {nil, 0, fail(429, "", "Retry-After", "99999999999"), 0, 1},
		"a wait for the deadline": {nil, 2 * time.Second, fail(429, "", "Retry-After", "3"), 0, 1},
		"resets":                  {nil, 0, reset, 2 * time.Second, 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				c, s := scripted(t, test.options, test.step)
				start := time.Now()
				_, err := c.Get(ctx, "a")
				limited, ok := errors.AsType[*client.ResponseError](err)
				if (!ok || limited.Status != 429) && !errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("the error is %v", err)
				}
				if waited := time.Since(start); waited > test.most {
					t.Errorf("waited %s", waited)
				}
				if test.attempts > 0 && len(s.seen) != test.attempts {
					t.Errorf("sent %d requests, want %d", len(s.seen), test.attempts)
				}
			})
		})
	}
}

func TestRetries_ContextFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		c, s := scripted(t, nil, busy)
		start := time.Now()
		if _, err := c.Create(ctx, evm("a")); !errors.Is(err, context.Canceled) || errors.Is(err, relayer.ErrOutcomeUnknown) {
			t.Errorf("the error is %v", err)
		}
		if waited := time.Since(start); waited != 500*time.Millisecond || len(s.seen) != 1 {
			t.Errorf("returned after %s and %d requests", waited, len(s.seen))
		}
		if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) || len(s.seen) != 1 {
			t.Errorf("a call with a canceled context: error %v, %d requests", err, len(s.seen))
		}
	})
}

// blocked never responds.
func blocked(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestWithTimeout_NoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := []client.Option{client.WithTimeout(2 * time.Second), client.WithRetries(3, time.Minute)}
		c, s := scripted(t, options, blocked)
		start := time.Now()
		_, err := c.Get(t.Context(), "a")
		if !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no response within 2s") {
			t.Errorf("the error is %v", err)
		}
		if waited := time.Since(start); len(s.seen) != 3 || waited < 6*time.Second || waited > 7*time.Second {
			t.Errorf("%d requests in %s", len(s.seen), waited)
		}
		c, _ = scripted(t, options, blocked)
		if err := c.Delete(t.Context(), "a"); !errors.Is(err, relayer.ErrOutcomeUnknown) || errors.Is(err, relayer.ErrUnavailable) {
			t.Errorf("a delete without a response: error %v", err)
		}
	})
}

// TestRetries_WriteNotSent sends a create to a server that is reachable only later. Until
// then, connections go to a port that is closed and that the system assigns to no listener.
func TestRetries_WriteNotSent(t *testing.T) {
	server := httptest.NewServer(handlerOf(t, newManager(t)))
	t.Cleanup(server.Close)
	var refused atomic.Int64
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if refused.Add(-1) >= 0 {
			address = "127.0.0.1:1"
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	options := []client.Option{client.WithHTTPClient(&http.Client{Transport: transport}), client.WithRetries(4, time.Minute)}
	c := newClient(t, server.URL, options...)
	refused.Store(math.MaxInt64)
	if _, err := c.Patch(t.Context(), "a", []byte(`{"name":"b"}`)); !errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("a patch that was not sent: error %v", err)
	}
	refused.Store(2)
	if _, err := c.Create(t.Context(), evm("a")); err != nil {
		t.Error(err)
	}
}

// A connection that is lost after it was made does not show whether the write was processed.
func TestRetries_WriteSent(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(server.Close)
	if err := newClient(t, server.URL, once...).Delete(t.Context(), "a"); !errors.Is(err, relayer.ErrOutcomeUnknown) {
		t.Errorf("error %v", err)
	}
}
