package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-relayer/relayer"
)

// Get returns the relayer, or [relayer.ErrNotFound].
func (c *Client) Get(ctx context.Context, id string) (*relayer.Relayer, error) {
	r, err := c.read(ctx, id, c.fullURLs, c.newAttempts())
	return named(relayer.ActionGet, id, r, err)
}

func (c *Client) read(ctx context.Context, id string, fullURLs bool, attempts *attempts) (*relayer.Relayer, error) {
	if !relayer.IsID(id) {
		return nil, relayer.ErrNotFound
	}
	req := newRequest(http.MethodGet, id, "", nil)
	req.set(rpcURLsParameter, "full", fullURLs)
	r, failed := do(ctx, c, req, attempts, (*response).single)
	return r, failed.cause()
}

// RPCURLs returns the RPC endpoints of a relayer with their full URLs, which may contain
// API keys, if the host has enabled it (see httpapi.WithEngineOperations). It returns an error that
// matches [relayer.ErrNotFound], [relayer.ErrSealed] if the server cannot open them, or
// [ErrForbidden] if the token does not permit it.
func (c *Client) RPCURLs(ctx context.Context, id string) ([]relayer.RPCConfig, error) {
	var endpoints []relayer.RPCConfig
	r, err := c.read(ctx, id, true, c.newAttempts())
	if err == nil {
		endpoints = r.CustomRPCURLs
	}
	if hasMasked(endpoints) {
		err = errUnopened
	}
	return named(relayer.ActionReveal, id, endpoints, err)
}

// errUnopened reports that URLs which were requested in full are masked.
var errUnopened = fmt.Errorf("the server cannot open them: %w: %w", relayer.ErrSealed, relayer.ErrUnavailable)

func hasMasked(endpoints []relayer.RPCConfig) bool {
	return slices.ContainsFunc(endpoints, relayer.RPCConfig.IsMasked)
}

// List returns one page of the relayers that the query selects, in the order of the server, which
// is the order of creation for package httpapi. Pagination.PerPage is the number that the server
// used. A page of more than 32 MiB is an error; with After, List returns fewer relayers instead.
//
// The server selects the relayers. If it lacks the filters or the cursors of the query, like
// OpenZeppelin Relayer, the error matches [errors.ErrUnsupported]: use [Client.All].
func (c *Client) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	listed, err := c.list(ctx, query)
	if listed.isPublic && (query.After != nil || !query.Selector.IsZero()) {
		err = fmt.Errorf("the server has no cursors, and cannot select relayers: %w", errors.ErrUnsupported)
	}
	return named(relayer.ActionList, "", &listed.Page, err)
}

// noID is the ID of no relayer. It is the same in all requests: a position is valid only for the
// selection of its page.
var noID = rand.Text()

// addFilters adds a selector to the parameters of a query.
func addFilters(query url.Values, selector relayer.Selector) {
	for key, values := range selector.Terms() {
		if len(values) == 0 {
			key, values = "id", []string{noID}
		}
		query[key] = values
	}
}

// listing is a page as a server returns it.
type listing struct {
	relayer.Page
	isPublic bool // the server has no revisions, filters and cursors
}

func (c *Client) list(ctx context.Context, query relayer.ListQuery) (listing, error) {
	if err := query.Validate(); err != nil {
		return listing{}, err
	}
	req := newRequest(http.MethodGet, "", "", nil)
	req.set(rpcURLsParameter, "full", c.fullURLs)
	addFilters(req.query, query.Selector)
	if query.After != nil {
		req.query.Set("after", string(*query.After))
	} else {
		req.query.Set("page", number(max(query.Page, 1)))
	}
	for perPage := cmp.Or(query.PerPage, relayer.DefaultPerPage); ; perPage = min(perPage, allPage) / 2 {
		req.query.Set("per_page", number(perPage))
		listed, failed := do(ctx, c, req, c.newAttempts(), (*response).listing)
		isTooLarge := failed != nil && errors.Is(failed.err, errTooLarge)
		if !isTooLarge || query.After == nil || perPage == 1 {
			return listed, failed.cause()
		}
	}
}

// number returns a number as a server accepts it.
func number(n int) string { return strconv.FormatUint(min(uint64(n), math.MaxUint32), 10) }

func (p *response) listing() (l listing, err error) {
	body := p.envelope
	l.isPublic = body.Changes == nil
	if json.Unmarshal(body.Data, &l.Relayers) != nil || l.Relayers == nil || body.Pagination == nil || !l.isPublic && len(body.Changes) != len(l.Relayers) {
		return l, errNoData
	}
	if l.Pagination, l.Next = *body.Pagination, body.Next; body.Position != nil {
		l.Position = *body.Position
	}
	for i, r := range l.Relayers {
		if r == nil || r.ID == "" {
			return l, errNoData
		}
		if !l.isPublic {
			setChange(r, body.Changes[i])
		}
	}
	return l, p.request.checkURLs(!l.isPublic, body.Metadata, body.Sealed, l.Relayers...)
}

// All returns every relayer that the selector selects, in the order of [Client.List]. It
// reads in pages, by cursors: a relayer that exists and is selected during the whole iteration
// is returned exactly once, despite concurrent writes. No ID is returned twice. The iteration ends
// after the first error.
//
// A server without cursors, like OpenZeppelin Relayer, is read page by page, and All selects from
// its relayers. If the total differs between pages, or from the number of relayers read, the
// iteration ends with an error: relayers may be missing.
func (c *Client) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		if err := c.walk(ctx, selector, func(r *relayer.Relayer) bool { return yield(r, nil) }); err != nil {
			yield(named[*relayer.Relayer](relayer.ActionList, "", nil, err))
		}
	}
}

// allPage is the size of the pages that All requests.
const allPage = 100

// walk visits the relayers of all pages, until visit returns false. It returns an error if the
// pages do not show all relayers.
func (c *Client) walk(ctx context.Context, selector relayer.Selector, visit func(*relayer.Relayer) bool) error {
	query := relayer.ListQuery{Selector: selector, After: new(relayer.Cursor), PerPage: allPage}
	read, total := make(map[string]bool), 0 // total is that of the first page
	for pages := 1; ; pages++ {
		l, err := c.list(ctx, query)
		if err != nil {
			return err
		}
		known := len(read)
		for _, r := range l.Relayers {
			isKnown := read[r.ID]
			if read[r.ID] = true; !isKnown && selector.Matches(r) && !visit(r) {
				return nil
			}
		}
		query.PerPage = l.Pagination.PerPage
		if l.isPublic {
			if pages == 1 {
				total = l.Pagination.TotalItems
			}
			isLast := len(read) == known || len(l.Relayers) < query.PerPage
			if l.Pagination.TotalItems != total || isLast && len(read) != total {
				return fmt.Errorf("GET %s: the list is incomplete, or was changed meanwhile: %d different relayers on %d pages, of %d at first and %d at last: try again",
					collectionPath, len(read), pages, total, l.Pagination.TotalItems)
			}
			if isLast {
				return nil
			}
			query.After, query.Page = nil, pages+1
			continue
		}
		if l.Next == "" {
			return nil
		}
		if query.After != nil && l.Next == *query.After {
			return fmt.Errorf("GET %s: the server returned the same cursor again", collectionPath)
		}
		query.After = &l.Next
	}
}

// History returns past changes like [relayer.Manager.History]. It returns a
// [*relayer.ValidationError] for an Actor that no change has, too, and for a time outside of the
// years 0 to 9999. The error matches [errors.ErrUnsupported] if the server has no history.
func (c *Client) History(ctx context.Context, query relayer.HistoryQuery) (changes []relayer.Change, next uint64, err error) {
	action := relayer.ActionGet
	if query.ID == "" {
		action = relayer.ActionList
	}
	page, err := c.history(ctx, query, c.newAttempts())
	page, err = named(action, query.ID, page, err)
	return page.changes, page.next, err
}

// pastPage is a page of a history.
type pastPage struct {
	changes       []relayer.Change
	next          uint64
	hasRequestIDs bool // the server gets the request IDs of the client: a proxy may replace them
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery, attempts *attempts) (page pastPage, err error) {
	below := "/history"
	if query.ID == "" {
		below = ":history"
	} else if !relayer.IsID(query.ID) {
		return page, relayer.ErrNotFound
	}
	if err := (relayer.ListQuery{PerPage: query.Limit}).Validate(); err != nil {
		return page, err
	}
	req := newRequest(http.MethodGet, query.ID, below, nil)
	req.query = url.Values{}
	req.set("per_page", number(query.Limit), query.Limit > 0)
	req.set("before", strconv.FormatUint(query.Before, 10), query.Before > 0)
	req.set("since", query.Since.UTC().Format(time.RFC3339Nano), !query.Since.IsZero())
	req.set("until", query.Until.UTC().Format(time.RFC3339Nano), !query.Until.IsZero())
	req.set("actor", query.Actor, query.Actor != "")
	req.set("action", string(query.Action), query.Action != "")
	page, failed := do(ctx, c, req, attempts, (*response).history)
	return page, failed.cause()
}

func (p *response) history() (page pastPage, err error) {
	page.hasRequestIDs = p.header.Get("X-Request-Id") == p.request.requestID
	var entries []struct {
		ID string
		relayer.ChangeInfo
		Relayer *json.RawMessage // nil for null
	}
	page.next, err = strconv.ParseUint(cmp.Or(string(p.envelope.Next), "0"), 10, 64)
	if err != nil || json.Unmarshal(p.envelope.Data, &entries) != nil {
		return page, errNoData
	}
	kinds := map[relayer.Action]relayer.ChangeKind{relayer.ActionCreate: relayer.ChangeCreated, relayer.ActionDelete: relayer.ChangeDeleted}
	for _, e := range entries {
		past := relayer.Change{Kind: cmp.Or(kinds[e.Action], relayer.ChangeUpdated), ID: cmp.Or(p.request.id, e.ID), Info: e.ChangeInfo}
		if e.Relayer != nil {
			if past.Relayer, err = decodeRelayer(*e.Relayer); err != nil {
				return page, err
			}
			setChange(past.Relayer, e.ChangeInfo)
		}
		page.changes = append(page.changes, past)
	}
	return page, nil
}
