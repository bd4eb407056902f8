package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

func TestRateRecovers(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(50, 1))
	s.do("GET", collection, "")
	if got := s.do("GET", collection, ""); got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Skip("this machine is too slow to send two requests within 20 ms")
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if s.do("GET", collection, "").status == http.StatusOK {
			return
		}
	}
	t.Error("the rate never recovered")
}

func TestRateOfAlmostNothing(t *testing.T) {
	s := serve(t, httpapi.WithRateLimit(1e-12, 1))
	s.do("GET", collection, "")
	if after := s.do("GET", collection, "").header.Get("Retry-After"); len(after) < 9 || after[0] == '-' {
		t.Errorf("Retry-After is %q", after)
	}
}

func TestDefaultRateAllowsABurstOf300(t *testing.T) {
	s := serve(t)
	for i := range httpapi.DefaultBurst {
		if got := s.do("GET", collection+"/nobody", ""); got.status != http.StatusNotFound {
			t.Fatalf("request %d answered %d", i+1, got.status)
		}
	}
	unlimited := serve(t, httpapi.WithoutRateLimit())
	for i := range 3 * httpapi.DefaultBurst {
		if got := unlimited.do("GET", collection+"/nobody", ""); got.status != http.StatusNotFound {
			t.Fatalf("without a limit, request %d answered %d", i+1, got.status)
		}
	}
}

// TestRateLimit_Contention: however many goroutines compete for a limit, its
// burst and all of its refills get through.
func TestRateLimit_Contention(t *testing.T) {
	const (
		burst     = 20
		perSecond = 20.0
		tries     = 500 * time.Millisecond
	)
	for name, c := range map[string]struct {
		limit   httpapi.Option
		token   string
		granted int
	}{
		"rate limit":  {httpapi.WithRateLimit(perSecond, burst), validToken, http.StatusOK},
		"guess limit": {httpapi.WithGuessLimit(perSecond, burst), "wrong", http.StatusUnauthorized},
	} {
		for _, goroutines := range []int{2, 8, 64} {
			t.Run(fmt.Sprintf("%s, %d goroutines", name, goroutines), func(t *testing.T) {
				handler := newHandler(t, c.limit)
				begin := time.Now()
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
				var clients sync.WaitGroup
				for range goroutines {
					clients.Go(func() {
						request := listRequest(c.token)
						for time.Since(begin) < tries {
							isGranted(request)
						}
					})
				}
				clients.Wait()
				// A bucket that is found empty has given out all that it got until then, so
				// that the result does not depend on the speed of the machine.
				elapsed := time.Since(begin)
				for isGranted(listRequest(c.token)) {
					elapsed = time.Since(begin)
				}
				want := burst + perSecond*elapsed.Seconds()
				if got := float64(granted.Load()); math.Abs(got-want) > 0.05*want+1 {
					t.Errorf("%.0f requests were granted, want %.0f", got, want)
				}
			})
		}
	}
}

// newHandler returns the handler of an empty registry that accepts validToken.
func newHandler(t *testing.T, options ...httpapi.Option) http.Handler {
	t.Helper()
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpapi.New(manager, httpapi.Tokens(validToken), options...)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func listRequest(token string) *http.Request {
	request := httptest.NewRequest("GET", collection, nil)
	request.Header.Set("Authorization", "Bearer "+token)
	return request
}

// statusOf lists the relayers without a network in between.
func statusOf(handler http.Handler, request *http.Request) int {
	w := statusWriter{header: make(http.Header)}
	handler.ServeHTTP(&w, request)
	return w.status
}

// statusWriter keeps the status of a response. It is cheaper than a
// httptest.ResponseRecorder, so that goroutines compete more for the limit.
type statusWriter struct {
	header http.Header
	status int
}

func (w *statusWriter) Header() http.Header { return w.header }

func (w *statusWriter) Write(p []byte) (int, error) { return len(p), nil }

func (w *statusWriter) WriteHeader(status int) { w.status = status }

// fromHeader lets a test be many clients.
func fromHeader(r *http.Request) string { return r.Header.Get("X-Client") }

func TestGuessesAreSlowedDown(t *testing.T) {
	var asked atomic.Int64
	auth := httpapi.AuthFunc(func(_ context.Context, token string) (string, error) {
		asked.Add(1)
		if token == "right" || token == "other-right" {
			return token, nil
		}
		return "", errors.New("wrong")
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 4), httpapi.WithClientAddress(fromHeader))
	send := func(client, token string) reply {
		t.Helper()
		return s.do("POST", collection, "{", with("X-Client", client), with("Authorization", "Bearer "+token))
	}
	expect := func(client, token string, want int) {
		t.Helper()
		if got := send(client, token); got.status != want {
			t.Errorf("%s with %s answered %d, want %d", client, token, got.status, want)
		}
	}
	expect("office", "right", http.StatusBadRequest)
	expect("office", "wrong", http.StatusUnauthorized)
	expect("office", "wrong", http.StatusUnauthorized)
	expect("office", "wrong", http.StatusUnauthorized)

	before := asked.Load()
	for range 20 {
		got := send("office", "wrong")
		expectFailure(t, got, http.StatusTooManyRequests, "Too Many Requests")
		if got.header.Get("Retry-After") != "100" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	expect("office", "other-right", http.StatusTooManyRequests) // never seen before: it may be a guess
	if asked.Load() != before {
		t.Error("the host was asked about a token that was not to be looked at")
	}
	expect("office", "right", http.StatusBadRequest) // known to be right
	expect("elsewhere", "wrong", http.StatusUnauthorized)
	expect("elsewhere", "other-right", http.StatusBadRequest)
	if got := s.do("GET", collection, "", with("X-Client", "office"), with("Authorization")); got.status != http.StatusUnauthorized {
		t.Errorf("no token at all answered %d", got.status)
	}
}

// Guesses that are under way at the same time count as well.
func TestGuessesAtTheSameTime(t *testing.T) {
	var asked atomic.Int64
	auth := httpapi.AuthFunc(func(context.Context, string) (string, error) {
		asked.Add(1)
		time.Sleep(50 * time.Millisecond)
		return "", errors.New("wrong")
	})
	s := serveAs(t, auth, nil, httpapi.WithGuessLimit(0.01, 3))
	var guessers sync.WaitGroup
	for range 50 {
		guessers.Go(func() { s.do("GET", collection, "", with("Authorization", "Bearer wrong")) })
	}
	guessers.Wait()
	if asked.Load() != 3 {
		t.Errorf("the host was asked about %d tokens, want 3", asked.Load())
	}
}

func TestGuessesOfOneConnectionAddress(t *testing.T) {
	limited := serve(t, httpapi.WithGuessLimit(0.01, 2))
	unlimited := serve(t, httpapi.WithoutGuessLimit())
	for i := range 10 {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if got := limited.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != want {
			t.Errorf("guess %d answered %d, want %d", i, got.status, want)
		}
	}
	for i := range 2 * httpapi.DefaultGuessBurst {
		if got := unlimited.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != http.StatusUnauthorized {
			t.Fatalf("without a limit, guess %d answered %d", i, got.status)
		}
	}
}

// TestGuessLimit_KnownToken: a configured token is accepted at once by a server
// that has just started, although its address has used up its guesses.
func TestGuessLimit_KnownToken(t *testing.T) {
	s := serve(t, httpapi.WithGuessLimit(0.01, 2))
	for i := range 10 {
		want := http.StatusUnauthorized
		if i >= 2 {
			want = http.StatusTooManyRequests
		}
		if got := s.do("GET", collection, "", with("Authorization", "Bearer wrong")); got.status != want {
			t.Errorf("guess %d returned %d, want %d", i, got.status, want)
		}
	}
	for range 10 {
		if got := s.do("GET", collection, ""); got.status != http.StatusOK {
			t.Errorf("the configured token returned %d", got.status)
		}
	}
}

// TestGuessLimit_TrustHost: tokens that nobody checks are no guesses.
func TestGuessLimit_TrustHost(t *testing.T) {
	s := serveAs(t, httpapi.TrustHost(), nil, httpapi.WithGuessLimit(0.01, 1))
	for i := range 10 {
		token := fmt.Sprintf("Bearer token-%d", i)
		if got := s.do("GET", collection, "", with("Authorization", token)); got.status != http.StatusOK {
			t.Errorf("request %d returned %d", i, got.status)
		}
	}
}

func TestMoreInFlightThanAllowed(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) {
		entered <- struct{}{}
		<-leave
		return "0x0", nil
	}
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(2))
	var waiting sync.WaitGroup
	for range 2 {
		waiting.Go(func() {
			if got := s.do("POST", collection, minimal("")); got.status != http.StatusCreated {
				t.Errorf("a request that was let in answered %d", got.status)
			}
		})
		<-entered
	}
	for _, got := range []reply{
		s.do("GET", collection, ""),
		s.do("GET", collection, "", with("Authorization")),
		s.do("POST", collection, minimal("")),
	} {
		expectFailure(t, got, http.StatusServiceUnavailable, "Service Unavailable")
		if got.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
		}
	}
	close(leave)
	waiting.Wait()
	for range 10 { // room is given back, by requests that fail too
		s.do("GET", collection+"/nobody", "")
		s.do("GET", collection, "", with("Authorization"))
	}
	if got := s.do("GET", collection, ""); got.status != http.StatusOK {
		t.Errorf("afterwards answered %d", got.status)
	}
}

func TestPanicsGiveTheirRoomBack(t *testing.T) {
	resolve := func(context.Context, string, relayer.NetworkType, string) (string, error) { panic("broke") }
	s := serveAs(t, httpapi.Tokens(validToken), []relayer.Option{relayer.WithAddressResolver(resolve)}, httpapi.WithMaxInFlight(1))
	for range 5 {
		if got := s.do("POST", collection, minimal("")); got.status != http.StatusInternalServerError {
			t.Errorf("answered %d", got.status)
		}
	}
	if strings.Count(s.log.String(), "broke") == 0 {
		t.Error("nothing was logged")
	}
}
