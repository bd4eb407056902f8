package relayer_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// A pause and a disable store what an update of the same fields stores.
func TestSwitches_SameRecordAsUpdate(t *testing.T) {
	reason := relayer.DisabledReason{Type: "x", Details: "https://rpc.example/KEY <&> é"}
	steps := []struct {
		write  func(ctx context.Context, m *relayer.Manager, id string) (*relayer.Relayer, error)
		update func(r *relayer.Relayer)
	}{
		{func(ctx context.Context, m *relayer.Manager, id string) (*relayer.Relayer, error) {
			return m.Pause(ctx, id)
		},
			func(r *relayer.Relayer) { r.Paused = true }},
		{func(ctx context.Context, m *relayer.Manager, id string) (*relayer.Relayer, error) {
			return m.Disable(ctx, id, reason)
		}, func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = true, &reason }},
		{func(ctx context.Context, m *relayer.Manager, id string) (*relayer.Relayer, error) {
			return m.Resume(ctx, id)
		},
			func(r *relayer.Relayer) { r.Paused = false }},
		{func(ctx context.Context, m *relayer.Manager, id string) (*relayer.Relayer, error) {
			return m.Enable(ctx, id)
		},
			func(r *relayer.Relayer) { r.SystemDisabled, r.DisabledReason = false, nil }},
	}
	for _, full := range fullRelayers {
		one, other := memory.New(), memory.New()
		options := []relayer.Option{relayer.WithExclusiveSigners(), refuseNothing}
		m, updating := managerOf(t, one, options...), managerOf(t, other, options...)
		id := mustCreateDocument(t, m, full.request).ID
		mustCreateDocument(t, updating, full.request)
		addUnknownMember(t, one, id)
		addUnknownMember(t, other, id)
		for i, step := range steps {
			if _, err := step.write(t.Context(), m, id); err != nil {
				t.Fatal(err)
			}
			if _, err := updating.Update(t.Context(), id, func(r *relayer.Relayer) error { step.update(r); return nil }); err != nil {
				t.Fatal(err)
			}
			got, want := mustGetRecord(t, one, id), mustGetRecord(t, other, id)
			if !bytes.Equal(got.Document, want.Document) || !slices.Equal(got.Terms, want.Terms) || got.Text != want.Text ||
				got.Claim != want.Claim || !bytes.Equal(got.Private, want.Private) {
				t.Errorf("step %d of %s:\ngot  %v\nwant %v", i, id, got, want)
			}
			if found := checked(t, m); len(found) != 0 {
				t.Errorf("step %d of %s: Check found %q", i, id, found)
			}
		}
	}
}

// A repeated pause changes nothing, even if another program wrote the document in another form.
func TestPause_RepeatedInOtherForm(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	id := mustCreateDocument(t, m, fullRelayers[0].request).ID
	if _, err := m.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	rec := mustGetRecord(t, store, id)
	rec.Document = bytes.Replace(rec.Document, []byte(`"paused":true`), []byte(`"paused": true`), 1)
	stored, err := store.Update(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := mustGetRecord(t, store, id); got.Revision != stored.Revision {
		t.Errorf("revision %d, want %d", got.Revision, stored.Revision)
	}
}

var refuseNothing = relayer.WithAdmission(func(context.Context, relayer.Operation, *relayer.Relayer, *relayer.Relayer) error { return nil })

func mustGetRecord(t *testing.T, store relayer.Store, id string) relayer.Record {
	t.Helper()
	rec, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// addUnknownMember stores a member that a newer version has.
func addUnknownMember(t *testing.T, store relayer.Store, id string) {
	t.Helper()
	rec := mustGetRecord(t, store, id)
	rec.Document = append(bytes.TrimSuffix(bytes.Clone(rec.Document), []byte("}")), `,"newer":{"a": [1]}}`...)
	if _, err := store.Update(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

// A relayer whose document is damaged cannot be paused, and keeps its document.
func TestPause_DamagedDocument(t *testing.T) {
	for _, document := range []string{``, `{`, `{"paused":`, `[`, `"`} {
		store := memory.New()
		m := managerOf(t, store)
		if _, err := store.Create(t.Context(), relayer.Record{ID: "r", Document: []byte(document)}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Pause(t.Context(), "r"); err == nil {
			t.Errorf("%q was paused", document)
		}
		if rec := mustGetRecord(t, store, "r"); string(rec.Document) != document {
			t.Errorf("%q was replaced by %q", document, rec.Document)
		}
	}
	store := memory.New()
	m := managerOf(t, store)
	for _, document := range []string{`[]`, `null`, `1`, `"text"`, `{}`} {
		if _, err := store.Create(t.Context(), relayer.Record{ID: "r", Document: []byte(document)}); err != nil {
			t.Fatal(err)
		}
		if r, err := m.Pause(t.Context(), "r"); err == nil {
			t.Errorf("%q was paused as %v", document, r)
		}
		if err := m.Delete(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
}
