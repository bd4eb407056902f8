package client

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-relayer/relayer"
)

// List returns one page of all relayers in the order of the server, which is the order
// of creation for package httpapi. Pages start at 1; page 0 is the first page
// too. Pagination.PerPage is the number that the server used. The relayers have the
// Revision 0, because lists have no revisions.
func (c *Client) List(ctx context.Context, page, perPage uint32) (*relayer.Page, error) {
	listed, err := c.list(ctx, max(page, 1), perPage)
	if err != nil {
		return nil, err
	}
	return &listed.Page, nil
}

// listing is a page with the JSON of its relayers.
type listing struct {
	relayer.Page
	documents []json.RawMessage
}

func (c *Client) list(ctx context.Context, page, perPage uint32) (*listing, error) {
	listed := new(listing)
	req := newRequest(http.MethodGet, collectionPath, nil)
	req.query = url.Values{
		"page":     {strconv.FormatUint(uint64(page), 10)},
		"per_page": {strconv.FormatUint(uint64(perPage), 10)},
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
	l.Relayers = make([]*relayer.Relayer, 0, len(l.documents))
	for _, document := range l.documents {
		r, err := decodeRelayer(document)
		if err != nil {
			return err
		}
		l.Relayers = append(l.Relayers, r)
	}
	return nil
}

// All returns every relayer in the order of [Client.List]. It reads in pages. A relayer
// that exists during the whole iteration is returned exactly once, despite concurrent
// writes, and no ID is returned twice; All keeps a digest of what it has read in memory.
// The relayers have the Revision 0. The iteration ends after the first error.
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
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// allPage is the size of the pages that All requests. allOverlap is the least number of
// relayers in a page that All has read before. It is less if the server permits only
// small pages.
const (
	allPage    = 100
	allOverlap = 5
)

// walk reads the list of all relayers in overlapping pages, because deletes move later
// relayers forward. A page has no gap before it if, ahead of any new relayer, it has one
// that was read before and did not move back. All relayers before that one have then been
// read too. Otherwise the walk steps back. A relayer that was deleted and created again moves to
// the end of the list.
type walk struct {
	client  *Client
	seed    maphash.Seed
	read    map[string]lastRead // by ID
	offset  uint32              // the relayers before it have been read
	largest uint32              // size of a page that the server permits
	isDone  bool
}

// lastRead is what was read of a relayer.
type lastRead struct {
	position uint32 // in the list
	digest   uint64 // of its JSON
}

// next returns the relayers of a page that were not read before.
func (w *walk) next(ctx context.Context) ([]*relayer.Relayer, error) {
	page, size := pageAt(w.offset, w.largest)
	listed, err := w.client.list(ctx, page, size)
	if err != nil {
		return nil, err
	}
	used := listed.Pagination.PerPage
	if listed.Pagination.CurrentPage != page || used == 0 || used > size || uint64(len(listed.Relayers)) > uint64(used) {
		return nil, fmt.Errorf("client: GET %s: the response is not the requested page", collectionPath)
	}
	if used < size { // the server has lowered it, and with it the start of the page
		w.largest = used
	}
	start := (page - 1) * used
	if start < w.offset && !w.overlaps(listed, start) {
		w.offset -= min(w.offset, w.largest)
		return nil, nil
	}
	w.isDone = uint32(len(listed.Relayers)) < used
	w.offset = start + used
	return w.unread(listed, start), nil
}

func (w *walk) overlaps(listed *listing, start uint32) bool {
	for i, r := range listed.Relayers {
		last, ok := w.read[r.ID]
		if !ok {
			return false
		}
		if now := w.lastRead(listed, start, i); now.digest == last.digest && now.position <= last.position {
			return true
		}
	}
	return false
}

func (w *walk) lastRead(listed *listing, start uint32, i int) lastRead {
	return lastRead{start + uint32(i), maphash.Bytes(w.seed, listed.documents[i])}
}

// unread returns the relayers that were not read before.
func (w *walk) unread(listed *listing, start uint32) []*relayer.Relayer {
	var unread []*relayer.Relayer
	for i, r := range listed.Relayers {
		if _, ok := w.read[r.ID]; !ok {
			unread = append(unread, r)
		}
		w.read[r.ID] = w.lastRead(listed, start, i)
	}
	return unread
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
