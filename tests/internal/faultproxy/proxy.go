// Package faultproxy has a proxy that fails in front of a server.
package faultproxy

import (
	"bytes"
	"context"
	"errors"
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
	pageInstead         // a page with status 502 arrives, and the server gets nothing
	pageAfter           // the server responds, and a page of a login or of a busy proxy arrives
	unavailable         // 503 of package httpapi
	tooMany             // 429 of package httpapi
	countOfFaults       // the number of faults
)

// Proxy is a proxy in front of a server, in one process: it passes requests to the handler
// of the server, or fails.
type Proxy struct {
	// Rate is the number of faults per 1,000 requests.
	Rate atomic.Int64

	// EventRate is the number of events of change streams, per 1,000, that arrive late.
	EventRate atomic.Int64

	server   *httptest.Server
	next     atomic.Pointer[http.Handler] // nil while the server is down
	forwards sync.WaitGroup               // of late requests

	mu     sync.Mutex
	random *rand.Rand
	burst  int // further requests of the same fault
	last   fault
	counts [countOfFaults]int
}

// Start starts a proxy that fails at no request, until the test ends.
func Start(t testing.TB, next http.Handler) *Proxy {
	p := &Proxy{random: rand.New(rand.NewPCG(1, 2))}
	p.Serve(next)
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.Close()
		p.AwaitLate()
	})
	return p
}

// URL returns the URL of the proxy.
func (p *Proxy) URL() string { return p.server.URL }

// Serve replaces the server.
func (p *Proxy) Serve(next http.Handler) { p.next.Store(&next) }

// Stop ends the server with all its connections. Until the next call of Serve the proxy
// sends pages.
func (p *Proxy) Stop() {
	p.next.Store(nil)
	p.server.CloseClientConnections()
}

// AwaitLate waits for the requests that arrive late.
func (p *Proxy) AwaitLate() { p.forwards.Wait() }

// draw draws the fault of a request. A rejection comes in bursts.
func (p *Proxy) draw() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.burst > 0 {
		p.burst--
	} else {
		p.last = noFault
		if p.random.Int64N(1000) < p.Rate.Load() {
			p.last = 1 + fault(p.random.IntN(int(countOfFaults)-1))
		}
		if p.last == unavailable || p.last == tooMany {
			p.burst = p.random.IntN(3)
		}
	}
	p.counts[p.last]++
	return p.last
}

// below returns a random number below the limit.
func (p *Proxy) below(limit int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(limit)
}

// WantEveryFault fails the test if a fault has not occurred: the run has not tested it.
func (p *Proxy) WantEveryFault(t testing.TB) {
	t.Helper()
	if testing.Short() {
		return // a few faults are too few for all kinds
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for kind, count := range p.counts {
		if count == 0 {
			t.Errorf("fault %d has not occurred", kind)
		}
	}
}

// pages are the statuses of a load balancer while the server is down.
var pages = []int{200, 302, 403, 404, 421, 425, 500, 502, 503, 504}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	next := p.next.Load()
	switch {
	case next == nil:
		page(w, pages[p.below(len(pages))])
	case strings.HasSuffix(r.URL.Path, ":watch"):
		s := &stream{ResponseWriter: w, proxy: p, left: p.streamLength()}
		(*next).ServeHTTP(s, r)
		if len(s.event) > 0 { // a response that is no stream
			_ = s.FlushError()
		}
	default:
		p.serve(w, r, *next, body)
	}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, next http.Handler, body []byte) {
	switch kind := p.draw(); kind {
	case resetBefore:
		hangUp(w, nil)
	case late:
		p.forwards.Go(func() {
			time.Sleep(time.Duration(p.below(300)) * time.Millisecond)
			forward(r, next, body)
		})
		hangUp(w, nil)
	case pageInstead:
		page(w, http.StatusBadGateway)
	case pageAfter:
		forward(r, next, body)
		page(w, []int{http.StatusOK, http.StatusBadGateway, http.StatusServiceUnavailable}[p.below(3)])
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
	proxy *Proxy
	left  int
	event []byte // until it is flushed
}

func (s *stream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *stream) Write(data []byte) (int, error) {
	s.event = append(s.event, data...)
	return len(data), nil
}

func (s *stream) FlushError() error {
	event := s.event
	s.event = nil
	if int64(s.proxy.below(1000)) < s.proxy.EventRate.Load() {
		time.Sleep(time.Duration(s.proxy.below(10)) * time.Millisecond)
	}
	if len(event) >= s.left {
		_, _ = s.ResponseWriter.Write(event[:s.left])
		hangUp(s.ResponseWriter, nil)
		return http.ErrHijacked
	}
	s.left -= len(event)
	_, err := s.ResponseWriter.Write(event)
	return errors.Join(err, http.NewResponseController(s.ResponseWriter).Flush())
}

func (p *Proxy) streamLength() int {
	if p.Rate.Load() == 0 {
		return math.MaxInt
	}
	return p.below(8 << 10)
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
