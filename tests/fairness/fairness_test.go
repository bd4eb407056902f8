package fairness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	attackerToken = "the-token-of-the-attacker"
	callerToken   = "the-token-of-another-caller"
)

// size is how much a test does. The limits are lower than the defaults if the attacks are,
// in proportion.
type size struct {
	relayers, workers, rounds int
	duration                  time.Duration
	options                   []httpapi.Option
}

func sizeOf() size {
	if os.Getenv("RELAYER_FAIRNESS") == "full" {
		return size{relayers: 100_000, workers: 1500, rounds: 1, duration: 20 * time.Second}
	}
	return size{relayers: 2000, workers: 24, rounds: 2, options: []httpapi.Option{
		httpapi.WithMaxInFlight(16), httpapi.WithMaxWatchers(16), httpapi.WithMaxPendingBytes(4 << 20),
	}}
}

func TestFairness_Memory(t *testing.T) { testFairness(t, memory.New()) }

func TestFairness_Bolt(t *testing.T) {
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "relayers.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	testFairness(t, store)
}

func testFairness(t *testing.T, store relayer.Store) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	s := sizeOf()
	fill(t, manager, s.relayers)
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			refused, err := s.besides(t, manager, attack.one, callerToken)
			if err != nil || refused > 0 {
				t.Errorf("%d requests of another token were refused: %v", refused, err)
			}
		})
		if !attack.isControlled {
			continue
		}
		t.Run(attack.name+" without a separate share", func(t *testing.T) {
			if refused, _ := s.besides(t, manager, attack.one, attackerToken); refused == 0 {
				t.Error("no request of the same token was refused: the attack is too weak")
			}
		})
	}
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

// besides sends the requests of an ordinary caller during an attack, and returns how many of
// them were refused because of a limit.
func (s size) besides(t *testing.T, manager *relayer.Manager, one func(context.Context, *attacker, int), token string) (refused int, err error) {
	t.Helper()
	tokens, err := httpapi.Tokens(map[string][]string{"attacker": {attackerToken}, "caller": {callerToken}})
	if err != nil {
		t.Fatal(err)
	}
	// Limits of rates would weaken the attack.
	api, err := httpapi.New(manager, tokens, append(s.options, httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Drain()

	ctx, cancel := context.WithCancel(t.Context())
	transport := &http.Transport{MaxIdleConnsPerHost: s.workers}
	defer transport.CloseIdleConnections()
	a := &attacker{url: server.URL, token: attackerToken, relayers: s.relayers, client: &http.Client{Transport: transport}}
	own := &http.Transport{}
	defer own.CloseIdleConnections()
	c := &caller{attacker: attacker{url: server.URL, token: token, client: &http.Client{Transport: own}}, took: make(map[string][]time.Duration)}
	if _, err := c.round(t.Context()); err != nil {
		t.Fatalf("before the attack: %v", err)
	}
	c.took = make(map[string][]time.Duration)
	wait := a.attack(ctx, s.workers, one)
	defer wait()
	defer cancel()
	for a.sent.Load() < int64(s.workers) {
		time.Sleep(time.Millisecond)
	}
	var errs []error
	for begin, i := time.Now(), 0; i < s.rounds || time.Since(begin) < s.duration; i++ {
		n, err := c.round(t.Context())
		refused += n
		if err != nil {
			errs = append(errs, err)
		}
	}
	if s.duration > 0 {
		t.Logf("%d requests of the attacker; %s", a.sent.Load(), c)
	}
	return refused, errors.Join(errs[:min(len(errs), 3)]...)
}

// caller is an ordinary caller.
type caller struct {
	attacker
	rounds int
	took   map[string][]time.Duration
}

// round sends one request of each kind. It returns how many got 503, and an error for each
// other status that is not that of a success.
func (c *caller) round(ctx context.Context) (refused int, err error) {
	c.rounds++
	id := fmt.Sprintf("own-%s-%d-%d", c.token[10:], time.Now().UnixNano(), c.rounds)
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
		response, sendErr := c.send(ctx, request.method, request.path, request.body)
		switch {
		case sendErr != nil:
			err = errors.Join(err, fmt.Errorf("%s: %w", request.name, sendErr))
		case response.StatusCode == http.StatusServiceUnavailable:
			refused++
		case response.StatusCode != request.status:
			err = errors.Join(err, fmt.Errorf("%s returned %s", request.name, response.Status))
		}
		c.took[request.name] = append(c.took[request.name], time.Since(begin))
		cancel() // ends the stream
		if sendErr == nil {
			_ = response.Body.Close()
		}
	}
	return refused, err
}

// String returns the medians and maxima of the times of the requests.
func (c *caller) String() string {
	text := ""
	for _, name := range []string{"create", "get", "list", "pause", "watch"} {
		took := slices.Sorted(slices.Values(c.took[name]))
		text += fmt.Sprintf("%s %v (at most %v) ", name, took[len(took)/2].Round(10*time.Microsecond), took[len(took)-1].Round(time.Millisecond))
	}
	return fmt.Sprintf("%d rounds: %s", len(c.took["get"]), text)
}
