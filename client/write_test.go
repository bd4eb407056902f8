package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// changed returns the request of evm with one difference.
func changed(change func(*relayer.CreateRequest)) relayer.CreateRequest {
	req := evm("a")
	change(&req)
	return req
}

// unknownOutcomes are the responses after which a write may have taken effect.
var unknownOutcomes = map[string]step{
	"reset":        reset,
	"truncated":    truncated(201),
	"500":          fail(500, "Internal Server Error"),
	"HTML 502":     html(502),
	"HTML 503":     html(503),
	"HTML 504":     html(504),
	"HTML 200":     html(200),
	"another data": respondJSON(200, `{"success":true,"data":null}`),
	"another ID":   respondJSON(200, `{"success":true,"data":{"id":"b","network_type":"evm"}}`),
}

func TestCreate_UnknownOutcome(t *testing.T) {
	same := stored(t, evm("a"), 200, 9)
	renamed := stored(t, changed(func(r *relayer.CreateRequest) { r.Name = "other" }), 200, 9)
	taken := fail(409, "Relayer with this ID already exists")
	tests := map[string]struct {
		steps []step
		want  error
		sent  string
	}{
		"created":                       {[]step{same}, nil, "POST GET"},
		"not created":                   {[]step{notFound("a"), stored(t, evm("a"), 201, 1)}, nil, "POST GET POST"},
		"created late":                  {[]step{notFound("a"), taken, same}, nil, "POST GET POST GET"},
		"created, and the read is busy": {[]step{busy, same}, nil, "POST GET GET"},
		"another name":                  {[]step{renamed}, relayer.ErrOutcomeUnknown, "POST GET"},
		"another network":               {[]step{stored(t, changed(func(r *relayer.CreateRequest) { r.Network = "mainnet" }), 200, 9)}, relayer.ErrExists, "POST GET"},
		"another signer":                {[]step{stored(t, changed(func(r *relayer.CreateRequest) { r.SignerID = "x" }), 200, 9)}, relayer.ErrExists, "POST GET"},
		"another URL":                   {[]step{stored(t, changed(func(r *relayer.CreateRequest) { r.CustomRPCURLs[0].URL = "https://other.example/x" }), 200, 9)}, relayer.ErrOutcomeUnknown, "POST GET"},
		"more URLs": {[]step{stored(t, changed(func(r *relayer.CreateRequest) {
			r.CustomRPCURLs = append(r.CustomRPCURLs, relayer.RPCConfig{URL: "https://other.example/x"})
		}), 200, 9)}, relayer.ErrOutcomeUnknown, "POST GET"},
		"another policy": {[]step{stored(t, changed(func(r *relayer.CreateRequest) { r.Policy = nil }), 200, 9)}, relayer.ErrOutcomeUnknown, "POST GET"},
		"a stricter policy": {[]step{stored(t, changed(func(r *relayer.CreateRequest) {
			r.Policy.(*relayer.EVMPolicy).MinBalance = new(relayer.MustParseAmount("1"))
		}), 200, 9)}, relayer.ErrOutcomeUnknown, "POST GET"},
		"unreadable":     {[]step{fail(401, "Unauthorized")}, relayer.ErrOutcomeUnknown, "POST GET"},
		"another ID":     {[]step{stored(t, evm("b"), 200, 9)}, relayer.ErrOutcomeUnknown, "POST GET"},
		"rejected later": {[]step{notFound("a"), fail(400, "Bad Request"), notFound("a")}, relayer.ErrOutcomeUnknown, "POST GET POST GET"},
	}
	for response, first := range unknownOutcomes {
		for name, test := range tests {
			t.Run(response+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, s := scripted(t, nil, append([]step{first}, test.steps...)...)
					created, err := c.Create(t.Context(), evm("a"))
					checkOutcome(t, err, test.want)
					if got := s.methods(); got != test.sent {
						t.Errorf("sent %s, want %s", got, test.sent)
					}
					if err == nil && (created.ID != "a" || created.Revision == 0) {
						t.Errorf("created %v", created)
					}
				})
			})
		}
	}
}

// checkOutcome checks that an error matches want. An unknown outcome must not match an
// error that promises that there was no effect.
func checkOutcome(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
	if errors.Is(err, relayer.ErrOutcomeUnknown) && (errors.Is(err, relayer.ErrUnavailable) || errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrNotFound)) {
		t.Errorf("%v matches an error that says the outcome", err)
	}
	if err != nil {
		wantNoSecret(t, "the error", err.Error())
	}
}

func TestCreate_GeneratedID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		renamed := changed(func(r *relayer.CreateRequest) { r.Name = "changed since" })
		var ids []string
		idOf := func(r *http.Request) string { return r.URL.Path[len("/prefix/api/v1/relayers/"):] }
		missing := func(r *http.Request) (*http.Response, error) {
			ids = append(ids, idOf(r))
			return notFound(idOf(r))(r)
		}
		// Only this call uses the generated ID, so it has created the relayer.
		changedSince := func(r *http.Request) (*http.Response, error) {
			renamed.ID = idOf(r)
			return stored(t, renamed, 200, 9)(r)
		}
		c, s := scripted(t, nil, reset, missing, reset, changedSince)
		if _, err := c.Create(t.Context(), changed(func(r *relayer.CreateRequest) { r.ID = "" })); err != nil {
			t.Fatal(err)
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

// A proxy sends a create twice, and returns the second response.
func TestCreate_SentTwice(t *testing.T) {
	m := newManager(t)
	api := handlerOf(t, m)
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost {
			first := r.Clone(r.Context())
			first.Body = io.NopCloser(bytes.NewReader(body))
			api.ServeHTTP(httptest.NewRecorder(), first)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		api.ServeHTTP(w, r)
	}))
	created, err := c.Create(t.Context(), changed(func(r *relayer.CreateRequest) { r.ID = "" }))
	if err != nil || created.Name != "name of a" {
		t.Errorf("created %v, error %v", created, err)
	}
	if _, err := c.Create(t.Context(), evm("taken")); !errors.Is(err, relayer.ErrExists) {
		t.Errorf("an ID of the caller: error %v", err)
	}
}

func TestChange_UnknownOutcome(t *testing.T) {
	before := stored(t, evm("a"), 200, 5)
	named := func(name string, revision uint64) step {
		return stored(t, changed(func(r *relayer.CreateRequest) { r.Name = name }), 200, revision)
	}
	rename := func(ctx context.Context, c *client.Client) error {
		_, err := c.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "new"}))
		return err
	}
	renameIf := func(ctx context.Context, c *client.Client) error {
		_, err := c.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "new"}), relayer.IfRevision(4, 5))
		return err
	}
	rotated := patchtest.JSON(map[string]any{"custom_rpc_urls": []relayer.RPCConfig{{URL: "https://rpc.example/v2/hunter2"}}})
	rotate := func(ctx context.Context, c *client.Client) error {
		_, err := c.Patch(ctx, "a", rotated)
		return err
	}
	rotateIf := func(ctx context.Context, c *client.Client) error {
		_, err := c.Patch(ctx, "a", rotated, relayer.IfRevision(5))
		return err
	}
	remove := func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, "a") }
	removeIf := func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, "a", relayer.IfRevision(5)) }
	deleted := respondJSON(200, `{"success":true,"data":"Relayer deleted successfully"}`)
	changedSince := fail(412, "Precondition Failed")
	tests := map[string]struct {
		call  func(context.Context, *client.Client) error
		steps []step
		want  error
		sent  string
	}{
		"patch, in effect":                           {rename, []step{named("new", 6)}, nil, "PATCH GET"},
		"patch, not in effect":                       {rename, []step{before}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"patch, deleted":                             {rename, []step{notFound("a")}, relayer.ErrNotFound, "PATCH GET"},
		"patch, unreadable":                          {rename, []step{fail(500, "")}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"conditional patch, in effect":               {renameIf, []step{named("new", 6)}, nil, "PATCH GET"},
		"conditional patch, not in effect":           {renameIf, []step{before, named("new", 6)}, nil, "PATCH GET PATCH"},
		"conditional patch, in effect late":          {renameIf, []step{before, changedSince, named("new", 6)}, nil, "PATCH GET PATCH GET"},
		"conditional patch, overwritten":             {renameIf, []step{named("third", 7)}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"conditional patch, overwritten after retry": {renameIf, []step{before, changedSince, named("third", 7)}, relayer.ErrOutcomeUnknown, "PATCH GET PATCH GET"},
		"URL patch, unknown":                         {rotate, []step{before}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"conditional URL patch, not in effect":       {rotateIf, []step{before, named("name of a", 6)}, nil, "PATCH GET PATCH"},
		"conditional URL patch, unknown":             {rotateIf, []step{named("name of a", 6)}, relayer.ErrOutcomeUnknown, "PATCH GET"},
		"conditional URL patch, unknown after retry": {rotateIf, []step{before, changedSince, named("name of a", 6)}, relayer.ErrOutcomeUnknown, "PATCH GET PATCH GET"},
		"delete, gone":                               {remove, []step{notFound("a")}, nil, "DELETE GET"},
		"delete, there":                              {remove, []step{before}, relayer.ErrOutcomeUnknown, "DELETE GET"},
		"conditional delete, gone":                   {removeIf, []step{notFound("a")}, nil, "DELETE GET"},
		"conditional delete, there":                  {removeIf, []step{before, deleted}, nil, "DELETE GET DELETE"},
		"conditional delete, gone late":              {removeIf, []step{before, notFound("a"), notFound("a")}, nil, "DELETE GET DELETE GET"},
		"conditional delete, created again":          {removeIf, []step{stored(t, evm("a"), 200, 8)}, relayer.ErrOutcomeUnknown, "DELETE GET"},
	}
	for response, first := range unknownOutcomes {
		if response == "another data" || response == "another ID" {
			continue // a delete needs no data
		}
		for name, test := range tests {
			t.Run(response+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, s := scripted(t, nil, append([]step{first}, test.steps...)...)
					checkOutcome(t, test.call(t.Context(), c), test.want)
					if got := s.methods(); got != test.sent {
						t.Errorf("sent %s, want %s", got, test.sent)
					}
				})
			})
		}
	}
}

// A response with another relayer does not show the outcome.
func TestPatch_OtherRelayer(t *testing.T) {
	other := stored(t, changed(func(r *relayer.CreateRequest) { r.ID, r.Paused = "b", true }), 200, 9)
	c, s := scripted(t, nil, other)
	if r, err := c.Pause(t.Context(), "a"); !errors.Is(err, relayer.ErrOutcomeUnknown) || s.methods() != "PATCH GET" {
		t.Errorf("sent %s, got %v, error %v", s.methods(), r, err)
	}
}

// A rejection proves that the write had no effect.
func TestWrite_RejectedIsKnown(t *testing.T) {
	rejections := map[error]step{
		relayer.ErrConflict:    fail(412, "Precondition Failed"),
		relayer.ErrNotFound:    notFound("a"),
		relayer.ErrUnavailable: fail(503, "Service Unavailable", "Retry-After", "1"),
		relayer.ErrInvalid:     fail(400, "Bad Request"),
		client.ErrForbidden:    html(403),
	}
	for want, rejection := range rejections {
		synctest.Test(t, func(t *testing.T) {
			c, s := scripted(t, nil, rejection)
			err := c.Delete(t.Context(), "a", relayer.IfRevision(1))
			if !errors.Is(err, want) || errors.Is(err, relayer.ErrOutcomeUnknown) {
				t.Errorf("the error is %v, want %v", err, want)
			}
			if got := s.methods(); got != "DELETE" && want != relayer.ErrUnavailable || s.seen[len(s.seen)-1].method != "DELETE" {
				t.Errorf("sent %s", got)
			}
		})
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
		checkOutcome(t, err, relayer.ErrOutcomeUnknown)
		if len(s.seen) != 10 || time.Since(start) > 30*time.Second {
			t.Errorf("%d requests in %s, want 5 creates, each followed by a read", len(s.seen), time.Since(start))
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
		if _, err := c.Pause(t.Context(), "a", test.options...); err != nil {
			t.Fatal(err)
		}
		if got := s.seen[0].header.Get("If-Match"); got != test.want {
			t.Errorf("If-Match is %s, want %s", got, test.want)
		}
	}
	// A change that no revision permits is sent, because the relayer may not exist.
	for _, options := range [][]relayer.WriteOption{{revisions()}, {revisions(5), revisions(6)}} {
		c, s := scripted(t, nil, fail(412, "Precondition Failed"))
		_, err := c.Pause(t.Context(), "a", options...)
		if got := s.seen[0].header.Get("If-Match"); !errors.Is(err, relayer.ErrConflict) || got != `"0"` {
			t.Errorf("If-Match is %s, error %v", got, err)
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
