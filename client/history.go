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
	"github.com/go-relayer/relayer/internal/wire"
)

// History returns past changes like [relayer.Manager.History]. The error matches
// [errors.ErrUnsupported] if the server retains none.
func (c *Client) History(ctx context.Context, query relayer.HistoryQuery) (changes []relayer.Change, next uint64, err error) {
	action := relayer.ActionGet
	if query.ID == "" {
		action = relayer.ActionList
	}
	changes, next, err = c.history(ctx, query)
	changes, err = named(action, query.ID, changes, err)
	return changes, next, err
}

func (c *Client) history(ctx context.Context, query relayer.HistoryQuery) (changes []relayer.Change, next uint64, err error) {
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
	for name, value := range map[string]string{"actor": query.Actor, "action": string(query.Action), "since": timeText(query.Since), "until": timeText(query.Until)} {
		if value != "" {
			req.query.Set(name, value)
		}
	}
	req.isOptional = true
	req.decode = func(resp *response) (err error) {
		changes, next, err = resp.decodeHistory(query.ID)
		return err
	}
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return nil, 0, failed.err
	}
	return changes, next, nil
}

func (p *response) decodeHistory(id string) (changes []relayer.Change, next uint64, err error) {
	var entries []struct {
		wire.Change
		Relayer *json.RawMessage // nil for null
	}
	next, err = strconv.ParseUint(cmp.Or(string(p.envelope.Next), "0"), 10, 64)
	if err != nil || json.Unmarshal(p.envelope.Data, &entries) != nil {
		return nil, 0, errNoData
	}
	for _, e := range entries {
		past := relayer.Change{Kind: kindOf(e.Action), ID: cmp.Or(id, e.ID), Info: e.Info()}
		if e.Relayer != nil {
			if past.Relayer, err = decodeRelayer(*e.Relayer); err != nil {
				return nil, 0, err
			}
			setChange(past.Relayer, e.Change)
		}
		changes = append(changes, past)
	}
	return changes, next, nil
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
