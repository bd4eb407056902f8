package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-relayer/relayer"
)

// historyFilter selects changes. Empty fields select all.
type historyFilter struct {
	actor        string
	action       relayer.Action
	since, until time.Time
}

func (f historyFilter) selects(note relayer.Note) bool {
	return (f.actor == "" || note.Actor == f.actor) && (f.action == "" || note.Action == f.action) &&
		!note.Time.Before(f.since) && (f.until.IsZero() || note.Time.Before(f.until))
}

// clockMargin bounds how much the clocks of instances may differ: revisions are in order, and
// their times nearly so.
const clockMargin = time.Minute

// isPast reports whether a change, and so all older ones, were made before the filter begins.
func (f historyFilter) isPast(note relayer.Note) bool {
	return !note.Time.IsZero() && note.Time.Before(f.since.Add(-clockMargin))
}

// Changes are filtered after they were read. A filter that selects few must not make one
// request read all: it ends after some pages, and returns the cursor of the next one.
const (
	filteredPages   = 10
	filteredPerPage = 100 // changes
)

const defaultHistoryPerPage = 20

// getHistory returns the changes of one relayer or of all, newest first.
func (a *API) getHistory(x *exchange, r *http.Request) response {
	q := x.query
	filter := historyFilter{
		actor: q.values.Get("actor"), action: relayer.Action(q.values.Get("action")), since: q.time("since"), until: q.time("until"),
	}
	perPage := intOf(q.number("per_page", defaultHistoryPerPage))
	asked := relayer.HistoryQuery{ID: x.relayerID, Before: q.number("before", 0), Limit: max(perPage, 1)}
	revisions, next, err := readHistory(x, asked, filter)
	if errors.Is(err, errors.ErrUnsupported) {
		return failure(http.StatusNotFound) // as an unknown path
	}
	if err != nil {
		return a.errorResponse(x, r, err)
	}
	if perPage == 0 {
		revisions, next = nil, 0
	}
	body := append(x.startBody(), '[')
	for i, past := range revisions {
		entry := changeOf(past.Revision, past.LastChange())
		if x.relayerID == "" {
			entry.ID = past.ID
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = appendPast(body, entry, past.JSON)
	}
	body = append(body, ']')
	if next != 0 {
		body = append(strconv.AppendUint(append(body, `,"next":"`...), next, 10), '"')
	}
	return x.success(http.StatusOK, body)
}

// appendPast adds an entry. The relayer, which may be large, is not encoded again.
func appendPast(body []byte, entry change, document []byte) []byte {
	if document == nil {
		document = []byte("null")
	}
	text := encodeJSON(entry)
	body = append(append(body, text[:len(text)-len("}")]...), `,"relayer":`...)
	return append(append(body, document...), '}')
}

// readHistory returns the selected changes of one page, and the Before of the next one.
func readHistory(x *exchange, asked relayer.HistoryQuery, filter historyFilter) (found []relayer.Document, before uint64, err error) {
	if filter == (historyFilter{}) {
		return x.manager.Documents().History(x, asked)
	}
	limit := min(asked.Limit, filteredPerPage)
	asked.Limit = filteredPerPage
	for range filteredPages {
		page, next, err := x.manager.Documents().History(x, asked)
		if err != nil {
			return nil, 0, err
		}
		for i, past := range page {
			note := past.LastChange()
			if filter.isPast(note) {
				return found, 0, nil
			}
			if !filter.selects(note) {
				continue
			}
			found = append(found, past)
			if len(found) < limit {
				continue
			}
			if i == len(page)-1 && next == 0 {
				return found, 0, nil
			}
			return found, past.Revision, nil
		}
		if asked.Before = next; next == 0 {
			break
		}
	}
	return found, asked.Before, nil
}
