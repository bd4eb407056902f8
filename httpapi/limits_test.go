package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func TestRateLimit_NearZero(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(1e-12, 1))
	s.do("GET", collection, "")
	if after := s.do("GET", collection, "").header.Get("Retry-After"); len(after) < 9 || after[0] == '-' {
		t.Errorf("Retry-After is %q", after)
	}
}

func TestRateLimit_DefaultBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := apiOn(t, managerOn(t, nil), validTokens)
		for i := range 300 {
			if status := statusOf(handler, listRequest(validToken)); status != http.StatusOK {
				t.Fatalf("request %d returned %d", i+1, status)
			}
		}
		if status := statusOf(handler, listRequest(validToken)); status != http.StatusTooManyRequests {
			t.Errorf("request 301 returned %d, want 429", status)
		}
	})
	unlimited, _ := newAPI(t, validTokens, httpapi.WithRateLimit(0, 0))
	for i := range 3 * 300 {
		if status := statusOf(unlimited, listRequest(validToken)); status != http.StatusOK {
			t.Fatalf("without a limit, request %d returned %d", i+1, status)
		}
	}
}

// TestRateLimit_ManyActors: the state of the rates is bounded. Above 10,000 actors, all have a
// full burst again.
func TestRateLimit_ManyActors(t *testing.T) {
	handler, _ := newAPI(t, anyToken, httpapi.WithRateLimit(1e-6, 1))
	expect := func(actor string, want int) {
		t.Helper()
		if status := statusOf(handler, listRequest(actor)); status != want {
			t.Fatalf("%s got %d, want %d", actor, status, want)
		}
	}
	expect("first", http.StatusOK)
	for i := range 9999 {
		expect(fmt.Sprint(i), http.StatusOK)
	}
	expect("first", http.StatusTooManyRequests)
	expect("last", http.StatusOK)
	expect("first", http.StatusOK)
}

// TestRateLimit_Contention: under contention a limit grants exactly its burst, and then its refills.
func TestRateLimit_Contention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := apiOn(t, managerOn(t, nil), validTokens, httpapi.WithRateLimit(20, 600))
		for _, want := range []int64{600, 40} {
			var granted atomic.Int64
			var clients sync.WaitGroup
			for range 64 {
				clients.Go(func() {
					for range 20 {
						if statusOf(handler, listRequest(validToken)) == http.StatusOK {
							granted.Add(1)
						}
					}
				})
			}
			clients.Wait()
			if got := granted.Load(); got != want {
				t.Errorf("%d requests were granted, want %d", got, want)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

func listRequest(token string) *http.Request {
	return newRequest(context.Background(), "GET", collection, "", as(token))
}

// statusOf calls the handler without a network and returns the status.
func statusOf(handler http.Handler, request *http.Request) int {
	w := statusWriter{header: make(http.Header)}
	handler.ServeHTTP(&w, request)
	return w.status
}

// statusWriter keeps the status of a response. It costs less than a
// httptest.ResponseRecorder, which increases the contention.
type statusWriter struct {
	header http.Header
	status int
}

func (w *statusWriter) Header() http.Header { return w.header }

func (w *statusWriter) Write(p []byte) (int, error) { return len(p), nil }

func (w *statusWriter) WriteHeader(status int) { w.status = status }

// fromHeader is a client address function that lets a test have many clients.
func fromHeader(r *http.Request) string { return r.Header.Get("X-Client") }

// TestMaxInFlight_Default: 1,024 requests are handled at once. Above that every request is refused
// before its authentication, also one for the OpenAPI document.
func TestMaxInFlight_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		handler := apiOn(t, managerOn(t, nil), func(r *http.Request) (relayer.Actor, error) {
			<-release
			return relayer.Actor{ID: fromHeader(r)}, nil
		}, httpapi.WithRateLimit(0, 0), httpapi.WithClientAddress(fromHeader))
		var waiting sync.WaitGroup
		var served atomic.Int32
		for i := range 1024 {
			waiting.Go(func() {
				request := listRequest(validToken)
				request.Header.Set("X-Client", fmt.Sprint(i%8))
				if statusOf(handler, request) == http.StatusOK {
					served.Add(1)
				}
			})
		}
		synctest.Wait()
		refuses := func(method, path, body string) {
			got := serveHTTP(t.Context(), handler, method, path, body)
			if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
				t.Errorf("above the limit, %s %s returned %d %v", method, path, got.Code, got.Header())
			}
		}
		for _, r := range authorizedRequests {
			refuses(r.method, r.path, r.body)
		}
		for _, path := range []string{openAPI, "/nowhere", "//"} {
			for _, method := range []string{"GET", "HEAD", "PUT"} {
				refuses(method, path, "")
			}
		}
		close(release)
		waiting.Wait()
		if served.Load() != 1024 {
			t.Errorf("%d requests were admitted, want 1024", served.Load())
		}
	})
}

// TestMaxPendingBytes_LargeRelayer: a relayer above the limit cannot be read, but the
// response to a write that has taken effect is sent.
func TestMaxPendingBytes_LargeRelayer(t *testing.T) {
	s := serve(t, httpapi.WithMaxPendingBytes(1000))
	createIn(t, s.manager, "r-1", strings.Repeat("n", 1000))
	wantFailure(t, s.do("GET", collection+"/r-1", ""), http.StatusServiceUnavailable, "Service Unavailable")
	for range 3 {
		got := s.do("PATCH", collection+"/r-1", `{"paused":true}`)
		if got.status != http.StatusOK || len(got.body) < 1000 {
			t.Errorf("patch returned %d with %d bytes", got.status, len(got.body))
		}
	}
	s.do("PATCH", collection+"/r-1", `{"name":"small"}`)
	s.expect(http.StatusOK, "GET", collection+"/r-1", "")
}

// TestMaxPendingBytes_Overflow: the largest maximum of a body does not switch the limit off while
// another request holds bytes.
func TestMaxPendingBytes_Overflow(t *testing.T) {
	api, _ := newAPI(t, validTokens, httpapi.WithMaxBodyBytes(math.MaxInt64))
	content, sender := io.Pipe()
	held := newRequest(t.Context(), "POST", collection, "")
	held.Body, held.ContentLength = content, 10
	done := make(chan struct{})
	go func() {
		defer close(done)
		api.ServeHTTP(httptest.NewRecorder(), held)
		_ = content.Close()
	}()
	_, _ = sender.Write([]byte("{")) // returns when it is read
	unknown := newRequest(t.Context(), "POST", collection, minimal(""))
	unknown.ContentLength = -1
	recorder := httptest.NewRecorder()
	if api.ServeHTTP(recorder, unknown); recorder.Code != http.StatusServiceUnavailable {
		t.Errorf("a body of unknown length returned %d %s", recorder.Code, recorder.Body)
	}
	_ = sender.Close()
	<-done
}

// TestMaxPendingBytes_Followers: of many followers that do not read, the limit has room for one
// event. The streams of the others end with a resync event. The bytes are released with the client.
func TestMaxPendingBytes_Followers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, limit = 2000, 5000 // one caller may use half of it: one such relayer
		manager, api, first := watchInBubble(t, validTokens, httpapi.WithMaxPendingBytes(limit))
		followers := []*stream{first, first.listener.watch(t, ""), first.listener.watch(t, "")}
		for _, w := range followers {
			w.wantResync()
		}
		createIn(t, manager, "r-1", strings.Repeat("n", name))
		synctest.Wait()
		list := func() int { return serveHTTP(t.Context(), api, "GET", collection, "").Code }
		if status := list(); status != http.StatusServiceUnavailable {
			t.Errorf("with a pending event: list returned %d, want 503", status)
		}
		var complete *stream
		for i, w := range followers {
			switch e := w.next(); {
			case e.name == "created" && complete == nil:
				complete = w
			case e.name != "resync":
				t.Errorf("client %d got %+v", i, e)
			default:
				if e, err := w.read(); err == nil {
					t.Errorf("client %d got %+v after the resync", i, e)
				}
			}
		}
		if complete == nil {
			t.Fatal("no client got the event")
		}
		createIn(t, manager, "r-2", strings.Repeat("n", name)) // the client does not read this one
		synctest.Wait()
		if status := list(); status != http.StatusServiceUnavailable {
			t.Errorf("with another pending event: list returned %d, want 503", status)
		}
		complete.cancel()
		synctest.Wait()
		if got := serveHTTP(t.Context(), api, "GET", collection+"/r-1", "").Code; got != http.StatusOK {
			t.Errorf("without the client: get returned %d, want 200", got)
		}
	})
}

// blockedLists is a store whose List blocks until it is released.
type blockedLists struct {
	relayer.Store
	entered atomic.Int32
	release chan struct{}
}

func (s *blockedLists) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.entered.Add(1)
	<-s.release
	return s.Store.List(ctx, query)
}

// TestMaxPendingBytes_Bodies: a body counts until its request has been handled, also while
// its client sends it slowly. One of unknown length counts as the largest.
func TestMaxPendingBytes_Bodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const largest = 2 << 10
		manager := managerOn(t, nil)
		api := apiOn(t, manager, anyToken, httpapi.WithMaxPendingBytes(8*largest), httpapi.WithMaxBodyBytes(largest))
		slow, complete := io.Pipe()
		var running sync.WaitGroup
		send := func(actor string, length int64, body io.Reader) *result {
			request := newRequest(t.Context(), "POST", collection, "", as(actor))
			request.Body, request.ContentLength = io.NopCloser(body), length
			return begin(&running, func() int { return statusOf(api, request) })
		}
		expect := func(want int, got *result) {
			t.Helper()
			if status := got.get(); status != want {
				t.Errorf("got %d, want %d", status, want)
			}
		}
		const blocked, unknown = 0, -1
		for range 8 {
			expect(blocked, send("greedy", largest/2, slow))
		}
		expect(http.StatusServiceUnavailable, send("greedy", largest/2, slow))
		expect(http.StatusRequestEntityTooLarge, send("modest", largest+1, slow))
		expect(blocked, send("modest", unknown, slow))
		expect(http.StatusServiceUnavailable, send("modest", 1, slow))
		expect(http.StatusCreated, send("other", unknown, strings.NewReader(minimal(""))))
		_ = complete.CloseWithError(io.ErrUnexpectedEOF)
		running.Wait()
		for range 3 {
			expect(http.StatusCreated, send("greedy", unknown, strings.NewReader(minimal(""))))
		}
		if refused := api.Refusals()["pending_bytes"]; refused != 2 {
			t.Errorf("%d refusals, want 2", refused)
		}
	})
}

// anyToken accepts every token. The token is the ID of the actor.
var anyToken = byToken(func(string) error { return nil })

// occupation is what requests use of a limit of 16, as long as they are blocked.
type occupation struct {
	t       *testing.T
	api     *httpapi.API
	release chan struct{} // closed at the end
	log     *syncBuffer
	running sync.WaitGroup
	method  string
	path    string
	body    string
}

// result is a response that a blocked request sends later, or nil as long as it is blocked.
type result struct {
	mu     sync.Mutex
	status int
}

func (r *result) get() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// begin sends a request in running, and returns when it is blocked or has ended.
func begin(running *sync.WaitGroup, send func() int) *result {
	got := new(result)
	running.Go(func() {
		status := send()
		got.mu.Lock()
		defer got.mu.Unlock()
		got.status = status
	})
	synctest.Wait()
	return got
}

func (o *occupation) begin(actor string) *result {
	return begin(&o.running, func() int { return o.send(o.t.Context(), actor) })
}

func (o *occupation) send(ctx context.Context, actor string) int {
	request := newRequest(ctx, o.method, o.path, o.body, as(actor))
	w := &blockedWriter{statusWriter: statusWriter{header: make(http.Header)}, release: o.release}
	o.api.ServeHTTP(w, request)
	return w.status
}

// blockedWriter blocks at the first byte of a body that is not a failure.
type blockedWriter struct {
	statusWriter
	release chan struct{}
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	if w.status < 300 {
		<-w.release
	}
	return len(p), nil
}

func (w *blockedWriter) FlushError() error                { return nil }
func (w *blockedWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *blockedWriter) SetWriteDeadline(time.Time) error { return nil }

// occupy returns an API whose limit of the name is 16 requests, which stay blocked.
func occupy(t *testing.T, name string) *occupation {
	o := &occupation{t: t, release: make(chan struct{}), log: new(syncBuffer), method: "GET", path: collection}
	store := &blockedLists{Store: memory.New(), release: make(chan struct{})}
	blocked := func(context.Context, relayer.CreateRequest) (string, error) {
		<-o.release
		return "0x0", nil
	}
	var managerOptions []relayer.Option
	options := []httpapi.Option{httpapi.WithLogger(newLogger(o.log)), httpapi.WithClientAddress(fromHeader)}
	switch name {
	case "in_flight":
		managerOptions = []relayer.Option{relayer.WithAddressResolver(blocked)}
		options = append(options, httpapi.WithMaxInFlight(16))
		o.method, o.body = "POST", minimal("")
		close(store.release)
	case "pages":
		store.release = o.release
	case "bulk":
		store.release = o.release
		o.method, o.path = "POST", collection+":pause?all=true"
	case "pending_bytes":
		close(store.release)
		options = append(options, httpapi.WithMaxPendingBytes(16*emptyPageBytes))
	case "watchers":
		close(store.release)
		options = append(options, httpapi.WithMaxWatchers(16))
		o.path = changes
	}
	manager := managerOn(t, store, managerOptions...)
	o.api = apiOn(t, manager, anyToken, options...)
	return o
}

// emptyPageBytes is the size of the response to a list without relayers.
const emptyPageBytes = int64(len(`{"success":true,"data":[],"pagination":{"current_page":1,"per_page":10,"total_items":0}}`))

func (o *occupation) end() {
	close(o.release)
	o.api.Drain()
	o.running.Wait()
}

// TestShares: one caller can use half of each limit. The other half is for callers that use
// less than an eighth.
func TestShares(t *testing.T) {
	for name, total := range map[string]int{"in_flight": 16, "pages": 8, "pending_bytes": 16, "watchers": 16, "bulk": 8} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := occupy(t, name)
				waits := name == "pages" || name == "bulk" // its requests wait for 5 seconds before they are refused
				const refused, blocked = http.StatusServiceUnavailable, 0
				expect := func(actor string, want int) {
					t.Helper()
					got := o.begin(actor)
					if want == refused && waits {
						if status := got.get(); status != blocked {
							t.Errorf("%s got %d at once, and does not wait", actor, status)
						}
						time.Sleep(5 * time.Second)
						synctest.Wait()
					}
					if status := got.get(); status != want {
						t.Errorf("%s got %d, want %d", actor, status, want)
					}
				}
				for range total / 2 {
					expect("greedy", blocked)
				}
				expect("greedy", refused)
				for i := range total / 2 / (total / 8) {
					actor := fmt.Sprintf("modest-%d", i)
					for range total / 8 {
						expect(actor, blocked)
					}
					if i == 0 {
						expect(actor, refused)
					}
				}
				expect("late", refused)
				refusals := uint64(3)
				if name == "pending_bytes" { // a write needs a free byte before it begins
					for _, method := range []string{"POST", "PATCH", "DELETE"} {
						o.method, o.body = method, minimal("")
						if o.path = one; method == "POST" {
							o.path = collection
						}
						expect("greedy", refused)
						refusals++
					}
					o.method, o.path, o.body = "GET", collection, ""
				}
				want := map[string]uint64{"in_flight": 0, "pages": 0, "pending_bytes": 0, "watchers": 0, "bulk": 0}
				want[name] = refusals
				if counts := o.api.Refusals(); !maps.Equal(counts, want) {
					t.Errorf("the refusals are %v, want %v", counts, want)
				}
				o.end()
				o.release = make(chan struct{})
				close(o.release)
				if name != "watchers" { // the API is drained
					for range total {
						if status := o.send(t.Context(), "greedy"); status >= 300 {
							t.Errorf("afterwards greedy got %d", status)
						}
					}
				}
			})
		})
	}
}

// TestShares_WriteResponses: responses to writes that one actor does not read leave room for
// the requests of others.
func TestShares_WriteResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resolve := make(chan struct{})
		manager := managerOn(t, nil, relayer.WithAddressResolver(func(context.Context, relayer.CreateRequest) (string, error) {
			<-resolve
			return "", nil
		}))
		count := int(8*emptyPageBytes) / len(minimal(""))
		api := apiOn(t, manager, anyToken, httpapi.WithMaxPendingBytes(16*emptyPageBytes), httpapi.WithMaxInFlight(2*count))
		o := &occupation{t: t, api: api, release: make(chan struct{}), method: "POST", path: collection, body: minimal("")}
		var creates []*result
		for range count {
			creates = append(creates, o.begin("greedy"))
		}
		close(resolve)
		synctest.Wait()
		o.method, o.path, o.body = "GET", collection+"?per_page=0", ""
		late := o.begin("late")
		if status := late.get(); status != 0 {
			t.Errorf("late got %d", status)
		}
		for range count {
			o.begin("greedy")
		}
		if counts := api.Refusals(); counts["in_flight"] == 0 {
			t.Errorf("the refusals are %v: its writes are not in flight any more", counts)
		}
		o.end()
		for _, created := range append(creates, late) {
			if status := created.get(); status != http.StatusCreated && status != http.StatusOK {
				t.Errorf("got %d", status)
			}
		}
	})
}

// TestShares_PageWaiters: a page slot goes to the first waiter that may have it, and a waiter
// gives up with its context.
func TestShares_PageWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := occupy(t, "pages")
		store := o.release
		for range 4 {
			o.begin("greedy")
		}
		for i := range 4 {
			o.begin(fmt.Sprintf("modest-%d", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan int)
		go func() { gone <- o.send(ctx, "gone") }()
		synctest.Wait()
		waiting := o.begin("greedy")
		late := o.begin("late")
		cancel()
		if status := <-gone; status != http.StatusServiceUnavailable {
			t.Errorf("the canceled request got %d", status)
		}
		store <- struct{}{} // one page is complete
		synctest.Wait()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if status := waiting.get(); status != http.StatusServiceUnavailable {
			t.Errorf("greedy got %d", status)
		}
		if status := late.get(); status != 0 {
			t.Errorf("late got %d, and not the page slot", status)
		}
		o.end()
		if counts := o.api.Refusals(); counts["pages"] != 2 || late.get() != http.StatusOK {
			t.Errorf("the refusals are %v, and late got %d", counts, late.get())
		}
	})
}

// TestShares_ByAddress: before their authentication, requests count for the address of the
// client.
func TestShares_ByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		authenticate := func(r *http.Request) (relayer.Actor, error) {
			<-block
			return anyToken(r)
		}
		handler, _ := newAPI(t, authenticate, httpapi.WithMaxInFlight(16), httpapi.WithClientAddress(fromHeader))
		send := func(address, token string) int {
			return serveHTTP(t.Context(), handler, "GET", collection, "", as(token), with("X-Client", address)).Code
		}
		var running sync.WaitGroup
		for i := range 8 {
			running.Go(func() { send("one", fmt.Sprint("guess-", i)) })
		}
		synctest.Wait()
		if status := send("one", "guess"); status != http.StatusServiceUnavailable {
			t.Errorf("the address above its share got %d", status)
		}
		var other int
		running.Go(func() { other = send("other", "guess") })
		synctest.Wait()
		close(block)
		running.Wait()
		if other != http.StatusOK {
			t.Errorf("another address got %d", other)
		}
	})
}

// TestShares_AfterAuthentication: an actor has one share for all its addresses and tokens.
func TestShares_AfterAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		resolve := func(context.Context, relayer.CreateRequest) (string, error) {
			<-release
			return "0x0", nil
		}
		manager := managerOn(t, nil, relayer.WithAddressResolver(resolve))
		one := func(*http.Request) (relayer.Actor, error) { return relayer.Actor{ID: "one"}, nil }
		handler := apiOn(t, manager, one, httpapi.WithMaxInFlight(16), httpapi.WithClientAddress(fromHeader))
		statuses := make(chan int, 16)
		for i := range 16 {
			go func() {
				headers := []header{as(fmt.Sprint("token-", i)), with("X-Client", fmt.Sprint(i))}
				statuses <- serveHTTP(t.Context(), handler, "POST", collection, minimal(""), headers...).Code
			}()
			synctest.Wait()
		}
		close(release)
		counts := make(map[int]int)
		for range 16 {
			counts[<-statuses]++
		}
		if counts[201] != 8 || counts[503] != 8 || handler.Refusals()["in_flight"] != 8 {
			t.Errorf("the statuses are %v, the refusals %v", counts, handler.Refusals())
		}
	})
}

// TestShares_Log: the refusals of a limit are logged at most once a minute for each actor.
func TestShares_Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := occupy(t, "watchers")
		for range 8 {
			o.begin("greedy")
		}
		for range 3 {
			for range 100 {
				if status := o.send(t.Context(), "greedy"); status != http.StatusServiceUnavailable {
					t.Fatalf("got %d", status)
				}
			}
			time.Sleep(31 * time.Second)
		}
		for i := range 8 {
			o.begin(fmt.Sprint("modest-", i/2))
		}
		o.send(t.Context(), "late")
		o.end()
		log := o.log.String()
		if n := strings.Count(log, "principal=greedy"); n != 2 {
			t.Errorf("%d lines about greedy, want 2: %s", n, log)
		}
		for _, want := range []string{
			`level=WARN msg="refused because of a limit"`, "cause=watchers used_by_principal=8 used=8 limit=16",
			"principal=late", "cause=watchers used_by_principal=0 used=16 limit=16",
		} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in the log: %s", want, log)
			}
		}
	})
}
