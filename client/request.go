package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-relayer/relayer/internal/mask"
)

const (
	collectionPath = "/api/v1/relayers"
	watchPath      = collectionPath + ":watch"
	historyPath    = collectionPath + ":history"
	accessPath     = "/api/v1/access"
)

// request is an HTTP request, which may be sent several times.
type request struct {
	method    string
	path      string // below the base URL
	query     url.Values
	id        string // of the relayer; empty for the collection
	body      []byte
	ifMatch   string
	reason    string // of a change
	requestID string

	isRepeatable bool // even if its outcome is unknown
	isDryRun     bool
	isDelete     bool
	isOptional   bool // some servers do not offer the operation

	token string // of the last attempt
}

func newRequest(method, path string, body []byte) *request {
	return &request{
		method: method, path: path, body: body, requestID: rand.Text(), query: url.Values{"changes": {"true"}},
		isRepeatable: method == http.MethodGet,
	}
}

// newSingleRequest returns a request about one relayer, or to the path below it.
func newSingleRequest(method, id, below string, body []byte) *request {
	req := newRequest(method, collectionPath+"/"+id+below, body)
	req.id = id
	return req
}

func (r *request) String() string { return r.method + " " + r.path }

// errorf returns an error that names the request.
func (r *request) errorf(format string, values ...any) error {
	return fmt.Errorf("%s (request %s): "+format, append([]any{r, r.requestID}, values...)...)
}

func (r *request) http(ctx context.Context, c *Client) (*http.Request, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the request is invalid")
	}
	if r.body == nil {
		sent.Body, sent.GetBody, sent.ContentLength = nil, nil, 0
	} else {
		sent.Header.Set("Content-Type", "application/json")
	}
	for name, value := range map[string]string{"If-Match": r.ifMatch, "X-Change-Reason": r.reason} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	sent.Header.Set("Accept", "application/json")
	sent.Header.Set("X-Request-Id", r.requestID)
	if c.token == nil {
		return sent, nil
	}
	if r.token, err = c.token(ctx); err == nil {
		err = checkToken(r.token)
	}
	if err != nil {
		return nil, r.errorf("no token: %w", mask.Error(err))
	}
	sent.Header.Set("Authorization", "Bearer "+r.token)
	return sent, nil
}

const maxMessageLength = 300

// sanitize makes text of a server fit for errors and logs: without RPC URLs, the token and
// control characters, and not too long.
func (r *request) sanitize(text string) string {
	if r.token != "" {
		text = strings.ReplaceAll(text, r.token, mask.Hidden)
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(mask.Text(mask.Shortened(text, mask.MaxText)), "?"))
	if len(text) > maxMessageLength {
		text = mask.Shortened(text, maxMessageLength) + "…"
	}
	return text
}

// withoutURL removes the URL that package http adds to its errors: the errors of this
// package name the request.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// ifMatch returns the value of If-Match for the revisions, or "" for nil. Revision 0, which
// no relayer has, stands for an empty list.
func ifMatch(revisions []uint64) string {
	if revisions != nil && len(revisions) == 0 {
		return `"0"`
	}
	var tags []string
	for _, revision := range slices.Compact(slices.Sorted(slices.Values(revisions))) {
		tags = append(tags, `"`+strconv.FormatUint(revision, 10)+`"`)
	}
	return strings.Join(tags, ", ")
}
