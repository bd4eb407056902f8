package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
)

// sample returns a record whose parts differ from those of every other ID.
func sample(id string) relayer.Record {
	return relayer.Record{
		ID:       id,
		Terms:    []string{"common", "id=" + id},
		Document: []byte(`{"id":"` + id + `","paused":false}`),
		Private:  []byte(`{"secret":"of ` + id + `"}`),
	}
}

func claiming(id, claim string) relayer.Record {
	rec := sample(id)
	rec.Claim = claim
	return rec
}

func mustCreate(t *testing.T, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Create(t.Context(), rec)
	if err != nil {
		t.Fatalf("Create(%q): %v", rec.ID, err)
	}
	wantContent(t, made, rec)
	return made
}

func mustUpdate(t *testing.T, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Update(t.Context(), rec)
	if err != nil {
		t.Fatalf("Update(%q at %d): %v", rec.ID, rec.Revision, err)
	}
	wantContent(t, made, rec)
	return made
}

// wantContent checks that a write returned what it was given.
func wantContent(t *testing.T, made, given relayer.Record) {
	t.Helper()
	given.Revision = made.Revision
	if diff := difference(made, given); diff != "" {
		t.Fatalf("the write of %q returned another record: %s", given.ID, diff)
	}
}

func mustDelete(t *testing.T, store relayer.Store, rec relayer.Record) {
	t.Helper()
	if err := store.Delete(t.Context(), rec.ID, rec.Revision); err != nil {
		t.Fatalf("Delete(%q at %d): %v", rec.ID, rec.Revision, err)
	}
}

func mustGet(t *testing.T, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("Get(%q): %v", id, err)
	}
	return rec
}

func mustList(t *testing.T, store relayer.Store, offset, limit int) ([]relayer.Record, int) {
	t.Helper()
	recs, total, err := store.List(t.Context(), relayer.StoreQuery{Offset: offset, Limit: limit})
	if err != nil {
		t.Fatalf("List(%d, %d): %v", offset, limit, err)
	}
	return recs, total
}

// createMany creates n records with the IDs id-0000, id-0001 and so on.
func createMany(t *testing.T, store relayer.Store, n int) []relayer.Record {
	t.Helper()
	recs := make([]relayer.Record, n)
	for i := range recs {
		recs[i] = mustCreate(t, store, sample(numbered(i)))
	}
	return recs
}

func numbered(i int) string { return fmt.Sprintf("id-%04d", i) }

func wantSame(t *testing.T, what string, got, want relayer.Record) {
	t.Helper()
	if diff := difference(got, want); diff != "" {
		t.Fatalf("%s: %s", what, diff)
	}
}

func difference(got, want relayer.Record) string {
	switch {
	case got.ID != want.ID:
		return fmt.Sprintf("ID is %q, want %q", got.ID, want.ID)
	case got.Revision != want.Revision:
		return fmt.Sprintf("revision of %q is %d, want %d", want.ID, got.Revision, want.Revision)
	case got.Claim != want.Claim:
		return fmt.Sprintf("claim of %q is %q, want %q", want.ID, got.Claim, want.Claim)
	case !slices.Equal(got.Terms, want.Terms):
		return fmt.Sprintf("terms of %q are %q, want %q", want.ID, got.Terms, want.Terms)
	case !bytes.Equal(got.Document, want.Document):
		return fmt.Sprintf("document of %q differs: %d bytes, want %d", want.ID, len(got.Document), len(want.Document))
	case !bytes.Equal(got.Private, want.Private):
		return fmt.Sprintf("private part of %q differs: %d bytes, want %d", want.ID, len(got.Private), len(want.Private))
	}
	return ""
}

// wantPage fails unless the page from offset on is that slice of all, and the total is
// their number.
func wantPage(t *testing.T, store relayer.Store, offset, limit int, all []relayer.Record) {
	t.Helper()
	wantSelected(t, store, relayer.StoreQuery{Offset: offset, Limit: limit}, all)
}

// wantSelected fails unless the page and the total of a query are those of all. It returns
// the page.
func wantSelected(t *testing.T, store relayer.Store, query relayer.StoreQuery, all []relayer.Record) []relayer.Record {
	t.Helper()
	var selected []relayer.Record
	for _, rec := range all {
		if selects(query, rec) {
			selected = append(selected, rec)
		}
	}
	want := selected[min(query.Offset, len(selected)):]
	want = want[:min(query.Limit, len(want))]
	got, total, err := store.List(t.Context(), query)
	if err != nil || total != len(selected) || len(got) != len(want) {
		t.Fatalf("List(%+v): %d records of %d, want %d of %d; error %v", query, len(got), total, len(want), len(selected), err)
	}
	for i := range want {
		wantSame(t, fmt.Sprintf("List(%+v)[%d]", query, i), got[i], want[i])
	}
	if lister, ok := store.(documentLister); ok && len(query.Terms) == 0 && len(query.IDs) == 0 {
		wantDocuments(t, lister, query, want, total)
	}
	return got
}

// documentLister is the optional interface of stores for lists without decoding.
type documentLister interface {
	AppendDocuments(ctx context.Context, dst []relayer.Document, offset, limit int) (documents []relayer.Document, total int, err error)
}

// wantDocuments fails unless the documents of a page of all records are those of the records,
// after what was in the slice before.
func wantDocuments(t *testing.T, lister documentLister, query relayer.StoreQuery, records []relayer.Record, total int) {
	t.Helper()
	want := []relayer.Document{{ID: "before"}}
	for _, rec := range records {
		want = append(want, relayer.Document{ID: rec.ID, Revision: rec.Revision, JSON: rec.Document})
	}
	got, count, err := lister.AppendDocuments(t.Context(), want[:1:1], query.Offset, query.Limit)
	isSame := func(a, b relayer.Document) bool {
		return a.ID == b.ID && a.Revision == b.Revision && bytes.Equal(a.JSON, b.JSON)
	}
	if err != nil || count != total || !slices.EqualFunc(got, want, isSame) {
		t.Fatalf("AppendDocuments(%d, %d): %d documents of %d, want %d of %d; error %v", query.Offset, query.Limit, len(got), count, len(want), total, err)
	}
}

// selects is a naive implementation of [relayer.StoreQuery].
func selects(query relayer.StoreQuery, rec relayer.Record) bool {
	if len(query.IDs) > 0 && !slices.Contains(query.IDs, rec.ID) {
		return false
	}
	isMissing := func(terms []string) bool {
		return !slices.ContainsFunc(terms, func(term string) bool { return slices.Contains(rec.Terms, term) })
	}
	return !slices.ContainsFunc(query.Terms, isMissing)
}

// wantError fails unless err matches want. The contract does not define the record that
// is returned with an error.
func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error is %v, want %v", what, err, want)
	}
}

func wantAbsent(t *testing.T, store relayer.Store, id string) {
	t.Helper()
	_, err := store.Get(t.Context(), id)
	wantError(t, fmt.Sprintf("Get(%q)", id), err, relayer.ErrNotFound)
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
