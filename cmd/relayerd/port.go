package main

import (
	"net"
	"sync"
	"sync/atomic"
)

// port is a listener whose Close loses no connection. The system resets those that were not
// accepted when a listener is closed, and a proxy that has sent a write on one reports it as
// failed.
type port struct {
	*net.TCPListener

	isClosing atomic.Bool
	mu        sync.Mutex
	last      []net.Conn // accepted by Close
}

func (p *port) Accept() (net.Conn, error) {
	connection, err := p.TCPListener.Accept()
	if err == nil || !p.isClosing.Load() {
		return connection, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 {
		return nil, err
	}
	connection, p.last = p.last[0], p.last[1:]
	return connection, nil
}

func (p *port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isClosing.Swap(true) {
		p.last = acceptLast(p.TCPListener)
	}
	return p.TCPListener.Close()
}
