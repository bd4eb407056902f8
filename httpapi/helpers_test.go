package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	validToken = "a-valid-token-of-the-tests"
	collection = "/api/v1/relayers"
	changes    = "/api/v1/relayers:watch"
	access     = "/api/v1/access"
)

// service is a registry that listens on a loopback port.
type service struct {
	t       *testing.T
	manager *relayer.Manager
	url     string
	log     *syncBuffer
}

// envelope is the body of a successful response, and failureBody that of a failed one.
type envelope[T any] struct {
	Success    bool                `json:"success"`
	Data       T                   `json:"data"`
	Pagination *relayer.Pagination `json:"pagination,omitempty"`
}

type failureBody struct {
	Success bool                 `json:"success"`
	Data    any                  `json:"data"`
	Message string               `json:"message"`
	Errors  []relayer.FieldError `json:"errors,omitempty"`
}

// validTokens accepts validToken.
var validTokens = func() httpapi.Authenticator {
	auth, err := httpapi.Tokens(map[string][]string{"alice": {validToken}})
	if err != nil {
		panic(err)
	}
	return auth
}()

// byToken returns an Authenticator that calls check with the token. The token is the ID of
// the actor.
func byToken(check func(token string) error) httpapi.Authenticator {
	return func(r *http.Request) (relayer.Actor, error) {
		token, ok := httpapi.BearerToken(r)
		if !ok {
			return relayer.Actor{}, httpapi.ErrUnauthorized
		}
		return relayer.Actor{ID: token}, check(token)
	}
}

// newAPI returns an API on an empty store in memory, and its Manager.
func newAPI(t *testing.T, auth httpapi.Authenticator, options ...httpapi.Option) (*httpapi.API, *relayer.Manager) {
	t.Helper()
	manager := managerOn(t, nil)
	return apiOn(t, manager, auth, options...), manager
}

// serve starts a registry that accepts validToken.
func serve(t *testing.T, options ...httpapi.Option) *service {
	return serveAs(t, validTokens, nil, options...)
}

// serveAs starts a registry with any authenticator and manager options.
func serveAs(t *testing.T, auth httpapi.Authenticator, managerOptions []relayer.Option, options ...httpapi.Option) *service {
	t.Helper()
	manager := managerOn(t, nil, managerOptions...)
	return serveManager(t, manager, auth, options...)
}

func serveManager(t *testing.T, manager *relayer.Manager, auth httpapi.Authenticator, options ...httpapi.Option) *service {
	t.Helper()
	log := new(syncBuffer)
	t.Cleanup(func() { wantNoSecret(t, log.String()) })
	options = append([]httpapi.Option{httpapi.WithLogger(newLogger(log))}, options...)
	s := serveHandler(t, manager, recorded(apiOn(t, manager, auth, options...)))
	s.log = log
	return s
}

// serveHandler starts a server of any handler of the registry.
func serveHandler(t *testing.T, manager *relayer.Manager, handler http.Handler) *service {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &service{t: t, manager: manager, url: server.URL}
}

// recordingVariable is the environment variable with the name of a file. All
// exchanges are appended to it, one JSON object per line. The tests of the OpenAPI
// document read it.
const recordingVariable = "HTTPAPI_RECORDING"

// recordedExchange is a request and its response.
type recordedExchange struct {
	Method        string
	Path          string // escaped
	Query         string
	RequestHeader http.Header
	RequestBody   []byte // empty unless the request succeeded
	Status        int
	Header        http.Header
	Body          []byte
}

// recording returns the file that exchanges are appended to, or nil.
var recording = sync.OnceValue(func() *os.File {
	name := os.Getenv(recordingVariable)
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return file
})

// recordingMutex serializes writes to the recording.
var recordingMutex sync.Mutex

// recorded wraps a handler to record its exchanges if a recording is configured. It
// works in the server, because some requests of the suite do not come from a
// net/http client.
func recorded(handler http.Handler) http.Handler {
	file := recording()
	if file == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent bytes.Buffer
		received := r.WithContext(r.Context())
		received.Body = io.NopCloser(io.TeeReader(r.Body, &sent))
		copied := &responseCopy{ResponseWriter: w}
		handler.ServeHTTP(copied, received)
		exchange := recordedExchange{
			Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, RequestHeader: r.Header.Clone(),
			Status: copied.status, Header: w.Header(), Body: copied.body.Bytes(),
		}
		exchange.RequestHeader.Del("Authorization")
		if copied.status < 300 {
			exchange.RequestBody = sent.Bytes()
		}
		line, err := json.Marshal(exchange)
		if err != nil {
			panic(err)
		}
		recordingMutex.Lock()
		defer recordingMutex.Unlock()
		if _, err := file.Write(append(line, '\n')); err != nil {
			panic(err)
		}
	})
}

// responseCopy keeps a copy of the response.
type responseCopy struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *responseCopy) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseCopy) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *responseCopy) Write(p []byte) (int, error) {
	a.body.Write(p)
	return a.ResponseWriter.Write(p)
}

// wantNoSecret fails if a log contains one of the tokens and secret parts of URLs
// that the tests send.
func wantNoSecret(t *testing.T, log string) {
	t.Helper()
	for _, secret := range []string{validToken, "wrong", "user:p", "pw@", "/v2/key", "key?a=b", "-secret", "h0stsecret"} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in the log: %s", secret, log)
		}
	}
}

// syncBuffer is a log that is safe for concurrent use.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func (b *syncBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buffer.Reset()
}

// reply is a response with its whole body.
type reply struct {
	status int
	header http.Header
	body   string
}

// header sets a header of a request, or removes it if there are no values.
type header struct {
	name   string
	values []string
}

func with(name string, values ...string) header { return header{name, values} }

// as sets the token of a request.
func as(token string) header { return with("Authorization", "Bearer "+token) }

// do sends a request with validToken and checks the response with wantResponse.
func (s *service) do(method, path, body string, headers ...header) reply {
	s.t.Helper()
	got := s.send(method, path, body, headers...)
	wantResponse(s.t, method, got)
	return got
}

// expect is do, and checks the status.
func (s *service) expect(status int, method, path, body string, headers ...header) reply {
	s.t.Helper()
	got := s.do(method, path, body, headers...)
	if got.status != status {
		s.t.Errorf("%s %s %q returned %d, want %d: %s", method, path, headers, got.status, status, got.body)
	}
	return got
}

// send sends a request with validToken.
func (s *service) send(method, path, body string, headers ...header) reply {
	s.t.Helper()
	request := must(http.NewRequest(method, s.url+path, strings.NewReader(body)))(s.t)
	request.Header.Set("Authorization", "Bearer "+validToken)
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		request.Header[http.CanonicalHeaderKey(h.name)] = h.values
	}
	noRedirects := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response := must(noRedirects.Do(request))(s.t)
	defer response.Body.Close()
	content := must(io.ReadAll(response.Body))(s.t)
	return reply{response.StatusCode, response.Header, string(content)}
}

// wantHeaders checks the headers that every response must have.
func wantHeaders(t *testing.T, got reply) {
	t.Helper()
	caching := "no-store"
	if got.header.Get("Content-Type") == "text/event-stream" {
		caching += ", no-transform"
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": caching} {
		if value := got.header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	if id := got.header.Get("X-Request-Id"); id == "" {
		t.Error("no X-Request-Id")
	}
}

// wantResponse checks what the contract requires of every response.
func wantResponse(t *testing.T, method string, got reply) {
	t.Helper()
	wantHeaders(t, got)
	if got.status == http.StatusNotModified {
		if got.body != "" {
			t.Errorf("304 with a body: %s", got.body)
		}
		return
	}
	if value := got.header.Get("Content-Type"); value != "application/json" && (method != http.MethodHead || value != "text/event-stream") {
		t.Errorf("Content-Type is %q", value)
	}
	if method == http.MethodHead {
		if got.body != "" {
			t.Errorf("HEAD returned a body: %s", got.body)
		}
		return
	}
	wantEnvelope(t, got)
}

// wantEnvelope checks that a body is an envelope with only the members of the
// contract.
func wantEnvelope(t *testing.T, got reply) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &members); err != nil {
		t.Fatalf("body is not a JSON object: %v\n%s", err, got.body)
	}
	want := []string{"data", "success"}
	if got.status >= 400 {
		want = []string{"data", "message", "success"}
		if string(members["data"]) != "null" {
			t.Errorf("a failure has data: %s", got.body)
		}
	}
	switch got.status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		want = append(want, "errors")
	}
	isOptional := func(name string) bool {
		return slices.Contains([]string{"pagination", "changes", "change", "next", "position", "sealed", "metadata"}, name) && got.status < 400
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), isOptional)
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("the members of the body are %q, want %q: %s", names, want, got.body)
	}
	if success := string(members["success"]); success != fmt.Sprint(got.status < 400) {
		t.Errorf("success is %s with status %d", success, got.status)
	}
}

// create posts a body that must be accepted.
func (s *service) create(body string) relayer.Relayer {
	s.t.Helper()
	return decode[envelope[relayer.Relayer]](s.t, s.expect(http.StatusCreated, "POST", collection, body).body).Data
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return value
}

// wantFailure checks the status and message of a failure.
func wantFailure(t *testing.T, got reply, status int, message string) {
	t.Helper()
	failure := decode[failureBody](t, got.body)
	if got.status != status || failure.Message != message {
		t.Errorf("got %d %q, want %d %q", got.status, failure.Message, status, message)
	}
}

// wantProblem checks that a failure is 400 and lists a problem of a field.
func wantProblem(t *testing.T, got reply, field, message string) {
	t.Helper()
	wantRejected(t, got, http.StatusBadRequest, field, message)
}

// wantRejected checks the status of a failure that lists a problem of a field.
func wantRejected(t *testing.T, got reply, status int, field, message string) {
	t.Helper()
	wantFailure(t, got, status, "Bad Request")
	problems := decode[failureBody](t, got.body).Errors
	want := relayer.FieldError{Field: field, Message: message}
	if !slices.Contains(problems, want) {
		t.Errorf("the errors are %+v, without %+v", problems, want)
	}
}

// unchanged returns a function that fails the test if a stored relayer has changed since.
func (s *service) unchanged() func() {
	s.t.Helper()
	before := s.contents()
	return func() {
		s.t.Helper()
		if after := s.contents(); after != before {
			s.t.Errorf("was %s\nis  %s", before, after)
		}
	}
}

// contents returns all stored relayers as text.
func (s *service) contents() string {
	s.t.Helper()
	var all []string
	for r, err := range s.manager.All(context.Background(), relayer.Selector{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, fmt.Sprint(r.Revision, " ", encode(s.t, r)))
		for _, endpoint := range r.CustomRPCURLs {
			all = append(all, endpoint.URL.Unmasked())
		}
	}
	return strings.Join(all, "\n")
}

// minimal returns the smallest create request, with more members if given.
func minimal(more string) string {
	return `{"name":"n","network":"sepolia","network_type":"evm","paused":false,"signer_id":"s"` + more + `}`
}

// raw sends the bytes of a request, calls finish on the connection and returns the
// response.
func raw(t *testing.T, s *service, request string, finish func(*net.TCPConn) error) reply {
	t.Helper()
	connection := must(net.Dial("tcp", strings.TrimPrefix(s.url, "http://")))(t)
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	must(io.WriteString(connection, request))(t)
	if err := finish(connection.(*net.TCPConn)); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	response := must(http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method}))(t)
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))(t)
	return reply{response.StatusCode, response.Header, string(body)}
}

// managerOn returns a Manager on the store, or on a new one in memory.
func managerOn(t testing.TB, store relayer.Store, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	if store == nil {
		store = memory.New()
	}
	return must(relayer.New(store, options...))(t)
}

func apiOn(t testing.TB, manager *relayer.Manager, auth httpapi.Authenticator, options ...httpapi.Option) *httpapi.API {
	t.Helper()
	return must(httpapi.New(manager, auth, options...))(t)
}

// newRequest returns a request with validToken and a body in JSON.
func newRequest(ctx context.Context, method, path, body string, headers ...header) *http.Request {
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	request.Header = http.Header{"Authorization": {"Bearer " + validToken}, "Content-Type": {"application/json"}}
	for _, h := range headers {
		request.Header[http.CanonicalHeaderKey(h.name)] = h.values
	}
	return request
}

// serveHTTP calls the handler without a network, and records the exchange.
func serveHTTP(ctx context.Context, handler http.Handler, method, path, body string, headers ...header) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	recorded(handler).ServeHTTP(recorder, newRequest(ctx, method, path, body, headers...))
	return recorder
}

func downManager(t *testing.T) *relayer.Manager { return managerOn(t, downStore{memory.New()}) }

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// downStore is a store whose engine is unreachable.
type downStore struct{ relayer.Store }

func (downStore) Create(context.Context, relayer.Record) (relayer.Record, error) {
	return relayer.Record{}, fmt.Errorf("dialing: %w", relayer.ErrUnavailable)
}

func (downStore) Get(context.Context, string) (relayer.Record, error) {
	return relayer.Record{}, fmt.Errorf("dialing: %w", relayer.ErrUnavailable)
}

func (downStore) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, fmt.Errorf("dialing: %w", relayer.ErrUnavailable)
}

func (downStore) List(context.Context, relayer.StoreQuery) (relayer.Listing, error) {
	return relayer.Listing{}, fmt.Errorf("dialing: %w", relayer.ErrUnavailable)
}

func encode(t *testing.T, value any) string {
	t.Helper()
	return string(must(json.Marshal(value))(t))
}

func newLogger(log io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// noHistory is a store that retains no changes.
type noHistory struct{ relayer.Store }

func (noHistory) History(context.Context, relayer.HistoryQuery) ([]relayer.RecordChange, error) {
	return nil, errors.ErrUnsupported
}
