package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-relayer/relayer"
)

// History returns past changes like [relayer.Manager.History]. The error matches
// [errors.ErrUnsupported] if the server retains none.
func (c *Client) History(ctx context.Context, query relayer.HistoryQuery) (*relayer.HistoryPage, error) {
	page, err := c.history(ctx, query)
	action := relayer.ActionGet
	if query.ID == "" {
		action = relayer.ActionList
	}
	return named(action, query.ID, page, err)
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery) (*relayer.HistoryPage, error) {
	if query.Limit < 0 {
		return nil, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "per_page", Message: "must be 0 or more"}}}
	}
	req := newRequest(http.MethodGet, historyPath, nil)
	if query.ID != "" {
		if err := checkID(query.ID); err != nil {
			return nil, err
		}
		req = newSingleRequest(http.MethodGet, query.ID, "/history", nil)
	}
	req.query = url.Values{}
	if query.Limit > 0 {
		req.query.Set("per_page", number(query.Limit))
	}
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
		ID      string
		Changed []string
		Relayer *json.RawMessage // nil for null
	}
	next, err := strconv.ParseUint(cmp.Or(string(p.envelope.Next), "0"), 10, 64)
	if err != nil || json.Unmarshal(p.envelope.Data, &entries) != nil {
		return errNoData
	}
	*page = relayer.HistoryPage{Next: next}
	for _, e := range entries {
		past := relayer.Revision{Revision: e.Revision, ID: cmp.Or(id, e.ID), Note: e.note(), Changed: e.Changed}
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
