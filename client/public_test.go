package client_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// publicServer responds like OpenZeppelin Relayer: with its envelope, without entity tags,
// with defaults in its policies, and with 500 if an ID is taken.
type publicServer struct {
	mu       sync.Mutex
	order    []string
	relayers map[string]map[string]any
}

func (s *publicServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"success": false, "code":401, "error": "Unauthorized", "message": "Unauthorized"}`)
		return
	}
	id, isSingle := strings.CutPrefix(r.URL.Path, "/api/v1/relayers/")
	switch {
	case isSingle && s.relayers[id] == nil:
		s.fail(w, 404, "Relayer with ID "+id+" not found")
	case isSingle && r.Method == http.MethodGet:
		s.succeed(w, 200, s.relayers[id], nil)
	case isSingle && r.Method == http.MethodPatch:
		s.patch(w, r, id)
	case isSingle && r.Method == http.MethodDelete:
		delete(s.relayers, id)
		s.succeed(w, 200, "Relayer deleted successfully", nil)
	case r.URL.Path == "/api/v1/relayers" && r.Method == http.MethodPost:
		s.create(w, r)
	case r.URL.Path == "/api/v1/relayers":
		s.list(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *publicServer) succeed(w http.ResponseWriter, status int, data, pagination any) {
	s.send(w, status, map[string]any{"success": true, "data": data, "error": nil, "pagination": pagination})
}

func (s *publicServer) fail(w http.ResponseWriter, status int, text string) {
	s.send(w, status, map[string]any{"success": false, "data": nil, "error": text})
}

func (s *publicServer) send(w http.ResponseWriter, status int, body map[string]any) {
	if body["pagination"] == nil {
		delete(body, "pagination")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *publicServer) create(w http.ResponseWriter, r *http.Request) {
	body := s.body(w, r)
	if body == nil {
		return
	}
	id, _ := body["id"].(string)
	if s.relayers[id] != nil {
		s.fail(w, 500, "An unknown error occurred")
		return
	}
	if body["signer_id"] == "unknown" {
		s.fail(w, 404, "Signer with ID unknown not found")
		return
	}
	body["address"], body["system_disabled"] = "0x0", false
	if policies, _ := body["policies"].(map[string]any); len(policies) == 0 {
		delete(body, "policies")
	} else {
		policies["gas_limit_estimation"] = true
	}
	s.relayers[id] = body
	s.order = append(s.order, id)
	s.succeed(w, 201, body, nil)
}

// body decodes a request. The framework of OpenZeppelin Relayer accepts no other
// media type.
func (s *publicServer) body(w http.ResponseWriter, r *http.Request) map[string]any {
	var body map[string]any
	if r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&body) != nil {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "Content type error")
		return nil
	}
	endpoints, _ := body["custom_rpc_urls"].([]any)
	for _, endpoint := range endpoints {
		members := endpoint.(map[string]any)
		members["url"] = relayer.RPCURL(members["url"].(string)).String()
	}
	return body
}

func (s *publicServer) patch(w http.ResponseWriter, r *http.Request, id string) {
	body := s.body(w, r)
	if body == nil {
		return
	}
	if s.relayers[id]["system_disabled"] == true {
		s.fail(w, 400, "Relayer is disabled")
		return
	}
	for name, value := range body {
		s.relayers[id][name] = value
	}
	s.succeed(w, 200, s.relayers[id], nil)
}

func (s *publicServer) list(w http.ResponseWriter, r *http.Request) {
	page, _ := strconv.Atoi(cmp.Or(r.FormValue("page"), "1"))
	perPage, _ := strconv.Atoi(r.FormValue("per_page"))
	data := []any{}
	total := 0
	for _, id := range s.order {
		if s.relayers[id] == nil {
			continue
		}
		if total >= (page-1)*perPage && total < page*perPage {
			data = append(data, s.relayers[id])
		}
		total++
	}
	s.succeed(w, 200, data, map[string]any{"current_page": page, "per_page": perPage, "total_items": total})
}

// TestClient_OpenZeppelinRelayer drives a server that responds like OpenZeppelin Relayer.
func TestClient_OpenZeppelinRelayer(t *testing.T) {
	server := &publicServer{relayers: make(map[string]map[string]any)}
	c := clientOf(t, server, client.WithRetries(5, time.Second))
	ctx := t.Context()
	created, err := c.Create(ctx, evm("a"))
	if err != nil || created.Revision != 0 || created.Address != "0x0" || *created.Policy.(*relayer.EVMPolicy).GasPriceCap != relayer.Ether(1) {
		t.Fatalf("created %v, error %v", created, err)
	}
	if r, err := c.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "new", "notification_id": nil})); err != nil || r.Name != "new" || r.NotificationID != "" {
		t.Errorf("patched %v, error %v", r, err)
	}
	// OpenZeppelin Relayer ignores If-Match, so the client must not send the change.
	if _, err := c.Pause(ctx, "a", relayer.IfRevision(created.Revision)); !errors.Is(err, relayer.ErrNoRevision) {
		t.Errorf("a conditional change: error %v", err)
	}
	if r, err := c.Get(ctx, "a"); err != nil || r.Paused {
		t.Errorf("got %v, error %v", r, err)
	}
	for i := range 230 {
		req := evm(fmt.Sprint("r", i))
		req.Policy = nil
		if _, err := c.Create(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for r, err := range c.All(ctx, relayer.Selector{}) {
		if err != nil || r.Revision != 0 || n > 0 && r.ID != fmt.Sprint("r", n-1) || r.Policy == nil {
			t.Fatalf("relayer %d is %v, error %v", n, r, err)
		}
		n++
	}
	if n != 231 {
		t.Errorf("%d relayers", n)
	}
	if page, err := c.List(ctx, relayer.ListQuery{Page: 2, PerPage: 20}); err != nil || len(page.Relayers) != 20 || page.Relayers[0].Revision != 0 {
		t.Errorf("a page: %v, error %v", page, err)
	}
	if err := c.Delete(ctx, "r7"); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(ctx, "r7"); !errors.Is(err, relayer.ErrNotFound) {
		t.Errorf("a deleted relayer: error %v", err)
	}
	other := evm("a")
	other.SignerID = "other"
	if _, err := c.Create(ctx, other); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("a taken ID: error %v", err)
	}
	other.ID, other.SignerID = "b", "unknown"
	if _, err := c.Create(ctx, other); !errors.Is(err, relayer.ErrInvalid) || !strings.Contains(err.Error(), "Signer with ID unknown not found") {
		t.Errorf("an unknown signer: error %v", err)
	}
	for _, err := range c.Watch(ctx, relayer.WatchQuery{}) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a watch: error %v", err)
		}
	}
	server.disable("a")
	r, err := c.Get(ctx, "a")
	want := relayer.DisabledReason{Type: "Multiple", Details: "NonceSyncFailed: Nonce synchronization failed; BalanceCheckFailed: Insufficient balance"}
	if err != nil || !r.SystemDisabled || *r.DisabledReason != want {
		t.Errorf("a disabled relayer: %v, error %v", r, err)
	}
	if _, err := c.Resume(ctx, "a"); !errors.Is(err, relayer.ErrInvalid) || !strings.Contains(err.Error(), "Relayer is disabled") {
		t.Errorf("a change of a disabled relayer: error %v", err)
	}
}

func (s *publicServer) disable(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relayers[id]["system_disabled"] = true
	s.relayers[id]["disabled_reason"] = map[string]any{"type": "Multiple", "details": []any{
		map[string]any{"type": "NonceSyncFailed", "details": "Nonce synchronization failed"},
		map[string]any{"type": "BalanceCheckFailed", "details": "Insufficient balance"},
	}}
}
