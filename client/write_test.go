package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

// changed returns the request of evm with one difference.
func changed(change func(*relayer.CreateRequest)) relayer.CreateRequest {
	req := evm("a")
	change(&req)
	return req
}

func TestCreate_GeneratedID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		missing := func(r *http.Request) (*http.Response, error) {
			id := strings.Split(r.URL.Path, "/")[5]
			ids = append(ids, id)
			return notFound(id)(r)
		}
		c, s := scripted(t, nil, reset, missing, missing, fail(400, "Bad Request"), missing, missing)
		if _, err := c.Create(t.Context(), evm("")); !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		for _, request := range s.seen {
			if request.method != "POST" {
				continue
			}
			var body struct{ ID string }
			if err := json.Unmarshal([]byte(request.body), &body); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, body.ID)
		}
		for _, id := range ids {
			if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 || id != ids[0] {
				t.Errorf("the IDs are %q, want one UUIDv7", ids)
			}
		}
	})
}

// A rejection by the server also applies to the lost attempt before it; that of a proxy does not.
func TestWrite_RejectedAfterLoss(t *testing.T) {
	absent, current, invalid := notFound("a"), stored(t, evm("a"), 200, 5), fail(400, "Bad Request")
	none := history("[]")
	create := func(ctx context.Context, c *client.Client) error { return second(c.Create(ctx, evm("a"))) }
	pause := func(ctx context.Context, c *client.Client) error { return second(c.Pause(ctx, "a")) }
	pauseIf := func(ctx context.Context, c *client.Client) error {
		return second(c.Pause(ctx, "a", relayer.IfRevision(5)))
	}
	tests := map[string]struct {
		call  func(context.Context, *client.Client) error
		steps []step
		want  error
		sent  string
	}{
		"invalid":                 {create, []step{absent, absent, invalid, absent, absent}, relayer.ErrInvalid, "POST GET GET POST GET GET"},
		"invalid patch":           {pause, []step{current, none, invalid, current, none}, relayer.ErrInvalid, "PATCH GET GET PATCH GET GET"},
		"forbidden":               {pauseIf, []step{current, none, fail(403, "Forbidden"), current, none}, client.ErrForbidden, "PATCH GET GET PATCH GET GET"},
		"403 of a proxy":          {pauseIf, []step{current, none, html(403), current, none}, relayer.ErrOutcomeUnknown, "PATCH GET GET PATCH GET GET"},
		"unreadable":              {pause, []step{fail(401, "Unauthorized")}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"unreadable history":      {pause, []step{current, fail(403, "Forbidden")}, relayer.ErrOutcomeUnknown, "PATCH GET GET"},
		"a page with 200":         {pause, []step{html(200), current, html(200), none, current}, nil, "PATCH GET GET GET GET PATCH"},
		"busy reads":              {pause, []step{busy, current, busy, none, current}, nil, "PATCH GET GET GET GET PATCH"},
		"another writer's change": {pauseIf, []step{stored(t, evm("a"), 200, 6), none}, relayer.ErrConflict, "PATCH GET GET"},
		"a history without an end": {pauseIf, []step{stored(t, evm("a"), 200, 9), history(`[{"revision":8,"request_id":"x"}],"next":"8"`), history(`[{"revision":5}],"next":"5"`)},
			relayer.ErrConflict, "PATCH GET GET GET"}, // it ends at the revision of the condition
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, nil, append([]step{reset}, test.steps...)...)
			err := test.call(t.Context(), c)
			checkUnknown(t, err)
			if !errors.Is(err, test.want) || s.methods() != test.sent {
				t.Errorf("%s: sent %s, want %s, error %v, want %v", name, s.methods(), test.sent, err, test.want)
			}
		})
	}
}

// A busy server does not show that a lost attempt will have no effect.
func TestWrite_BusyAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := 0
		c, _ := scripted(t, nil, func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.Contains(r.URL.Path, "/history"):
				return history("[]")(r)
			case r.Method == http.MethodGet:
				return stored(t, evm("a"), 200, 5)(r)
			}
			if writes++; writes == 1 {
				return reset(r)
			}
			return busy(r)
		})
		err := second(c.Pause(t.Context(), "a", relayer.IfRevision(5)))
		if checkUnknown(t, err); !errors.Is(err, relayer.ErrOutcomeUnknown) || writes != 5 {
			t.Errorf("error %v after %d writes", err, writes)
		}
	})
}

// history responds with a page of a history, as a server that gets the request IDs.
func history(data string) step {
	return func(r *http.Request) (*http.Response, error) {
		return respondJSON(200, `{"success":true,"data":`+data+`}`, "X-Request-Id", r.Header.Get("X-Request-Id"))(r)
	}
}

func TestWrite_CanceledAfterSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		c, s := scripted(t, nil, blocked)
		err := c.Delete(ctx, "a")
		if !errors.Is(err, relayer.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) || s.methods() != "DELETE" {
			t.Errorf("sent %s, error %v", s.methods(), err)
		}
	})
}

// A write that never gets through is bounded, and reported as unknown.
func TestWrite_UnknownOutcomeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, nil)
		s.steps = []step{func(r *http.Request) (*http.Response, error) {
			if r.Method == "GET" {
				return notFound("a")(r)
			}
			return reset(r)
		}}
		start := time.Now()
		_, err := c.Create(t.Context(), evm("a"))
		checkUnknown(t, err)
		if !errors.Is(err, relayer.ErrOutcomeUnknown) || len(s.seen) != 15 || time.Since(start) > 30*time.Second {
			t.Errorf("%d requests in %s, error %v, want 5 creates, each followed by two reads", len(s.seen), time.Since(start), err)
		}
	})
}

func TestIfRevision_IfMatch(t *testing.T) {
	revisions := relayer.IfRevision
	tests := []struct {
		options []relayer.WriteOption
		want    string
	}{
		{nil, ""},
		{[]relayer.WriteOption{revisions(5)}, `"5"`},
		{[]relayer.WriteOption{revisions(5, 18446744073709551615)}, `"5", "18446744073709551615"`},
		{[]relayer.WriteOption{revisions(5, 6, 5), revisions(6, 7, 5)}, `"5", "6"`},
	}
	for _, test := range tests {
		c, s := scripted(t, nil, stored(t, evm("a"), 200, 9))
		must(c.Pause(t.Context(), "a", test.options...))(t)
		if got := s.seen[0].header.Get("If-Match"); got != test.want {
			t.Errorf("If-Match is %s, want %s", got, test.want)
		}
	}
	// A change that no revision permits is sent, because the relayer may not exist.
	for _, options := range [][]relayer.WriteOption{{revisions()}, {revisions(5), revisions(6)}} {
		c, s := scripted(t, nil, fail(412, "Precondition Failed"))
		pauseErr, deleteErr := second(c.Pause(t.Context(), "a", options...)), c.Delete(t.Context(), "a", options...)
		for _, err := range []error{pauseErr, deleteErr} { // a rejection proves that the write had no effect
			if got := s.seen[0].header.Get("If-Match"); !errors.Is(err, relayer.ErrConflict) || errors.Is(err, relayer.ErrOutcomeUnknown) || got != `"0"` {
				t.Errorf("If-Match is %s, error %v", got, err)
			}
		}
	}
	for _, options := range [][]relayer.WriteOption{{revisions(0)}, {revisions(0, 5)}, {revisions(5), revisions(6), revisions(0)}} {
		c, s := scripted(t, nil, stored(t, evm("a"), 200, 9))
		_, err := c.Resume(t.Context(), "a", options...)
		if deleteErr := c.Delete(t.Context(), "a", options...); !errors.Is(err, relayer.ErrNoRevision) || !errors.Is(deleteErr, relayer.ErrNoRevision) || len(s.seen) != 0 {
			t.Errorf("errors %v and %v, %d requests", err, deleteErr, len(s.seen))
		}
	}
}
