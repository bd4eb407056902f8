package storetest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/go-relayer/relayer"
)

// before returns a buffer with content and spare capacity.
func before() []byte { return append(make([]byte, 0, 64), "before:"...) }

// wantDocument fails if a DocumentStore returns another document than Get.
func wantDocument(t *testing.T, store relayer.Store, rec relayer.Record) {
	t.Helper()
	documents, ok := store.(relayer.DocumentStore)
	if !ok {
		return
	}
	got, revision, err := documents.AppendDocument(t.Context(), before(), rec.ID)
	if err != nil || revision != rec.Revision {
		t.Fatalf("AppendDocument(%q): revision %d, %v, want %d", rec.ID, revision, err, rec.Revision)
	}
	if !bytes.Equal(got, append(before(), rec.Document...)) {
		t.Fatalf("AppendDocument(%q): %d bytes that are not the buffer and the document", rec.ID, len(got))
	}
}

// wantDocuments fails if a DocumentStore returns another page than List.
func wantDocuments(t *testing.T, store relayer.Store, offset, limit int, page []relayer.Record, total int) {
	t.Helper()
	documents, ok := store.(relayer.DocumentStore)
	if !ok {
		return
	}
	got, gotTotal, err := documents.AppendDocuments(t.Context(), before(), offset, limit)
	if err != nil || gotTotal != total {
		t.Fatalf("AppendDocuments(%d, %d): total %d, %v, want %d", offset, limit, gotTotal, err, total)
	}
	want := before()
	for i, rec := range page {
		if i > 0 {
			want = append(want, ',')
		}
		want = append(want, rec.Document...)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("AppendDocuments(%d, %d): %d bytes that are not the buffer and the documents", offset, limit, len(got))
	}
}

// wantNoDocuments fails unless both methods of a DocumentStore return the error and the
// unchanged buffer.
func wantNoDocuments(ctx context.Context, t *testing.T, store relayer.Store, id string, want error) {
	t.Helper()
	documents, ok := store.(relayer.DocumentStore)
	if !ok {
		return
	}
	got, revision, err := documents.AppendDocument(ctx, before(), id)
	if !errors.Is(err, want) || revision != 0 || !bytes.Equal(got, before()) {
		t.Fatalf("AppendDocument(%q): %q at revision %d, error is %v, want %v", id, got, revision, err, want)
	}
	if errors.Is(want, relayer.ErrNotFound) {
		return
	}
	got, total, err := documents.AppendDocuments(ctx, before(), 0, 10)
	if !errors.Is(err, want) || total != 0 || !bytes.Equal(got, before()) {
		t.Fatalf("AppendDocuments: %q and a total of %d, error is %v, want %v", got, total, err, want)
	}
}
