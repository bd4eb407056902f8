package httpapi_test

import (
	"context"
	"fmt"
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

func TestRateLimit_Refill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, httpapi.WithRateLimit(50, 1))
		expect := func(want int) {
			t.Helper()
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, listRequest(validToken))
			if recorder.Code != want || want == http.StatusTooManyRequests && recorder.Header().Get("Retry-After") != "1" {
				t.Errorf("returned %d %v, want %d", recorder.Code, recorder.Header(), want)
			}
		}
		expect(http.StatusOK)
		expect(http.StatusTooManyRequests)
		time.Sleep(19 * time.Millisecond)
		expect(http.StatusTooManyRequests)
		time.Sleep(2 * time.Millisecond)
		expect(http.StatusOK)
		expect(http.StatusTooManyRequests)
	})
}

func TestRateLimit_NearZero(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(1e-12, 1))
	s.do("GET", collection, "")
	if after := s.do("GET", collection, "").header.Get("Retry-After"); len(after) < 9 || after[0] == '-' {
		t.Errorf("Retry-After is %q", after)
	}
}

func TestRateLimit_DefaultBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t)
		for i := range 300 {
			if status := statusOf(handler, listRequest(validToken)); status != http.StatusOK {
				t.Fatalf("request %d returned %d", i+1, status)
			}
		}
		if status := statusOf(handler, listRequest(validToken)); status != http.StatusTooManyRequests {
			t.Errorf("request 301 returned %d, want 429", status)
		}
	})
	unlimited := serve(t, httpapi.WithRateLimit(0, 0))
	for i := range 3 * 300 {
		if got := unlimited.do("GET", collection+"/nobody", ""); got.status != http.StatusNotFound {
			t.Fatalf("without a limit, request %d returned %d", i+1, got.status)
		}
	}
}

// TestRateLimit_Contention: under contention a limit grants exactly its burst and
// its refills. The bucket must not become full again, which would lose refills. That
// takes 15 seconds without a request, because half of the burst is used first.
func TestRateLimit_Contention(t *testing.T) {
	const (
		burst     = 600
		perSecond = 20.0
		tries     = 250 * time.Millisecond
	)
	for name, c := range map[string]struct {
		limit   httpapi.Option
		token   string
		granted int
	}{
		"rate limit":  {httpapi.WithRateLimit(perSecond, burst), validToken, http.StatusOK},
		"guess limit": {httpapi.WithGuessLimit(perSecond, burst), "wrong", http.StatusUnauthorized},
	} {
		for _, goroutines := range []int{2, 64} {
			t.Run(fmt.Sprintf("%s, %d goroutines", name, goroutines), func(t *testing.T) {
				handler := newHandler(t, c.limit)
				var granted atomic.Int64
				isGranted := func(request *http.Request) bool {
					status := statusOf(handler, request)
					if status != c.granted && status != http.StatusTooManyRequests {
						t.Errorf("returned %d", status)
					}
					if status == c.granted {
						granted.Add(1)
					}
					return status == c.granted
				}
				begin := time.Now()
				for range burst / 2 {
					isGranted(listRequest(c.token))
				}
				halfUsed := time.Now()
				var clients sync.WaitGroup
				for range goroutines {
					clients.Go(func() {
						request := listRequest(c.token)
						for time.Since(halfUsed) < tries {
							isGranted(request)
						}
					})
				}
				clients.Wait()
				// An empty bucket has granted all its refills so far, so that the result
				// does not depend on the speed of the machine.
				last := time.Now()
				for isGranted(listRequest(c.token)) {
					last = time.Now()
				}
				end := time.Now()
				least, most := burst+perSecond*last.Sub(halfUsed).Seconds()-1, burst+perSecond*end.Sub(begin).Seconds()
				if got := float64(granted.Load()); got < least || got > most {
					t.Errorf("%.0f requests were granted, want %.1f to %.1f", got, least, most)
				}
			})
		}
	}
}

// newHandler returns the handler of an empty registry that accepts validToken.
func newHandler(t *testing.T, options ...httpapi.Option) http.Handler {
	t.Helper()
	handler, _ := newAPI(t, validTokens, options...)
	return handler
}

func listRequest(token string) *http.Request {
	request := httptest.NewRequest("GET", collection, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	return request
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

func TestGuessLimit_UnknownToken(t *testing.T) {
	var calls atomic.Int64
	auth := byToken(func(token string) error {
		calls.Add(1)
		if token == "right" || token == "other-right" {
			return nil
		}
		return httpapi.ErrUnauthorized
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 4), httpapi.WithClientAddress(fromHeader))
	send := func(client, token string) reply {
		t.Helper()
		return s.do("POST", collection, "{", with("X-Client", client), with("Authorization", "Bearer "+token))
	}
	expect := func(client, token string, want int) {
		t.Helper()
		if got := send(client, token); got.status != want {
			t.Errorf("%s with %s returned %d, want %d", client, token, got.status, want)
		}
	}
	expect("office", "right", http.StatusBadRequest)
	for range 4 {
		expect("office", "wrong", http.StatusUnauthorized)
	}

	before := calls.Load()
	for range 20 {
		got := send("office", "wrong")
		wantFailure(t, got, http.StatusTooManyRequests, "Too Many Requests")
		if got.header.Get("Retry-After") != "100" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	expect("office", "other-right", http.StatusTooManyRequests) // unknown until it was accepted once
	if calls.Load() != before {
		t.Error("the Authenticator was called above the limit")
	}
	expect("office", "right", http.StatusBadRequest) // known
	expect("elsewhere", "wrong", http.StatusUnauthorized)
	expect("elsewhere", "other-right", http.StatusBadRequest)
	if got := s.do("GET", collection, "", with("X-Client", "office"), with("Authorization")); got.status != http.StatusUnauthorized {
		t.Errorf("a request without a token returned %d", got.status)
	}
}

// TestGuessLimit_ValidTokens: a valid token that is seen for the first time does not
// use up a guess of its client address.
func TestGuessLimit_ValidTokens(t *testing.T) {
	auth := byToken(func(token string) error {
		if strings.HasPrefix(token, "valid-") {
			return nil
		}
		return httpapi.ErrUnauthorized
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 5))
	send := func(token string) int {
		return s.do("GET", collection, "", with("Authorization", "Bearer "+token)).status
	}
	for i := range 100 {
		if got := send(fmt.Sprintf("valid-%d", i)); got != http.StatusOK {
			t.Fatalf("valid token %d returned %d", i, got)
		}
	}
	for i := range 10 {
		want := http.StatusUnauthorized
		if i >= 5 {
			want = http.StatusTooManyRequests
		}
		if got := send("wrong"); got != want {
			t.Errorf("guess %d returned %d, want %d", i, got, want)
		}
	}
}

// TestGuessLimit_RevokedToken: a token that was accepted and is then revoked counts
// like any unknown token.
func TestGuessLimit_RevokedToken(t *testing.T) {
	var revoked, unavailable atomic.Bool
	auth := byToken(func(string) error {
		switch {
		case unavailable.Load():
			return relayer.ErrUnavailable
		case revoked.Load():
			return httpapi.ErrUnauthorized
		}
		return nil
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 3))
	expect := func(want int) {
		t.Helper()
		if got := s.do("GET", collection, "", with("Authorization", "Bearer token")); got.status != want {
			t.Errorf("returned %d, want %d", got.status, want)
		}
	}
	for range 10 {
		expect(http.StatusOK)
	}
	unavailable.Store(true) // the token stays known
	for range 10 {
		expect(http.StatusServiceUnavailable)
	}
	unavailable.Store(false)
	revoked.Store(true)
	for range 3 {
		expect(http.StatusUnauthorized)
	}
	for range 10 {
		expect(http.StatusTooManyRequests)
	}
}

// TestGuessLimit_Concurrent: tokens that are being checked count too.
func TestGuessLimit_Concurrent(t *testing.T) {
	var calls atomic.Int64
	auth := byToken(func(string) error {
		calls.Add(1)
		time.Sleep(50 * time.Millisecond)
		return httpapi.ErrUnauthorized
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 3))
	var guessers sync.WaitGroup
	for range 50 {
		guessers.Go(func() { s.do("GET", collection, "", with("Authorization", "Bearer wrong")) })
	}
	guessers.Wait()
	if calls.Load() != 3 {
		t.Errorf("the Authenticator was called %d times, want 3", calls.Load())
	}
}

// TestGuessLimit_ConnectionAddress: without a function of the host the address is that of
// the connection, and the addresses of an IPv6 network share one limit.
func TestGuessLimit_ConnectionAddress(t *testing.T) {
	handler := newHandler(t, httpapi.WithGuessLimit(0.01, 2))
	send := func(address, token string) int {
		request := listRequest(token)
		request.RemoteAddr = address
		return statusOf(handler, request)
	}
	for _, c := range []struct {
		address, token string
		want           int
	}{
		{"192.0.2.1:1", validToken, 200},
		{"192.0.2.1:1", "wrong", 401},
		{"192.0.2.1:2", "wrong", 401},
		{"192.0.2.1:3", "wrong", 429},
		{"192.0.2.1:3", validToken, 200},
		{"192.0.2.2:1", "wrong", 401},
		{"[2001:db8::1]:1", "wrong", 401},
		{"[2001:db8::2%eth0]:1", "wrong", 401},
		{"[2001:db8::3]:1", "wrong", 429},
		{"[2001:db8:0:1::1]:1", "wrong", 401},
	} {
		if got := send(c.address, c.token); got != c.want {
			t.Errorf("%s with %s returned %d, want %d", c.address, c.token, got, c.want)
		}
	}
}

// TestGuessLimit_Cookie: a cookie counts like a token, and a request without credentials
// does not count.
func TestGuessLimit_Cookie(t *testing.T) {
	bySession := func(r *http.Request) (relayer.Actor, error) {
		if session, err := r.Cookie("session"); err == nil && session.Value == "valid" {
			return relayer.Actor{ID: "alice"}, nil
		}
		return relayer.Actor{}, httpapi.ErrUnauthorized
	}
	s := serveAs(t, bySession, nil, httpapi.WithGuessLimit(0.01, 2))
	send := func(cookies ...string) int {
		return s.do("GET", collection, "", with("Authorization"), with("Cookie", cookies...)).status
	}
	for i, c := range []struct {
		cookies []string
		want    int
	}{
		{[]string{"session=valid"}, 200}, {nil, 401}, {nil, 401}, {nil, 401},
		{[]string{"session=1"}, 401}, {[]string{"session=2"}, 401}, {[]string{"session=3"}, 429}, {[]string{"session=valid"}, 200}, {nil, 401},
	} {
		if got := send(c.cookies...); got != c.want {
			t.Errorf("request %d with %q returned %d, want %d", i, c.cookies, got, c.want)
		}
	}
}

// TestGuessLimit_TrustHost: tokens do not count if they are not checked.
func TestGuessLimit_TrustHost(t *testing.T) {
	handler := handlerOn(t, memory.New(), httpapi.TrustHost(), httpapi.WithGuessLimit(0.01, 1))
	for i := range 10 {
		request := listRequest(fmt.Sprintf("token-%d", i))
		request = request.WithContext(relayer.WithActor(t.Context(), relayer.Actor{ID: "alice"}))
		if status := statusOf(handler, request); status != http.StatusOK {
			t.Errorf("request %d returned %d", i, status)
		}
	}
}

func TestMaxInFlight_Exceeded(t *testing.T) {
	entered, finish := make(chan struct{}), make(chan struct{})
	resolve := func(context.Context, relayer.CreateRequest) (string, error) {
		entered <- struct{}{}
		<-finish
		return "0x0", nil
	}
	s := serveAs(t, tokens(validToken, "other"), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(2))
	var waiting sync.WaitGroup
	for _, token := range []string{validToken, "other"} {
		waiting.Go(func() {
			if got := s.do("POST", collection, minimal(""), as(token)); got.status != http.StatusCreated {
				t.Errorf("an admitted request returned %d", got.status)
			}
		})
		<-entered
	}
	for _, got := range []reply{
		s.do("GET", collection, ""),
		s.do("GET", collection, "", with("Authorization")),
		s.do("POST", collection, minimal("")),
	} {
		wantFailure(t, got, http.StatusServiceUnavailable, "Service Unavailable")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	close(finish)
	waiting.Wait()
	for range 10 { // failed requests must be released too
		s.do("GET", collection+"/nobody", "")
		s.do("GET", collection, "", with("Authorization"))
	}
	if got := s.do("GET", collection, ""); got.status != http.StatusOK {
		t.Errorf("a request afterwards returned %d", got.status)
	}
}

func TestMaxInFlight_Default(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		handler := handlerOn(t, memory.New(), func(r *http.Request) (relayer.Actor, error) {
			<-release
			return relayer.Actor{ID: fromHeader(r)}, nil
		}, httpapi.WithRateLimit(0, 0), httpapi.WithGuessLimit(1, 2000), httpapi.WithClientAddress(fromHeader))
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
		if status := statusOf(handler, listRequest(validToken)); status != http.StatusServiceUnavailable {
			t.Errorf("request 1025 returned %d, want 503", status)
		}
		close(release)
		waiting.Wait()
		if served.Load() != 1024 {
			t.Errorf("%d requests were admitted, want 1024", served.Load())
		}
	})
}

func TestMaxInFlight_Panic(t *testing.T) {
	resolve := func(context.Context, relayer.CreateRequest) (string, error) { panic("broke") }
	s := serveAs(t, validTokens, []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(1))
	for range 5 {
		if got := s.do("POST", collection, minimal("")); got.status != http.StatusInternalServerError {
			t.Errorf("returned %d", got.status)
		}
	}
	if strings.Count(s.log.String(), "broke") == 0 {
		t.Error("nothing was logged")
	}
}
