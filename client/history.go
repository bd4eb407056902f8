package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-relayer/relayer"
)

// History returns changes of a relayer like [relayer.Manager.History]. The error matches
// [errors.ErrUnsupported] without an ID, because a server has the history of one relayer only,
// and if the server retains none.
func (c *Client) History(ctx context.Context, query relayer.HistoryQuery) (*relayer.HistoryPage, error) {
	page, err := c.history(ctx, query)
	return named(relayer.ActionGet, query.ID, page, err)
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery) (*relayer.HistoryPage, error) {
	if query.ID == "" {
		return nil, fmt.Errorf("a server has no history of all relayers: %w", errors.ErrUnsupported)
	}
	if err := checkID(query.ID); err != nil {
		return nil, err
	}
	if query.Limit < 0 {
		return nil, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "per_page", Message: "must be 0 or more"}}}
	}
	req := newSingleRequest(http.MethodGet, query.ID, "/history", nil)
	req.query = url.Values{"per_page": {number(cmp.Or(query.Limit, relayer.DefaultHistoryLimit))}}
	if query.Before > 0 {
		req.query.Set("before", strconv.FormatUint(query.Before, 10))
	}
	req.isOptional = true
	page := new(relayer.HistoryPage)
	req.decode = func(resp *response) error { return resp.decodeHistory(query.ID, page) }
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return nil, failed.err
	}
	return page, nil
}

func (p *response) decodeHistory(id string, page *relayer.HistoryPage) error {
	var entries []struct {
		change
		Changed []string
		Relayer *json.RawMessage // nil for null
	}
	next, err := strconv.ParseUint(cmp.Or(string(p.envelope.Next), "0"), 10, 64)
	if err != nil || json.Unmarshal(p.envelope.Data, &entries) != nil {
		return errNoData
	}
	*page = relayer.HistoryPage{Next: next}
	for _, e := range entries {
		past := relayer.Revision{Revision: e.Revision, ID: id, Note: e.note(), Changed: e.Changed}
		if e.Relayer != nil {
			if past.Relayer, err = decodeRelayer(*e.Relayer); err != nil {
				return err
			}
			e.setOn(past.Relayer)
		}
		page.Revisions = append(page.Revisions, past)
	}
	return nil
}
