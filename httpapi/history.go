package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-relayer/relayer"
)

const defaultHistoryPerPage = 20

// getHistory returns the changes of one relayer or of all, newest first.
func (a *API) getHistory(x *exchange) response {
	q := x.input
	begun := time.Now()
	perPage := intOf(q.number("per_page", defaultHistoryPerPage))
	changes, next, err := x.manager.Documents().History(x, relayer.HistoryQuery{
		ID: x.relayerID, Before: q.number("before", 0), Limit: max(perPage, 1),
		Actor: q.values.Get("actor"), Action: relayer.Action(q.values.Get("action")), Since: q.time("since"), Until: q.time("until"),
	})
	if x.relayerID != "" && !x.within.IsZero() && len(changes) == 0 {
		x.waitForStep(begun)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return failure(http.StatusNotFound) // as an unknown path
	}
	if err != nil {
		return a.errorResponse(x, err)
	}
	if perPage == 0 {
		changes, next = nil, 0
	}
	body := append(x.startBody(), '[')
	for i, past := range changes {
		entry := pastChange{ChangeInfo: past.Document.LastChange()}
		if entry.PausedBy = nil; x.relayerID == "" {
			entry.ID = past.Document.ID
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = appendPast(body, entry, past.Document.JSON)
	}
	var envelope relayer.Envelope
	if next != 0 {
		envelope.Next = relayer.Cursor(strconv.FormatUint(next, 10))
	}
	return x.success(http.StatusOK, append(body, ']'), envelope)
}

// pastChange is an entry of a history, without its relayer.
type pastChange struct {
	ID string `json:"id,omitempty"` // in the history of all relayers
	relayer.ChangeInfo
}

// hiddenStep is longer than the work for a history of which the caller may see nothing.
const hiddenStep = 100 * time.Millisecond

// waitForStep waits until a multiple of hiddenStep after the beginning of the work, so that the
// time of the response does not show how many changes were read.
func (x *exchange) waitForStep(begun time.Time) {
	select {
	case <-time.After(hiddenStep - time.Since(begun)%hiddenStep):
	case <-x.Done():
	}
}

// appendPast adds an entry. The relayer, which may be large, is not encoded again.
func appendPast(body []byte, entry pastChange, document []byte) []byte {
	if document == nil {
		document = []byte("null")
	}
	text := encodeJSON(entry)
	body = append(append(body, text[:len(text)-len("}")]...), `,"relayer":`...)
	return append(append(body, document...), '}')
}
