package httpapi

import (
	"math"
	"net/http"
	"slices"

	"github.com/go-relayer/relayer"
)

func (a *API) getRelayer(x *exchange) response {
	document, err := x.documents().Get(x, x.relayerID)
	if err != nil {
		return a.errorResponse(x, err)
	}
	tag := entityTag(document.Revision)
	if matchesAny(x.request.Header["If-None-Match"], tag) {
		return notModified(tag)
	}
	a.logSealed(x, document)
	return x.document(http.StatusOK, document).withHeader("Etag", tag)
}

func (a *API) listRelayers(x *exchange) response {
	q := x.input.list()
	isEmpty := q.PerPage == 0 // a ListQuery with 0 relayers per page is that of the default
	q.PerPage = max(q.PerPage, 1)
	page, err := x.documents().List(x, q)
	if err != nil {
		return a.errorResponse(x, err)
	}
	documents := page.Documents
	if isEmpty {
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

// list returns what a list asks for.
func (q input) list() relayer.ListQuery {
	asked := relayer.ListQuery{Selector: q.selector, PerPage: intOf(q.number("per_page", relayer.DefaultPerPage))}
	if q.values.Has("page") {
		asked.Page = max(1, intOf(q.number("page", 1)))
	}
	if q.values.Has("after") {
		asked.After = new(relayer.Cursor(q.values.Get("after")))
	}
	return asked
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
