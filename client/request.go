package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
)

const (
	collectionPath = "/api/v1/relayers"
	singlePath     = collectionPath + "/"
	watchPath      = collectionPath + ":watch"
)

// request is an HTTP request, which may be sent several times.
type request struct {
	method    string
	path      string // below the base URL
	query     string
	id        string // of the relayer; empty for the collection
	wantID    string // of the relayer in a success
	body      []byte
	ifMatch   string
	requestID string

	// decode reads the data of a success into the response.
	decode func(*response) error
}

func newRequest(method, path string, body []byte) *request {
	id, _ := strings.CutPrefix(path, singlePath)
	if id == path {
		id = ""
	}
	return &request{method: method, path: path, id: id, wantID: id, body: body, requestID: rand.Text(), decode: decodeSingle}
}

func (r *request) isRead() bool { return r.method == http.MethodGet }

func (r *request) String() string { return r.method + " " + r.path }

// errorf returns an error that names the request.
func (r *request) errorf(format string, values ...any) error {
	return fmt.Errorf("client: %s (request %s): "+format, append([]any{r, r.requestID}, values...)...)
}

// http returns the request to send.
func (r *request) http(ctx context.Context, c *Client) (*http.Request, error) {
	address := c.base + r.path
	if r.query != "" {
		address += "?" + r.query
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("client: the request is invalid")
	}
	if r.body == nil {
		sent.Body, sent.GetBody, sent.ContentLength = nil, nil, 0
	} else {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.ifMatch != "" {
		sent.Header.Set("If-Match", r.ifMatch)
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("Authorization", "Bearer "+*c.token)
	sent.Header.Set("X-Request-Id", r.requestID)
	return sent, nil
}

// connection observes whether a request got a connection, on which it may have been
// sent.
type connection struct {
	wanted bool // the transport reports its steps
	got    bool
}

func (c *connection) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// A write that was sent is not sent again by the transport: the last connection
		// is the one that counts.
		GetConn: func(string) { c.wanted, c.got = true, false },
		GotConn: func(httptrace.GotConnInfo) { c.got = true },
	})
}

func (c *connection) wasSent() bool { return c.got || !c.wanted }

// withoutURL removes the URL that package http adds to its errors: the errors of this
// package name the request.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// ifMatch returns the value of If-Match for the conditions, or "" if there are none. It
// returns [relayer.ErrNoRevision] if one has revision 0, and [relayer.ErrConflict] if no
// revision satisfies them all.
func ifMatch(conditions []relayer.Condition) (string, []uint64, error) {
	if len(conditions) == 0 {
		return "", nil, nil
	}
	allowed := make(map[uint64]int)
	for _, condition := range conditions {
		for _, revision := range distinct(condition.Revisions()) {
			if revision == 0 {
				return "", nil, relayer.ErrNoRevision
			}
			allowed[revision]++
		}
	}
	var revisions []uint64
	var tags []string
	for _, revision := range distinct(conditions[0].Revisions()) {
		if allowed[revision] == len(conditions) {
			revisions = append(revisions, revision)
			tags = append(tags, `"`+strconv.FormatUint(revision, 10)+`"`)
		}
	}
	if len(revisions) == 0 {
		return "", nil, relayer.ErrConflict
	}
	return strings.Join(tags, ", "), revisions, nil
}

func distinct(revisions []uint64) []uint64 {
	seen := make(map[uint64]bool)
	var kept []uint64
	for _, revision := range revisions {
		if !seen[revision] {
			seen[revision] = true
			kept = append(kept, revision)
		}
	}
	return kept
}
