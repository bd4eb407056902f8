package relayer

import "context"

// Document is a relayer in its response form (spec section 2.1), as it was
// encoded when it was stored: JSON, with RPC URLs masked.
type Document struct {
	ID       string
	Revision uint64
	JSON     []byte
}

// DocumentPage is one page of the list of all relayers, as documents.
type DocumentPage struct {
	Documents  []Document
	Pagination Pagination
}

func documentOf(rec Record) Document {
	return Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document}
}

// CreateDocument is [Manager.Create] for a request as it comes over the wire or
// out of a file: one strict JSON object with the members of spec section 4.2.
// Problems of the JSON and of what it says are told together.
func (m *Manager) CreateDocument(ctx context.Context, body []byte) (Document, error) {
	found := new(problems)
	req, ok := decodeCreateRequest(body, found)
	if !ok {
		return Document{}, found.err()
	}
	rec, err := m.create(ctx, req, found)
	if err != nil {
		return Document{}, err
	}
	return documentOf(rec), nil
}

// GetDocument is [Manager.Get] without decoding what is stored.
func (m *Manager) GetDocument(ctx context.Context, id string) (Document, error) {
	rec, err := m.get(ctx, id)
	if err != nil {
		return Document{}, err
	}
	return documentOf(rec), nil
}

// ListDocuments is [Manager.List] without decoding what is stored.
func (m *Manager) ListDocuments(ctx context.Context, page, perPage uint32) (DocumentPage, error) {
	records, pagination, err := m.list(ctx, page, perPage)
	if err != nil {
		return DocumentPage{}, err
	}
	documents := make([]Document, len(records))
	for i, rec := range records {
		documents[i] = documentOf(rec)
	}
	return DocumentPage{Documents: documents, Pagination: pagination}, nil
}
