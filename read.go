package relayer

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"strconv"

	"github.com/go-relayer/relayer/internal/strictjson"
)

// Get returns the relayer, [ErrNotFound], or a [*CorruptError] for a damaged record. If its RPC
// URLs are damaged, or are sealed and cannot be opened, they are masked (see [RPCURL.IsMasked]);
// [Manager.RPCURLs] returns the error.
func (m *Manager) Get(ctx context.Context, id string) (*Relayer, error) {
	return get(ctx, m, ActionGet, id, orMasked(m.fullRelayerOf))
}

// form converts a record to a result: a relayer, a document, or the record.
type form[T any] func(context.Context, Record) (T, error)

func get[T any](ctx context.Context, m *Manager, action Action, id string, form form[T]) (T, error) {
	return observe(ctx, m.observers, action, id, nil, func(ctx context.Context) (T, error) {
		rec, err := m.get(ctx, id)
		if err != nil {
			return *new(T), err
		}
		return form(ctx, rec)
	})
}

// RPCURLs returns the RPC endpoints of the relayer with their full URLs. It returns
// [ErrNotFound], or an error that matches [ErrSealed] if they cannot be opened. Without keys,
// this error matches [errors.ErrUnsupported] too. It returns a [*CorruptError] if they are
// damaged.
func (m *Manager) RPCURLs(ctx context.Context, id string) ([]RPCConfig, error) {
	r, err := get(ctx, m, ActionReveal, id, m.fullRelayerOf)
	if err != nil {
		return nil, err
	}
	return r.CustomRPCURLs, nil
}

// get returns the record of a relayer of the view.
func (m *Manager) get(ctx context.Context, id string) (Record, error) {
	if !IsID(id) {
		return Record{}, ErrNotFound
	}
	return m.store.Get(ctx, id)
}

// ListQuery is a page of a selection of relayers. The zero value is the first page of all
// relayers.
type ListQuery struct {
	// Selector selects the relayers.
	Selector Selector

	// Page is the number of the page, from 1. Page 0 is the first page too.
	Page int

	// PerPage is the number of relayers of a page. 0 is [DefaultPerPage]. A number above the
	// maximum (see [WithMaxPerPage]) is lowered to it; [Pagination.PerPage] is the number used.
	PerPage int

	// After is the [Page.Next] of the page before this one, or the empty cursor for the first
	// page. If After is nil, Page is used; otherwise Page must be 0. A walk by cursors returns
	// every relayer that exists and is selected during the whole walk exactly once, even if
	// others are created and deleted meanwhile.
	After *Cursor
}

// Validate returns the error of the selector, or a [*ValidationError] if the page is impossible. It
// accepts any cursor: each [Reader] has its own.
func (q ListQuery) Validate() error {
	if err := q.Selector.Err(); err != nil {
		return err
	}
	found := new(problems)
	if q.Page < 0 {
		found.Report("page", strictjson.OutOfRange, "must be 0 or more")
	}
	if q.PerPage < 0 {
		found.Report("per_page", strictjson.OutOfRange, "must be 0 or more")
	}
	if q.After != nil && q.Page != 0 {
		found.Add("after", "must not be given together with page")
	}
	return found.err()
}

// Cursor is a position in the list of a [Reader]. It is opaque, and valid with any selector as
// long as the store exists. The empty cursor is the beginning.
type Cursor string

// Pagination describes a page of a selection of relayers.
type Pagination struct {
	// CurrentPage is the number of the page, from 1. It is 0 if the query has a cursor.
	CurrentPage int `json:"current_page,omitempty"`

	// PerPage is the number of relayers of a full page.
	PerPage int `json:"per_page"`

	// TotalItems is the number of selected relayers, on all pages.
	TotalItems int `json:"total_items"`
}

// Page is one page of a selection of relayers.
type Page struct {
	Relayers   []*Relayer
	Documents  []Document // of [Documents.List]
	Pagination Pagination

	// Next is the cursor of the end of the page, for a query with After. It is empty if no relayers
	// follow: an empty [ListQuery.After] would begin again.
	Next Cursor

	// Position is the point of the change feed at which the page was read: a watch with the same
	// selector that begins after it ([WatchQuery.After]) has exactly the changes after this page.
	// A [Manager] always sets it, a client only for a query with After, and a mirror never.
	Position string
}

// List returns one page of the selected relayers in creation order, oldest first, with their
// total and the position of the change feed, all in one snapshot. A page past the end is empty
// and has the correct total. An invalid query is a [*ValidationError]. A damaged record of the
// page (or, with After, the next record) is a [*CorruptError], and so is a damaged RPC URL that
// List returns in full.
//
// Every page is a separate snapshot. If a relayer of an earlier page is deleted, or changed so
// that the query does not select it, the later pages shift, and the next page skips a relayer. A
// walk by cursors ([ListQuery.After]) and [Manager.All] skip none.
func (m *Manager) List(ctx context.Context, query ListQuery) (*Page, error) {
	return m.list(ctx, ActionList, query, false, func(ctx context.Context, records []Record, page *Page) (err error) {
		page.Relayers = make([]*Relayer, len(records))
		for i := 0; i < len(records) && err == nil; i++ {
			page.Relayers[i], err = m.relayerOf(ctx, records[i])
		}
		return err
	})
}

// list returns a page. The function add adds the records to it, in the form of the caller.
func (m *Manager) list(ctx context.Context, action Action, query ListQuery, documentsOnly bool, add func(context.Context, []Record, *Page) error) (*Page, error) {
	return observe(ctx, m.observers, action, "", nil, func(ctx context.Context) (*Page, error) {
		pagination, asked, err := m.paginate(query)
		if err != nil {
			return nil, err
		}
		asked.DocumentsOnly = documentsOnly
		if query.After != nil {
			asked.Limit++ // shows whether more follow
		}
		listing, err := within(m.store, query.Selector, false).List(ctx, asked)
		if err != nil {
			return nil, err
		}
		page := new(Page)
		if query.After != nil && len(listing.Records) > pagination.PerPage {
			listing.Records = listing.Records[:pagination.PerPage]
			page.Next = Cursor(strconv.FormatUint(listing.Records[pagination.PerPage-1].Sequence, 10))
		}
		pagination.TotalItems = listing.Total
		page.Pagination, page.Position = pagination, listing.Position
		return page, add(ctx, listing.Records, page)
	})
}

// paginate returns the page to read, without its total, and the query for it.
func (s *settings) paginate(query ListQuery) (Pagination, StoreQuery, error) {
	if err := query.Validate(); err != nil {
		return Pagination{}, StoreQuery{}, err
	}
	perPage := min(cmp.Or(query.PerPage, DefaultPerPage), s.maxPerPage)
	if query.After != nil {
		// A cursor is the sequence number of the record before it.
		after, err := strconv.ParseUint(cmp.Or(string(*query.After), "0"), 10, 63)
		if err != nil {
			err = invalid("after", "must be empty, or the cursor of an earlier page")
		}
		return Pagination{PerPage: perPage}, StoreQuery{After: after, Limit: perPage}, err
	}
	p := Pagination{CurrentPage: max(query.Page, 1), PerPage: perPage}
	skipped := min(p.CurrentPage-1, math.MaxInt/perPage) // so that the product does not overflow
	return p, StoreQuery{Offset: skipped * perPage, Limit: perPage}, nil
}

// All returns every relayer that the selector selects, in creation order, oldest first. It
// reads in pages and blocks no writer: the loop body may delete relayers, or change them so the
// selector no longer selects them. A relayer that exists and is selected during the whole iteration
// is returned exactly once, despite concurrent writes. A relayer that is deleted and created again
// meanwhile may be returned twice.
//
// For each damaged record All yields nil and an error that is a [*CorruptError], and
// continues behind it. Any other error is the last. If ctx is done, the read of the next page ends
// the iteration with the error of ctx.
func (m *Manager) All(ctx context.Context, selector Selector) iter.Seq2[*Relayer, error] {
	return func(yield func(*Relayer, error) bool) {
		for rec, err := range m.allRecords(ctx, selector) {
			var r *Relayer
			if err == nil {
				r, err = m.relayerOf(ctx, rec)
				err = operationError(ActionList, "", err)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// allBatch is the number of records that allRecords reads at a time.
const allBatch = 100

// allRecords reads all pages of the selected records of the view and yields the records. It
// yields a [*CorruptError] for each damaged record and continues behind it. Any other error is
// the last. It is observed as the lists that it reads.
func (m *Manager) allRecords(ctx context.Context, selector Selector) iter.Seq2[Record, error] {
	store := within(m.store, selector, false)
	return func(yield func(Record, error) bool) {
		for after, isLast := uint64(0), false; !isLast; {
			var listing Listing // with the records before a damaged one
			_, err := observe(ctx, m.observers, ActionList, "", nil, func(ctx context.Context) (_ struct{}, err error) {
				if err = ctx.Err(); err == nil {
					listing, err = store.List(ctx, StoreQuery{After: after, Limit: allBatch})
				}
				return struct{}{}, err
			})
			for _, rec := range listing.Records {
				if after = rec.Sequence; !yield(rec, nil) {
					return
				}
			}
			isLast = len(listing.Records) < allBatch
			if err == nil {
				continue
			}
			if !yield(Record{}, err) {
				return
			}
			corrupt, isDamaged := errors.AsType[*CorruptError](err)
			if !isDamaged || corrupt.Sequence <= after {
				return
			}
			after, isLast = corrupt.Sequence, false
		}
	}
}
