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
	"strconv"

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
	err := cmp.Or(query.Selector.Err(), wire.CheckPage(query))
	listed := new(listing)
	if err == nil {
		listed, err = c.list(ctx, query)
	}
	switch {
	case err != nil:
		listed = new(listing)
	case listed.isPublic && (query.After != nil || !query.Selector.IsZero()):
		err = fmt.Errorf("the server has no cursors, and cannot select relayers: %w", errors.ErrUnsupported)
	}
	return named(relayer.ActionList, "", &listed.Page, err)
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

// listing is a page as a server returns it.
type listing struct {
	relayer.Page
	isPublic bool // the server has no revisions, filters and cursors
}

func (c *Client) list(ctx context.Context, query relayer.ListQuery) (*listing, error) {
	req := newRequest(http.MethodGet, "", "", nil).withURLs(c.fullURLs)
	addFilters(req.query, query.Selector)
	if query.After != nil {
		req.query.Set("after", string(*query.After))
	} else {
		req.query.Set("page", number(max(query.Page, 1)))
	}
	for perPage := cmp.Or(query.PerPage, relayer.DefaultPerPage); ; perPage /= 2 {
		req.query.Set("per_page", number(perPage))
		listed, failed := do(ctx, c, req, c.newAttempts(), (*response).listing)
		if query.After == nil || perPage == 1 || !errors.Is(failed.cause(), errTooLarge) {
			return listed, failed.cause()
		}
	}
}

// number returns a number as a server accepts it.
func number(n int) string { return strconv.FormatUint(min(uint64(n), math.MaxUint32), 10) }

func (p *response) listing() (*listing, error) {
	body := p.envelope
	l := &listing{isPublic: body.Changes == nil}
	if json.Unmarshal(body.Data, &l.Relayers) != nil || l.Relayers == nil || body.Pagination == nil || !l.isPublic && len(body.Changes) != len(l.Relayers) {
		return nil, errNoData
	}
	if l.Pagination, l.Next = *body.Pagination, body.Next; body.Position != nil {
		l.Position = *body.Position
	}
	for i, r := range l.Relayers {
		if r == nil || r.ID == "" {
			return nil, errNoData
		}
		if !l.isPublic {
			setChange(r, body.Changes[i])
		}
	}
	return l, p.request.checkURLs(!l.isPublic, body.Metadata, body.Sealed, l.Relayers...)
}

// All returns every relayer that the selector selects, in the order of [Client.List]. It
// reads in pages, by cursors: a relayer that exists and is selected during the whole iteration
// is returned exactly once, despite concurrent writes. No ID is returned twice.
//
// A server without cursors, like OpenZeppelin Relayer, is read page by page, and All selects
// from its relayers. If their number is not the same on all pages, or not that of the relayers
// read, the iteration ends with an error: relayers may be missing.
//
// The iteration ends after the first error.
func (c *Client) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		w := walk{query: relayer.ListQuery{Selector: selector, After: new(relayer.Cursor), PerPage: allPage}, read: make(map[string]bool)}
		for !w.isDone {
			added, err := w.next(ctx, c)
			for _, r := range added {
				if selector.Matches(r) && !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(named[*relayer.Relayer](relayer.ActionList, "", nil, err))
				return
			}
		}
	}
}

// allPage is the size of the pages that All requests.
const allPage = 100

// walk is the state of a read of all pages.
type walk struct {
	query  relayer.ListQuery // of the next page
	read   map[string]bool
	pages  int
	total  int // of the first page
	isDone bool
}

// next reads a page. It returns the relayers that earlier pages do not have, and an error if the
// pages do not show all relayers.
func (w *walk) next(ctx context.Context, c *Client) (added []*relayer.Relayer, err error) {
	if err := w.query.Selector.Err(); err != nil {
		return nil, err
	}
	l, err := c.list(ctx, w.query)
	if err != nil {
		return nil, err
	}
	for _, r := range l.Relayers {
		if !w.read[r.ID] {
			added = append(added, r)
		}
		w.read[r.ID] = true
	}
	w.query.PerPage = l.Pagination.PerPage
	if !l.isPublic {
		if l.Next != "" && w.query.After != nil && l.Next == *w.query.After {
			return added, fmt.Errorf("GET %s: the server returned the same cursor again", collectionPath)
		}
		w.query.After, w.isDone = &l.Next, l.Next == ""
		return added, nil
	}
	if w.pages++; w.pages == 1 {
		w.total = l.Pagination.TotalItems
	}
	w.query.After, w.query.Page = nil, w.pages+1
	w.isDone = len(added) == 0 || len(l.Relayers) < w.query.PerPage
	if l.Pagination.TotalItems != w.total || w.isDone && len(w.read) != w.total {
		return added, fmt.Errorf("GET %s: the list is incomplete, or was changed meanwhile: %d different relayers on %d pages, of %d at first and %d at last: try again",
			collectionPath, len(w.read), w.pages, w.total, l.Pagination.TotalItems)
	}
	return added, nil
}
