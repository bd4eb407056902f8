package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-relayer/relayer"
)

// pastChange is an entry of a history.
type pastChange struct {
	change
	Changed []string        `json:"changed,omitempty"`
	Relayer json.RawMessage `json:"relayer"`
}

// getHistory returns the changes of one relayer, newest first.
func (a *API) getHistory(x *exchange, r *http.Request) response {
	q := query{options: [...]parameter{{name: "before", check: isRevision}, {name: "per_page", check: isNumber}, {}, {}, {}}}
	if _, err := x.parseQuery(r, &q); err != nil {
		return a.errorResponse(x, r, err)
	}
	perPage := intOf(q.number("per_page", relayer.DefaultHistoryLimit))
	revisions, next, err := x.manager.Documents().History(x, relayer.HistoryQuery{
		ID: x.relayerID, Before: q.number("before", 0), Limit: max(perPage, 1),
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return failure(http.StatusNotFound) // as an unknown path
	}
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if perPage == 0 {
		revisions, next = nil, 0
	}
	entries := make([]pastChange, 0, len(revisions))
	for _, past := range revisions {
		entries = append(entries, pastChange{changeOf(past.Revision, past.LastChange()), past.Changed, past.JSON})
	}
	body := append(x.startBody(), encodeJSON(entries)...)
	if next != 0 {
		body = append(strconv.AppendUint(append(body, `,"next":"`...), next, 10), '"')
	}
	return x.success(http.StatusOK, body)
}
