package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// stalledClient has read the header of a response, and then stops reading. The small
// receive buffer makes the server wait soon.
type stalledClient struct {
	connection net.Conn
	response   *http.Response
}

func (s *service) stall(path string) stalledClient { return s.stallAs(validToken, path) }

func (s *service) stallAs(token, path string) stalledClient {
	s.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { connection.Close() })
	if err := connection.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, token); err != nil {
		s.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(connection, 16), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return stalledClient{connection, response}
}

// serveSmallBuffers serves the relayers of the manager with small send buffers.
func serveSmallBuffers(t *testing.T, manager *relayer.Manager, options ...httpapi.Option) *service {
	t.Helper()
	handler, err := httpapi.New(manager, tokens(validToken, "other"), options...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler) // not recorded: streams end within an event
	server.Config.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		_ = connection.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	return &service{t: t, manager: manager, url: server.URL}
}

// largeName is much larger than the socket buffers of a stalled connection.
var largeName = strings.Repeat("n", 200<<10)

// TestMaxPendingBytes_StalledClients: two pages of two actors may wait for their clients.
// Further reads and writes are rejected until these clients are gone.
func TestMaxPendingBytes_StalledClients(t *testing.T) {
	const list = collection + "?per_page=100"
	unlimited := serve(t)
	for i := range 5 {
		createIn(t, unlimited.manager, fmt.Sprintf("r-%d", i), largeName)
	}
	page := len(unlimited.do("GET", list, "").body)
	s := serveSmallBuffers(t, unlimited.manager, httpapi.WithMaxPendingBytes(int64(2*page)))

	var clients [8]stalledClient
	for i := range clients {
		clients[i] = s.stallAs([]string{validToken, "other"}[i%2], list)
		want := http.StatusOK
		if i >= 2 {
			want = http.StatusServiceUnavailable
		}
		if got := clients[i].response; got.StatusCode != want || want != 200 && got.Header.Get("Retry-After") != "1" {
			t.Errorf("client %d: got %d %v, want %d", i, got.StatusCode, got.Header, want)
		}
	}
	before := s.contents()
	patch := with("Content-Type", "application/merge-patch+json")
	for _, got := range []reply{
		s.do("GET", collection+"/r-1", ""),
		s.do("POST", collection, minimal(`,"id":"other"`)),
		s.do("PATCH", collection+"/r-1", `{"name":"other"}`, patch),
		s.do("DELETE", collection+"/r-1", ""),
	} {
		wantFailure(t, got, http.StatusServiceUnavailable, "Service Unavailable")
	}
	if s.contents() != before {
		t.Error("a rejected write was stored")
	}
	for _, client := range clients {
		client.connection.Close()
	}
	eventually(t, "the bytes of all clients are released", func() bool {
		first, second := s.stall(list), s.stallAs("other", list)
		defer first.connection.Close()
		defer second.connection.Close()
		return first.response.StatusCode == http.StatusOK && second.response.StatusCode == http.StatusOK
	})
}

// TestMaxPendingBytes_LargeRelayer: a relayer above the limit cannot be read, but the
// response to a write that has taken effect is sent.
func TestMaxPendingBytes_LargeRelayer(t *testing.T) {
	s := serve(t, httpapi.WithMaxPendingBytes(1000))
	createIn(t, s.manager, "r-1", strings.Repeat("n", 1000))
	wantFailure(t, s.do("GET", collection+"/r-1", ""), http.StatusServiceUnavailable, "Service Unavailable")
	for range 3 {
		got := s.do("PATCH", collection+"/r-1", `{"paused":true}`, with("Content-Type", "application/json"))
		if got.status != http.StatusOK || len(got.body) < 1000 {
			t.Errorf("patch returned %d with %d bytes", got.status, len(got.body))
		}
	}
	s.do("PATCH", collection+"/r-1", `{"name":"small"}`, with("Content-Type", "application/json"))
	if got := s.do("GET", collection+"/r-1", ""); got.status != http.StatusOK {
		t.Errorf("get of a small relayer returned %d", got.status)
	}
}

// TestMaxPendingBytes_Followers: of many followers that do not read, the limit has room for
// one large event. The streams of the others end with a resync event.
func TestMaxPendingBytes_Followers(t *testing.T) {
	const followers = 20
	log := new(syncBuffer)
	_, manager := newAPI(t, validTokens)
	s := serveSmallBuffers(t, manager, httpapi.WithMaxPendingBytes(300<<10), httpapi.WithRequestLog(newLogger(log)))
	createIn(t, s.manager, "r-1", "n")
	var clients [followers]stalledClient
	for i := range clients {
		clients[i] = s.stall(changes)
	}
	if _, err := s.manager.Patch(t.Context(), "r-1", patchtest.JSON(map[string]any{"name": largeName})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all streams but one have ended", func() bool {
		return strings.Count(log.String(), "msg=request") >= followers-1
	})
	complete := 0
	for i, client := range clients {
		_ = client.connection.SetReadDeadline(time.Now().Add(patience))
		var names []string
		lines := bufio.NewScanner(client.response.Body)
		for !slices.Contains(names, "updated") && lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				names = append(names, name)
			}
		}
		if slices.Equal(names, []string{"resync", "updated"}) {
			complete++
		} else if !slices.Equal(names, []string{"resync", "resync"}) {
			t.Errorf("client %d got %q", i, names)
		}
		client.connection.Close()
	}
	if complete != 1 {
		t.Errorf("%d clients got the event, want 1", complete)
	}
	eventually(t, "the bytes of the event are released", func() bool {
		return s.do("GET", collection+"/r-1", "").status == http.StatusOK
	})
}

// TestMaxPendingBytes_FollowerGone: the bytes of the event that a client does not read, and of
// the next event, are released when the client is gone.
func TestMaxPendingBytes_FollowerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, limit = 2000, 10_000 // one caller may use half of it: two such relayers
		manager, api, w := watchInBubble(t, validTokens, httpapi.WithMaxPendingBytes(limit))
		for e := (event{}); e.name != "resync"; {
			var err error
			if e, err = readEvent(w.lines); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 2 {
			createIn(t, manager, fmt.Sprintf("r-%d", i), strings.Repeat("n", name))
			synctest.Wait()
		}
		list := func() int { return serveHTTP(t.Context(), api, "GET", collection, "").Code }
		if status := list(); status != http.StatusServiceUnavailable {
			t.Errorf("with two pending events: list returned %d, want 503", status)
		}
		w.connection.Close()
		synctest.Wait()
		if status := list(); status != http.StatusOK {
			t.Errorf("without the client: list returned %d, want 200", status)
		}
	})
}

// blockedLists is a store whose List blocks until it is released.
type blockedLists struct {
	relayer.Store
	entered atomic.Int32
	release chan struct{}
}

func (s *blockedLists) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.entered.Add(1)
	<-s.release
	return s.Store.List(ctx, query)
}

// TestMaxPendingBytes_Bodies: a body counts until its request has been handled, also while
// its client sends it slowly. One of unknown length counts as the largest.
func TestMaxPendingBytes_Bodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const largest = 2 << 10
		manager := managerOn(t, nil)
		api, err := httpapi.New(manager, anyToken, httpapi.WithMaxPendingBytes(8*largest), httpapi.WithMaxBodyBytes(largest))
		if err != nil {
			t.Fatal(err)
		}
		slow, complete := io.Pipe()
		var running sync.WaitGroup
		send := func(actor string, length int64, body io.Reader) *result {
			request := httptest.NewRequest("POST", collection, body)
			request.ContentLength = length
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+actor)
			got := new(result)
			running.Go(func() {
				status := statusOf(api, request)
				got.mu.Lock()
				defer got.mu.Unlock()
				got.status = status
			})
			synctest.Wait()
			return got
		}
		expect := func(want int, got *result) {
			t.Helper()
			if status := got.get(); status != want {
				t.Errorf("got %d, want %d", status, want)
			}
		}
		const blocked, unknown = 0, -1
		for range 8 {
			expect(blocked, send("greedy", largest/2, slow))
		}
		expect(http.StatusServiceUnavailable, send("greedy", largest/2, slow))
		expect(http.StatusRequestEntityTooLarge, send("modest", largest+1, slow))
		expect(blocked, send("modest", unknown, slow))
		expect(http.StatusServiceUnavailable, send("modest", 1, slow))
		expect(http.StatusCreated, send("other", unknown, strings.NewReader(minimal(""))))
		_ = complete.CloseWithError(io.ErrUnexpectedEOF)
		running.Wait()
		for range 3 {
			expect(http.StatusCreated, send("greedy", unknown, strings.NewReader(minimal(""))))
		}
		if refused := api.Refusals()["pending_bytes"]; refused != 2 {
			t.Errorf("%d refusals, want 2", refused)
		}
	})
}
