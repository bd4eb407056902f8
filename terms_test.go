package relayer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

func named(id, name string) relayer.CreateRequest {
	req := minimal(id)
	req.Name = name
	return req
}

// reindex returns the IDs of the relayers that were stored again.
func reindex(t *testing.T, m *relayer.Manager) []string {
	t.Helper()
	ids := []string{}
	for id, err := range m.Reindex(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// Records that an earlier version stored lack the terms of a newer key: every use of it is an
// error until they are stored again, and never a shorter list.
func TestSelector_KeyNewerThanRecords(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store)
	mustCreate(t, m, named("old-a", "a"))
	mustCreate(t, m, named("old-b", "b"))
	if ids := reindex(t, m); len(ids) != 0 {
		t.Errorf("stored %q again, want none", ids)
	}
	relayer.AddSelectorKey("initial", t.Cleanup)
	mustCreate(t, m, named("new-a", "a"))
	byInitial := mustParse(t, "initial=a")
	view := m.Within(byInitial)
	for name, err := range map[string]error{
		"list":        second(m.List(t.Context(), relayer.ListQuery{Selector: byInitial})),
		"all":         firstError(m.All(t.Context(), byInitial)),
		"view, get":   second(view.Get(t.Context(), "old-a")),
		"view, pause": second(view.Pause(t.Context(), "old-a")),
	} {
		if err == nil || errors.Is(err, relayer.ErrNotFound) || !strings.Contains(err.Error(), "initial") || !strings.Contains(err.Error(), "Reindex") {
			t.Errorf("%s: error %v, want one that names the key and what to call", name, err)
		}
	}
	watched := m.Watch(t.Context(), relayer.WatchQuery{Selector: byInitial})
	if err := m.Delete(t.Context(), "old-b"); err != nil {
		t.Fatal(err)
	}
	if err := firstError(watched); err == nil || !strings.Contains(err.Error(), "Reindex") {
		t.Errorf("watch: error %v", err)
	}
	if page, err := m.List(t.Context(), relayer.ListQuery{Selector: mustParse(t, "network=sepolia")}); err != nil || len(page.Relayers) != 2 {
		t.Errorf("list by another key: %+v, %v", page, err)
	}

	before := mustGet(t, m, "old-a")
	if ids := reindex(t, m); !slices.Equal(ids, []string{"old-a"}) {
		t.Errorf("stored %q again, want old-a", ids)
	}
	if after := mustGet(t, m, "old-a"); after.Name != before.Name || after.Revision <= before.Revision {
		t.Errorf("stored again as %v, before %v", after, before)
	}
	page, err := m.List(t.Context(), relayer.ListQuery{Selector: byInitial})
	if err != nil || !slices.Equal(idsOf(page.Relayers), []string{"old-a", "new-a"}) {
		t.Errorf("list: %+v, %v", page, err)
	}
	if got := mustGet(t, view, "old-a"); got.ID != "old-a" {
		t.Errorf("view: %v", got)
	}
}

// A write of an older version keeps the terms of a newer one.
func TestUpdate_KeepsUnknownTerms(t *testing.T) {
	for name, write := range map[string]func(*relayer.Manager) (*relayer.Relayer, error){
		"pause": func(m *relayer.Manager) (*relayer.Relayer, error) { return m.Pause(t.Context(), "r") },
		"patch": func(m *relayer.Manager) (*relayer.Relayer, error) {
			return m.Patch(t.Context(), "r", relayer.Patch{"name": "b", "labels": map[string]string{"team": "x"}, "paused": true})
		},
		"update": func(m *relayer.Manager) (*relayer.Relayer, error) {
			return m.Update(t.Context(), "r", func(r *relayer.Relayer) error {
				r.Name, r.Paused, r.Labels = "b", true, map[string]string{"team": "x"}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			m := managerOf(t, store)
			relayer.AddSelectorKey("initial", t.Cleanup)
			mustCreate(t, m, named("r", "a"))
			withKey, err := store.Get(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			relayer.RemoveAddedSelectorKey()
			written, err := write(m)
			if err != nil {
				t.Fatal(err)
			}
			rec, err := store.Get(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(withKey.Terms)
			want[slices.Index(want, "paused=false")] = "paused=true"
			for key, value := range written.Labels {
				want = append(want, "label."+key+"="+value)
			}
			if slices.Sort(want); !slices.Equal(rec.Terms, want) {
				t.Errorf("terms %q, want %q", rec.Terms, want)
			}
			if ids := checked(t, m); len(ids) != 0 {
				t.Errorf("Check of newer terms: %q", ids)
			}
		})
	}
}

// listHook is a store that calls a function before each list.
type listHook struct {
	relayer.Store
	before func(relayer.StoreQuery)
}

func (s listHook) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	s.before(query)
	return s.Store.List(ctx, query)
}

// A relayer that an older instance stores during a list is an error too.
func TestSelector_KeyNewerThanConcurrentRecord(t *testing.T) {
	store := memory.New()
	relayer.AddSelectorKey("initial", t.Cleanup)
	m := managerOf(t, listHook{store, func(query relayer.StoreQuery) {
		if isCheck := query.Limit == 0; isCheck {
			return
		}
		relayer.RemoveAddedSelectorKey()
		mustCreate(t, managerOf(t, store), named("old-a", "a"))
		relayer.AddSelectorKey("initial", t.Cleanup)
	}})
	if page, err := m.List(t.Context(), relayer.ListQuery{Selector: mustParse(t, "initial=a")}); err == nil || !strings.Contains(err.Error(), "Reindex") {
		t.Errorf("%+v, error %v", page, err)
	}
}

// checked returns what Check yields, as "ID part".
func checked(t *testing.T, m *relayer.Manager) []string {
	t.Helper()
	var found []string
	for id, err := range m.Check(t.Context()) {
		if !errors.Is(err, relayer.ErrCorrupt) {
			t.Fatalf("%s: %v", id, err)
		}
		for _, part := range []string{"id of", "claim of", "terms of", "text of", "stored document", "private part of"} {
			if strings.Contains(err.Error(), part) {
				found = append(found, id+" "+strings.TrimSuffix(part, " of"))
			}
		}
	}
	return found
}

func TestCheck_RecordsUnlikeTheirDocuments(t *testing.T) {
	store := memory.New()
	m := managerOf(t, store, relayer.WithExclusiveSigners())
	forge := func(id string, change func(*relayer.Record)) {
		req := withURLs(id, "https://rpc.example/own")
		req.SignerID = id
		req.Labels = map[string]string{"team": "a"}
		mustCreate(t, m, req)
		rec, err := store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if change(&rec); second(store.Update(t.Context(), rec)) != nil {
			t.Fatal("not stored")
		}
	}
	replaced := func(terms []string, old, new string) []string {
		terms = slices.Clone(terms)
		terms[slices.Index(terms, old)] = new
		slices.Sort(terms)
		return terms
	}
	forge("sound", func(*relayer.Record) {})
	forge("moved", func(r *relayer.Record) { r.Terms = replaced(r.Terms, "label.team=a", "label.team=b") })
	forge("less", func(r *relayer.Record) { r.Terms = r.Terms[1:] })
	forge("more", func(r *relayer.Record) { r.Terms = append(slices.Clone(r.Terms), "x-unknown=1") })
	forge("hidden", func(r *relayer.Record) { r.Text = "other" })
	forge("claim", func(r *relayer.Record) { r.Claim = "other" })
	forge("document", func(r *relayer.Record) { r.Document = []byte("{") })
	forge("id", func(r *relayer.Record) {
		r.Document = []byte(strings.Replace(string(r.Document), `"id":"id"`, `"id":"di"`, 1))
	})
	forge("host", func(r *relayer.Record) {
		r.Document = []byte(strings.Replace(string(r.Document), "rpc.example", "evil.example", 1))
	})
	want := []string{"moved terms", "less terms", "hidden text", "claim claim", "document stored document", "id id", "host private part"}
	if got := checked(t, m); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestSelector_Keys(t *testing.T) {
	for key, want := range map[string]bool{
		"id": true, "network": true, "network_type": true, "signer_id": true, "notification_id": true, "paused": true,
		"system_disabled": true, "search": true, "label.team": true, "label.": false, "name": false, "": false, "labels": false, "terms": false, "claim": false,
	} {
		if got := (relayer.Selector{}).Where(key).Err() == nil; got != want {
			t.Errorf("%q: %t, want %t", key, got, want)
		}
	}
}
