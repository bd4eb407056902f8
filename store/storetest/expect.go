package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
)

// sample returns a record without a claim. Its other parts are different for each ID.
func sample(id string) relayer.Record {
	return relayer.Record{
		ID:       id,
		Terms:    []string{"common", "id=" + id},
		Text:     "text of " + id,
		Document: []byte(`{"id":"` + id + `","paused":false}`),
		Private:  []byte(`{"secret":"of ` + id + `"}`),
		Note:     []byte(`{"note":"of ` + id + `"}`),
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
	rec.Sequence = made.Sequence
	wantContent(t, made, rec)
	return made
}

func mustUpdate(t *testing.T, store relayer.Store, rec relayer.Record) relayer.Record {
	t.Helper()
	made, err := store.Update(t.Context(), rec)
	if err != nil || made.Revision <= rec.Revision {
		t.Fatalf("Update(%q at %d): revision %d, error %v", rec.ID, rec.Revision, made.Revision, err)
	}
	wantContent(t, made, rec)
	return made
}

// wantContent checks that a write returned what it was given, except the revision.
func wantContent(t *testing.T, made, given relayer.Record) {
	t.Helper()
	given.Revision = made.Revision
	if diff := difference(made, given); diff != "" {
		t.Fatalf("the write of %q returned another record: %s", given.ID, diff)
	}
}

// deleteNote is the note of most deletes.
var deleteNote = []byte(`{"note":"of a delete"}`)

func mustDelete(t *testing.T, store relayer.Store, rec relayer.Record) {
	t.Helper()
	if err := store.Delete(t.Context(), rec.ID, rec.Revision, deleteNote); err != nil {
		t.Fatalf("Delete(%q at %d): %v", rec.ID, rec.Revision, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
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
	case got.Sequence != want.Sequence:
		return fmt.Sprintf("sequence of %q is %d, want %d", want.ID, got.Sequence, want.Sequence)
	case got.Claim != want.Claim:
		return fmt.Sprintf("claim of %q is %q, want %q", want.ID, got.Claim, want.Claim)
	case !slices.Equal(got.Terms, want.Terms):
		return fmt.Sprintf("terms of %q are %q, want %q", want.ID, got.Terms, want.Terms)
	case got.Text != want.Text:
		return fmt.Sprintf("text of %q is %q, want %q", want.ID, got.Text, want.Text)
	case !bytes.Equal(got.Note, want.Note):
		return fmt.Sprintf("note of %q is %q, want %q", want.ID, got.Note, want.Note)
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
func wantSelected(t *testing.T, store relayer.Store, query relayer.StoreQuery, all []relayer.Record) relayer.Listing {
	t.Helper()
	var selected []relayer.Record
	for _, rec := range all {
		if selects(query, rec) {
			selected = append(selected, rec)
		}
	}
	want := slices.DeleteFunc(slices.Clone(selected), func(rec relayer.Record) bool { return rec.Sequence <= query.After })
	want = want[min(query.Offset, len(want)):]
	want = want[:min(query.Limit, len(want))]
	given := fmt.Sprintf("%#v", query)
	page, err := store.List(t.Context(), query)
	if left := fmt.Sprintf("%#v", query); left != given {
		t.Fatalf("List(%s) has changed the query to %s", given, left)
	}
	got := page.Records
	if err != nil || page.Total != len(selected) || len(got) != len(want) {
		t.Fatalf("List(%+v): %d records of %d, want %d of %d; error %v", query, len(got), page.Total, len(want), len(selected), err)
	}
	for i := range want {
		wantSame(t, fmt.Sprintf("List(%+v)[%d]", query, i), asked(query, got[i]), asked(query, want[i]))
	}
	return page
}

// asked returns the parts of a record for which a query asks.
func asked(query relayer.StoreQuery, rec relayer.Record) relayer.Record {
	if query.DocumentsOnly {
		return relayer.Record{ID: rec.ID, Revision: rec.Revision, Sequence: rec.Sequence, Document: rec.Document, Note: rec.Note}
	}
	return rec
}

// selects is a naive implementation of the selection of a [relayer.StoreQuery].
func selects(query relayer.StoreQuery, rec relayer.Record) bool {
	if len(query.IDs) > 0 && !slices.Contains(query.IDs, rec.ID) {
		return false
	}
	isMissing := func(terms []string) bool {
		return !slices.ContainsFunc(terms, func(term string) bool { return slices.Contains(rec.Terms, term) })
	}
	isContained := func(part string) bool { return strings.Contains(rec.Text, part) }
	return !slices.ContainsFunc(query.Terms, isMissing) &&
		(len(query.Contains) == 0 || slices.ContainsFunc(query.Contains, isContained))
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
