//go:build !race

// The race detector empties pools at random, so that memory cannot be measured.

package httpapi_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

// work is what requests cost, or how many times that of others.
type work struct {
	calls, allocs, bytes float64 // of the store, and of memory
}

// input is a request to an endpoint. The first one of an endpoint is ordinary.
type input struct {
	endpoint, name string
	method, path   string
	body           func(i int) string // nil: empty
	prepare        func()             // nil: not needed
	status         int
	most           work // times the work of the ordinary request
}

// countingStore counts the calls that read or write, and retains all changes of largest.
type countingStore struct {
	relayer.Store
	calls atomic.Int64
	past  []relayer.RecordChange
}

func (s *countingStore) Create(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.calls.Add(1)
	return s.Store.Create(ctx, rec)
}

func (s *countingStore) Get(ctx context.Context, id string) (relayer.Record, error) {
	s.calls.Add(1)
	return s.Store.Get(ctx, id)
}

func (s *countingStore) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.calls.Add(1)
	return s.Store.List(ctx, query)
}

func (s *countingStore) Update(ctx context.Context, rec relayer.Record) (relayer.Record, error) {
	s.calls.Add(1)
	rec, err := s.Store.Update(ctx, rec)
	if rec.ID == largest && len(s.past) <= manyLarge() {
		s.past = append(s.past, relayer.RecordChange{Kind: relayer.ChangeUpdated, Record: rec})
	}
	return rec, err
}

func (s *countingStore) Delete(ctx context.Context, id string, revision uint64, note []byte) error {
	s.calls.Add(1)
	return s.Store.Delete(ctx, id, revision, note)
}

func (s *countingStore) History(ctx context.Context, query relayer.HistoryQuery) (found []relayer.RecordChange, err error) {
	s.calls.Add(1)
	if query.ID != largest {
		return s.Store.History(ctx, query)
	}
	for _, change := range slices.Backward(s.past) {
		if len(found) < query.Limit && (query.Before == 0 || change.Record.Revision < query.Before) {
			change.Record.Private = nil
			found = append(found, change)
		}
	}
	return found, nil
}

// long makes [TestCosts] as hard as the largest page.
var long = flag.Bool("long", false, "measure costs with a page of 100 relayers of 256 KiB, not 10")

// manyLarge is the number of large relayers, and of the changes of one in its history.
func manyLarge() int {
	if *long {
		return 100
	}
	return 10
}

const (
	largest  = "large-0"
	receiver = `"0x742d35Cc6634C0532925a3b844Bc454e4438f44e"`
	endpoint = `{"url":"https://rpc.example/v2/0123456789abcdef"}`
)

// elements returns a list.
func elements(element string, count int) string {
	return "[" + strings.Repeat(element+",", count-1) + element + "]"
}

// largeParts are members of a relayer of almost 256 KiB as stored.
func largeParts(i int) string {
	return fmt.Sprintf(`"name":"%d","custom_rpc_urls":%s,"policies":{"whitelist_receivers":%s}`, i, elements(endpoint, 1000), elements(receiver, 3300))
}

func largeBody(id string) string {
	return fmt.Sprintf(`{"id":%q,"network":"x","network_type":"evm","paused":false,"signer_id":"s",%s}`, id, largeParts(0))
}

func smallBody(id string) string { return minimal(fmt.Sprintf(`,"id":%q`, id)) }

// costs has relayers of which the first are large.
type costs struct {
	tb        testing.TB
	store     *countingStore
	documents relayer.Documents
	handler   http.Handler
	sent      int // requests
}

func newCosts(tb testing.TB, relayers int) *costs {
	c := &costs{tb: tb, store: &countingStore{Store: memory.New()}}
	manager := managerOn(tb, c.store, relayer.WithNetworkRules())
	c.documents = manager.Documents()
	c.handler = apiOn(tb, manager, validTokens, httpapi.WithRateLimit(0, 0), httpapi.WithEngineOperations())
	for i := range manyLarge() {
		c.create(largeBody(fmt.Sprint("large-", i)))
	}
	for i := range manyLarge() + 1 {
		must(c.documents.Patch(tb.Context(), largest, []byte("{"+largeParts(i+1)+"}")))(tb)
	}
	for i := range relayers {
		c.create(smallBody(fmt.Sprint("r-", i)))
	}
	for i := range 20 {
		must(c.documents.Patch(tb.Context(), "r-1", fmt.Appendf(nil, `{"name":"%d"}`, i)))(tb)
	}
	return c
}

func (c *costs) create(body string) {
	must(c.documents.Create(c.tb.Context(), []byte(body)))(c.tb)
}

// text returns a body that is always the same.
func text(body string) func(int) string { return func(int) string { return body } }

// numbered returns a body that has the number of the request.
func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

// inputs returns the requests of all endpoints. Reads are first, because a history has the
// latest writes.
func (c *costs) inputs() []input {
	const (
		single   = collection + "/r-1"
		large    = collection + "/" + largest
		dryRun   = collection + "?dry_run=true"
		all      = collection + ":history"
		reason   = "/disabled_reason"
		ok       = http.StatusOK
		bad      = http.StatusBadRequest
		mebibyte = 1<<20 - 300
	)
	search := make(url.Values)
	for i := range 8 {
		search.Add("search", strings.Repeat(fmt.Sprint(i), 128))
	}
	page, each := fmt.Sprint("?per_page=", manyLarge()), float64(manyLarge())
	searches := "?" + search.Encode()
	thousand := searches + "&signer_id=s"
	for i := range 991 {
		thousand += fmt.Sprint("&signer_id=other-", i)
	}
	unknown := "?"
	for i := range 5000 {
		unknown += fmt.Sprintf("unknown-%d&", i)
	}
	paused := func(i int) string { return fmt.Sprintf(`{"paused":%t}`, i%2 == 0) }
	inputs := []input{
		{"get", "", "GET", single, nil, nil, ok, work{}},
		{"get", "256 KiB", "GET", large + "?changes=true", nil, nil, ok, work{1, 20, 500}},
		{"get", "256 KiB, full RPC URLs", "GET", large + "?rpc_urls=full", nil, nil, ok, work{1, 2000, 4000}},
		{"list", "", "GET", collection + "?page=50", nil, nil, ok, work{}},
		{"list", "256 KiB each", "GET", collection + page + "&changes=true", nil, nil, ok, work{1, 60, 400 * each}},
		{"list", "256 KiB each, full RPC URLs", "GET", collection + page + "&rpc_urls=full", nil, nil, ok, work{1, 2000 * each, 2400 * each}},
		{"list", "8 searches", "GET", collection + searches, nil, nil, ok, work{1, 20, 10}},
		{"list", "1,000 values", "GET", collection + thousand, nil, nil, ok, work{1, 1300, 350}},
		{"watch", "", "GET", changes, nil, nil, ok, work{}},
		{"watch", "1,000 values", "GET", changes + thousand, nil, nil, ok, work{0, 600, 400}},
		{"history of one", "", "GET", single + "/history", nil, nil, ok, work{}},
		{"history of one", "256 KiB each", "GET", large + "/history" + page, nil, nil, ok, work{1, 12, 35 * each}},
		{"history of all", "", "GET", all, nil, nil, ok, work{}},
		{"history of all", "1,000 not selected", "GET", all + "?actor=nobody", nil, nil, ok, work{11, 28, 40}},
		{"access", "", "GET", "/api/v1/access", nil, nil, ok, work{}},
		{"access", "5,000 unknown parameters", "GET", "/api/v1/access" + unknown, nil, nil, ok, work{0, 130, 300}},
		{"create", "", "POST", collection, numbered(smallBody("new-%d")), nil, http.StatusCreated, work{}},
		{"create", "256 KiB", "POST", collection, numbered(largeBody("new-large-%d")), nil, http.StatusCreated, work{1, 1000, 1100}},
		{"dry run of a create", "", "POST", dryRun, text(smallBody("new")), nil, ok, work{}},
		{"dry run of a create", "256 KiB", "POST", dryRun, text(largeBody("new-large")), nil, ok, work{1, 1200, 1300}},
		{"patch", "", "PATCH", single, numbered(`{"name":"%d"}`), nil, ok, work{}},
		{"patch", "256 KiB", "PATCH", large, func(i int) string { return "{" + largeParts(i) + "}" }, nil, ok, work{1, 1100, 1700}},
		{"pause", "", "PATCH", single, paused, nil, ok, work{}},
		{"pause", "256 KiB", "PATCH", large, paused, nil, ok, work{1, 2, 220}},
		{"disable", "", "PUT", single + reason, numbered(`{"type":"NonceSyncFailed","details":"nonce %d"}`), nil, ok, work{}},
		{"disable", "1 MiB of URLs", "PUT", large + reason, numbered(`{"type":"%d","details":"` + strings.Repeat("https://a/b ", mebibyte/12) + `"}`), nil, ok, work{1, 1300, 3000}},
		{"delete", "", "DELETE", collection + "/deleted", nil, func() { c.create(smallBody("deleted")) }, ok, work{}},
		{"delete", "256 KiB", "DELETE", collection + "/deleted", nil, func() { c.create(largeBody("deleted")) }, ok, work{1, 2, 2}},
	}
	for _, refused := range []struct {
		name, members string
		most          work
	}{
		{"refused, 1 MiB of wrong receivers", `"policies":{"whitelist_receivers":` + elements(`"\u0000"`, mebibyte/9) + `}`, work{1, 100, 700}},
		{"refused, 1 MiB of empty URLs", `"custom_rpc_urls":` + elements(`{"url":""}`, mebibyte/11), work{1, 900, 1400}},
		{"refused, 1 MiB of empty receivers", `"policies":{"whitelist_receivers":` + elements(`""`, mebibyte/3) + `}`, work{1, 500, 800}},
		{"refused, 10,000 empty receivers", `"policies":{"whitelist_receivers":` + elements(`""`, 10_000) + `}`, work{1, 1800, 1500}},
		{"refused, 1 MiB of receivers", `"policies":{"whitelist_receivers":` + elements(receiver, mebibyte/45) + `}`, work{1, 600, 900}},
	} {
		inputs = append(inputs,
			input{"create", refused.name, "POST", collection, text(minimal("," + refused.members)), nil, bad, refused.most},
			input{"patch", refused.name, "PATCH", single, text("{" + refused.members + "}"), nil, bad, refused.most})
	}
	return inputs
}

// measure returns the least work of three requests after a first one: a pool that the garbage
// collector has emptied adds to one of them.
func (c *costs) measure(in input) work {
	c.tb.Helper()
	least := work{math.Inf(1), math.Inf(1), math.Inf(1)}
	var before, after runtime.MemStats
	for i := range 4 {
		r := c.request(in)
		w := &blockedWriter{statusWriter: statusWriter{header: make(http.Header)}, release: closed}
		calls := c.store.calls.Load()
		runtime.ReadMemStats(&before)
		c.handler.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if w.status != in.status {
			c.tb.Fatalf("%s %s returned %d, want %d", in.endpoint, in.name, w.status, in.status)
		}
		if i == 0 {
			continue
		}
		least.calls = min(least.calls, float64(c.store.calls.Load()-calls))
		least.allocs = min(least.allocs, float64(after.Mallocs-before.Mallocs))
		least.bytes = min(least.bytes, float64(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}

// request returns a request with its own number.
func (c *costs) request(in input) *http.Request {
	c.sent++
	if in.prepare != nil {
		in.prepare()
	}
	ctx, cancel := context.WithCancel(c.tb.Context())
	c.tb.Cleanup(cancel)
	if in.endpoint == "watch" {
		cancel() // the stream ends at once
	}
	body := ""
	if in.body != nil {
		body = in.body(c.sent)
	}
	return newRequest(ctx, in.method, in.path, body)
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// TestCosts: the worst input of each endpoint costs a bounded multiple of an ordinary one,
// in calls of the store and in memory.
func TestCosts(t *testing.T) {
	c := newCosts(t, 1000)
	ordinary := make(map[string]work)
	for _, in := range c.inputs() {
		if in.name == "" {
			ordinary[in.endpoint] = c.measure(in)
			continue
		}
		got, base := c.measure(in), ordinary[in.endpoint]
		ratio := work{calls: got.calls / max(base.calls, 1), allocs: got.allocs / base.allocs, bytes: got.bytes / base.bytes}
		if ratio.calls > in.most.calls || ratio.allocs > in.most.allocs || ratio.bytes > in.most.bytes {
			t.Errorf("%s, %s: %.1f times the calls, %.1f times the allocations and %.1f times the memory of an ordinary request, want at most %v, %v and %v",
				in.endpoint, in.name, ratio.calls, ratio.allocs, ratio.bytes, in.most.calls, in.most.allocs, in.most.bytes)
		}
	}
}
