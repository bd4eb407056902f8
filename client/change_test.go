package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
)

func TestLastChange(t *testing.T) {
	m := newManager(t)
	c, ctx := clientOf(t, handlerOf(t, m, httpapi.WithEngineOperations())), t.Context()
	writes := []struct {
		reason string
		write  func(relayer.WriteOption) (*relayer.Relayer, error)
	}{
		{"Grund für alles", func(o relayer.WriteOption) (*relayer.Relayer, error) { return c.Create(ctx, evm("a"), o) }},
		{"patched", func(o relayer.WriteOption) (*relayer.Relayer, error) {
			return c.Patch(ctx, "a", []byte(`{"name":"n"}`), o)
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
		got := must(w.write(relayer.Reason(w.reason)))(t)
		read := must(c.Get(ctx, "a"))(t)
		for _, want := range []*relayer.Relayer{must(m.Get(ctx, "a"))(t), read} {
			if !reflect.DeepEqual(got.LastChange, want.LastChange) || got.LastChange.Reason != w.reason || got.LastChange.Time.IsZero() || got.Revision != want.Revision {
				t.Errorf("%s: the last change is %+v, want %+v", w.reason, got.LastChange, want.LastChange)
			}
		}
	}
	must(c.Create(ctx, evm("b")))(t)
	if err := c.Delete(ctx, "a", relayer.Reason("deleted")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query relayer.HistoryQuery
		want  string // the reasons
	}{
		{relayer.HistoryQuery{ID: "a", Limit: 4}, "deleted, enabled, disabled, paused, updated, patched, Grund für alles"},
		{relayer.HistoryQuery{Limit: 4}, "deleted, , enabled, disabled, paused, updated, patched, Grund für alles"},
		{relayer.HistoryQuery{Action: relayer.ActionPause}, "paused"},
		{relayer.HistoryQuery{Actor: "nobody"}, ""},
		{relayer.HistoryQuery{Since: time.Now().Add(time.Hour)}, ""},
		{relayer.HistoryQuery{Until: time.Now().Add(-time.Hour)}, ""},
	} {
		var reasons []string
		query := test.query
		for isLast := false; !isLast; isLast = query.Before == 0 {
			want, wantNext, wantErr := m.History(ctx, query)
			got, next, err := c.History(ctx, query)
			if err != nil || wantErr != nil || next != wantNext || len(got) != len(want) {
				t.Fatalf("the history is %+v before %d, want %+v before %d, errors %v and %v", got, next, want, wantNext, err, wantErr)
			}
			for i, past := range got {
				expected := want[i]
				if past.Kind != expected.Kind || past.ID != expected.ID || !reflect.DeepEqual(past.Info, expected.Info) ||
					fmt.Sprint(past.Relayer) != fmt.Sprint(expected.Relayer) {
					t.Errorf("a revision is %+v, want %+v", past, expected)
				}
				reasons = append(reasons, past.Info.Reason)
			}
			query.Before = next
		}
		if got := strings.Join(reasons, ", "); got != test.want {
			t.Errorf("%+v: the reasons are %s, want %s", test.query, got, test.want)
		}
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
	if _, _, err := c.History(t.Context(), relayer.HistoryQuery{ID: "a/b"}); !errors.Is(err, relayer.ErrNotFound) { // it is not a path
		t.Errorf("an impossible ID: error %v", err)
	}
	public := clientOf(t, newPublicServer(1))
	for _, id := range []string{"r0", ""} {
		if revisions, _, err := public.History(t.Context(), relayer.HistoryQuery{ID: id}); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("OpenZeppelin Relayer: history of %q: %v, error %v", id, revisions, err)
		}
	}
}
