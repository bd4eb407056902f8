package relayer

import "context"

// Document is a relayer in its response form (spec section 2.1), as it was
// encoded when it was stored: JSON, with RPC URLs masked.
type Document struct {
	ID       string
	Revision uint64
	JSON     []byte
}

// CreateDocument is [Manager.Create] for a request as it comes over the wire or
// out of a file: one strict JSON object with the members of spec section 4.2.
// Problems of the JSON and of what it says are told together.
func (m *Manager) CreateDocument(ctx context.Context, body []byte) (document Document, err error) {
	found := new(problems)
	var req CreateRequest
	defer m.observe(ctx, OperationCreate, &req.ID, begin(&err), &err)
	if !decodeCreateRequest(body, &req, found) {
		return Document{}, found.err()
	}
	rec, err := m.create(ctx, &req, found)
	if err != nil {
		return Document{}, err
	}
	return documentOf(rec), nil
}

func documentOf(rec Record) Document {
	return Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document}
}

// AppendDocument is [Manager.Get] without decoding what is stored: it appends
// the relayer's response form to dst, as the built-in append does, and returns
// its revision. With an error it returns dst as it was.
func (m *Manager) AppendDocument(ctx context.Context, dst []byte, id string) (extended []byte, revision uint64, err error) {
	defer m.observe(ctx, OperationGet, &id, begin(&err), &err)
	if !isID(id) {
		return dst, 0, ErrNotFound
	}
	return m.documents.AppendDocument(ctx, dst, id)
}

// AppendDocuments is [Manager.List] without decoding what is stored: it appends
// the response forms of the page to dst, with a comma between each two.
func (m *Manager) AppendDocuments(ctx context.Context, dst []byte, page, perPage uint32) (extended []byte, pagination Pagination, err error) {
	defer m.observe(ctx, OperationList, new(string), begin(&err), &err)
	pagination, offset := m.paginate(page, perPage)
	extended, total, err := m.documents.AppendDocuments(ctx, dst, offset, int(pagination.PerPage))
	if err != nil {
		return dst, Pagination{}, err
	}
	pagination.TotalItems = total
	return extended, pagination, nil
}

// documentsOf returns the store's own reads of documents, or reads of whole
// records in their place.
func documentsOf(store Store) DocumentStore {
	if documents, ok := store.(DocumentStore); ok {
		return documents
	}
	return recordReader{store}
}

// recordReader is a [DocumentStore] on any [Store].
type recordReader struct{ store Store }

func (r recordReader) AppendDocument(ctx context.Context, dst []byte, id string) ([]byte, uint64, error) {
	rec, err := r.store.Get(ctx, id)
	if err != nil {
		return dst, 0, err
	}
	return append(dst, rec.Document...), rec.Revision, nil
}

func (r recordReader) AppendDocuments(ctx context.Context, dst []byte, offset, limit int) ([]byte, int, error) {
	records, total, err := r.store.List(ctx, offset, limit)
	if err != nil {
		return dst, 0, err
	}
	for i, rec := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, rec.Document...)
	}
	return dst, total, nil
}
