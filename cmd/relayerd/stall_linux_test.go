package main

import (
	"context"
	"flag"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/mirror"
)

var stalls = flag.String("stalls", "2s", "durations of the stalls after which the age of a view recovers; 2s,12s,45s in a long run")

// stallable forwards connections to a server. A stall cuts them, and holds new ones until it ends.
type stallable struct {
	net.Listener
	server string

	stalled sync.RWMutex // held during a stall
	mu      sync.Mutex
	open    map[net.Conn]struct{}
}

func startStallable(t *testing.T, server string) *stallable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stallable{Listener: listener, server: strings.TrimPrefix(server, "http://"), open: make(map[net.Conn]struct{})}
	t.Cleanup(func() { _ = listener.Close(); s.cut() })
	go func() {
		for {
			accepted, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(accepted)
		}
	}()
	return s
}

func (s *stallable) forward(accepted net.Conn) {
	defer accepted.Close()
	s.stalled.RLock()
	server, err := net.Dial("tcp", s.server)
	if err == nil {
		s.mu.Lock()
		s.open[accepted], s.open[server] = struct{}{}, struct{}{}
		s.mu.Unlock()
	}
	s.stalled.RUnlock()
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, accepted); _ = server.Close() }()
	_, _ = io.Copy(accepted, server)
	_ = server.Close()
}

func (s *stallable) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for connection := range s.open {
		_ = connection.Close()
	}
	clear(s.open)
}

func (s *stallable) stall(duration time.Duration) {
	s.stalled.Lock()
	defer s.stalled.Unlock()
	s.cut()
	time.Sleep(duration)
}

// TestMirror_AgeAfterStall: within 15 seconds after a stall the age of a view is that of a view
// without a stall, directly and behind the Caddy of the example.
func TestMirror_AgeAfterStall(t *testing.T) {
	t.Parallel()
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		server := start(t, token, "--db", "memory")
		between := startStallable(t, server.url)
		testAgeAfterStall(t, server, between, "http://"+between.Addr().String(), http.DefaultTransport)
	})
	t.Run("caddy", func(t *testing.T) {
		t.Parallel()
		requireProgram(t, "caddy")
		server := start(t, token, "--db", "memory")
		between := startStallable(t, server.url)
		proxy := startReverseProxy(t, "caddy", []string{between.Addr().String()})
		testAgeAfterStall(t, server, between, "https://"+proxy.address, proxy.client("127.0.0.2").http.Transport)
	})
}

func testAgeAfterStall(t *testing.T, server *process, between *stallable, url string, transport http.RoundTripper) {
	writer, err := client.New(server.url, client.WithToken(token))
	if err != nil {
		t.Fatal(err)
	}
	created, err := writer.Create(t.Context(), relayer.CreateRequest{ID: "a", Name: "0", Network: "n", NetworkType: relayer.EVM, SignerID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged atomic.Int64 // the revision of the last acknowledged write
	acknowledged.Store(int64(created.Revision))
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			r, err := writer.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = strconv.Itoa(i); return nil })
			if err == nil {
				acknowledged.Store(int64(r.Revision))
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	defer writing.Wait()
	defer cancel()
	reader, err := client.New(url, client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		t.Fatal(err)
	}
	view, err := mirror.Open(t.Context(), reader, relayer.Selector{})
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	age := func() time.Duration { return time.Since(view.CaughtUp()) }
	for text := range strings.SplitSeq(*stalls, ",") {
		stall, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		between.stall(stall)
		end := time.Now()
		// With a write every 50 ms the age of a fast stream is far below a second.
		for age() > time.Second {
			if time.Since(end) > 15*time.Second {
				t.Fatalf("%v after a stall of %v the view is %v old", time.Since(end), stall, age())
			}
			time.Sleep(time.Millisecond)
		}
		t.Logf("stall of %v: the age is %v after %v", stall, age(), time.Since(end))
		known, caughtUp := acknowledged.Load(), time.Now()
		if !await(func() bool { return view.CaughtUp().After(caughtUp) }) {
			t.Fatal("the view does not go on")
		}
		if r, err := view.Get(ctx, "a"); err != nil || int64(r.Revision) < known {
			t.Errorf("the view has %v, error %v, want at least revision %d", r, err, known)
		}
	}
}
