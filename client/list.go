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
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// List returns one page of the relayers that the query selects, in the order of the
// server, which is the order of creation for package httpapi. Pagination.PerPage is the
// number that the server used. A page by a cursor that is larger than the limit of
// 16 MiB is requested again with half as many relayers.
//
// The server selects the relayers. If it does not support that, or cursors, as OpenZeppelin
// Relayer, the error matches [errors.ErrUnsupported]: use [Client.All].
func (c *Client) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	page, err := c.page(ctx, query)
	return named(relayer.ActionList, "", page, err)
}

func (c *Client) page(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if err := cmp.Or(query.Selector.Err(), wire.CheckPage(query)); err != nil {
		return nil, err
	}
	listed, err := c.list(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case listed.ignores(query.Selector):
		return nil, unsupportedSelector(query.Selector)
	case query.After != nil && !listed.hasCursors:
		return nil, fmt.Errorf("the server has no cursors: %w", errors.ErrUnsupported)
	}
	return &listed.Page, nil
}

// addFilters adds a selector to the parameters of a query.
func addFilters(query url.Values, selector relayer.Selector) {
	for key, values := range selector.Terms() {
		if len(values) == 0 {
			key, values = "id", []string{rand.Text()} // which no relayer has
		}
		query[key] = values
	}
}

func unsupportedSelector(selector relayer.Selector) error {
	return fmt.Errorf("the server cannot select by %s: %w", selector, errors.ErrUnsupported)
}

// listing is a page as a server returns it.
type listing struct {
	relayer.Page
	hasCursors bool // the server has them
	hasChanges bool // the server returns revisions
	warnings   string
}

// ignores reports whether the server has ignored the selector.
func (l *listing) ignores(selector relayer.Selector) bool {
	for key := range selector.Terms() {
		if strings.Contains(l.warnings, wire.IgnoredParameter(key)) {
			return true
		}
	}
	isOther := func(r *relayer.Relayer) bool { return !selector.Matches(r) }
	return !selector.IsZero() && (!l.hasChanges || slices.ContainsFunc(l.Relayers, isOther))
}

func (c *Client) list(ctx context.Context, query relayer.ListQuery) (*listing, error) {
	if err := query.Selector.Err(); err != nil {
		return nil, err
	}
	req := c.urls.of(newRequest(http.MethodGet, collectionPath, nil))
	addFilters(req.query, query.Selector)
	if query.After != nil {
		req.query.Set("after", string(*query.After))
	} else {
		req.query.Set("page", number(max(query.Page, 1)))
	}
	for perPage := cmp.Or(query.PerPage, relayer.DefaultPerPage); ; perPage /= 2 {
		req.query.Set("per_page", number(perPage))
		listed := new(listing)
		req.decode = listed.decode
		_, failed := c.do(ctx, req, c.newAttempts())
		switch {
		case failed == nil:
			return listed, nil
		case query.After == nil || perPage == 1 || !errors.Is(failed.err, errTooLarge):
			return nil, failed.err
		}
	}
}

// number returns a number as a server accepts it.
func number(n int) string { return strconv.FormatUint(min(uint64(n), math.MaxUint32), 10) }

func (l *listing) decode(resp *response) error {
	body := resp.envelope
	var documents []json.RawMessage
	if json.Unmarshal(body.Data, &documents) != nil || documents == nil {
		return errNoData
	}
	if body.Pagination == nil || len(documents) > body.Pagination.PerPage {
		return fmt.Errorf("%w: the pagination is missing or wrong", errNoData)
	}
	*l = listing{hasCursors: body.Position != nil, hasChanges: body.Changes != nil, warnings: resp.warnings()}
	l.Pagination, l.Next, l.Relayers = *body.Pagination, body.Next, make([]*relayer.Relayer, 0, len(documents))
	if l.hasCursors {
		l.Position = *body.Position
	}
	if l.hasChanges && len(body.Changes) != len(documents) {
		return fmt.Errorf("%w: the number of changes differs", errNoData)
	}
	for i, document := range documents {
		r, err := decodeRelayer(document)
		if err != nil {
			return err
		}
		if l.hasChanges {
			setChange(r, body.Changes[i])
		}
		l.Relayers = append(l.Relayers, r)
	}
	return resp.checkURLs(l.Relayers...)
}

// All returns every relayer that the selector selects, in the order of [Client.List]. It
// reads in pages, by cursors: a relayer that exists and is selected during the whole iteration
// is returned exactly once, despite concurrent writes. No ID is returned twice. If the server
// does not select relayers, All reads all relayers and selects from them.
//
// A server without cursors, like OpenZeppelin Relayer, is read page by page. Relayers are
// then missing if others are deleted meanwhile.
//
// The iteration ends after the first error. A server that returns the same relayers
// again and again is such an error.
func (c *Client) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		query := relayer.ListQuery{After: new(relayer.Cursor), PerPage: allPage}
		read, repeated := make(map[string]struct{}), 0
		for isLast := false; !isLast; {
			query.Selector = selector
			listed, err := c.list(ctx, query)
			if err == nil && repeated == maxRepeated {
				err = fmt.Errorf("GET %s: the list makes no progress: the server returns the same pages again", collectionPath)
			}
			if err != nil {
				yield(named[*relayer.Relayer](relayer.ActionList, "", nil, err))
				return
			}
			repeated++
			for _, r := range listed.Relayers {
				if _, isRead := read[r.ID]; isRead {
					continue
				}
				read[r.ID], repeated = struct{}{}, 0
				if selector.Matches(r) && !yield(r, nil) {
					return
				}
			}
			query, isLast = listed.following()
		}
	}
}

// allPage is the size of the pages that All requests. maxRepeated is the number of successive
// pages that may have only relayers of earlier pages.
const (
	allPage     = 100
	maxRepeated = 10
)

// following returns the query for the page after this one.
func (l *listing) following() (query relayer.ListQuery, isLast bool) {
	perPage := l.Pagination.PerPage
	if l.hasCursors {
		return relayer.ListQuery{After: &l.Next, PerPage: perPage}, l.Next == ""
	}
	return relayer.ListQuery{Page: l.Pagination.CurrentPage + 1, PerPage: perPage}, len(l.Relayers) < perPage
}
