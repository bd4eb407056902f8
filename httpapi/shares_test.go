package httpapi_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// anyToken accepts every token. The token is the ID of the actor.
var anyToken = byToken(func(string) error { return nil })

// occupation is what requests use of a limit of 16, as long as they are blocked.
type occupation struct {
	t       *testing.T
	api     *httpapi.API
	release chan struct{} // closed at the end
	log     *syncBuffer
	running sync.WaitGroup
	method  string
	path    string
	body    string
}

// result is a response that a blocked request sends later, or nil as long as it is blocked.
type result struct {
	mu     sync.Mutex
	status int
}

func (r *result) get() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// begin sends a request in running, and returns when it is blocked or has ended.
func begin(running *sync.WaitGroup, send func() int) *result {
	got := new(result)
	running.Go(func() {
		status := send()
		got.mu.Lock()
		defer got.mu.Unlock()
		got.status = status
	})
	synctest.Wait()
	return got
}

func (o *occupation) begin(actor string) *result {
	return begin(&o.running, func() int { return o.send(o.t.Context(), actor) })
}

func (o *occupation) send(ctx context.Context, actor string) int {
	request := newRequest(ctx, o.method, o.path, o.body, as(actor))
	w := &blockedWriter{statusWriter: statusWriter{header: make(http.Header)}, release: o.release}
	o.api.ServeHTTP(w, request)
	return w.status
}

// blockedWriter blocks at the first byte of a body that is not a failure.
type blockedWriter struct {
	statusWriter
	release chan struct{}
}

func (w *blockedWriter) Write(p []byte) (int, error) {
	if w.status < 300 {
		<-w.release
	}
	return len(p), nil
}

func (w *blockedWriter) FlushError() error                { return nil }
func (w *blockedWriter) SetReadDeadline(time.Time) error  { return nil }
func (w *blockedWriter) SetWriteDeadline(time.Time) error { return nil }

// occupy returns an API whose limit of the name is 16 requests, which stay blocked.
func occupy(t *testing.T, name string) *occupation {
	o := &occupation{t: t, release: make(chan struct{}), log: new(syncBuffer), method: "GET", path: collection}
	store := &blockedLists{Store: memory.New(), release: make(chan struct{})}
	blocked := func(context.Context, relayer.CreateRequest) (string, error) {
		<-o.release
		return "0x0", nil
	}
	var managerOptions []relayer.Option
	options := []httpapi.Option{httpapi.WithLogger(newLogger(o.log)), httpapi.WithClientAddress(fromHeader)}
	switch name {
	case "in_flight":
		managerOptions = []relayer.Option{relayer.WithAddressResolver(blocked)}
		options = append(options, httpapi.WithMaxInFlight(16))
		o.method, o.body = "POST", minimal("")
		close(store.release)
	case "pages":
		store.release = o.release
	case "bulk":
		store.release = o.release
		o.method, o.path = "POST", collection+":pause?all=true"
	case "pending_bytes":
		close(store.release)
		options = append(options, httpapi.WithMaxPendingBytes(16*emptyPageBytes))
	case "watchers":
		close(store.release)
		options = append(options, httpapi.WithMaxWatchers(16))
		o.path = changes
	}
	manager := managerOn(t, store, managerOptions...)
	o.api = apiOn(t, manager, anyToken, options...)
	return o
}

// emptyPageBytes is the size of the response to a list without relayers.
const emptyPageBytes = int64(len(`{"success":true,"data":[],"pagination":{"current_page":1,"per_page":10,"total_items":0}}`))

func (o *occupation) end() {
	close(o.release)
	o.api.Drain()
	o.running.Wait()
}

// TestShares: one caller can use half of each limit. The other half is for callers that use
// less than an eighth.
func TestShares(t *testing.T) {
	for name, total := range map[string]int{"in_flight": 16, "pages": 8, "pending_bytes": 16, "watchers": 16, "bulk": 8} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := occupy(t, name)
				waits := name == "pages" || name == "bulk" // its requests wait for 5 seconds before they are refused
				const refused, blocked = http.StatusServiceUnavailable, 0
				expect := func(actor string, want int) {
					t.Helper()
					got := o.begin(actor)
					if want == refused && waits {
						if status := got.get(); status != blocked {
							t.Errorf("%s got %d at once, and does not wait", actor, status)
						}
						time.Sleep(5 * time.Second)
						synctest.Wait()
					}
					if status := got.get(); status != want {
						t.Errorf("%s got %d, want %d", actor, status, want)
					}
				}
				for range total / 2 {
					expect("greedy", blocked)
				}
				expect("greedy", refused)
				for i := range total / 2 / (total / 8) {
					actor := fmt.Sprintf("modest-%d", i)
					for range total / 8 {
						expect(actor, blocked)
					}
					if i == 0 {
						expect(actor, refused)
					}
				}
				expect("late", refused)
				refusals := uint64(3)
				if name == "pending_bytes" { // a write needs a free byte before it begins
					for _, method := range []string{"POST", "PATCH", "DELETE"} {
						o.method, o.body = method, minimal("")
						if o.path = one; method == "POST" {
							o.path = collection
						}
						expect("greedy", refused)
						refusals++
					}
					o.method, o.path, o.body = "GET", collection, ""
				}
				want := map[string]uint64{"in_flight": 0, "pages": 0, "pending_bytes": 0, "watchers": 0, "bulk": 0}
				want[name] = refusals
				if counts := o.api.Refusals(); !maps.Equal(counts, want) {
					t.Errorf("the refusals are %v, want %v", counts, want)
				}
				o.end()
				o.release = make(chan struct{})
				close(o.release)
				if name != "watchers" { // the API is drained
					for range total {
						if status := o.send(t.Context(), "greedy"); status >= 300 {
							t.Errorf("afterwards greedy got %d", status)
						}
					}
				}
			})
		})
	}
}

// TestShares_PageWaiters: a page slot goes to the first waiter that may have it, and a waiter
// gives up with its context.
func TestShares_PageWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := occupy(t, "pages")
		store := o.release
		for range 4 {
			o.begin("greedy")
		}
		for i := range 4 {
			o.begin(fmt.Sprintf("modest-%d", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan int)
		go func() { gone <- o.send(ctx, "gone") }()
		synctest.Wait()
		waiting := o.begin("greedy")
		late := o.begin("late")
		cancel()
		if status := <-gone; status != http.StatusServiceUnavailable {
			t.Errorf("the canceled request got %d", status)
		}
		store <- struct{}{} // one page is complete
		synctest.Wait()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if status := waiting.get(); status != http.StatusServiceUnavailable {
			t.Errorf("greedy got %d", status)
		}
		if status := late.get(); status != 0 {
			t.Errorf("late got %d, and not the page slot", status)
		}
		o.end()
		if counts := o.api.Refusals(); counts["pages"] != 2 || late.get() != http.StatusOK {
			t.Errorf("the refusals are %v, and late got %d", counts, late.get())
		}
	})
}

// TestShares_ByAddress: before their authentication, requests count for the address of the
// client.
func TestShares_ByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		authenticate := func(r *http.Request) (relayer.Actor, error) {
			<-block
			return anyToken(r)
		}
		handler, _ := newAPI(t, authenticate, httpapi.WithMaxInFlight(16), httpapi.WithClientAddress(fromHeader))
		send := func(address, token string) int {
			return serveHTTP(t.Context(), handler, "GET", collection, "", as(token), with("X-Client", address)).Code
		}
		var running sync.WaitGroup
		for i := range 8 {
			running.Go(func() { send("one", fmt.Sprint("guess-", i)) })
		}
		synctest.Wait()
		if status := send("one", "guess"); status != http.StatusServiceUnavailable {
			t.Errorf("the address above its share got %d", status)
		}
		var other int
		running.Go(func() { other = send("other", "guess") })
		synctest.Wait()
		close(block)
		running.Wait()
		if other != http.StatusOK {
			t.Errorf("another address got %d", other)
		}
	})
}

// TestShares_AfterAuthentication: an actor has one share for all its addresses and tokens.
func TestShares_AfterAuthentication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		resolve := func(context.Context, relayer.CreateRequest) (string, error) {
			<-release
			return "0x0", nil
		}
		manager := managerOn(t, nil, relayer.WithAddressResolver(resolve))
		one := func(*http.Request) (relayer.Actor, error) { return relayer.Actor{ID: "one"}, nil }
		handler := apiOn(t, manager, one, httpapi.WithMaxInFlight(16), httpapi.WithClientAddress(fromHeader))
		statuses := make(chan int, 16)
		for i := range 16 {
			go func() {
				headers := []header{as(fmt.Sprint("token-", i)), with("X-Client", fmt.Sprint(i))}
				statuses <- serveHTTP(t.Context(), handler, "POST", collection, minimal(""), headers...).Code
			}()
			synctest.Wait()
		}
		close(release)
		counts := make(map[int]int)
		for range 16 {
			counts[<-statuses]++
		}
		if counts[201] != 8 || counts[503] != 8 || handler.Refusals()["in_flight"] != 8 {
			t.Errorf("the statuses are %v, the refusals %v", counts, handler.Refusals())
		}
	})
}

// TestShares_Log: the refusals of a limit are logged at most once a minute for each actor.
func TestShares_Log(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := occupy(t, "watchers")
		for range 8 {
			o.begin("greedy")
		}
		for range 3 {
			for range 100 {
				if status := o.send(t.Context(), "greedy"); status != http.StatusServiceUnavailable {
					t.Fatalf("got %d", status)
				}
			}
			time.Sleep(31 * time.Second)
		}
		for i := range 8 {
			o.begin(fmt.Sprint("modest-", i/2))
		}
		o.send(t.Context(), "late")
		o.end()
		log := o.log.String()
		if n := strings.Count(log, "principal=greedy"); n != 2 {
			t.Errorf("%d lines about greedy, want 2: %s", n, log)
		}
		for _, want := range []string{
			`level=WARN msg="refused because of a limit"`, "cause=watchers used_by_principal=8 used=8 limit=16",
			"principal=late", "cause=watchers used_by_principal=0 used=16 limit=16",
		} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in the log: %s", want, log)
			}
		}
	})
}
