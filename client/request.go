package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/wire"
)

const (
	collectionPath   = "/api/v1/relayers"
	rpcURLsParameter = "rpc_urls"
)

// request is an HTTP request, which may be sent several times, always with the same ID.
type request struct {
	method    string
	path      string // below the base URL
	query     url.Values
	header    http.Header
	id        string // of the relayer; empty for the collection
	body      []byte
	requestID string

	isRepeatable bool // even if its outcome is unknown
	isDryRun     bool
	isDelete     bool

	revisions []uint64 // of the condition; nil is no condition
	since     uint64   // the changes up to this revision are known, and none is the write

	token  string    // of the last attempt
	began  time.Time // when the last attempt was sent, after the token was known
	isLost bool      // the server may have processed an attempt
}

// newRequest returns a request about one relayer, or about the collection if id is empty, or about
// what is below them.
func newRequest(method, id, below string, body []byte) *request {
	path := collectionPath
	if id != "" {
		path += "/" + id
	}
	requestID := rand.Text()
	return &request{
		method: method, path: path + below, query: url.Values{"changes": {"true"}}, id: id, body: body, requestID: requestID,
		header:       http.Header{"Accept": {"application/json"}, "X-Request-Id": {requestID}},
		isRepeatable: method == http.MethodGet, isDelete: method == http.MethodDelete && below == "",
	}
}

// withURLs returns a read that asks for full RPC URLs, or not.
func (r *request) withURLs(full bool) *request {
	if full {
		r.query.Set(rpcURLsParameter, "full")
	}
	return r
}

func (r *request) String() string { return r.method + " " + r.path }

// errorf returns an error that names the request.
func (r *request) errorf(format string, values ...any) error {
	return fmt.Errorf("%s (request %s): "+format, append([]any{r, r.requestID}, values...)...)
}

// setOptions adds the conditions, the reason and the dry run of a write.
func (r *request) setOptions(settings relayer.WriteSettings) {
	if settings.Revisions != nil {
		r.header.Set("If-Match", ifMatch(settings.Revisions))
	}
	if settings.Reason != "" {
		r.header.Set("X-Change-Reason", settings.Reason)
	}
	if settings.DryRun {
		r.query.Set("dry_run", "true")
		r.isRepeatable, r.isDryRun = true, true
	}
}

// nonempty returns the parameters of a query that have a value.
func nonempty(parameters map[string]string) url.Values {
	query := url.Values{}
	for name, value := range parameters {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// optional returns the text of a value, or "" for the zero value.
func optional[T comparable](value T, text string) string {
	if value == *new(T) {
		return ""
	}
	return text
}

func (r *request) http(ctx context.Context, c *Client) (*http.Request, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, errors.New("the request is invalid")
	}
	sent.URL.RawQuery, sent.Header = r.query.Encode(), r.header.Clone()
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if c.token == nil {
		return sent, nil
	}
	if r.token, err = c.token(ctx); err == nil && !wire.IsToken(r.token) {
		err = errors.New(badToken)
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
	text = wire.Printable(strings.ToValidUTF8(mask.Text(mask.Shortened(text, mask.MaxText)), "?"), ' ')
	if len(text) > maxMessageLength {
		text = mask.Shortened(text, maxMessageLength) + "…"
	}
	return text
}

// ifMatch returns the value of If-Match for the revisions. Revision 0, which no relayer has,
// stands for an empty list.
func ifMatch(revisions []uint64) string {
	var tags []string
	for _, revision := range slices.Compact(slices.Sorted(slices.Values(revisions))) {
		tags = append(tags, `"`+strconv.FormatUint(revision, 10)+`"`)
	}
	return cmp.Or(strings.Join(tags, ", "), `"0"`)
}
