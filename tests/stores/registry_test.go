// Package stores tests what all stores, and all implementations of relayer.Registry, have in
// common. It runs the same operations on Managers over all stores, clients of their servers, and
// views, and compares results, errors and revisions. It records concurrent calls of a store and
// checks that the results are linearizable: some sequential order of the calls gives the same.
// Its benchmarks measure reads and writes of the stores.
package stores

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

var scripts = flag.Uint64("scripts", 10, "random scripts; 30 in a long run")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newManager(t *testing.T, store relayer.Store) *relayer.Manager {
	t.Helper()
	manager, err := relayer.New(store, relayer.WithExclusiveSigners(), relayer.WithNetworkRules())
	must(t, err)
	return manager
}

// inView is what the relayers of a script have in common.
var inView = relayer.Selector{}.Where("label."+label, "yes")

// newCrowded returns a Manager over a store with relayers that are not in the view.
func newCrowded(t *testing.T) *relayer.Manager {
	t.Helper()
	manager := newManager(t, memory.New())
	for i := range 15 {
		req := request(fmt.Sprint("outside-", i), relayer.EVM)
		delete(req.Labels, label)
		_, err := manager.Create(t.Context(), req)
		must(t, err)
	}
	return manager
}

// implementation is a Registry that is compared with the others.
type implementation struct {
	name string
	open func(t *testing.T) relayer.Registry
}

// implementations returns the Registries to compare with the first one.
func implementations() []implementation {
	all := []implementation{
		{"view", func(t *testing.T) relayer.Registry { return newCrowded(t).Within(inView) }},
		{"client of a view", func(t *testing.T) relayer.Registry {
			return newClient(t, newCrowded(t).Within(inView), relayer.Selector{})
		}},
		{"client within a permission", func(t *testing.T) relayer.Registry { return newClient(t, newCrowded(t), inView) }},
	}
	for _, kind := range kinds {
		all = append(all,
			implementation{"Manager over " + kind.name, func(t *testing.T) relayer.Registry { return newManager(t, kind.new(t)) }},
			implementation{"client of " + kind.name, func(t *testing.T) relayer.Registry {
				return newClient(t, newManager(t, kind.new(t)), relayer.Selector{})
			}})
	}
	return all
}

func TestRegistry_SameOutcomes(t *testing.T) {
	counts := make(map[string]int)
	for seed := range *scripts {
		var sessions []*session
		for _, each := range implementations() {
			sessions = append(sessions, newSession(each.name, each.open(t)))
		}
		must(t, compare(t.Context(), sessions, seed, counts))
	}
	for kind, count := range counts {
		t.Log(count, kind)
	}
	for _, kind := range []string{
		"create", "update", "patch", "pause", "resume", "disable", "enable", "delete", "get", "get canceled", "reveal", "list", "all",
	} {
		if kind != "get canceled" && counts[kind+" succeeded"] == 0 || kind != "all" && counts[kind+" failed"] == 0 {
			t.Errorf("%s: the scripts have no success, or no failure", kind)
		}
	}
}

// compare runs a script on all sessions, and returns an error at the first difference. It
// counts the outcomes.
func compare(ctx context.Context, sessions []*session, seed uint64, counts map[string]int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	random := rand.New(rand.NewPCG(seed, 0))
	followed := pick(random, relayer.Selector{}, relayer.Selector{}.Where("label.team", "payments"))
	operations := script(random, 100)
	operations = append(operations, operation{"changes", followed.String(), func(ctx context.Context, s *session) string { return s.changes(ctx, followed) }})
	for _, s := range sessions {
		s.watch(ctx, followed)
		defer func() { s.stop() }()
	}
	for i, operation := range operations {
		want := operation.run(ctx, sessions[0])
		if strings.Contains(want, "error: ") {
			counts[operation.kind+" failed"]++
		} else {
			counts[operation.kind+" succeeded"]++
		}
		for _, s := range sessions[1:] {
			if got := operation.run(ctx, s); got != want {
				return fmt.Errorf("seed %d, operation %d: %s %s\n%s:\n%s\n%s:\n%s",
					seed, i, operation.kind, operation.text, sessions[0].name, want, s.name, got)
			}
		}
	}
	return nil
}

// wrong are implementations that differ in one point.
var wrong = map[string]func(relayer.Registry) relayer.Registry{
	"lists without revisions": func(g relayer.Registry) relayer.Registry { return withoutRevisions{g} },
	"all in silence":          func(g relayer.Registry) relayer.Registry { return withoutErrors{g} },
	"changes of all":          func(g relayer.Registry) relayer.Registry { return withoutSelection{g} },
}

type withoutRevisions struct{ relayer.Registry }

func (g withoutRevisions) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	page, err := g.Registry.List(ctx, query)
	if err == nil {
		for _, r := range page.Relayers {
			r.Revision = 0
		}
	}
	return page, err
}

type withoutErrors struct{ relayer.Registry }

func (g withoutErrors) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for r, err := range g.Registry.All(ctx, selector) {
			if err == nil && !yield(r, nil) {
				return
			}
		}
	}
}

type withoutSelection struct{ relayer.Registry }

func (g withoutSelection) Watch(ctx context.Context, query relayer.WatchQuery) iter.Seq2[relayer.Change, error] {
	query.Selector = relayer.Selector{}
	return g.Registry.Watch(ctx, query)
}

func TestRegistry_DifferencesAreFound(t *testing.T) {
	for name, change := range wrong {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				right, wrong := newManager(t, memory.New()), change(newManager(t, memory.New()))
				if err := compare(t.Context(), []*session{newSession("right", right), newSession("wrong", wrong)}, seed, make(map[string]int)); err != nil {
					return
				}
			}
			t.Error("10 scripts found no difference")
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const token = "token-of-the-registry-suite"

// newClient returns a client of a server that permits everything within the selector.
func newClient(t *testing.T, manager *relayer.Manager, within relayer.Selector) relayer.Registry {
	t.Helper()
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	must(t, err)
	permit := func(context.Context, httpapi.Access) (httpapi.Decision, error) { return httpapi.Allow(within), nil }
	api, err := httpapi.New(manager, tokens, httpapi.WithAuthorizer(permit), httpapi.WithEngineOperations(), httpapi.WithRateLimit(0, 0))
	must(t, err)
	server := httptest.NewUnstartedServer(api)
	server.Config.RegisterOnShutdown(api.Drain)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(server.URL, client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}))
	must(t, err)
	return c
}
