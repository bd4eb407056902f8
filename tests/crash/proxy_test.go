//go:build unix

package crash

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// moment is when the proxy cuts a connection. The request is the one
// that ends a transaction.
type moment int

const (
	never          moment = iota
	beforeRequest         // the server receives nothing of the request
	withinRequest         // the server receives half of the request
	afterRequest          // the server receives the request and cannot respond
	beforeResponse        // the server has committed and responded
	anyMoment             // all connections, at any time
)

// proxy forwards the connections of stores to a server, and cuts them.
type proxy struct {
	t         *testing.T
	directory string
	server    string
	listener  net.Listener
	pumps     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	armed  moment
	struck chan struct{} // closed when the armed cut has occurred
}

// startProxy listens on a new socket until the test ends.
func startProxy(t *testing.T, server *pgserver.Server) *proxy {
	t.Helper()
	// The path of a socket must be short. That of t.TempDir may be too long.
	directory, err := os.MkdirTemp("", "proxy")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	listener, err := net.Listen("unix", filepath.Join(directory, filepath.Base(server.Socket())))
	must(t, err)
	p := &proxy{t: t, directory: directory, server: server.Socket(), listener: listener, links: make(map[*link]bool)}
	p.pumps.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// connString connects to the server through the proxy.
func (p *proxy) connString(server *pgserver.Server) string {
	direct, err := url.Parse(server.ConnString())
	must(p.t, err)
	query := direct.Query()
	query.Set("host", p.directory)
	direct.RawQuery = query.Encode()
	return direct.String()
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cutAll()
	p.pumps.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{proxy: p, client: client, server: server}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.pumps.Go(l.pumpRequests)
		p.pumps.Go(l.pumpResponses)
	}
}

// inject arms a cut and waits until it has occurred.
func (p *proxy) inject(m moment) {
	p.t.Helper()
	if m == anyMoment {
		p.cutAll()
		return
	}
	struck := make(chan struct{})
	p.mu.Lock()
	p.armed, p.struck = m, struck
	p.mu.Unlock()
	select {
	case <-struck:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("cut %d does not occur", m)
	}
}

// occurring returns the armed moment if it is one of these, and disarms it.
func (p *proxy) occurring(moments ...moment) moment {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(moments, p.armed) {
		return never
	}
	occurred := p.armed
	p.armed = never
	close(p.struck)
	return occurred
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// link is one connection through the proxy.
type link struct {
	proxy          *proxy
	client, server net.Conn

	// inTransaction is the state in the server's last response. The next request
	// ends the transaction: a store sends at most two messages in one.
	inTransaction atomic.Bool
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// remove closes the link. Both pumps call it.
func (l *link) remove() {
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

func (l *link) pumpRequests() {
	defer l.remove()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		request, occurring := buffer[:n], never
		if l.inTransaction.Load() {
			occurring = l.proxy.occurring(beforeRequest, withinRequest, afterRequest)
		}
		switch occurring {
		case beforeRequest:
			return
		case withinRequest:
			request = request[:n/2]
		}
		if _, err := l.server.Write(request); err != nil || occurring != never {
			return
		}
	}
}

// The first bytes of the server's messages that end a commit and a response.
const (
	commandComplete = 'C'
	readyForQuery   = 'Z'
)

func (l *link) pumpResponses() {
	defer l.remove()
	responses := bufio.NewReader(l.server)
	for {
		message, err := nextMessage(responses)
		if err != nil {
			return
		}
		if message[0] == commandComplete && bytes.HasPrefix(message[5:], []byte("COMMIT")) &&
			l.proxy.occurring(beforeResponse) == beforeResponse {
			return
		}
		if message[0] == readyForQuery {
			l.inTransaction.Store(message[5] == 'T')
		}
		if _, err := l.client.Write(message); err != nil {
			return
		}
	}
}

// nextMessage reads one message: a type of one byte, the length of the rest
// (including the length itself), and the rest.
func nextMessage(from *bufio.Reader) ([]byte, error) {
	header, err := from.Peek(5)
	if err != nil {
		return nil, err
	}
	message := make([]byte, 1+binary.BigEndian.Uint32(header[1:]))
	_, err = io.ReadFull(from, message)
	return message, err
}
