package httpapi

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-relayer/relayer"
)

func (a *API) getRelayer(x *exchange) response {
	document, err := x.documents().Get(x, x.relayerID)
	if err != nil {
		return a.errorResponse(x, err)
	}
	tag := entityTag(document.Revision)
	if matchesAny(x.request.Header["If-None-Match"], tag) {
		return response{status: http.StatusNotModified}.withHeader("Etag", tag)
	}
	a.logSealed(x, document)
	return x.document(http.StatusOK, document).withHeader("Etag", tag)
}

func (a *API) listRelayers(x *exchange) response {
	perPage := intOf(x.input.number("per_page", relayer.DefaultPerPage))
	q := relayer.ListQuery{Selector: x.input.selector, PerPage: max(perPage, 1)} // 0 would be the default
	if x.input.values.Has("page") {
		q.Page = max(1, intOf(x.input.number("page", 1)))
	}
	if x.input.values.Has("after") {
		q.After = new(relayer.Cursor(x.input.values.Get("after")))
	}
	page, err := x.documents().List(x, q)
	if err != nil {
		return a.errorResponse(x, err)
	}
	documents := page.Documents
	if perPage == 0 {
		documents, page.Pagination.PerPage, page.Next = nil, 0, ""
	}
	a.logSealed(x, documents...)
	envelope := relayer.Envelope{Sealed: sealedOf(documents...), Pagination: &page.Pagination}
	if q.After != nil {
		envelope.Next, envelope.Position = page.Next, &page.Position
	}
	if x.input.is("changes", "true") {
		envelope.Changes = make([]relayer.ChangeInfo, len(documents))
		for i, document := range documents {
			envelope.Changes[i] = document.LastChange()
		}
	}
	return x.success(http.StatusOK, appendDocuments(x.startBody(), documents), envelope)
}

// intOf converts a number for platforms whose int has 32 bits.
func intOf(number uint64) int { return int(min(number, math.MaxInt)) }

func appendDocuments(body []byte, documents []relayer.Document) []byte {
	size := len(`[]`)
	for i := range documents {
		size += len(documents[i].JSON) + len(`,`)
	}
	body = append(slices.Grow(body, size), '[')
	for i := range documents {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, documents[i].JSON...)
	}
	return append(body, ']')
}

// lastChange returns the last change of a relayer, if the query asks for it. That of a dry run
// has what would change.
func (x *exchange) lastChange(document relayer.Document) *relayer.ChangeInfo {
	if !x.input.is("changes", "true") {
		return nil
	}
	return new(document.LastChange())
}

// sealedOf returns the IDs of the relayers whose RPC URLs could not be opened.
func sealedOf(documents ...relayer.Document) (ids []string) {
	for i := range documents {
		if documents[i].SealError != nil {
			ids = append(ids, documents[i].ID)
		}
	}
	return ids
}

// getHistory returns the changes of one relayer or of all, newest first.
func (a *API) getHistory(x *exchange) response {
	q := x.input
	begun := time.Now()
	perPage := intOf(q.number("per_page", 20))
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
		text, document := encodeJSON(entry), past.Document.JSON
		if document == nil {
			document = []byte("null")
		}
		body = append(append(body, text[:len(text)-len("}")]...), `,"relayer":`...)
		body = append(append(body, document...), '}') // it may be large, and is not encoded again
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
