package httpapi_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

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

func (w *statusWriter) Header() http.Header         { return w.header }
func (w *statusWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *statusWriter) WriteHeader(status int)      { w.status = status }
