package httpapi

import (
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
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
	body := appendDocuments(x.startBody(), documents)
	if q.After != nil {
		body = appendCursors(body, page)
	}
	if x.input.is("changes", "true") {
		changes := make([]wire.Change, len(documents))
		for i, document := range documents {
			changes[i] = changeOf(document)
		}
		body = append(append(body, `,"changes":`...), encodeJSON(changes)...)
	}
	a.logSealed(x, documents...)
	body = appendSealed(body, documents...)
	return x.success(http.StatusOK, appendPagination(body, page.Pagination))
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

func appendCursors(body []byte, page *relayer.DocumentPage) []byte {
	if page.Next != "" {
		body = append(append(body, `,"next":`...), encodeJSON(page.Next)...)
	}
	return append(append(body, `,"position":`...), encodeJSON(page.Position)...)
}

// changeOf returns the last change of a relayer.
func changeOf(document relayer.Document) wire.Change {
	return wire.ChangeOf(document.LastChange(), document.PausedBy())
}

// appendChange adds the last change of the relayer of a body, if the query asks for it. That of
// a dry run has what would change.
func (x *exchange) appendChange(body []byte, document relayer.Document) []byte {
	if !x.input.is("changes", "true") {
		return body
	}
	return append(append(body, `,"change":`...), encodeJSON(changeOf(document))...)
}

// appendSealed adds the IDs of the relayers whose RPC URLs could not be opened.
func appendSealed(body []byte, documents ...relayer.Document) []byte {
	var ids []string
	for i := range documents {
		if documents[i].SealError != nil {
			ids = append(ids, documents[i].ID)
		}
	}
	if len(ids) == 0 {
		return body
	}
	return append(append(body, `,"sealed":`...), encodeJSON(ids)...)
}

func appendPagination(body []byte, p relayer.Pagination) []byte {
	body = append(body, `,"pagination":{`...)
	if p.CurrentPage > 0 {
		body = append(strconv.AppendInt(append(body, `"current_page":`...), int64(p.CurrentPage), 10), ',')
	}
	body = strconv.AppendInt(append(body, `"per_page":`...), int64(p.PerPage), 10)
	body = strconv.AppendInt(append(body, `,"total_items":`...), int64(p.TotalItems), 10)
	return append(body, '}')
}
