package plan_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/plan"
	"github.com/go-relayer/relayer/store/memory"
)

// secret is a part of a URL that no output may contain.
const secret = "S3CRET"

func newManager(t testing.TB, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	return must(relayer.New(memory.New(), options...))(t)
}

// remote is a registry as a client shows it: with masked URLs, and optionally without
// revisions, like OpenZeppelin Relayer.
type remote struct {
	relayer.Registry
	withoutRevisions bool
}

func (r *remote) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		for got, err := range r.Registry.All(ctx, selector) {
			if err == nil {
				got = masked(got)
			}
			if err == nil && r.withoutRevisions {
				got.Revision = 0
			}
			if !yield(got, err) {
				return
			}
		}
	}
}

func isDryRun(options []relayer.WriteOption) bool {
	settings, err := relayer.NewWriteSettings(options...)
	return err == nil && settings.DryRun
}

func masked(r *relayer.Relayer) *relayer.Relayer {
	for i := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = relayer.RPCURL(r.CustomRPCURLs[i].URL.String())
	}
	return r
}

// minimal returns a request with only the required fields.
func minimal(id string) relayer.CreateRequest {
	return relayer.CreateRequest{ID: id, Name: "n", Network: "sepolia", NetworkType: relayer.EVM, SignerID: "s"}
}

// renamed returns a minimal request with another name.
func renamed(id string) relayer.CreateRequest {
	return requestWith(id, func(r *relayer.CreateRequest) { r.Name = "new" })
}

// withURLs returns a minimal request with RPC endpoints.
func withURLs(id string, urls ...relayer.RPCURL) relayer.CreateRequest {
	req := minimal(id)
	for _, url := range urls {
		req.CustomRPCURLs = append(req.CustomRPCURLs, relayer.RPCConfig{URL: url})
	}
	return req
}

// fleet returns many relayers with RPC endpoints.
func fleet(count int) []relayer.CreateRequest {
	var requests []relayer.CreateRequest
	for i := range count {
		requests = append(requests, withURLs(fmt.Sprint("r", i), relayer.RPCURL(fmt.Sprint("https://rpc.example/", i))))
	}
	return requests
}

func create(t testing.TB, registry relayer.Registry, requests ...relayer.CreateRequest) {
	t.Helper()
	for _, req := range requests {
		must(registry.Create(t.Context(), req))(t)
	}
}

func get(t testing.TB, registry relayer.Registry, id string) *relayer.Relayer {
	t.Helper()
	return must(registry.Get(t.Context(), id))(t)
}

func newPlan(t testing.TB, registry relayer.Registry, relayers []relayer.CreateRequest, options ...plan.Options) *plan.Plan {
	t.Helper()
	return must(plan.New(t.Context(), registry, relayers, append(options, plan.Options{})[0]))(t)
}

func mustApply(t testing.TB, p *plan.Plan) []plan.Result {
	t.Helper()
	results, err := p.Apply(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	return results
}

// expectActions checks the action of each entry.
func expectActions(t testing.TB, p *plan.Plan, want ...plan.Action) {
	t.Helper()
	var got []plan.Action
	for _, entry := range p.Entries() {
		got = append(got, entry.Action)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("actions %q, want %q\n%s", got, want, p)
	}
}

func expectChanges(t testing.TB, entry plan.Entry, want ...plan.Change) {
	t.Helper()
	if !slices.Equal(entry.Changes, want) {
		t.Errorf("changes %+v, want %+v", entry.Changes, want)
	}
}

// expectProblems checks the fields of a ValidationError.
func expectProblems(t testing.TB, err error, want ...relayer.FieldError) {
	t.Helper()
	invalid, ok := errors.AsType[*relayer.ValidationError](err)
	if !ok {
		t.Fatalf("error %v is not a ValidationError", err)
	}
	if got := withoutCodes(invalid.Fields); !slices.Equal(got, want) {
		t.Errorf("problems %+v, want %+v", got, want)
	}
}

// withoutCodes returns the fields and messages, which are enough to distinguish problems.
func withoutCodes(problems []relayer.FieldError) []relayer.FieldError {
	problems = slices.Clone(problems)
	for i := range problems {
		problems[i].Code = ""
	}
	return problems
}

// must returns a function that returns the value, or fails the test with the error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

const token = "test-token-0123456789"

// serve returns a client of a server.
func serve(t *testing.T, m *relayer.Manager) *client.Client {
	t.Helper()
	return serveBehind(t, m, func(api http.Handler) http.Handler { return api })
}

// serveBehind returns a client of a server behind a proxy.
func serveBehind(t *testing.T, m *relayer.Manager, proxy func(api http.Handler) http.Handler) *client.Client {
	t.Helper()
	authenticate := must(httpapi.Tokens(map[string][]string{"alice": {token}}))(t)
	server := httptest.NewServer(proxy(must(httpapi.New(m, authenticate, httpapi.WithRateLimit(0, 0)))(t)))
	t.Cleanup(server.Close)
	return must(client.New(server.URL, client.WithToken(token), client.WithRetries(2, time.Second)))(t)
}

// document returns the JSON of a relayer.
func document(t *testing.T, m *relayer.Manager, id string) string {
	t.Helper()
	return string(must(m.Documents().Get(t.Context(), id))(t).JSON)
}

// exported returns the masked file of a registry.
func exported(t *testing.T, registry relayer.Registry) string {
	t.Helper()
	return string(must(plan.Export(t.Context(), registry, relayer.Selector{}))(t))
}
