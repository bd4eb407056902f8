package relayer

import (
	"context"
	"iter"
)

// Document is a relayer as it was encoded when it was stored, which is the form of
// responses: JSON, with RPC URLs masked. Its bytes are shared with the store and must not
// be modified.
type Document struct {
	ID       string
	Revision uint64
	JSON     []byte
}

func documentOf(rec Record) Document {
	return Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document}
}

// CreateDocument is [Manager.Create] for a request in JSON, such as the body of an
// HTTP request: one strict JSON object with the members of [CreateRequest].
// Problems of the JSON and of its values are returned together.
func (m *Manager) CreateDocument(ctx context.Context, body []byte, options ...WriteOption) (Document, error) {
	r := new(Relayer)
	return observeWrite(ctx, m, ActionCreate, &r.ID, options, func(ctx context.Context, w *write) (Document, error) {
		var req CreateRequest
		found := new(problems)
		if !decodeCreateRequest(body, &req, found) {
			return Document{}, found.err()
		}
		*r = *newRelayer(req)
		rec, err := m.create(ctx, r, found, w)
		return documentOf(rec), err
	})
}

// GetDocument is [Manager.Get] without decoding.
func (m *Manager) GetDocument(ctx context.Context, id string) (Document, error) {
	return observe(ctx, m, ActionGet, id, func(ctx context.Context) (Document, error) {
		rec, err := m.get(ctx, id)
		return documentOf(rec), err
	})
}

// AppendDocuments is [Manager.List] without decoding: it appends the documents of the page to
// dst, as the built-in append does. If it fails it returns nil.
func (m *Manager) AppendDocuments(ctx context.Context, dst []Document, query ListQuery) ([]Document, Pagination, error) {
	var pagination Pagination
	documents, err := observe(ctx, m, ActionList, "", func(ctx context.Context) (documents []Document, err error) {
		documents, pagination, err = m.appendDocuments(ctx, dst, query)
		return documents, err
	})
	return documents, pagination, err
}

// documentLister is an optional interface of a [Store], detected with a type assertion:
// [Store.List] of all records without the parts of a record that a document does not have.
type documentLister interface {
	AppendDocuments(ctx context.Context, dst []Document, offset, limit int) (documents []Document, total int, err error)
}

func (m *Manager) appendDocuments(ctx context.Context, dst []Document, query ListQuery) ([]Document, Pagination, error) {
	lister, ok := m.store.(documentLister)
	if !ok || !m.scope.IsZero() || !query.Selector.IsZero() {
		records, pagination, err := m.listRecords(ctx, query)
		if err != nil {
			return nil, Pagination{}, err
		}
		for _, rec := range records {
			dst = append(dst, documentOf(rec))
		}
		return dst, pagination, nil
	}
	pagination, offset, err := m.paginate(query)
	if err != nil {
		return nil, Pagination{}, err
	}
	documents, total, err := lister.AppendDocuments(ctx, dst, offset, pagination.PerPage)
	if err != nil {
		return nil, Pagination{}, err
	}
	pagination.TotalItems = total
	return documents, pagination, nil
}

// DocumentChange is a [Change] without decoding: the document after it, or the last one
// if the relayer was deleted. The JSON of a relayer that the query ceases to select is nil.
type DocumentChange struct {
	Kind     ChangeKind
	Document Document
	Position string // as in [Change]
}

// WatchDocuments is [Manager.Watch] without decoding.
func (m *Manager) WatchDocuments(ctx context.Context, query WatchQuery) iter.Seq2[DocumentChange, error] {
	return watch(ctx, m, query, func(c RecordChange) (DocumentChange, error) {
		return DocumentChange{c.Kind, documentOf(c.Record), c.Position}, nil
	})
}
