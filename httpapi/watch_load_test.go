package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/storeutil"
)

var (
	watcherCount = flag.Int("watchers", 50, "number of clients of TestWatch_ManyWatchers")
	watchWrites  = flag.Int("watch-writes", 200, "number of writes of TestWatch_ManyWatchers")
)

// load is a server with many watchers and one writer.
type load struct {
	t       *testing.T
	manager *relayer.Manager
	server  *httptest.Server
	client  *http.Client
	events  atomic.Int64
	resyncs atomic.Int64
}

func startLoad(t *testing.T) *load { return startLoadOn(t, memory.New()) }

func startLoadOn(t *testing.T, store relayer.Store, options ...httpapi.Option) *load {
	t.Helper()
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, validTokens, append(options, httpapi.WithRateLimit(0, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(api)
	server.Config.ReadTimeout, server.Config.WriteTimeout = 30*time.Second, 30*time.Second
	server.Config.RegisterOnShutdown(api.Drain)
	server.Start()
	return &load{t: t, manager: manager, server: server, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
}

func (l *load) stop() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.client.CloseIdleConnections() // Shutdown waits 5 seconds for one without a request
	if err := l.server.Config.Shutdown(ctx); err != nil {
		l.t.Errorf("Shutdown: %v", err)
	}
	l.server.Close()
}

func (l *load) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", l.server.URL+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+validToken)
	return l.client.Do(request)
}

// replica is the view of a watcher: the name of each relayer by ID. The writer numbers
// its writes in the names.
type replica struct {
	names  map[string]string
	number int  // of the last change
	synced bool // whether the next change must have the next number
}

func numberOf(name string) (number int) {
	_, _ = fmt.Sscan(name, &number)
	return number
}

// list replaces the replica by a page with all relayers.
func (p *replica) list(l *load) error {
	response, err := l.get(context.Background(), collection+"?per_page=100")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var page envelope[[]relayer.Relayer]
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil || !page.Success {
		return fmt.Errorf("list: status %d, error %w", response.StatusCode, err)
	}
	p.names = make(map[string]string)
	for _, r := range page.Data {
		p.names[r.ID] = r.Name
	}
	p.synced = false
	return nil
}

func (p *replica) apply(name, data string) error {
	var change struct{ Relayer struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(data), &change); err != nil {
		return fmt.Errorf("%q: %w", data, err)
	}
	r := change.Relayer
	number := numberOf(r.Name)
	// A delete has no number. The writer creates the relayer again with the
	// next number.
	if name != "deleted" {
		if p.synced && number != p.number+1 || number <= p.number {
			return fmt.Errorf("change %d of %s follows %d, synced is %t", number, r.ID, p.number, p.synced)
		}
		p.number, p.synced = number, true
	}
	switch {
	case name == "deleted" && numberOf(p.names[r.ID]) <= number:
		delete(p.names, r.ID)
	case name != "deleted" && numberOf(p.names[r.ID]) <= number:
		p.names[r.ID] = r.Name
	}
	return nil
}

// follow keeps a replica until it has the relayer end.
func (l *load) follow(ctx context.Context, began func()) (map[string]string, error) {
	response, err := l.get(ctx, changes)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("watch returned %d", response.StatusCode)
	}
	lines := bufio.NewReader(response.Body)
	var known replica
	for known.names["end"] == "" {
		e, err := readEvent(lines)
		if err != nil {
			return nil, err
		}
		switch e.name {
		case "heartbeat":
			continue
		case "resync":
			l.resyncs.Add(1)
			err = known.list(l)
		default:
			l.events.Add(1)
			err = known.apply(e.name, e.data)
		}
		began()
		if err != nil {
			return nil, err
		}
	}
	return known.names, nil
}

// write changes relayers over HTTP, and then creates end.
func (l *load) write(writes int) {
	send := func(method, path, body string) {
		request, err := http.NewRequest(method, l.server.URL+path, strings.NewReader(body))
		if err != nil {
			l.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+validToken)
		request.Header.Set("Content-Type", "application/json")
		response, err := l.client.Do(request)
		if err != nil {
			l.t.Fatal(err)
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode >= 300 {
			l.t.Fatalf("%s %s returned %d, error %v: %.200s", method, path, response.StatusCode, err, text)
		}
	}
	const relayers = 20
	number := 0
	create := func(id string) {
		number++
		send("POST", collection, fmt.Sprintf(`{"id":%q,"name":"%d","network":"x","network_type":"evm","paused":false,"signer_id":"s"}`, id, number))
	}
	for i := range relayers {
		create(fmt.Sprintf("r-%d", i))
	}
	for i := range writes {
		id := fmt.Sprintf("r-%d", i*7%relayers)
		if i%5 == 0 {
			send("DELETE", collection+"/"+id, "")
			create(id)
			continue
		}
		number++
		send("PATCH", collection+"/"+id, fmt.Sprintf(`{"name":"%d"}`, number))
	}
	create("end")
}

// TestWatch_ManyWatchers has one writer and many watchers that keep a replica. Each
// change is the next one or follows a resync event, all replicas equal the registry in
// the end, and no goroutine is left. Another watcher reads nothing.
func TestWatch_ManyWatchers(t *testing.T) {
	before := runtime.NumGoroutine()
	l := startLoad(t)
	stalled := l.stall()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	replicas := make([]map[string]string, *watcherCount)
	var following, beginning sync.WaitGroup
	for i := range replicas {
		beginning.Add(1)
		following.Go(func() {
			began := sync.OnceFunc(beginning.Done)
			defer began()
			names, err := l.follow(ctx, began)
			if err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
			replicas[i] = names
		})
	}
	beginning.Wait()
	l.write(*watchWrites)
	following.Wait()
	stored := make(map[string]string)
	for r, err := range l.manager.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.ID] = r.Name
	}
	for i, names := range replicas {
		if !maps.Equal(names, stored) {
			t.Fatalf("watcher %d has %v, stored is %v", i, names, stored)
		}
	}
	t.Logf("%d watchers, %d writes, %d events, %d resyncs, %d MiB in use", len(replicas), *watchWrites, l.events.Load(), l.resyncs.Load(), heapInUse()>>20)
	stalled.Close()
	l.stop()
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// stall opens a stream that is never read. The small receive buffer makes the server
// wait soon.
func (l *load) stall() net.Conn {
	l.t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(l.server.URL, "http://"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { connection.Close() })
	if err := connection.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		l.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", changes, validToken); err != nil {
		l.t.Fatal(err)
	}
	// The first byte of the response: the subscription has begun.
	if _, err := io.ReadFull(connection, make([]byte, 1)); err != nil {
		l.t.Fatal(err)
	}
	return connection
}

// TestWatch_StalledClientsMemory: watchers that stop reading share what the feed
// retains.
func TestWatch_StalledClientsMemory(t *testing.T) {
	const watchers, writes, size = 20, 600, 200 << 10
	feed := new(storeutil.Feed) // without the history of a store
	l := startLoadOn(t, scriptedFeed{memory.New(), feed.Watch}, httpapi.WithMaxWatchers(2*watchers))
	defer l.stop()
	for range watchers {
		defer l.stall().Close() // before l.stop, which would wait until their streams end
	}
	before := heapInUse()
	for i := range uint64(writes) {
		document := fmt.Appendf(nil, `"%d%s"`, i, strings.Repeat("x", size))
		feed.Publish(relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: relayer.Record{ID: "r-1", Revision: i + 1, Document: document}})
	}
	// 16 MiB in the feed, and for each watcher an event on its way, which is a copy of
	// the change and the text of the event.
	const limit = 16<<20 + watchers*5*size
	if grown := int64(heapInUse()) - int64(before); grown > limit {
		t.Errorf("%d changes of %d KiB use %d MiB, want at most %d", writes, size>>10, grown>>20, limit>>20)
	} else {
		t.Logf("%d changes of %d KiB and %d stalled watchers use %d MiB", writes, size>>10, watchers, grown>>20)
	}
}
