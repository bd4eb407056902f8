package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// Every result says who made its revision, when and why, and so does the history.
func TestLastChange(t *testing.T) {
	m := newManager(t)
	c := clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations()))
	ctx := t.Context()
	reason := func(text string) relayer.WriteOption { return relayer.Reason(text) }
	created := must(c.Create(ctx, evm("a"), reason("Grund für alles")))(t)
	results := map[string]*relayer.Relayer{"Grund für alles": created}
	writes := []struct {
		reason string
		write  func(relayer.WriteOption) (*relayer.Relayer, error)
	}{
		{"patched", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Patch(ctx, "a", patchtest.JSON(map[string]any{"name": "n"}), o)
		}},
		{"updated", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "m"; return nil }, o)
		}},
		{"paused", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Pause(ctx, "a", o) }},
		{"disabled", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Disable(ctx, "a", relayer.DisabledReason{Type: "x"}, o)
		}},
		{"enabled", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Enable(ctx, "a", o) }},
	}
	for _, w := range writes {
		results[w.reason] = must(w.write(reason(w.reason)))(t)
		stored, err := m.Get(ctx, "a")
		got := results[w.reason]
		if err != nil || !reflect.DeepEqual(got.LastChange, stored.LastChange) || got.LastChange.Reason != w.reason || got.LastChange.Time.IsZero() || got.Revision != stored.Revision {
			t.Errorf("%s: the last change is %+v, want %+v, error %v", w.reason, got.LastChange, stored.LastChange, err)
		}
	}
	if r, err := c.Get(ctx, "a"); err != nil || !reflect.DeepEqual(r.LastChange, results["enabled"].LastChange) {
		t.Errorf("get: the last change is %+v, error %v", r.LastChange, err)
	}
	if err := c.Delete(ctx, "a", reason("deleted")); err != nil {
		t.Fatal(err)
	}
	var reasons []string
	query := relayer.HistoryQuery{ID: "a", Limit: 4}
	for isLast := false; !isLast; isLast = query.Before == 0 {
		want, wantNext, wantErr := m.History(ctx, query)
		got, next, err := c.History(ctx, query)
		if err != nil || wantErr != nil || next != wantNext || len(got) != len(want) {
			t.Fatalf("the history is %+v before %d, want %+v before %d, errors %v and %v", got, next, want, wantNext, err, wantErr)
		}
		for i, past := range got {
			expected := want[i]
			if past.Kind != expected.Kind || past.ID != "a" || !reflect.DeepEqual(past.Info, expected.Info) ||
				fmt.Sprint(past.Relayer) != fmt.Sprint(expected.Relayer) {
				t.Errorf("a revision is %+v, want %+v", past, expected)
			}
			reasons = append(reasons, past.Info.Reason)
		}
		query.Before = next
	}
	if want := []string{"deleted", "enabled", "disabled", "paused", "updated", "patched", "Grund für alles"}; !slices.Equal(reasons, want) {
		t.Errorf("the reasons are %q, want %q", reasons, want)
	}
}

func TestHistory_All(t *testing.T) {
	m := newManager(t)
	c := serve(t, m)
	for _, id := range []string{"a", "b", "c"} {
		must(m.Create(t.Context(), evm(id)))(t)
	}
	if err := m.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	var got []string
	query := relayer.HistoryQuery{Limit: 3}
	for isLast := false; !isLast; isLast = query.Before == 0 {
		revisions, next, err := c.History(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for _, past := range revisions {
			got = append(got, fmt.Sprint(past.ID, " ", past.Info.Action, " ", past.Relayer != nil))
		}
		query.Before = next
	}
	if want := []string{"b delete false", "c create true", "b create true", "a create true"}; !slices.Equal(got, want) {
		t.Errorf("the history is %q, want %q", got, want)
	}
}

func TestHistory_Errors(t *testing.T) {
	c := serve(t, newManager(t))
	for want, query := range map[error]relayer.HistoryQuery{
		relayer.ErrNotFound: {ID: "absent"}, relayer.ErrInvalid: {ID: "a", Limit: -1},
	} {
		if revisions, _, err := c.History(t.Context(), query); !errors.Is(err, want) {
			t.Errorf("%+v: %v, error %v, want %v", query, revisions, err, want)
		}
	}
	public := clientOf(t, newPublicServer(1))
	for _, id := range []string{"r0", ""} {
		if revisions, _, err := public.History(t.Context(), relayer.HistoryQuery{ID: id}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("OpenZeppelin Relayer: history of %q: %v, error %v", id, revisions, err)
		}
	}
}

// A watch that begins at the position of a page has exactly the changes after the page.
func TestWatch_AfterList(t *testing.T) {
	m := newManager(t)
	c := serve(t, m)
	must(m.Create(t.Context(), evm("before")))(t)
	page, err := c.List(t.Context(), relayer.ListQuery{After: new(relayer.Cursor), Selector: where("network", "sepolia")})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		must(m.Create(t.Context(), evm(id)))(t)
	}
	var got []string
	for change, err := range c.Watch(t.Context(), relayer.WatchQuery{After: page.Position, Selector: where("network", "sepolia")}) {
		if err != nil || change.ID != change.Relayer.ID || change.Info.Action != relayer.ActionCreate || !reflect.DeepEqual(change.Info, change.Relayer.LastChange) {
			t.Fatalf("%+v, error %v", change, err)
		}
		if got = append(got, change.ID); len(got) == 2 {
			break
		}
	}
	if !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the changes are %q", got)
	}
}
