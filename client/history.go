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
func (c *Client) History(ctx context.Context, query relayer.HistoryQuery) (revisions []relayer.Revision, next uint64, err error) {
	action := relayer.ActionGet
	if query.ID == "" {
		action = relayer.ActionList
	}
	revisions, next, err = c.history(ctx, query)
	revisions, err = named(action, query.ID, revisions, err)
	return revisions, next, err
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery) (revisions []relayer.Revision, next uint64, err error) {
	if query.Limit < 0 {
		return nil, 0, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "per_page", Message: "must be 0 or more"}}}
	}
	req := newRequest(http.MethodGet, historyPath, nil)
	if query.ID != "" {
		if err := checkID(query.ID); err != nil {
			return nil, 0, err
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
	req.decode = func(resp *response) (err error) {
		revisions, next, err = resp.decodeHistory(query.ID)
		return err
	}
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return nil, 0, failed.err
	}
	return revisions, next, nil
}

func (p *response) decodeHistory(id string) (revisions []relayer.Revision, next uint64, err error) {
	var entries []struct {
		change
		ID      string
		Relayer *json.RawMessage // nil for null
	}
	next, err = strconv.ParseUint(cmp.Or(string(p.envelope.Next), "0"), 10, 64)
	if err != nil || json.Unmarshal(p.envelope.Data, &entries) != nil {
		return nil, 0, errNoData
	}
	for _, e := range entries {
		past := relayer.Revision{Revision: e.Revision, ID: cmp.Or(id, e.ID), Note: e.note()}
		if e.Relayer != nil {
			if past.Relayer, err = decodeRelayer(*e.Relayer); err != nil {
				return nil, 0, err
			}
			e.setOn(past.Relayer)
		}
		revisions = append(revisions, past)
	}
	return revisions, next, nil
}
