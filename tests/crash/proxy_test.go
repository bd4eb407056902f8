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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer/internal/pgserver"
)

// fault is a moment at which the proxy cuts connections.
type fault int

const (
	noFault        fault = iota
	requestLost          // what ends a transaction does not reach the server
	requestHalved        // half of it does
	requestUnheard       // all of it does, and nobody waits for the answer
	answerLost           // the server has committed, and says so to nobody
	anyMoment            // all connections, whatever they are at
)

// proxy stands between stores and a server.
type proxy struct {
	t         *testing.T
	directory string
	server    string
	listener  net.Listener
	pumps     sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	armed  fault
	struck chan struct{} // closed once the armed fault has come about
}

// startProxy listens on a socket of its own until the test ends.
func startProxy(t *testing.T, server *pgserver.Server) *proxy {
	t.Helper()
	// The path of a socket must be short: the test's own directory may be deep.
	directory, err := os.MkdirTemp("", "proxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	listener, err := net.Listen("unix", filepath.Join(directory, filepath.Base(server.Socket())))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, directory: directory, server: server.Socket(), listener: listener, links: make(map[*link]bool)}
	p.pumps.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// connString leads to the server by way of the proxy.
func (p *proxy) connString(server *pgserver.Server) string {
	direct, err := url.Parse(server.ConnString())
	if err != nil {
		p.t.Fatal(err)
	}
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
		p.pumps.Go(l.pumpAnswers)
	}
}

// strike arms a fault and returns when it has come about.
func (p *proxy) strike(f fault) {
	p.t.Helper()
	if f == anyMoment {
		p.cutAll()
		return
	}
	struck := make(chan struct{})
	p.mu.Lock()
	p.armed, p.struck = f, struck
	p.mu.Unlock()
	select {
	case <-struck:
	case <-time.After(30 * time.Second):
		p.t.Fatalf("nothing is written that fault %d could strike", f)
	}
}

// take tells which of the faults strikes now, once for each strike.
func (p *proxy) take(faults ...fault) fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		if f == p.armed {
			p.armed = noFault
			close(p.struck)
			return f
		}
	}
	return noFault
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

	// inTransaction is what the server's last answer said. What the client sends
	// then ends the transaction: a store sends no more than two messages in one.
	inTransaction atomic.Bool
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// end forgets the link. Both pumps come to it.
func (l *link) end() {
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

func (l *link) pumpRequests() {
	defer l.end()
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		request, struck := buffer[:n], noFault
		if l.inTransaction.Load() {
			struck = l.proxy.take(requestLost, requestHalved, requestUnheard)
		}
		switch struck {
		case requestLost:
			return
		case requestHalved:
			request = request[:n/2]
		}
		if _, err := l.server.Write(request); err != nil || struck != noFault {
			return
		}
	}
}

// The messages of the server that matter here.
const (
	commandComplete = 'C'
	readyForQuery   = 'Z'
)

func (l *link) pumpAnswers() {
	defer l.end()
	answers := bufio.NewReader(l.server)
	for {
		message, err := nextMessage(answers)
		if err != nil {
			return
		}
		if message[0] == commandComplete && bytes.HasPrefix(message[5:], []byte("COMMIT")) &&
			l.proxy.take(answerLost) == answerLost {
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

// nextMessage reads a type of one byte, a length that counts itself, and the
// rest.
func nextMessage(from *bufio.Reader) ([]byte, error) {
	header, err := from.Peek(5)
	if err != nil {
		return nil, err
	}
	message := make([]byte, 1+binary.BigEndian.Uint32(header[1:]))
	_, err = io.ReadFull(from, message)
	return message, err
}
