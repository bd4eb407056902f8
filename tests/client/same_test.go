package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/tests/internal/patchtest"
)

// direct is a transport that calls the handler of a server. It may lose the responses to
// writes.
type direct struct {
	handler     http.Handler
	losesWrites bool
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	received := r.Clone(r.Context())
	received.RequestURI = r.URL.RequestURI()
	if received.Body == nil {
		received.Body = http.NoBody
	}
	d.handler.ServeHTTP(recorder, received)
	if d.losesWrites && r.Method != http.MethodGet {
		return nil, errors.New("connection reset by peer")
	}
	return recorder.Result(), nil
}

func newManager(t *rapid.T) *relayer.Manager {
	manager, err := relayer.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

func newDirect(t *rapid.T, losesWrites bool) *client.Client {
	return directTo(t, newManager(t), losesWrites)
}

func directTo(t *rapid.T, manager *relayer.Manager, losesWrites bool) *client.Client {
	tokens, err := httpapi.Tokens(map[string][]string{"alice": {token}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(manager, tokens, httpapi.WithRateLimit(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	transport := &direct{api, losesWrites}
	c, err := client.New("http://localhost", client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: transport}), client.WithRetries(1, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operation is a random call.
type operation struct {
	name string
	run  func(relayer.Registry) (*relayer.Relayer, error)
}

var ctx = context.Background()

func drawOperation(t *rapid.T) operation {
	id := rapid.SampledFrom([]string{"a", "b", "", "no id"}).Draw(t, "id")
	switch kind := rapid.SampledFrom([]string{"create", "create", "patch", "patch", "patch", "pause", "resume", "get", "delete"}).Draw(t, "kind"); kind {
	case "create":
		req := drawRequest(t, rapid.SampledFrom([]string{"a", "b", "no id"}).Draw(t, "id"))
		return operation{name: fmt.Sprint("create ", req), run: func(g relayer.Registry) (*relayer.Relayer, error) { return g.Create(ctx, req) }}
	case "patch":
		patch := drawPatch(t)
		conditions := drawConditions(t)
		return operation{fmt.Sprint("patch ", id, patch, conditions), func(g relayer.Registry) (*relayer.Relayer, error) {
			return g.Patch(ctx, id, patchtest.JSON(maps.Clone(patch)), conditions...)
		}}
	case "pause":
		return operation{name: "pause " + id, run: func(g relayer.Registry) (*relayer.Relayer, error) { return g.Pause(ctx, id) }}
	case "resume":
		return operation{name: "resume " + id, run: func(g relayer.Registry) (*relayer.Relayer, error) { return g.Resume(ctx, id) }}
	case "delete":
		return operation{name: "delete " + id, run: func(g relayer.Registry) (*relayer.Relayer, error) { return nil, g.Delete(ctx, id) }}
	default:
		return operation{name: "get " + id, run: func(g relayer.Registry) (*relayer.Relayer, error) { return g.Get(ctx, id) }}
	}
}

// drawConditions draws none, or a range of revisions that may be current.
func drawConditions(t *rapid.T) []relayer.WriteOption {
	first := rapid.Uint64Range(0, 12).Draw(t, "first revision")
	if first == 0 {
		return nil
	}
	return []relayer.WriteOption{relayer.IfRevision(first, first+1, first+2, first+3)}
}

func drawRequest(t *rapid.T, id string) relayer.CreateRequest {
	networkType := rapid.SampledFrom([]relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar}).Draw(t, "network type")
	req := relayer.CreateRequest{
		ID: id, Name: drawText(t), Network: "n", NetworkType: networkType, SignerID: "s",
		Paused:         rapid.Bool().Draw(t, "paused"),
		NotificationID: rapid.SampledFrom([]string{"", "n"}).Draw(t, "notification"),
		CustomRPCURLs:  drawURLs(t),
	}
	policies := map[relayer.NetworkType]relayer.Policy{
		relayer.EVM:     new(relayer.EVMPolicy),
		relayer.Solana:  new(relayer.SolanaPolicy),
		relayer.Stellar: new(relayer.StellarPolicy),
	}
	encoded, err := json.Marshal(withoutNulls(drawPolicies(t, networkType)))
	if err != nil {
		t.Fatal(err)
	}
	// A value that the type does not hold leaves the policy as far as it is decoded.
	_ = json.Unmarshal(encoded, policies[networkType])
	req.Policy = policies[networkType]
	return req
}

func withoutNulls(members map[string]any) map[string]any {
	for name, value := range members {
		if value == nil {
			delete(members, name)
		}
	}
	return members
}

func drawText(t *rapid.T) string {
	return rapid.SampledFrom([]string{"name", "<ü\u2028\">", "", "other"}).Draw(t, "text")
}

func drawURLs(t *rapid.T) []relayer.RPCConfig {
	return rapid.SampledFrom([][]relayer.RPCConfig{
		nil, {}, {{URL: "https://rpc.example/v2/key", Weight: new(2.5)}}, {{URL: "wss://user:pw@b.example/?k=1"}, {URL: "HTTP://c.example:80/"}},
		{{URL: "no URL"}}, {{URL: "https://rpc.example/***"}},
	}).Draw(t, "URLs")
}

func drawPatch(t *rapid.T) map[string]any {
	all := map[string]any{
		"name":            drawText(t),
		"paused":          rapid.Bool().Draw(t, "paused"),
		"notification_id": rapid.SampledFrom([]any{nil, "n", "m", ""}).Draw(t, "notification"),
		"custom_rpc_urls": drawURLs(t),
		"policies":        nil,
		"network":         "other",
	}
	if rapid.Bool().Draw(t, "has policies") {
		all["policies"] = drawPolicies(t, rapid.SampledFrom([]relayer.NetworkType{relayer.EVM, relayer.Solana, relayer.Stellar}).Draw(t, "policies of"))
	}
	return drawSome(t, all, []string{"name", "paused", "notification_id", "custom_rpc_urls", "policies", "policies", "network"})
}

// drawSome keeps a few of the members.
func drawSome(t *rapid.T, all map[string]any, names []string) map[string]any {
	some := make(map[string]any)
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "members") {
		some[name] = all[name]
	}
	return some
}

// drawPolicies draws fields of every kind in the notations that JSON has for them.
func drawPolicies(t *rapid.T, networkType relayer.NetworkType) map[string]any {
	number := rapid.SampledFrom([]any{nil, 0, 5, json.Number("5.0"), json.Number("1e2"), 1e21, json.Number("1.5"), -1, "100"}).Draw(t, "number")
	fraction := rapid.SampledFrom([]any{nil, 0.1, 1, json.Number("2.50"), json.Number("1e-3")}).Draw(t, "fraction")
	strategy := rapid.SampledFrom([]any{nil, "user", "relayer", "x"}).Draw(t, "strategy")
	swap := rapid.SampledFrom([]any{nil, map[string]any{}, map[string]any{"cron_schedule": "* * * * *"}, map[string]any{"cron_schedule": nil, "min_balance_threshold": 3}}).Draw(t, "swap")
	texts := rapid.SampledFrom([]any{nil, []any{}, []any{"x"}, []any{"y", "x"}}).Draw(t, "texts")
	metadata := rapid.SampledFrom([]any{nil, map[string]any{"kind": "native"}, map[string]any{"kind": map[string]any{"contract": map[string]any{"contract_id": "c"}}}}).Draw(t, "metadata")
	fields := map[relayer.NetworkType]map[string]any{
		relayer.EVM:    {"gas_price_cap": number, "min_balance": number, "eip1559_pricing": true, "whitelist_receivers": texts},
		relayer.Solana: {"max_signatures": number, "fee_margin_percentage": fraction, "fee_payment_strategy": strategy, "swap_config": swap, "allowed_tokens": []any{map[string]any{"mint": "m", "symbol": nil, "max_allowed_fee": 7}}},
		relayer.Stellar: {"max_fee": number, "slippage_percentage": fraction, "fee_payment_strategy": strategy, "swap_config": swap,
			"allowed_tokens": []any{map[string]any{"asset": "native", "metadata": metadata}}},
	}[networkType]
	var names []string
	for _, name := range []string{"gas_price_cap", "min_balance", "eip1559_pricing", "whitelist_receivers", "max_signatures", "max_fee", "fee_margin_percentage", "slippage_percentage", "fee_payment_strategy", "swap_config", "allowed_tokens"} {
		if _, ok := fields[name]; ok {
			names = append(names, name)
		}
	}
	return drawSome(t, fields, names)
}

// TestClient_SameAsManager runs random operations on a Manager and on a client.
func TestClient_SameAsManager(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manager, c := newManager(t), newDirect(t, false)
		for range rapid.IntRange(1, 20).Draw(t, "operations") {
			operation := drawOperation(t)
			want, wantErr := operation.run(manager)
			got, err := operation.run(c)
			if printed(t, got) != printed(t, want) || kindOf(err) != kindOf(wantErr) {
				t.Fatalf("%s: %v, error %v, want %v, error %v", operation.name, got, err, want, wantErr)
			}
		}
	})
}

// TestClient_LostResponses runs random operations on a Manager, and on a client that gets
// no response to its writes. What changes a relayer of the Manager must succeed on the client,
// and have the same effect. What changes nothing leaves no trace.
func TestClient_LostResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		manager, c := newManager(t), newDirect(t, true)
		for range rapid.IntRange(1, 20).Draw(t, "operations") {
			operation := drawOperation(t)
			before := lastRevision(t, manager)
			want, wantErr := operation.run(manager)
			got, err := operation.run(c)
			if lastRevision(t, manager) == before && errors.Is(err, relayer.ErrOutcomeUnknown) {
				continue
			}
			if wantErr == nil && (err != nil || printed(t, got) != printed(t, want)) {
				t.Fatalf("%s: %v, error %v, want %v", operation.name, got, err, want)
			}
			if errors.Is(err, relayer.ErrUnavailable) {
				t.Fatalf("%s: error %v", operation.name, err)
			}
		}
		wantAll, all := readAll(t, manager), readAll(t, c)
		if !slices.Equal(wantAll, all) {
			t.Fatalf("the client's server has %q, want %q", all, wantAll)
		}
	})
}

// lastRevision returns the newest revision of the history.
func lastRevision(t *rapid.T, m *relayer.Manager) uint64 {
	changes, _, err := m.History(ctx, relayer.HistoryQuery{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) == 0 {
		return 0
	}
	return changes[0].Info.Revision
}

func readAll(t *rapid.T, g relayer.Registry) (all []string) {
	for r, err := range g.All(ctx, relayer.Selector{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.Revision = 0
		all = append(all, printed(t, r))
	}
	return all
}

// printed returns the JSON of a relayer, in which URLs are masked, and its revision.
func printed(t *rapid.T, r *relayer.Relayer) string {
	if r == nil {
		return ""
	}
	encoded, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(string(encoded), r.Revision)
}

// kindOf returns the properties of an error that a program can match.
func kindOf(err error) string {
	kind := fmt.Sprint(err == nil)
	for _, sentinel := range []error{relayer.ErrNotFound, relayer.ErrExists, relayer.ErrConflict, relayer.ErrUnavailable, relayer.ErrOutcomeUnknown} {
		kind += fmt.Sprint(errors.Is(err, sentinel))
	}
	if problem, ok := errors.AsType[*relayer.ValidationError](err); ok {
		// A client sends JSON, of which a Manager checks the syntax first.
		var fields []string // without their codes, which the HTTP API does not have
		for _, field := range problem.Fields {
			fields = append(fields, field.Field+" "+field.Message)
		}
		slices.Sort(fields)
		kind += fmt.Sprint(fields)
	}
	return kind
}
