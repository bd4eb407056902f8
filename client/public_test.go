package client_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// publicServer responds to reads like OpenZeppelin Relayer: with its envelope, and without
// entity tags, cursors and filters.
type publicServer struct {
	relayers []map[string]any
	most     int            // relayers of a page
	before   func(page int) // runs before a page is read, if it is not nil
}

// newPublicServer returns a server that has the relayers r0, r1 and so on.
func newPublicServer(count int) *publicServer {
	s := &publicServer{most: 100}
	for i := range count {
		s.relayers = append(s.relayers, map[string]any{
			"id": fmt.Sprint("r", i), "name": "n", "network": "sepolia", "network_type": "evm", "address": "0x0", "paused": false,
			"system_disabled": false, "signer_id": "s", "custom_rpc_urls": []any{map[string]any{"url": "https://rpc.example/***", "weight": 1}},
		})
	}
	return s
}

func (s *publicServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, isSingle := strings.CutPrefix(r.URL.Path, "/api/v1/relayers/")
	i := slices.IndexFunc(s.relayers, func(r map[string]any) bool { return r["id"] == id })
	status, body := http.StatusOK, map[string]any{"success": true, "error": nil}
	switch {
	case r.Method != http.MethodGet || !isSingle && r.URL.Path != "/api/v1/relayers", isSingle && strings.Contains(id, "/"):
		w.WriteHeader(http.StatusNotFound)
		return
	case !isSingle:
		s.list(r, body)
	case i < 0:
		status, body = http.StatusNotFound, map[string]any{"success": false, "data": nil, "error": "Relayer with ID " + id + " not found"}
	default:
		body["data"] = s.relayers[i]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *publicServer) list(r *http.Request, body map[string]any) {
	page, _ := strconv.Atoi(cmp.Or(r.FormValue("page"), "1"))
	perPage, _ := strconv.Atoi(r.FormValue("per_page"))
	perPage = min(perPage, s.most)
	if s.before != nil {
		s.before(page)
	}
	first := min((page-1)*perPage, len(s.relayers))
	body["data"] = append([]map[string]any{}, s.relayers[first:min(first+perPage, len(s.relayers))]...)
	body["pagination"] = map[string]any{"current_page": page, "per_page": perPage, "total_items": len(s.relayers)}
}

func TestClient_OpenZeppelinRelayer(t *testing.T) {
	server := newPublicServer(231)
	server.most = 30
	server.relayers[3]["policies"] = map[string]any{"gas_limit_estimation": true, "gas_price_cap": 5}
	server.relayers[4]["system_disabled"] = true
	server.relayers[4]["disabled_reason"] = map[string]any{"type": "Multiple", "details": []any{
		map[string]any{"type": "NonceSyncFailed", "details": "Nonce synchronization failed"},
		map[string]any{"type": "BalanceCheckFailed", "details": "Insufficient balance"},
	}}
	c := clientOf(t, server)
	ctx := t.Context()
	n := 0
	for r, err := range c.All(ctx, relayer.Selector{}) {
		if err != nil || r.Revision != 0 || r.ID != fmt.Sprint("r", n) || r.Policy == nil {
			t.Fatalf("relayer %d is %v, error %v", n, r, err)
		}
		n++
	}
	if n != 231 {
		t.Errorf("%d relayers", n)
	}
	if page, err := c.List(ctx, relayer.ListQuery{Page: 2, PerPage: 20}); err != nil || len(page.Relayers) != 20 || page.Pagination.TotalItems != 231 {
		t.Errorf("a page: %v, error %v", page, err)
	}
	if r, err := c.Get(ctx, "r3"); err != nil || r.Revision != 0 || r.Policy.(*relayer.EVMPolicy).GasPriceCap.String() != "5" {
		t.Errorf("got %v, error %v", r, err)
	}
	want := relayer.DisabledReason{Type: "Multiple", Details: `[{"details":"Nonce synchronization failed","type":"NonceSyncFailed"},{"details":"Insufficient balance","type":"BalanceCheckFailed"}]`}
	if r, err := c.Get(ctx, "r4"); err != nil || !r.SystemDisabled || *r.DisabledReason != want {
		t.Errorf("a disabled relayer: %v, error %v", r, err)
	}
	if _, err := c.Get(ctx, "unknown"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("an unknown relayer: error %v", err)
	}
	for _, err := range clientOf(t, server, client.WithRetries(1, 0)).Watch(ctx, relayer.WatchQuery{}) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a watch: error %v", err)
		}
	}
	// It ignores If-Match, so a change under a revision must not be sent.
	if err := second(c.Update(ctx, "r3", func(r *relayer.Relayer) error { r.Name = "new"; return nil })); !errors.Is(err, relayer.ErrNoRevision) {
		t.Errorf("an update: error %v", err)
	}
}

// A walk by pages never loses relayers without an error.
func TestAll_PagesChange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tests := map[string]struct {
		before  func(s *publicServer, page int)
		isError bool
	}{
		"nothing": {func(_ *publicServer, page int) {
			if page > 3 {
				t.Errorf("page %d of 3 was read", page)
			}
		}, false},
		"another order": {func(s *publicServer, _ int) {
			random.Shuffle(len(s.relayers), func(i, j int) { s.relayers[i], s.relayers[j] = s.relayers[j], s.relayers[i] })
		}, true},
		"a delete": {func(s *publicServer, page int) {
			if page == 2 {
				s.relayers = s.relayers[1:]
			}
		}, true},
		"a create": {func(s *publicServer, page int) {
			if page == 3 {
				s.relayers = append(s.relayers, newPublicServer(251).relayers[250])
			}
		}, true},
		"a delete and a later create": {func(s *publicServer, page int) { // the number is right at first and at last
			switch page {
			case 2:
				s.relayers = s.relayers[1:]
			case 3:
				s.relayers = append(s.relayers, newPublicServer(251).relayers[250])
			}
		}, true},
		"the same relayers on all pages": {func(s *publicServer, page int) { // the server ignores the page number
			if page > 1 {
				copy(s.relayers[(page-1)*100:], s.relayers[:100])
			}
		}, true},
	}
	for name, test := range tests {
		server := newPublicServer(250)
		server.before = func(page int) { test.before(server, page) }
		var failed error
		read := make(map[string]bool)
		for r, err := range clientOf(t, server).All(t.Context(), where("network", "sepolia")) {
			if failed = err; err != nil {
				continue
			}
			if read[r.ID] {
				t.Errorf("%s: %s is returned twice", name, r.ID)
			}
			read[r.ID] = true
		}
		if (failed != nil) != test.isError || failed == nil && len(read) != 250 || failed != nil && !strings.Contains(failed.Error(), "incomplete") {
			t.Errorf("%s: %d relayers, error %v", name, len(read), failed)
		}
	}
}
