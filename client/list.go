package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// List returns one page of the relayers that the query selects, in the order of the
// server, which is the order of creation for package httpapi. Pagination.PerPage is the
// number that the server used. Relayers have the Revision 0 if the server returns none.
//
// The server selects the relayers. If it does not support that, as OpenZeppelin Relayer,
// the error matches [errors.ErrUnsupported], because the total would be wrong: use
// [Client.All]. The same applies to a selector with several terms of the key search.
func (c *Client) List(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	page, err := c.page(ctx, query)
	return named(relayer.ActionList, "", page, err)
}

func (c *Client) page(ctx context.Context, query relayer.ListQuery) (*relayer.Page, error) {
	if err := wire.CheckPage(query); err != nil {
		return nil, err
	}
	f, err := newFilter(query.Selector)
	if err != nil {
		return nil, err
	}
	listed, err := c.list(ctx, f.query, max(query.Page, 1), cmp.Or(query.PerPage, relayer.DefaultPerPage))
	if err != nil {
		return nil, err
	}
	if !f.isComplete || listed.ignores(f) {
		return nil, unsupportedFilter(f)
	}
	return &listed.Page, c.reveal(ctx, listed.Relayers...)
}

// filter is a selector as query parameters.
type filter struct {
	selector   relayer.Selector
	query      url.Values
	isComplete bool // the parameters express the whole selector
}

func newFilter(selector relayer.Selector) (*filter, error) {
	f := &filter{selector: selector, query: make(url.Values), isComplete: true}
	for key, values := range selector.Terms() {
		switch {
		case len(values) == 0:
			f.query = url.Values{"id": {rand.Text()}} // which no relayer has
			return f, nil
		case f.query.Has(key):
			f.isComplete = false
		default:
			f.query[key] = values
		}
	}
	return f, selector.Err()
}

func unsupportedFilter(f *filter) error {
	return fmt.Errorf("the server cannot select by %s: %w", f.selector, errors.ErrUnsupported)
}

// listing is a page with the JSON of its relayers.
type listing struct {
	relayer.Page
	documents    []json.RawMessage
	hasRevisions bool
	warnings     string
}

// ignores reports whether the server has ignored the filter.
func (l *listing) ignores(f *filter) bool {
	if len(f.query) == 0 {
		return false
	}
	for key := range f.query {
		if strings.Contains(l.warnings, wire.IgnoredParameter(key)) {
			return true
		}
	}
	isOther := func(r *relayer.Relayer) bool { return !f.selector.Matches(r) }
	return !l.hasRevisions || slices.ContainsFunc(l.Relayers, isOther)
}

func (c *Client) list(ctx context.Context, filter url.Values, page, perPage int) (*listing, error) {
	listed := new(listing)
	req := newRequest(http.MethodGet, collectionPath, nil)
	req.query = maps.Clone(filter)
	for name, number := range map[string]int{"page": page, "per_page": perPage} {
		req.query.Set(name, strconv.FormatUint(min(uint64(number), math.MaxUint32), 10))
	}
	req.query.Set("revisions", "true")
	req.decode = listed.decode
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return nil, failed.err
	}
	return listed, nil
}

func (l *listing) decode(resp *response) error {
	if resp.envelope.Pagination == nil {
		return fmt.Errorf("%w: no pagination", errNoData)
	}
	revisions := resp.envelope.Revisions
	*l = listing{hasRevisions: revisions != nil, warnings: resp.warnings()}
	l.Pagination = *resp.envelope.Pagination
	if err := json.Unmarshal(resp.envelope.Data, &l.documents); err != nil || l.documents == nil {
		return errNoData
	}
	if revisions != nil && len(revisions) != len(l.documents) {
		return fmt.Errorf("%w: the number of revisions differs", errNoData)
	}
	l.Relayers = make([]*relayer.Relayer, 0, len(l.documents))
	for i, document := range l.documents {
		r, err := decodeRelayer(document)
		if err != nil {
			return err
		}
		if revisions != nil {
			r.Revision = revisions[i]
		}
		l.Relayers = append(l.Relayers, r)
	}
	return nil
}

// All returns every relayer that the selector selects, in the order of [Client.List]. It
// reads in pages. On a server that lists in order of creation, a relayer that exists and is
// selected during the whole iteration is returned exactly once, despite concurrent writes.
// No ID is returned twice. All keeps a digest of what it has read in memory, and the
// relayers that follow if many writes prevent it from reading in order. If the server does
// not select relayers, or many writes change the selection, All reads all relayers and
// selects from them.
//
// If the server returns no revisions, the relayers have the Revision 0. A relayer
// that is deleted and created again with equal content then counts as unchanged. If this
// happens to several relayers between two requests, and the list shrinks, relayers may be
// skipped.
//
// The iteration ends after the first error. A server that returns the same relayers
// again and again is such an error. A page larger than the limit of
// [WithMaxResponseBytes] is requested again with half as many relayers.
func (c *Client) All(ctx context.Context, selector relayer.Selector) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		f, err := newFilter(selector)
		if err != nil {
			yield(named[*relayer.Relayer](relayer.ActionList, "", nil, err))
			return
		}
		w := &walk{client: c, filter: f.query, seed: maphash.MakeSeed(), read: make(map[string]lastRead), largest: allPage}
		for !w.isDone {
			batch, err := w.next(ctx)
			if err == nil {
				batch = slices.DeleteFunc(batch, func(r *relayer.Relayer) bool { return !selector.Matches(r) })
				err = c.reveal(ctx, batch...)
			}
			if err != nil {
				yield(named[*relayer.Relayer](relayer.ActionList, "", nil, err))
				return
			}
			for _, r := range batch {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// allPage is the size of the pages that All requests. allOverlap is the least number of
// relayers in a page that All has read before. It is less if the server permits only
// small pages. allUnchanged is the number of them that must be unchanged.
const (
	allPage      = 100
	allOverlap   = 5
	allUnchanged = 2
)

// walk reads the list of all relayers in overlapping pages, because deletes move later
// relayers forward. A page follows without a gap if it begins with relayers that were read
// before, and that did not move back. A relayer that was deleted and created again moves
// to the end of the list.
//
// If a page shows no overlap, the walk reads the rest backward, from the end of the list.
// Deletes move a relayer only toward the pages that follow, so that none is skipped. This
// does not hold for a filtered list, in which a relayer that begins to match may be
// anywhere. The walk then reads the list of all relayers.
type walk struct {
	client  *Client
	filter  url.Values
	seed    maphash.Seed
	read    map[string]lastRead // by ID; the zero value if those before it were not read
	offset  int                 // the relayers before it have been read
	largest int                 // size of a page that the server permits
	idle    int                 // size of the pages since the last new relayer
	isDone  bool
}

type lastRead struct {
	position int    // in the list
	digest   uint64 // of its JSON
}

// next returns the relayers of a page that were not read before, or all the others.
func (w *walk) next(ctx context.Context) ([]*relayer.Relayer, error) {
	listed, start, err := w.fetch(ctx, func() (page, size int) { return pageAt(w.offset, w.largest) })
	if err != nil {
		return nil, err
	}
	if w.offset > 0 && !w.overlaps(listed, start) {
		if len(w.filter) > 0 {
			w.readUnfiltered()
			return nil, nil
		}
		w.isDone = true
		return w.backward(ctx, max(listed.Pagination.TotalItems, start+len(listed.Relayers)))
	}
	unread := w.unread(listed)
	for i, r := range listed.Relayers {
		w.read[r.ID] = w.lastRead(listed, start, i)
	}
	w.isDone = len(listed.Relayers) < listed.Pagination.PerPage
	w.offset = start + listed.Pagination.PerPage
	return unread, w.checkProgress(listed, unread)
}

// readUnfiltered begins with the list of all relayers. What was read of the filtered list
// does not show what was read of this one.
func (w *walk) readUnfiltered() {
	w.filter, w.offset = url.Values{}, 0
	for id := range w.read {
		w.read[id] = lastRead{}
	}
}

// backward returns the relayers that were not read before, of a list with the given
// number of relayers.
func (w *walk) backward(ctx context.Context, total int) ([]*relayer.Relayer, error) {
	var newestFirst []*relayer.Relayer
	end := min(total, math.MaxInt32) // all from there on have been read
	for end > 0 {
		listed, start, err := w.fetch(ctx, func() (page, size int) { return (end-1)/w.largest + 1, w.largest })
		if err != nil {
			return nil, err
		}
		if start+listed.Pagination.PerPage < end {
			continue // the page size was lowered
		}
		hasOverlap := w.overlaps(listed, start)
		unread := w.unread(listed)
		if err := w.checkProgress(listed, unread); err != nil {
			return nil, err
		}
		slices.Reverse(unread)
		newestFirst = append(newestFirst, unread...)
		if hasOverlap {
			break
		}
		end = min(start, listed.Pagination.TotalItems)
	}
	slices.Reverse(newestFirst)
	return newestFirst, nil
}

// fetch returns the page and the position of its first relayer. It asks for smaller
// pages while they are larger than the limit of a response.
func (w *walk) fetch(ctx context.Context, next func() (page, size int)) (*listing, int, error) {
	for {
		page, size := next()
		listed, err := w.client.list(ctx, w.filter, page, size)
		if errors.Is(err, errTooLarge) && size > 1 {
			w.largest = size / 2
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		used := listed.Pagination.PerPage
		if listed.Pagination.CurrentPage != page || used < 1 || used > size || len(listed.Relayers) > used {
			return nil, 0, fmt.Errorf("GET %s: the response is not the requested page", collectionPath)
		}
		if used < size { // the server has lowered it, and with it the start of the page
			w.largest = used
		}
		return listed, (page - 1) * used, nil
	}
}

// overlaps reports whether the page has a relayer that was read before at this revision:
// it was not created again, so that those before it were read too. Without revisions, the
// page must begin with several relayers that did not change or move back.
func (w *walk) overlaps(listed *listing, start int) bool {
	unchanged := 0
	for i, r := range listed.Relayers {
		last, ok := w.read[r.ID]
		if !ok && !listed.hasRevisions {
			break
		}
		now := w.lastRead(listed, start, i)
		if now.digest != last.digest {
			continue
		}
		if r.Revision != 0 {
			return true
		}
		if now.position <= last.position {
			unchanged++
		}
	}
	return unchanged >= allUnchanged
}

func (w *walk) lastRead(listed *listing, start int, i int) lastRead {
	var digest maphash.Hash
	digest.SetSeed(w.seed)
	_, _ = digest.Write(listed.documents[i])
	maphash.WriteComparable(&digest, listed.Relayers[i].Revision)
	return lastRead{start + i, digest.Sum64()}
}

func (w *walk) unread(listed *listing) []*relayer.Relayer {
	var unread []*relayer.Relayer
	for _, r := range listed.Relayers {
		if _, ok := w.read[r.ID]; !ok {
			w.read[r.ID] = lastRead{}
			unread = append(unread, r)
		}
	}
	return unread
}

// checkProgress returns an error if pages without new relayers go on for longer than a
// second reading of the list can explain.
func (w *walk) checkProgress(listed *listing, unread []*relayer.Relayer) error {
	if len(unread) > 0 {
		w.idle = 0
		return nil
	}
	if w.idle += listed.Pagination.PerPage; w.idle > 2*len(w.read)+10*allPage {
		return fmt.Errorf("GET %s: the list makes no progress: the server returns the same pages again", collectionPath)
	}
	return nil
}

// pageAt returns the page that has the relayer at the offset, overlaps with those before
// it, and has the most relayers after it. A page starts at a multiple of its size, so
// that the size determines the overlap, which is less than allOverlap only if no size has
// it.
func pageAt(offset, largest int) (page, size int) {
	if offset == 0 {
		return 1, largest
	}
	size = largest
	for least, gained := allOverlap, 0; least > 0 && gained == 0; least-- {
		for candidate := largest; candidate > gained; candidate-- {
			overlap := offset % candidate
			if overlap > 0 && overlap >= min(least, candidate/2) && candidate-overlap > gained {
				size, gained = candidate, candidate-overlap
			}
		}
	}
	return offset/size + 1, size
}
