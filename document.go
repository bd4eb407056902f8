package relayer

import "context"

// Document is a relayer as it was encoded when it was stored, which is the form of
// responses: JSON, with RPC URLs masked.
type Document struct {
	ID       string
	Revision uint64
	JSON     []byte
}

// CreateDocument is [Manager.Create] for a request in JSON, such as the body of an
// HTTP request: one strict JSON object with the members of [CreateRequest].
// Problems of the JSON and of its values are returned together.
func (m *Manager) CreateDocument(ctx context.Context, body []byte) (Document, error) {
	r := new(Relayer)
	return observe(ctx, m, OperationCreate, &r.ID, func() (Document, error) {
		var req CreateRequest
		found := new(problems)
		if !decodeCreateRequest(body, &req, found) {
			return Document{}, found.err()
		}
		*r = *newRelayer(req)
		rec, err := m.create(ctx, r, found)
		if err != nil {
			return Document{}, err
		}
		return documentOf(rec), nil
	})
}

func documentOf(rec Record) Document {
	return Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document}
}

// AppendDocument is [Manager.Get] without decoding: it appends the document of the
// relayer to dst, as the built-in append does, and returns its revision. If it fails
// it returns dst unchanged.
func (m *Manager) AppendDocument(ctx context.Context, dst []byte, id string) (extended []byte, revision uint64, err error) {
	extended, err = observe(ctx, m, OperationGet, &id, func() ([]byte, error) {
		if !IsID(id) {
			return dst, ErrNotFound
		}
		extended, revision, err = m.documents.AppendDocument(ctx, dst, id)
		return extended, err
	})
	return extended, revision, err
}

// AppendDocuments is [Manager.List] without decoding: it appends the documents
// of the relayers of the page to dst, separated by commas. If it fails it returns
// dst unchanged.
func (m *Manager) AppendDocuments(ctx context.Context, dst []byte, page, perPage uint32) (extended []byte, pagination Pagination, err error) {
	extended, err = observe(ctx, m, OperationList, new(string), func() ([]byte, error) {
		wanted, offset := m.paginate(page, perPage)
		extended, total, err := m.documents.AppendDocuments(ctx, dst, offset, int(wanted.PerPage))
		if err != nil {
			return dst, err
		}
		pagination = wanted
		pagination.TotalItems = total
		return extended, nil
	})
	return extended, pagination, err
}

// ListDocuments is [Manager.List] without decoding.
func (m *Manager) ListDocuments(ctx context.Context, page, perPage uint32) (documents []Document, pagination Pagination, err error) {
	documents, err = observe(ctx, m, OperationList, new(string), func() ([]Document, error) {
		wanted, offset := m.paginate(page, perPage)
		records, total, err := m.store.List(ctx, offset, int(wanted.PerPage))
		if err != nil {
			return nil, err
		}
		pagination = wanted
		pagination.TotalItems = total
		listed := make([]Document, 0, len(records))
		for _, rec := range records {
			listed = append(listed, documentOf(rec))
		}
		return listed, nil
	})
	return documents, pagination, err
}

// documentsOf returns the store if it is a DocumentStore, and otherwise one that
// reads whole records from it.
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
