//go:build unix

package postgres_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// fault is what a proxy does to a statement.
type fault int

const (
	none       fault = iota
	cut              // the connection ends before the statement arrives
	dropAnswer       // the server carries the statement out, and the connection ends before its answer
)

// proxy is between a Store and the server. It decodes their messages, so that it can
// fail at a given statement.
type proxy struct {
	listener net.Listener
	server   atomic.Pointer[string]

	// judge returns the fault of a statement before it is executed.
	judge atomic.Pointer[func(sql string) fault]

	// refusal is the code with which the proxy refuses connections, "EOF" if it only closes
	// them, or nil.
	refusal atomic.Pointer[string]
	refused atomic.Int64

	// dropsNotifications makes the proxy drop notifications.
	dropsNotifications atomic.Bool

	mu      sync.Mutex
	open    map[*passage]struct{}
	running sync.WaitGroup
}

func newProxy(t testing.TB, socket string) *proxy {
	t.Helper()
	// t.TempDir may be too long for the path of a unix socket.
	directory := mustGet(os.MkdirTemp("/tmp", "pgproxy"))(t)
	t.Cleanup(func() { os.RemoveAll(directory) })
	listener := mustGet(net.Listen("unix", filepath.Join(directory, ".s.PGSQL.5432")))(t)
	p := &proxy{listener: listener, open: make(map[*passage]struct{})}
	p.leadTo(socket)
	p.obey(func(string) fault { return none })
	p.running.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.cutAll()
		p.running.Wait()
	})
	return p
}

func (p *proxy) connString() string {
	query := url.Values{"host": {filepath.Dir(p.listener.Addr().String())}, "port": {"5432"}, "sslmode": {"disable"}}
	return "postgres://postgres@/postgres?" + query.Encode()
}

func (p *proxy) obey(judge func(sql string) fault) { p.judge.Store(&judge) }

// failFirst applies a fault to the first statements that begin with a word, and counts
// all of them.
func (p *proxy) failFirst(f fault, word string, times int64) *atomic.Int64 {
	var met atomic.Int64
	p.obey(func(sql string) fault {
		if strings.HasPrefix(strings.TrimSpace(sql), word) && met.Add(1) <= times {
			return f
		}
		return none
	})
	return &met
}

// leadTo makes new connections lead to the server of a socket.
func (p *proxy) leadTo(socket string) { p.server.Store(&socket) }

// cutAll closes all connections.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for passage := range p.open {
		passage.end()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if code := p.refusal.Load(); code != nil {
			p.refused.Add(1)
			refuse(client, *code)
			continue
		}
		server, err := net.Dial("unix", *p.server.Load())
		if err != nil {
			client.Close()
			continue
		}
		passage := &passage{proxy: p, client: client, server: server, statements: make(map[string]string)}
		p.mu.Lock()
		p.open[passage] = struct{}{}
		p.mu.Unlock()
		p.running.Go(passage.up)
		p.running.Go(passage.down)
	}
}

func refuse(client net.Conn, code string) {
	defer client.Close()
	backend := pgproto3.NewBackend(client, client)
	if _, err := backend.ReceiveStartupMessage(); err == nil && code != "EOF" {
		backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "refused"})
		_ = backend.Flush()
	}
}

// passage is one connection through a proxy.
type passage struct {
	proxy          *proxy
	client, server net.Conn
	statements     map[string]string // prepared statements by name
	isSwallowing   atomic.Bool
}

func (p *passage) end() {
	p.client.Close()
	p.server.Close()
}

func (p *passage) leave() {
	p.end()
	p.proxy.mu.Lock()
	defer p.proxy.mu.Unlock()
	delete(p.proxy.open, p)
}

// up forwards the messages of the client. If the server has ended the session, down
// forwards the reason and ends the passage.
func (p *passage) up() {
	from, to := pgproto3.NewBackend(p.client, p.client), pgproto3.NewFrontend(p.server, p.server)
	startup, err := from.ReceiveStartupMessage()
	if err != nil {
		p.leave()
		return
	}
	to.Send(startup)
	for to.Flush() == nil {
		message, err := from.Receive()
		if err != nil {
			p.leave()
			return
		}
		switch p.judge(message) {
		case cut:
			p.leave()
			return
		case dropAnswer:
			p.isSwallowing.Store(true)
		}
		to.Send(message)
	}
}

func (p *passage) judge(message pgproto3.FrontendMessage) fault {
	judge := *p.proxy.judge.Load()
	switch message := message.(type) {
	case *pgproto3.Parse:
		p.statements[message.Name] = message.Query
	case *pgproto3.Bind:
		return judge(p.statements[message.PreparedStatement])
	case *pgproto3.Query:
		return judge(message.String)
	}
	return none
}

// down forwards the messages of the server.
func (p *passage) down() {
	defer p.leave()
	from, to := pgproto3.NewFrontend(p.server, p.server), pgproto3.NewBackend(p.client, p.client)
	for {
		message, err := from.Receive()
		if err != nil {
			return
		}
		if _, ok := message.(*pgproto3.NotificationResponse); ok && p.proxy.dropsNotifications.Load() {
			continue
		}
		_, isReady := message.(*pgproto3.ReadyForQuery)
		switch {
		case p.isSwallowing.Load() && isReady:
			return
		case p.isSwallowing.Load():
			continue
		}
		to.Send(message)
		if err := to.Flush(); err != nil {
			return
		}
	}
}
