//go:build unix

package client

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fault is what happens to a request on its way.
type fault int

const (
	noFault       fault = iota
	resetBefore         // the connection is reset, and the server gets nothing
	resetAfter          // the server responds, and the connection is reset
	late                // the connection is reset, and the server gets the request later
	truncate            // half of the response arrives
	htmlInstead         // a page with status 502 arrives, and the server gets nothing
	htmlAfter           // the server responds, and a page with status 502 arrives
	loginPage           // the server responds, and a page with status 200 arrives
	unavailable         // 503 of package httpapi
	tooMany             // 429 of package httpapi
	proxyBusy           // 503 with a page, after the server has responded
	countOfFaults       // the number of faults
)

// faults is a proxy in front of a server, in one process: it passes requests to the
// handler of the server, or fails.
type faults struct {
	t      *testing.T
	server *httptest.Server
	next   atomic.Pointer[http.Handler] // nil while the server is down
	rate   atomic.Int64                 // faults per 1,000 requests

	forwards sync.WaitGroup // of late requests

	mu     sync.Mutex
	random *rand.Rand
	burst  int // further requests of the same fault
	last   fault
	counts [countOfFaults]int
}

func startFaults(t *testing.T, next http.Handler) *faults {
	t.Helper()
	f := &faults{t: t, random: rand.New(rand.NewPCG(1, 2))}
	f.next.Store(&next)
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.server.Close()
		f.forwards.Wait()
	})
	return f
}

// draw draws the fault of a request. A rejection comes in bursts.
func (f *faults) draw() fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.burst > 0 {
		f.burst--
	} else {
		f.last = noFault
		if f.random.Int64N(1000) < f.rate.Load() {
			f.last = 1 + fault(f.random.IntN(int(countOfFaults)-1))
		}
		if f.last == unavailable || f.last == tooMany {
			f.burst = f.random.IntN(3)
		}
	}
	f.counts[f.last]++
	return f.last
}

// below returns a random number below the limit.
func (f *faults) below(limit int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(limit)
}

// wantEveryFault fails the test if a fault has not occurred: the run has not tested it.
func (f *faults) wantEveryFault() {
	f.t.Helper()
	if testing.Short() {
		return // a few faults are too few for all kinds
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for kind, count := range f.counts {
		if count == 0 {
			f.t.Errorf("fault %d has not occurred", kind)
		}
	}
}

// pages are the statuses of a load balancer while the server is down.
var pages = []int{200, 302, 403, 404, 421, 425, 500, 502, 503, 504}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	next := f.next.Load()
	switch {
	case next == nil:
		page(w, pages[f.below(len(pages))])
	case strings.HasSuffix(r.URL.Path, ":watch"):
		(*next).ServeHTTP(&stream{w, f.streamLength()}, r)
	default:
		f.serve(w, r, *next, body)
	}
}

func (f *faults) serve(w http.ResponseWriter, r *http.Request, next http.Handler, body []byte) {
	switch kind := f.draw(); kind {
	case resetBefore:
		hangUp(w, nil)
	case late:
		f.forwards.Go(func() {
			time.Sleep(time.Duration(f.below(300)) * time.Millisecond)
			forward(r, next, body)
		})
		hangUp(w, nil)
	case htmlInstead:
		page(w, http.StatusBadGateway)
	case unavailable:
		reject(w, http.StatusServiceUnavailable)
	case tooMany:
		reject(w, http.StatusTooManyRequests)
	default:
		respond(w, forward(r, next, body), kind)
	}
}

// forward passes the request to the server. It does not end if the client is gone: a proxy
// may have sent the request.
func forward(r *http.Request, next http.Handler, body []byte) *httptest.ResponseRecorder {
	forwarded := r.Clone(context.WithoutCancel(r.Context()))
	forwarded.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	next.ServeHTTP(recorder, forwarded)
	return recorder
}

// respond sends the response of the server. The fault happens to it.
func respond(w http.ResponseWriter, recorder *httptest.ResponseRecorder, kind fault) {
	data := recorder.Body.Bytes()
	switch kind {
	case resetAfter:
		hangUp(w, nil)
	case truncate:
		var head bytes.Buffer
		head.WriteString("HTTP/1.1 " + recorder.Result().Status + "\r\nContent-Length: " + strconv.Itoa(len(data)) + "\r\n")
		_ = recorder.Header().WriteSubset(&head, map[string]bool{"Content-Length": true})
		hangUp(w, append(append(head.Bytes(), "\r\n"...), data[:len(data)/2]...))
	case htmlAfter:
		page(w, http.StatusBadGateway)
	case proxyBusy:
		page(w, http.StatusServiceUnavailable)
	case loginPage:
		page(w, http.StatusOK)
	default:
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(data)
	}
}

// stream passes on a change feed, and resets its connection after a number of bytes.
type stream struct {
	http.ResponseWriter
	left int
}

func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stream) Write(data []byte) (int, error) {
	if len(data) < s.left {
		s.left -= len(data)
		return s.ResponseWriter.Write(data)
	}
	_, _ = s.ResponseWriter.Write(data[:s.left])
	hangUp(s.ResponseWriter, nil)
	return 0, http.ErrHijacked
}

func (f *faults) streamLength() int {
	if f.rate.Load() == 0 {
		return math.MaxInt
	}
	return f.below(8 << 10)
}

// hangUp sends a part of a response and resets the connection.
func hangUp(w http.ResponseWriter, part []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if len(part) > 0 {
		_, _ = conn.Write(part)
	} else {
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	_ = conn.Close()
}

func page(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<html><body>a page of the proxy</body></html>")
}

func reject(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"success":false,"data":null,"message":"try again"}`)
}
