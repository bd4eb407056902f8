package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-relayer/relayer"
)

// History returns past changes like [relayer.Manager.History]. The error matches
// [errors.ErrUnsupported] if the server retains none.
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
	req := newRequest(http.MethodGet, query.ID, "/history", nil)
	switch {
	case query.Limit < 0:
		return page, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "per_page", Message: "must be 0 or more"}}}
	case query.ID == "":
		req.path = collectionPath + ":history"
	case !relayer.IsID(query.ID):
		return page, relayer.ErrNotFound
	}
	req.query = url.Values{}
	for name, value := range map[string]string{
		"per_page": optional(query.Limit, number(query.Limit)), "before": optional(query.Before, strconv.FormatUint(query.Before, 10)),
		"since": optional(query.Since.UTC(), query.Since.UTC().Format(time.RFC3339Nano)),
		"until": optional(query.Until.UTC(), query.Until.UTC().Format(time.RFC3339Nano)),
		"actor": query.Actor, "action": string(query.Action),
	} {
		if value != "" {
			req.query.Set(name, value)
		}
	}
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

// optional returns the text of a value, or "" for the zero value.
func optional[T comparable](value T, text string) string {
	if value == *new(T) {
		return ""
	}
	return text
}
