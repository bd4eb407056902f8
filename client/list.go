package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/go-relayer/relayer"
)

// List returns one page of all relayers in the order of the server, which is the order
// of creation for package httpapi. Pages start at 1; page 0 is the first page
// too. Pagination.PerPage is the number that the server used. If the server returns no
// revisions, List returns the page, whose relayers have the Revision 0, and an error that
// matches [relayer.ErrNoRevision].
func (c *Client) List(ctx context.Context, page, perPage uint32) (*relayer.Page, error) {
	listed, err := c.list(ctx, max(page, 1), perPage)
	if err != nil {
		return nil, err
	}
	for _, r := range listed.Relayers {
		if err := checkRevision(r); err != nil {
			return &listed.Page, err
		}
	}
	return &listed.Page, nil
}

// listing is a page with the JSON of its relayers.
type listing struct {
	relayer.Page
	documents []json.RawMessage
}

// checkRevision returns an error if the server has not returned the revision.
func checkRevision(r *relayer.Relayer) error {
	if r.Revision == 0 {
		return fmt.Errorf("client: GET %s: the server returns no revisions: %w", collectionPath, relayer.ErrNoRevision)
	}
	return nil
}

func (c *Client) list(ctx context.Context, page, perPage uint32) (*listing, error) {
	listed := new(listing)
	req := newRequest(http.MethodGet, collectionPath, nil)
	req.query = url.Values{
		"page":      {strconv.FormatUint(uint64(page), 10)},
		"per_page":  {strconv.FormatUint(uint64(perPage), 10)},
		"revisions": {"true"},
	}.Encode()
	req.decode = func(resp *response) error { return listed.decode(resp) }
	if _, failed := c.do(ctx, req, c.newAttempts()); failed != nil {
		return nil, failed.err
	}
	return listed, nil
}

func (l *listing) decode(resp *response) error {
	if resp.envelope.Pagination == nil {
		return fmt.Errorf("%w: no pagination", errNoData)
	}
	*l = listing{}
	l.Pagination = *resp.envelope.Pagination
	if err := json.Unmarshal(resp.envelope.Data, &l.documents); err != nil || l.documents == nil {
		return errNoData
	}
	revisions := resp.envelope.Revisions
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

// All returns every relayer in the order of [Client.List]. It reads in pages. On a server
// that lists in order of creation, a relayer that exists during the whole iteration is
// returned exactly once, despite concurrent writes. No ID is returned twice. All keeps a
// digest of what it has read in memory, and the relayers that follow if many writes
// prevent it from reading in order.
//
// If the server returns no revisions, the relayers have the Revision 0, and All yields
// each of them together with an error that matches [relayer.ErrNoRevision]. A relayer
// that is deleted and created again with equal content then counts as unchanged. If this
// happens to several relayers between two requests, and the list shrinks, relayers may be
// skipped.
//
// The iteration ends after the first other error. A server that returns the same relayers
// again and again is such an error. A page larger than the limit of
// [WithMaxResponseBytes] is requested again with half as many relayers.
func (c *Client) All(ctx context.Context) iter.Seq2[*relayer.Relayer, error] {
	return func(yield func(*relayer.Relayer, error) bool) {
		w := &walk{client: c, seed: maphash.MakeSeed(), read: make(map[string]lastRead), largest: allPage}
		for !w.isDone {
			batch, err := w.next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, r := range batch {
				if !yield(r, checkRevision(r)) {
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
// Deletes move a relayer only toward the pages that follow, so that none is skipped.
type walk struct {
	client  *Client
	seed    maphash.Seed
	read    map[string]lastRead // by ID; the zero value if those before it were not read
	offset  uint32              // the relayers before it have been read
	largest uint32              // size of a page that the server permits
	idle    int                 // size of the pages since the last new relayer
	isDone  bool
}

// lastRead is what was read of a relayer.
type lastRead struct {
	position uint32 // in the list
	digest   uint64 // of its JSON
}

// next returns the relayers of a page that were not read before, or all the others.
func (w *walk) next(ctx context.Context) ([]*relayer.Relayer, error) {
	listed, start, err := w.fetch(ctx, func() (page, size uint32) { return pageAt(w.offset, w.largest) })
	if err != nil {
		return nil, err
	}
	if w.offset > 0 && !w.overlaps(listed, start) {
		w.isDone = true
		return w.backward(ctx, max(listed.Pagination.TotalItems, int(start)+len(listed.Relayers)))
	}
	unread := w.unread(listed)
	for i, r := range listed.Relayers {
		w.read[r.ID] = w.lastRead(listed, start, i)
	}
	w.isDone = uint32(len(listed.Relayers)) < listed.Pagination.PerPage
	w.offset = start + listed.Pagination.PerPage
	return unread, w.checkProgress(listed, unread)
}

// backward returns the relayers that were not read before, of a list with the given
// number of relayers.
func (w *walk) backward(ctx context.Context, total int) ([]*relayer.Relayer, error) {
	var newestFirst []*relayer.Relayer
	end := min(total, math.MaxInt32) // all from there on have been read
	for end > 0 {
		listed, start, err := w.fetch(ctx, func() (page, size uint32) { return uint32(end-1)/w.largest + 1, w.largest })
		if err != nil {
			return nil, err
		}
		if int(start+listed.Pagination.PerPage) < end {
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
		end = min(int(start), listed.Pagination.TotalItems)
	}
	slices.Reverse(newestFirst)
	return newestFirst, nil
}

// fetch returns the page and the position of its first relayer. It asks for smaller
// pages while they are larger than the limit of a response.
func (w *walk) fetch(ctx context.Context, next func() (page, size uint32)) (*listing, uint32, error) {
	for {
		page, size := next()
		listed, err := w.client.list(ctx, page, size)
		if errors.Is(err, errTooLarge) && size > 1 {
			w.largest = size / 2
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		used := listed.Pagination.PerPage
		if listed.Pagination.CurrentPage != page || used == 0 || used > size || uint64(len(listed.Relayers)) > uint64(used) {
			return nil, 0, fmt.Errorf("client: GET %s: the response is not the requested page", collectionPath)
		}
		if used < size { // the server has lowered it, and with it the start of the page
			w.largest = used
		}
		return listed, (page - 1) * used, nil
	}
}

// overlaps reports whether the page begins with relayers that were read before and did
// not change or move back.
func (w *walk) overlaps(listed *listing, start uint32) bool {
	unchanged := 0
	for i, r := range listed.Relayers {
		last, ok := w.read[r.ID]
		if !ok {
			break
		}
		if now := w.lastRead(listed, start, i); now.digest == last.digest && now.position <= last.position {
			unchanged++
		}
	}
	return unchanged >= allUnchanged
}

func (w *walk) lastRead(listed *listing, start uint32, i int) lastRead {
	var digest maphash.Hash
	digest.SetSeed(w.seed)
	_, _ = digest.Write(listed.documents[i])
	maphash.WriteComparable(&digest, listed.Relayers[i].Revision)
	return lastRead{start + uint32(i), digest.Sum64()}
}

// unread returns the relayers that were not read before.
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
	if w.idle += int(listed.Pagination.PerPage); w.idle > 2*len(w.read)+10*allPage {
		return fmt.Errorf("client: GET %s: the list makes no progress: the server returns the same pages again", collectionPath)
	}
	return nil
}

// pageAt returns the page that has the relayer at the offset, overlaps with those before
// it, and has the most relayers after it. A page starts at a multiple of its size, so
// that the size determines the overlap.
func pageAt(offset, largest uint32) (page, size uint32) {
	if offset == 0 {
		return 1, largest
	}
	size = largest
	var gained uint32
	for candidate := largest; candidate > gained; candidate-- {
		overlap := offset % candidate
		if overlap > 0 && overlap >= min(allOverlap, candidate/2) && candidate-overlap > gained {
			size, gained = candidate, candidate-overlap
		}
	}
	return offset/size + 1, size
}
