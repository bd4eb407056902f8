package relayer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

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
	want := []string{"moved terms", "less terms", "more terms", "hidden text", "claim claim", "document stored document", "id id", "host private part"}
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
