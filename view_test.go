package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// operationsOn are all operations on one relayer.
var operationsOn = map[string]func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error{
	"get": func(ctx context.Context, m *relayer.Manager, id string, _ ...relayer.WriteOption) error {
		return second(m.Get(ctx, id))
	},
	"get document": func(ctx context.Context, m *relayer.Manager, id string, _ ...relayer.WriteOption) error {
		return second(m.Documents().Get(ctx, id))
	},
	"RPC URLs": func(ctx context.Context, m *relayer.Manager, id string, _ ...relayer.WriteOption) error {
		return second(m.RPCURLs(ctx, id))
	},
	"update": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Update(ctx, id, func(r *relayer.Relayer) error { r.Name += "x"; return nil }, options...))
	},
	"update of nothing": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Update(ctx, id, func(*relayer.Relayer) error { return nil }, options...))
	},
	"patch": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Patch(ctx, id, patchtest.JSON(map[string]any{"name": "patched"}), options...))
	},
	"patch document": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Documents().Patch(ctx, id, []byte(`{"notification_id":"x"}`), options...))
	},
	"invalid patch": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		err := second(m.Documents().Patch(ctx, id, []byte(`{"name":1}`), options...))
		if errors.Is(err, relayer.ErrInvalid) {
			return nil
		}
		return err
	},
	"empty patch": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Documents().Patch(ctx, id, []byte(`{}`), options...))
	},
	"pause": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Pause(ctx, id, options...))
	},
	"pause by patch": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Documents().Patch(ctx, id, []byte(`{"paused":true}`), options...))
	},
	"resume": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Resume(ctx, id, options...))
	},
	"disable": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Disable(ctx, id, relayer.DisabledReason{Type: relayer.NonceSyncFailed}, options...))
	},
	"enable": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return second(m.Enable(ctx, id, options...))
	},
	"delete": func(ctx context.Context, m *relayer.Manager, id string, options ...relayer.WriteOption) error {
		return m.Delete(ctx, id, options...)
	},
}

// teams returns a registry with the relayers "in" and "in2" of the team payments, and "out"
// of the team risk, and its view of payments.
func teams(t *testing.T, store relayer.Store, options ...relayer.Option) (all, view *relayer.Manager) {
	t.Helper()
	all = managerOf(t, store, options...)
	for _, r := range []struct{ id, team string }{{"in", "payments"}, {"out", "risk"}, {"in2", "payments"}} {
		req := minimal(r.id)
		req.Labels = map[string]string{"team": r.team}
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://rpc.example/key"}}
		mustCreate(t, all, req)
	}
	return all, all.Within(mustParse(t, "label.team=payments"))
}

// A relayer outside of a view is like an unknown one, to every operation.
func TestWithin_Operations(t *testing.T) {
	for name, operation := range operationsOn {
		t.Run(name, func(t *testing.T) {
			store := memory.New()
			all, view := teams(t, store)
			before := mustGet(t, all, "out")
			conditions := [][]relayer.WriteOption{
				nil, {relayer.IfRevision(before.Revision)}, {relayer.IfRevision(before.Revision + 100)}, {relayer.IfRevision()}, {relayer.DryRun()},
			}
			for _, options := range conditions {
				unknown := operation(t.Context(), view, "any", options...)
				err := operation(t.Context(), view, "out", options...)
				if !errors.Is(err, relayer.ErrNotFound) || err.Error() != strings.Replace(unknown.Error(), "any", "out", 1) {
					t.Errorf("outside: %v, unknown: %v", err, unknown)
				}
			}
			if after := mustGet(t, all, "out"); !reflect.DeepEqual(after, before) {
				t.Errorf("changed to %v", after)
			}
			if err := operation(t.Context(), view, "in"); err != nil {
				t.Errorf("inside: %v", err)
			}
		})
	}
}

// A change must not move a relayer out of the view.
func TestWithin_MoveOut(t *testing.T) {
	disable := func(ctx context.Context, m *relayer.Manager) error {
		return second(m.Disable(ctx, "in", relayer.DisabledReason{Type: "x"}))
	}
	for _, test := range []struct {
		name, selector, field, message string
		move                           func(ctx context.Context, m *relayer.Manager) error
	}{
		{"update of a label", "label.team=payments", "labels.team", `must be "payments", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Update(ctx, "in", func(r *relayer.Relayer) error { r.Labels["team"] = "risk"; return nil }))
		}},
		{"patch of a label", "label.team=payments", "labels.team", `must be "payments", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Patch(ctx, "in", patchtest.JSON(map[string]any{"labels": map[string]any{"team": "risk"}})))
		}},
		{"removal of labels", "label.team=payments|risk", "labels.team", `must be "payments" or "risk", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Documents().Patch(ctx, "in", []byte(`{"labels":null}`)))
		}},
		{"dry run", "label.team=payments", "labels.team", `must be "payments", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Documents().Patch(ctx, "in", []byte(`{"labels":null}`), relayer.DryRun()))
		}},
		{"pause", "paused=false", "paused", `must be "false", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error { return second(m.Pause(ctx, "in")) }},
		{"pause by patch", "paused=false", "paused", `must be "false", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Documents().Patch(ctx, "in", []byte(`{"paused":true}`)))
		}},
		{"disable", "system_disabled=false", "system_disabled", `must be "false", to which the access is limited`, disable},
		{"notification", "notification_id=x", "notification_id", `must be "x", to which the access is limited`, func(ctx context.Context, m *relayer.Manager) error {
			return second(m.Documents().Patch(ctx, "in", []byte(`{"notification_id":null}`)))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, _ := teams(t, memory.New())
			must(all.Patch(t.Context(), "in", patchtest.JSON(map[string]any{"notification_id": "x"})))(t)
			before := storedDocument(t, all, "in")
			err := test.move(t.Context(), all.Within(mustParse(t, test.selector)))
			wantFields(t, fieldErrors(t, err), test.field)
			if message := fieldErrors(t, err)[0].Message; message != test.message {
				t.Errorf("message %q, want %q", message, test.message)
			}
			if after := storedDocument(t, all, "in"); after != before {
				t.Errorf("stored %s", after)
			}
			if err := test.move(t.Context(), all); err != nil {
				t.Errorf("without a view: %v", err)
			}
		})
	}
}

func TestWithin_Create(t *testing.T) {
	for _, test := range []struct {
		selector string
		labels   map[string]string
		want     []string
	}{
		{"label.team=payments", map[string]string{"team": "payments"}, nil},
		{"label.team=payments", map[string]string{"team": "risk"}, []string{"labels.team"}},
		{"label.team=payments", nil, []string{"labels.team"}},
		{"label.team=", nil, []string{"labels.team"}},
		{"network=sepolia|mainnet,signer_id=s", nil, nil},
		{"network=mainnet,signer_id=other,paused=true", nil, []string{"network", "signer_id", "paused"}},
		{"network_type=solana", nil, []string{"network_type"}},
		{"notification_id=x", nil, []string{"notification_id"}},
		{"system_disabled=true", nil, []string{"system_disabled"}},
		{"id=a|b", nil, []string{"id"}},
		{"id=a|new", nil, nil},
		{"none", nil, []string{""}},
		{"", nil, nil},
	} {
		m := newManager(t)
		view := m.Within(mustParse(t, test.selector))
		req := minimal("new")
		req.Labels = test.labels
		for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
			_, err := view.Create(t.Context(), req, options...)
			if len(test.want) == 0 {
				if err != nil {
					t.Errorf("%s: %v", test.selector, err)
				}
				continue
			}
			wantFields(t, fieldErrors(t, err), test.want...)
		}
		if _, err := m.Get(t.Context(), "new"); (err == nil) != (len(test.want) == 0) {
			t.Errorf("%s: get: %v", test.selector, err)
		}
	}
	// A generated ID is not one of the selector.
	_, err := newManager(t).Within(mustParse(t, "id=a,network=mainnet")).Documents().Create(t.Context(), []byte(evmBody()))
	wantFields(t, fieldErrors(t, err), "id", "network")
}

// IDs and exclusive signers are those of the whole store.
func TestWithin_TakenOutside(t *testing.T) {
	_, view := teams(t, memory.New())
	taken := minimal("out")
	taken.Labels = map[string]string{"team": "payments"}
	for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
		if _, err := view.Create(t.Context(), taken, options...); !errors.Is(err, relayer.ErrExists) {
			t.Errorf("taken ID: %v", err)
		}
	}
	exclusive := newManager(t, relayer.WithExclusiveSigners())
	mustCreate(t, exclusive, minimal("a"))
	for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
		_, err := exclusive.Within(mustParse(t, "id=b")).Create(t.Context(), minimal("b"), options...)
		wantFields(t, fieldErrors(t, err), "signer_id")
	}
}

func TestWithin_Lists(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		all, view := teams(t, store)
		for _, test := range []struct {
			view *relayer.Manager
			text string
			want []string
		}{
			{view, "", []string{"in", "in2"}},
			{view, "id=in|out", []string{"in"}},
			{view, "label.team=risk", nil},
			{view, "label.team=risk|payments", []string{"in", "in2"}},
			{view, "search=O", nil},
			{view, "search=in2", []string{"in2"}},
			{view.Within(mustParse(t, "id=in|out")), "", []string{"in"}},
			{view.Within(mustParse(t, "label.team=risk")), "", nil},
			{view.Within(relayer.Selector{}), "", []string{"in", "in2"}},
			{all.Within(relayer.Selector{}), "", []string{"in", "out", "in2"}},
			{all.Within(mustParse(t, "none")), "", nil},
			{all.Within(mustParse(t, "none")), "search=in", nil},
		} {
			query := relayer.ListQuery{Selector: mustParse(t, test.text)}
			page := must(test.view.List(t.Context(), query))(t)
			if got := idsOf(page.Relayers); !slices.Equal(got, test.want) || page.Pagination.TotalItems != len(test.want) {
				t.Errorf("%q: listed %q of %d, want %q", test.text, got, page.Pagination.TotalItems, test.want)
			}
			documents, err := listDocuments(t.Context(), test.view, query)
			if err != nil || len(documents.Documents) != len(test.want) || documents.Pagination != page.Pagination {
				t.Errorf("%q: documents %+v, error %v", test.text, documents, err)
			}
			var got []string
			for r, err := range test.view.All(t.Context(), query.Selector) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.ID)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q: All returned %q, want %q", test.text, got, test.want)
			}
		}
	})
}

// Every operation of a view with an invalid selector, or one with a search, fails.
func TestWithin_InvalidSelector(t *testing.T) {
	for field, invalid := range map[string]relayer.Selector{
		"paused": relayer.Selector{}.Where("paused", "maybe"),
		"name":   relayer.Selector{}.Where("name", "x"),
		"search": relayer.Selector{}.Where("search", "in"),
	} {
		all, view := teams(t, memory.New())
		for name, m := range map[string]*relayer.Manager{
			"view": all.Within(invalid), "nested view": view.Within(invalid), "view of it": all.Within(invalid).Within(mustParse(t, "id=in")),
		} {
			ctx := t.Context()
			errs := map[string]error{
				"create":          second(m.Create(ctx, minimal("new"))),
				"create document": second(m.Documents().Create(ctx, []byte(evmBody()))),
				"list":            second(m.List(ctx, relayer.ListQuery{})),
				"documents":       second(listDocuments(ctx, m, relayer.ListQuery{})),
				"all":             firstError(m.All(ctx, relayer.Selector{})),
				"watch":           firstError(m.Watch(ctx, relayer.WatchQuery{})),
			}
			for operation, run := range operationsOn {
				if operation != "invalid patch" {
					errs[operation] = run(ctx, m, "in")
				}
			}
			for operation, err := range errs {
				if err == nil {
					t.Errorf("%s, %s of the %s: no error", field, operation, name)
					continue
				}
				wantFields(t, fieldErrors(t, err), field)
			}
		}
	}
}

// leakyStore ignores the selection of a query.
type leakyStore struct{ relayer.Store }

func (s leakyStore) List(ctx context.Context, query relayer.StoreQuery) (relayer.Listing, error) {
	return s.Store.List(ctx, relayer.StoreQuery{Offset: query.Offset, Limit: query.Limit})
}

// A store that returns relayers outside of the selection reveals none of them.
func TestWithin_StoreReturnsOthers(t *testing.T) {
	_, view := teams(t, leakyStore{memory.New()})
	ctx := t.Context()
	page, err := view.List(ctx, relayer.ListQuery{})
	if err == nil || page != nil || strings.Contains(err.Error(), "out") || errors.Is(err, relayer.ErrInvalid) {
		t.Errorf("List: %v, %v", page, err)
	}
	if documents, err := listDocuments(ctx, view, relayer.ListQuery{}); err == nil || documents != nil {
		t.Errorf("documents: %+v, %v", documents, err)
	}
	if page, err := view.List(ctx, relayer.ListQuery{Selector: mustParse(t, "search=out")}); err == nil || page != nil {
		t.Errorf("search: %v, %v", page, err)
	}
	if err := firstError(view.All(ctx, relayer.Selector{})); err == nil {
		t.Error("All returned relayers")
	}
}

// unreadableRecords is a store that cannot read some records.
type unreadableRecords struct {
	relayer.Store
	ids []string
}

func (s unreadableRecords) Get(ctx context.Context, id string) (relayer.Record, error) {
	if slices.Contains(s.ids, id) {
		return relayer.Record{}, fmt.Errorf("%w: %s", relayer.ErrCorrupt, id)
	}
	return s.Store.Get(ctx, id)
}

// A damaged record has no terms, so that it is outside of every view.
func TestWithin_DamagedRecord(t *testing.T) {
	all, view := teams(t, unreadableRecords{memory.New(), []string{"in", "out"}})
	for name, operation := range operationsOn {
		for _, id := range []string{"in", "out"} {
			if err := operation(t.Context(), view, id); !errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrCorrupt) {
				t.Errorf("%s of %s: %v", name, id, err)
			}
		}
	}
	if _, err := all.Get(t.Context(), "in"); !errors.Is(err, relayer.ErrCorrupt) {
		t.Errorf("without a view: %v", err)
	}
}

// A relayer that enters a view is created for its followers, and one that leaves it is
// deleted. They see nothing of it before and after.
func TestWithin_Watch(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		all, view := teams(t, store)
		f := follow(t, view.Watch(t.Context(), relayer.WatchQuery{}))
		documents, stop := iter.Pull2(view.Documents().Watch(t.Context(), relayer.WatchQuery{}))
		defer stop()
		expect := func(kind relayer.ChangeKind, id string) (*relayer.Relayer, []byte) {
			t.Helper()
			r := f.expect(kind, id)
			change, err, ok := documents()
			if !ok || err != nil || change.Kind != kind || change.Document.ID != id || change.Document.Revision != r.Revision {
				t.Fatalf("document %+v, %v, %t, want %s %s", change, err, ok, kind, id)
			}
			return r, change.Document.JSON
		}
		patch := func(id, patch string) *relayer.Relayer {
			t.Helper()
			must(all.Documents().Patch(t.Context(), id, []byte(patch)))(t)
			return mustGet(t, all, id)
		}

		patch("out", `{"name":"hidden"}`)
		patch("in", `{"name":"shown"}`)
		if r, document := expect(relayer.ChangeUpdated, "in"); r.Name != "shown" || !strings.Contains(string(document), "shown") {
			t.Errorf("updated to %v, %s", r, document)
		}
		entered := patch("out", `{"labels":{"team":"payments"}}`)
		entered.LastChange.Changed = nil // the state before is hidden
		if r, document := expect(relayer.ChangeCreated, "out"); !reflect.DeepEqual(r, entered) || string(document) != storedDocument(t, all, "out") {
			t.Errorf("entered as %v, %s", r, document)
		}
		left := patch("in", `{"name":"hidden","labels":{"team":"risk"}}`)
		if r, document := expect(relayer.ChangeDeleted, "in"); !reflect.DeepEqual(r, &relayer.Relayer{ID: "in", Revision: left.Revision}) || document != nil {
			t.Errorf("left as %v, %s", r, document)
		}
		patch("in", `{"name":"hidden too"}`)
		for _, id := range []string{"in", "out"} {
			mustSucceed(t, all.Delete(t.Context(), id))
		}
		if r, document := expect(relayer.ChangeDeleted, "out"); r.Name != "hidden" || !strings.Contains(string(document), `"id":"out"`) {
			t.Errorf("deleted as %v, %s", r, document)
		}
		mustCreate(t, all, minimal("other"))
		req := minimal("in")
		req.Labels = map[string]string{"team": "payments"}
		mustCreate(t, all, req)
		expect(relayer.ChangeCreated, "in")
	})
}

// A selector narrows a watch of a view.
func TestWithin_WatchSelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, view := teams(t, memory.New())
		changes := view.Watch(t.Context(), relayer.WatchQuery{Selector: mustParse(t, "paused=true,label.team=payments|risk")})
		var got []string
		go func() {
			for change, err := range changes {
				if errors.Is(err, context.Canceled) {
					return
				}
				got = append(got, fmt.Sprint(change.Kind, " ", change.Relayer.ID, " ", err))
			}
		}()
		for _, id := range []string{"in", "out", "in"} {
			for _, pause := range []func(context.Context, string, ...relayer.WriteOption) (*relayer.Relayer, error){all.Pause, all.Resume} {
				if _, err := pause(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		}
		synctest.Wait()
		if want := []string{"created in <nil>", "deleted in <nil>", "created in <nil>", "deleted in <nil>"}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
	})
}
