package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/store/memory"
)

const (
	pause  = collection + ":pause"
	resume = collection + ":resume"
)

// bulkResult is the data of a pause or a resume of several relayers.
type bulkResult struct {
	RequestID string `json:"request_id"`
	Changed   int    `json:"changed"`
	Unchanged int    `json:"unchanged"`
	Failed    []struct{ ID, Message string }
}

func (r reply) bulk(t *testing.T) bulkResult {
	t.Helper()
	if r.status != http.StatusOK {
		t.Fatalf("returned %d %s", r.status, r.body)
	}
	return decode[envelope[bulkResult]](t, r.body).Data
}

// serveTeams starts a registry with 10 relayers of payments and 5 of risk.
func serveTeams(t *testing.T, options ...httpapi.Option) *service {
	t.Helper()
	s := serve(t, options...)
	for i := range 15 {
		team := "payments"
		if i%3 == 0 {
			team = "risk"
		}
		s.create(minimal(fmt.Sprintf(`,"id":"r-%02d","labels":{"team":"%s"}`, i, team)))
	}
	return s
}

// paused returns how many relayers are paused.
func (s *service) paused() int {
	s.t.Helper()
	return pausedOn(s.t, s.manager)
}

func pausedOn(t *testing.T, manager *relayer.Manager) int {
	t.Helper()
	return must(manager.List(t.Context(), relayer.ListQuery{Selector: relayer.Selector{}.Where("paused", "true")}))(t).Pagination.TotalItems
}

func TestPause_Selection(t *testing.T) {
	s := serveTeams(t)
	s.do("PATCH", collection+"/r-01", `{"paused":true}`)
	dry := s.do("POST", pause+"?label.team=payments&dry_run=true", "").bulk(t)
	if dry.Changed != 9 || dry.Unchanged != 1 || s.paused() != 1 {
		t.Errorf("a dry run returned %+v, and %d are paused", dry, s.paused())
	}
	got := s.do("POST", pause+"?label.team=payments", "", with("X-Request-Id", "request-1"), with("X-Change-Reason", "incident 42"))
	if want := `{"success":true,"data":{"request_id":"request-1","changed":9,"unchanged":1,"failed":[]}}`; got.body != want || s.paused() != 10 {
		t.Errorf("returned %d %s, and %d are paused", got.status, got.body, s.paused())
	}
	one := s.do("GET", collection+"/r-02?changes=true", "").body
	if !strings.Contains(one, `"action":"pause","reason":"incident 42","request_id":"request-1","changed":["paused"],"paused_by":{"time":`) {
		t.Errorf("a relayer is %s", one)
	}
	if resumed := s.do("POST", resume+"?all=true&paused_by=request-1", "").bulk(t); resumed.Changed != 9 || resumed.Unchanged != 6 || s.paused() != 1 {
		t.Errorf("a resume returned %+v, and %d are paused", resumed, s.paused())
	}
	if resumed := s.do("POST", resume+"?all=true", "").bulk(t); resumed.Changed != 1 || resumed.Unchanged != 14 || s.paused() != 0 {
		t.Errorf("a resume of all returned %+v, and %d are paused", resumed, s.paused())
	}
}

func TestPause_BadRequest(t *testing.T) {
	s := serveTeams(t)
	required := relayer.FieldError{Message: "at least one filter is required, or all=true"}
	for query, problem := range map[string]relayer.FieldError{
		"":              required,
		"?all=false":    required,
		"?search=":      required,
		"?all=yes":      {Field: "all", Message: "must be true or false"},
		"?paused=maybe": {Field: "paused", Message: "must be true or false"},
	} {
		for _, path := range []string{pause, resume} {
			got := s.do("POST", path+query, "")
			wantProblem(t, got, problem.Field, problem.Message)
		}
	}
	wantProblem(t, s.do("POST", resume+"?all=true&paused_by=", ""), "paused_by", "must not be empty")
	s.expect(http.StatusOK, "POST", resume+"?all=true&paused_by="+strings.Repeat("x", 128), "")
	for _, impossible := range []string{strings.Repeat("x", 129), "a%0Ab", "%ff"} {
		got := s.do("POST", resume+"?all=true&paused_by="+impossible, "")
		wantProblem(t, got, "paused_by", "must be at most 128 bytes of UTF-8 without control characters")
	}
	wantProblem(t, s.do("POST", pause+"?all=true&paused_by=request-1", ""), "paused_by", "is only possible for a resume of several relayers")
	got := s.do("POST", pause+"?all=true", "", with("If-Match", `"1"`))
	wantProblem(t, got, "", "a change of several relayers cannot have the condition of a revision")
	got = s.do("POST", pause+"?all=true", "", with("X-Change-Reason", "a", "b"))
	wantProblem(t, got, "", "the X-Change-Reason must be one line without control characters")
	if s.paused() != 0 {
		t.Errorf("%d are paused", s.paused())
	}
	got = s.do("POST", pause+"?label.team=risk&pausd=x", "")
	if !strings.Contains(got.body, `the query parameter \"pausd\" is unknown and was ignored`) || s.paused() != 5 {
		t.Errorf("an unknown parameter: %s, and %d are paused", got.body, s.paused())
	}
}

// The authorizer permits the actions, and limits them to its selector.
func TestPause_Authorizer(t *testing.T) {
	s := serveTeams(t, httpapi.WithAuthorizer(func(_ context.Context, a httpapi.Access) (httpapi.Decision, error) {
		switch a.Action {
		case relayer.ActionPause:
			return httpapi.Allow(payments), nil
		case relayer.ActionCreate:
			return allow()
		default:
			return refuse()
		}
	}))
	for i, query := range []string{"?all=true", "?label.team=risk"} {
		if got := s.do("POST", pause+query, "").bulk(t); got.Changed != []int{10, 0}[i] || s.paused() != 10 {
			t.Errorf("%s: returned %+v, and %d are paused", query, got, s.paused())
		}
	}
	wantFailure(t, s.do("POST", resume+"?all=true", ""), http.StatusForbidden, "Forbidden")
}

// A fault of one relayer is logged, and the response has only the message.
func TestPause_Failed(t *testing.T) {
	store := memory.New()
	manager := managerOn(t, store, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		switch {
		case o.Action == relayer.ActionResume && o.ID == "r-1":
			return fmt.Errorf("the queue at https://user:pw@queue.example/v2/key broke")
		case o.Action == relayer.ActionResume && o.ID == "r-2":
			return &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "paused", Message: "must be true"}, {Message: "not now"}}}
		default:
			return nil
		}
	}))
	s := serveManager(t, manager, validTokens)
	for _, id := range []string{"r-1", "r-2", "r-3"} {
		s.create(minimal(`,"id":"` + id + `"`))
	}
	s.do("POST", pause+"?all=true", "")
	got := s.do("POST", resume+"?all=true", "", with("X-Request-Id", "request-1"))
	want := `{"success":true,"data":{"request_id":"request-1","changed":1,"unchanged":0,"failed":[{"id":"r-1","message":"Internal Server Error"},{"id":"r-2","message":"paused must be true; not now"}]}}`
	if got.body != want {
		t.Errorf("returned %d %s", got.status, got.body)
	}
	if log := s.log.String(); !strings.Contains(log, "queue.example") || !strings.Contains(log, "r-1") || !strings.Contains(log, "request_id=request-1") {
		t.Errorf("the log is %s", log)
	}
}

// TestPause_ClientGone: a client that goes away does not stop the request.
func TestPause_ClientGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	manager := managerOn(t, nil, relayer.WithObserver(func(ctx context.Context, o *relayer.Operation) (context.Context, func(error)) {
		if o.Action == relayer.ActionPause {
			cancel()
		}
		return ctx, nil
	}))
	for i := range 150 {
		createIn(t, manager, fmt.Sprint("r-", i), "n")
	}
	api := apiOn(t, manager, validTokens)
	serveHTTP(ctx, api, "POST", pause+"?all=true", "")
	if paused := pausedOn(t, manager); paused != 150 {
		t.Errorf("%d are paused", paused)
	}
}
