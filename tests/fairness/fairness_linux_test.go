// Package fairness sends as much as one token can, over real sockets and with the default
// settings, and tests that the requests of another token are served meanwhile. It needs a
// few seconds. With the flag -full it has 100,000 relayers, attacks for 20 seconds each,
// prints how long the requests took, and bounds their processor time by four times that
// without an attack.
//
// The processor time of a request is that of the thread that calls the handler. It includes
// the part of the garbage collection that falls to the request. It does not include net/http,
// the goroutines of a store that commit the writes of many requests, PostgreSQL, and the
// goroutines of streams that send a change. Every measured request begins with caches of the
// processor that are cold, also without an attack: an attack fills them, as other work of the
// machine does.
package fairness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
	"github.com/go-relayer/relayer/tests/internal/pgtest"
)

var full = flag.Bool("full", false, "100,000 relayers, attacks of 20 seconds, and bounds for processor time; needs a quiet machine for 20 minutes")

const (
	attackerToken = "the-token-of-the-attacker"
	callerToken   = "the-token-of-another-caller"

	// maxCost is how many times the processor time without an attack a request may need.
	maxCost = 4
)

// size is how much a test does. The limits are lower than the defaults if the attacks are,
// in proportion.
type size struct {
	relayers, workers, quietRounds, rounds int
	duration                               time.Duration
	caches                                 int // bytes
	options                                []httpapi.Option
}

func sizeOf() size {
	if *full {
		return size{relayers: 100_000, workers: 600, quietRounds: 50, rounds: 3, duration: 20 * time.Second, caches: 64 << 20}
	}
	return size{relayers: 2000, workers: 24, quietRounds: 1, rounds: 1, options: []httpapi.Option{
		httpapi.WithMaxInFlight(16), httpapi.WithMaxWatchers(16), httpapi.WithMaxPendingBytes(4 << 20),
	}}
}

func TestFairness_Memory(t *testing.T) { testFairness(t, memory.New()) }

// TestFairness_Bolt takes long and needs -full. TestFairness_Memory tests the same limits without it.
func TestFairness_Bolt(t *testing.T) {
	if !*full {
		t.Skip("needs -full")
	}
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	testFairness(t, store)
}

func TestFairness_Postgres(t *testing.T) {
	testFairness(t, pgtest.Open(t, pgserver.Start(t).ConnString()))
}

func testFairness(t *testing.T, store relayer.Store) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, manager := sizeOf(), managerOf(t, store)
	fill(t, manager, s.relayers)
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) { s.testAttack(t, manager, attack.one) })
		if attack.isControlled {
			t.Run(attack.name+" of the same actor", func(t *testing.T) { s.testControl(t, manager, attack.one) })
		}
	}
}

// TestFairness_SlowSearches: searches occupy the pages that an actor can use. They are few
// enough for the limit of requests in flight.
func TestFairness_SlowSearches(t *testing.T) {
	s := sizeOf()
	s.workers = 5
	s.testControl(t, managerOf(t, slowSearches{memory.New()}), attacks[0].one)
}

// testAttack sends the requests of another actor during an attack.
func (s size) testAttack(t *testing.T, manager *relayer.Manager, one func(context.Context, *attacker, int)) {
	a, c := s.begin(t, manager, "attacker")
	s.run(t, a, one)
	for a.sent.Load() < int64(s.workers) {
		time.Sleep(time.Millisecond)
	}
	for begin, i := time.Now(), 0; i < s.rounds || time.Since(begin) < s.duration; i++ {
		c.round(t.Context())
	}
	if err := errors.Join(c.errs[:min(len(c.errs), 3)]...); err != nil || c.refused > 0 {
		t.Errorf("%d requests of another actor were refused: %v", c.refused, err)
	}
	t.Logf("%d requests of the attacker; %s", a.sent.Load(), c)
	for _, name := range measured {
		if ratio := c.ratio(name); *full && ratio > maxCost {
			t.Errorf("%s needs %.1f times the processor time of quiet times", name, ratio)
		}
	}
}

// testControl sends the requests of the same actor with another token. They have no share
// that the attack does not use.
func (s size) testControl(t *testing.T, manager *relayer.Manager, one func(context.Context, *attacker, int)) {
	a, c := s.begin(t, manager, "caller")
	s.run(t, a, one)
	for begin := time.Now(); c.refused == 0; c.round(t.Context()) {
		if time.Since(begin) > time.Minute {
			t.Fatal("no request of the same actor was refused: the attack is too weak")
		}
	}
}

// slowSearches is a store whose searches end when the client does not wait any longer.
type slowSearches struct{ relayer.Store }

func (s slowSearches) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	if len(query.Contains) > 0 {
		<-ctx.Done()
		return relayer.Listing{}, ctx.Err()
	}
	return s.Store.List(ctx, query)
}

func managerOf(t *testing.T, store relayer.Store) *relayer.Manager {
	t.Helper()
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

// fill adds relayers, and one that the attacks change.
func fill(t *testing.T, manager *relayer.Manager, count int) {
	t.Helper()
	var running sync.WaitGroup
	errs := make(chan error, count+1)
	slots := make(chan struct{}, 64)
	for i := range count + 1 {
		id := fmt.Sprint("r-", i)
		if i == count {
			id = "attacked"
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			_, err := manager.Documents().Create(t.Context(), []byte(relayerJSON(id)))
			errs <- err
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// begin serves the relayers to an attacker, who has the token of an actor, and to another
// caller, whose requests without an attack it measures.
func (s size) begin(t *testing.T, manager *relayer.Manager, actor string) (*attacker, *caller) {
	t.Helper()
	tokens := map[string][]string{"caller": {callerToken}}
	tokens[actor] = append(tokens[actor], attackerToken)
	authenticate, err := httpapi.Tokens(tokens)
	if err != nil {
		t.Fatal(err)
	}
	// Limits of rates would weaken the attack.
	api, err := httpapi.New(manager, authenticate, append(s.options, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{memory: make([]byte, s.caches), cost: make(chan time.Duration, 1)}
	server := httptest.NewServer(c.measure(api))
	t.Cleanup(server.Close)
	t.Cleanup(api.Drain)
	a := &attacker{url: server.URL, token: attackerToken, relayers: s.relayers, client: s.client(t, net.IPv4(127, 0, 0, 1))}
	c.attacker = attacker{url: server.URL, token: callerToken, client: s.client(t, net.IPv4(127, 0, 0, 2))}
	for range s.quietRounds {
		c.round(t.Context())
	}
	if err := errors.Join(c.errs...); err != nil || c.refused > 0 {
		t.Fatalf("before the attack, %d requests were refused: %v", c.refused, err)
	}
	c.quiet, c.costs, c.took = c.costs, nil, nil
	return a, c
}

// client sends requests from the address. Before authentication, the requests of one address
// share a limit, so the attacker and the caller have different addresses.
func (s size) client(t *testing.T, address net.IP) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: address}}
	transport := &http.Transport{MaxIdleConnsPerHost: s.workers, DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// run attacks until the test ends.
func (s size) run(t *testing.T, a *attacker, one func(context.Context, *attacker, int)) {
	ctx, cancel := context.WithCancel(t.Context())
	wait := a.attack(ctx, s.workers, one)
	t.Cleanup(wait)
	t.Cleanup(cancel)
}

// caller is an ordinary caller.
type caller struct {
	attacker
	rounds  int
	refused int     // with 503
	errs    []error // of each other status that is not that of a success

	memory       []byte             // larger than the caches of the processor
	cost         chan time.Duration // of the last request
	quiet, costs map[string][]time.Duration
	took         map[string][]time.Duration
}

// measure returns a handler that sends the processor time of each request of the caller to
// c.cost.
func (c *caller) measure(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+callerToken || strings.HasSuffix(r.URL.Path, ":watch") {
			api.ServeHTTP(w, r)
			return
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.evict()
		before := threadTime()
		api.ServeHTTP(w, r)
		c.cost <- threadTime() - before
	})
}

// evict empties the caches of the processor. During an attack, they are full of what the
// attack uses.
func (c *caller) evict() {
	const line = 64
	for i := 0; i < len(c.memory); i += line {
		c.memory[i]++
	}
}

// threadTime returns the processor time of the current thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// measured are the requests whose processor time is measured.
var measured = []string{"create", "get", "list", "pause"}

// round sends one request of each kind.
func (c *caller) round(ctx context.Context) {
	c.rounds++
	id := fmt.Sprintf("own-%d-%d", time.Now().UnixNano(), c.rounds)
	for _, request := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"create", "POST", collection, relayerJSON(id), http.StatusCreated},
		{"get", "GET", collection + "/" + id, "", http.StatusOK},
		{"list", "GET", collection, "", http.StatusOK},
		{"pause", "PATCH", collection + "/" + id, `{"paused":true}`, http.StatusOK},
		{"watch", "GET", collection + ":watch", "", http.StatusOK},
	} {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		response, err := c.send(ctx, request.method, request.path, request.body)
		if err != nil {
			cancel()
			c.errs = append(c.errs, fmt.Errorf("%s: %w", request.name, err))
			return
		}
		add(&c.took, request.name, time.Since(begin))
		cancel() // ends the stream
		_ = response.Body.Close()
		if request.name != "watch" {
			add(&c.costs, request.name, <-c.cost)
		}
		switch response.StatusCode {
		case request.status:
		case http.StatusServiceUnavailable:
			c.refused++
		default:
			c.errs = append(c.errs, fmt.Errorf("%s returned %s", request.name, response.Status))
		}
	}
}

func add(all *map[string][]time.Duration, name string, d time.Duration) {
	if *all == nil {
		*all = make(map[string][]time.Duration)
	}
	(*all)[name] = append((*all)[name], d)
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// ratio compares the processor time of a request during the attack with that before it.
func (c *caller) ratio(name string) float64 {
	return float64(median(c.costs[name])) / float64(median(c.quiet[name]))
}

// String returns the times of the requests.
func (c *caller) String() string {
	text := fmt.Sprintf("%d rounds: ", len(c.took["watch"]))
	for _, name := range measured {
		text += fmt.Sprintf("%s %v (at most %v, processor %v, ratio %.1f) ", name, median(c.took[name]).Round(10*time.Microsecond),
			slices.Max(c.took[name]).Round(time.Millisecond), median(c.costs[name]).Round(time.Microsecond), c.ratio(name))
	}
	return text + fmt.Sprintf("watch %v (at most %v)", median(c.took["watch"]).Round(10*time.Microsecond), slices.Max(c.took["watch"]).Round(time.Millisecond))
}
