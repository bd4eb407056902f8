//go:build unix

package client

import (
	"bytes"
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

// proxy forwards requests to a server, or fails.
type proxy struct {
	t      *testing.T
	url    string
	target atomic.Value // string; the URL of the server
	client *http.Client
	rate   atomic.Int64 // faults per 1,000 requests

	forwards sync.WaitGroup // of late requests

	mu     sync.Mutex
	random *rand.Rand
	burst  int // further requests of the same fault
	last   fault
	counts [countOfFaults]int
}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 50}
	p := &proxy{t: t, client: &http.Client{Transport: transport}, random: rand.New(rand.NewPCG(1, 2))}
	server := httptest.NewServer(p)
	p.url = server.URL
	t.Cleanup(func() {
		server.Close()
		p.forwards.Wait()
		transport.CloseIdleConnections()
	})
	return p
}

// next draws the fault of a request. A rejection comes in bursts.
func (p *proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.burst > 0 {
		p.burst--
	} else {
		p.last = noFault
		if p.random.Int64N(1000) < p.rate.Load() {
			p.last = 1 + fault(p.random.IntN(int(countOfFaults)-1))
		}
		if p.last == unavailable || p.last == tooMany {
			p.burst = p.random.IntN(3)
		}
	}
	p.counts[p.last]++
	return p.last
}

// wantEveryFault fails the test if a fault has not occurred: the run has not tested it.
func (p *proxy) wantEveryFault() {
	p.t.Helper()
	if testing.Short() {
		return // a few faults are too few for all kinds
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for f, count := range p.counts {
		if count == 0 {
			p.t.Errorf("fault %d has not occurred", f)
		}
	}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, ":watch") {
		p.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch f := p.next(); f {
	case resetBefore:
		hangUp(w, nil)
	case late:
		p.forwards.Go(func() {
			time.Sleep(p.delay())
			_, _, _ = p.forward(r, body)
		})
		hangUp(w, nil)
	case htmlInstead:
		page(w, http.StatusBadGateway)
	case unavailable:
		reject(w, http.StatusServiceUnavailable)
	case tooMany:
		reject(w, http.StatusTooManyRequests)
	default:
		p.afterResponse(w, r, body, f)
	}
}

func (p *proxy) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.random.IntN(300)) * time.Millisecond
}

// afterResponse forwards the request. The fault happens to the response.
func (p *proxy) afterResponse(w http.ResponseWriter, r *http.Request, body []byte, f fault) {
	resp, data, err := p.forward(r, body)
	if err != nil {
		page(w, http.StatusBadGateway)
		return
	}
	switch f {
	case resetAfter:
		hangUp(w, nil)
	case truncate:
		var head bytes.Buffer
		head.WriteString("HTTP/1.1 " + resp.Status + "\r\nContent-Length: " + strconv.Itoa(len(data)) + "\r\n")
		_ = resp.Header.WriteSubset(&head, map[string]bool{"Content-Length": true})
		hangUp(w, append(append(head.Bytes(), "\r\n"...), data[:len(data)/2]...))
	case htmlAfter:
		page(w, http.StatusBadGateway)
	case proxyBusy:
		page(w, http.StatusServiceUnavailable)
	case loginPage:
		page(w, http.StatusOK)
	default:
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(data)
	}
}

// forward does not end if the client is gone: a proxy may have sent the request.
func (p *proxy) forward(r *http.Request, body []byte) (*http.Response, []byte, error) {
	forwarded, err := http.NewRequest(r.Method, p.target.Load().(string)+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	forwarded.Header = r.Header.Clone()
	resp, err := p.client.Do(forwarded)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

// stream forwards a change feed, and resets its connection at a random byte.
func (p *proxy) stream(w http.ResponseWriter, r *http.Request) {
	forwarded, err := http.NewRequestWithContext(r.Context(), r.Method, p.target.Load().(string)+r.URL.RequestURI(), nil)
	if err != nil {
		return
	}
	forwarded.Header = r.Header.Clone()
	resp, err := p.client.Do(forwarded)
	if err != nil {
		page(w, http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.WriteHeader(resp.StatusCode)
	control := http.NewResponseController(w)
	left := p.streamLength()
	buffer := make([]byte, 1024)
	for left > 0 {
		n, err := resp.Body.Read(buffer[:min(left, len(buffer))])
		if err != nil {
			return
		}
		left -= n
		if _, err := w.Write(buffer[:n]); err != nil || control.Flush() != nil {
			return
		}
	}
	hangUp(w, nil)
}

func (p *proxy) streamLength() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate.Load() == 0 {
		return math.MaxInt
	}
	return p.random.IntN(8 << 10)
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
