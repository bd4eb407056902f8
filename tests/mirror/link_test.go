//go:build unix

package mirror

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer/client"
)

// fault is what a network does to the connections of a client.
type fault int

const (
	delays    fault = iota // each part arrives late
	throttles              // 5 KB/s
	stalls                 // for seconds, and then delivers what has arrived
	cuts                   // each connection after a number of bytes
	reorders               // a later connection overtakes an earlier one
	countOfFaults
)

// The levels of faults. Light ones are those with which a view can be read in seconds.
const (
	noFaults int32 = iota
	lightFaults
	allFaults
)

// link is the network between a client and a server. While it is faulty, its connections
// suffer from the fault.
type link struct {
	fault  fault
	level  *atomic.Int32
	server *childServer
}

func (l *link) isFaulty() bool {
	level := l.level.Load()
	return level == allFaults || level == lightFaults && l.fault != throttles && l.fault != stalls
}

func (l *link) client(t testing.TB, options ...client.Option) *client.Client {
	return newClient(t, "http://127.0.0.1", &http.Transport{DialContext: l.dial}, options...)
}

func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, l.server.address.Load().(string))
	if err != nil {
		return nil, err
	}
	return &linkConn{Conn: conn, link: l, left: 20_000 + rand.IntN(40_000), late: rand.N(3 * time.Second)}, nil
}

type linkConn struct {
	net.Conn
	link *link
	left int           // bytes until the connection is cut
	late time.Duration // of this connection
}

func (c *linkConn) Read(p []byte) (int, error) {
	if c.link.fault == throttles && c.link.isFaulty() {
		p = p[:min(len(p), 512)]
	}
	n, err := c.Conn.Read(p)
	if !c.link.isFaulty() {
		return n, err
	}
	switch c.link.fault {
	case delays:
		c.wait(rand.N(200 * time.Millisecond))
	case throttles:
		c.wait(time.Duration(n) * time.Second / 5000)
	case stalls:
		if rand.IntN(40) == 0 {
			c.wait(rand.N(6 * time.Second))
		}
	case cuts:
		if c.left -= n; c.left < 0 {
			_ = c.Close()
		}
	case reorders:
		c.wait(c.late)
	}
	return n, err
}

// wait ends early if the link is no longer faulty.
func (c *linkConn) wait(duration time.Duration) {
	for end := time.Now().Add(duration); time.Now().Before(end) && c.link.isFaulty(); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
	}
}
