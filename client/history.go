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
	changes []relayer.Change
	next    uint64

	// hasRequestIDs means that the server gets the request IDs of the client: a proxy may
	// replace them.
	hasRequestIDs bool
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery, attempts *attempts) (page pastPage, err error) {
	if query.Limit < 0 {
		return page, &relayer.ValidationError{Fields: []relayer.FieldError{{Field: "per_page", Message: "must be 0 or more"}}}
	}
	req := newRequest(http.MethodGet, historyPath, nil)
	if query.ID != "" {
		if err := checkID(query.ID); err != nil {
			return page, err
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
	for name, value := range map[string]string{"actor": query.Actor, "action": string(query.Action), "since": timeText(query.Since), "until": timeText(query.Until)} {
		if value != "" {
			req.query.Set(name, value)
		}
	}
	req.isOptional = true
	return fetch(ctx, c, req, attempts, (*response).history)
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
	for _, e := range entries {
		past := relayer.Change{Kind: kindOf(e.Action), ID: cmp.Or(p.request.id, e.ID), Info: e.ChangeInfo}
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

// timeText returns "" for the zero time.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func kindOf(action relayer.Action) relayer.ChangeKind {
	switch action {
	case relayer.ActionCreate:
		return relayer.ChangeCreated
	case relayer.ActionDelete:
		return relayer.ChangeDeleted
	default:
		return relayer.ChangeUpdated
	}
}
