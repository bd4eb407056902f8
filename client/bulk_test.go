package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// bulkOf returns a registry with the relayers r-0 to r-9, of which the even ones are of the network even.
func bulkOf(t *testing.T, options ...relayer.Option) *relayer.Manager {
	t.Helper()
	m := newManager(t, options...)
	for i := range 10 {
		req := relayer.CreateRequest{ID: fmt.Sprint("r-", i), Name: "n", Network: []string{"even", "odd"}[i%2], NetworkType: relayer.EVM, SignerID: "s"}
		must(m.Create(t.Context(), req))(t)
	}
	return m
}

// A client does what a Manager does.
func TestPauseAll(t *testing.T) {
	m := bulkOf(t)
	c := serve(t, m)
	even, ctx := relayer.Selector{}.Where("network", "even"), t.Context()
	wantBulk := func(result relayer.BulkResult, err error, changed, unchanged, paused int) {
		t.Helper()
		page, listErr := m.List(ctx, relayer.ListQuery{Selector: relayer.Selector{}.Where("paused", "true")})
		if err != nil || listErr != nil || result.Changed != changed || result.Unchanged != unchanged || result.Failed != nil || page.Pagination.TotalItems != paused {
			t.Errorf("the result is %+v, error %v, and %d are paused", result, err, page.Pagination.TotalItems)
		}
	}
	dry, err := c.PauseAll(ctx, even, relayer.DryRun())
	wantBulk(dry, err, 5, 0, 0)
	none, err := c.PauseAll(ctx, relayer.Selector{}.Where("id"))
	wantBulk(none, err, 0, 0, 0)
	paused, err := c.PauseAll(ctx, even, relayer.Reason("incident 42"))
	wantBulk(paused, err, 5, 0, 5)
	r, err := c.Get(ctx, "r-0")
	if err != nil || r.LastChange.PausedBy.RequestID != paused.RequestID || r.LastChange.PausedBy.Reason != "incident 42" {
		t.Errorf("paused by %+v, error %v", r.LastChange.PausedBy, err)
	}
	all, err := c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	wantBulk(all, err, 5, 5, 10)
	resumed, err := c.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.PausedBy(paused.RequestID))
	wantBulk(resumed, err, 5, 5, 5)
}

func TestPauseAll_Errors(t *testing.T) {
	m := bulkOf(t, relayer.WithAdmission(func(_ context.Context, o relayer.Operation, _, _ *relayer.Relayer) error {
		if o.Action == relayer.ActionResume && o.ID == "r-3" {
			return relayer.Refuse("the nonce is not synchronized")
		}
		return nil
	}))
	c, ctx := serve(t, m), t.Context()
	for name, err := range map[string]error{
		"nothing selected": second(c.PauseAll(ctx, relayer.Selector{})),
		"invalid selector": second(c.PauseAll(ctx, relayer.Selector{}.Where("x", "y"))),
		"a revision":       second(c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers(), relayer.IfRevision(1))),
		"no request":       second(c.ResumeAll(ctx, relayer.Selector{}, relayer.PausedBy(""))),
	} {
		if !errors.Is(err, relayer.ErrInvalid) || !strings.HasPrefix(err.Error(), "client: pause: ") && !strings.HasPrefix(err.Error(), "client: resume") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(c.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()))(t)
	resumed, err := c.ResumeAll(ctx, relayer.Selector{}, relayer.AllRelayers())
	if err != nil || resumed.Changed != 9 || fmt.Sprint(resumed.Failed) != "map[r-3:the nonce is not synchronized]" {
		t.Errorf("the result is %+v, error %v", resumed, err)
	}
	older, _ := scripted(t, nil, fail(404, "Not Found"))
	if _, err := older.PauseAll(ctx, relayer.Selector{}, relayer.AllRelayers()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an older server: %v", err)
	}
}

const bulkDone = `{"success":true,"data":{"request_id":"id","changed":3,"unchanged":2,"failed":[]}}`

// All attempts have one request ID. The error says whether relayers may have been changed.
func TestPauseAll_LostResponse(t *testing.T) {
	unavailable := fail(http.StatusServiceUnavailable, "Service Unavailable", "Retry-After", "1")
	for name, c := range map[string]struct {
		steps    []step
		attempts int
		want     error
	}{
		"lost once":               {[]step{reset, respondJSON(200, bulkDone)}, 2, nil},
		"truncated once":          {[]step{truncated(200), respondJSON(200, bulkDone)}, 2, nil},
		"unavailable once":        {[]step{unavailable, respondJSON(200, bulkDone)}, 2, nil},
		"a proxy without server":  {[]step{html(502), respondJSON(200, bulkDone)}, 2, nil},
		"data that is no result":  {[]step{respondJSON(200, `{"success":true,"data":{}}`)}, 1, relayer.ErrOutcomeUnknown},
		"always lost":             {[]step{reset}, 5, relayer.ErrOutcomeUnknown},
		"a fault":                 {[]step{fail(500, "Internal Server Error")}, 1, relayer.ErrOutcomeUnknown},
		"always unavailable":      {[]step{unavailable}, 5, relayer.ErrUnavailable},
		"lost, then unavailable":  {[]step{reset, unavailable}, 5, relayer.ErrOutcomeUnknown},
		"lost, then not accepted": {[]step{reset, fail(401, "Unauthorized")}, 2, relayer.ErrOutcomeUnknown},
		"not accepted":            {[]step{fail(401, "Unauthorized")}, 1, client.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, want := c, relayer.BulkResult{RequestID: "id", Changed: 3, Unchanged: 2}
				registry, sent := scripted(t, nil, c.steps...)
				result, err := registry.PauseAll(t.Context(), relayer.Selector{}.Where("network", "a"), relayer.Reason("why"))
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err == nil && !reflect.DeepEqual(result, want) {
					t.Errorf("the result is %+v, error %v", result, err)
				}
				if c.want == relayer.ErrOutcomeUnknown && result.RequestID != sent.seen[0].header.Get("X-Request-Id") {
					t.Errorf("the result has the request %q", result.RequestID)
				}
				if c.want == relayer.ErrOutcomeUnknown && errors.Is(err, relayer.ErrUnavailable) {
					t.Errorf("the error promises that nothing was changed: %v", err)
				}
				if len(sent.seen) != c.attempts {
					t.Errorf("%d attempts, want %d", len(sent.seen), c.attempts)
				}
				for _, request := range sent.seen {
					id := request.header.Get("X-Request-Id")
					if request.path != "/pre%20fix/api/v1/relayers:pause?network=a" || id == "" || id != sent.seen[0].header.Get("X-Request-Id") || request.header.Get("X-Change-Reason") != "why" {
						t.Errorf("sent %+v", request)
					}
				}
			})
		})
	}
}
