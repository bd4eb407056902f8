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

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// operationsOn are all operations on one relayer.
var operationsOn = map[string]operation{
	"get": func(m *relayer.Manager, ctx context.Context, id string, _ ...relayer.WriteOption) (*relayer.Relayer, error) {
		return m.Get(ctx, id)
	},
	"get document": func(m *relayer.Manager, ctx context.Context, id string, _ ...relayer.WriteOption) (*relayer.Relayer, error) {
		return nil, second(m.Documents().Get(ctx, id))
	},
	"RPC URLs": func(m *relayer.Manager, ctx context.Context, id string, _ ...relayer.WriteOption) (*relayer.Relayer, error) {
		return nil, second(m.RPCURLs(ctx, id))
	},
	"update":            updating(func(r *relayer.Relayer) { r.Name += "x" }),
	"update of nothing": updating(func(*relayer.Relayer) {}),
	"patch":             patching(`{"name":"patched"}`),
	"patch document":    patchingDocument(`{"notification_id":"x"}`),
	"invalid patch": func(m *relayer.Manager, ctx context.Context, id string, options ...relayer.WriteOption) (*relayer.Relayer, error) {
		r, err := m.Patch(ctx, id, []byte(`{"name":1}`), options...)
		if errors.Is(err, relayer.ErrInvalid) {
			return r, nil
		}
		return r, err
	},
	"empty patch":    patchingDocument(`{}`),
	"pause":          (*relayer.Manager).Pause,
	"pause by patch": patchingDocument(`{"paused":true}`),
	"resume":         (*relayer.Manager).Resume,
	"disable":        disabling(relayer.DisabledReason{Type: relayer.NonceSyncFailed}),
	"enable":         (*relayer.Manager).Enable,
	"delete":         deleting,
}

// teams returns a registry with the relayers "in" and "in2" of the team payments, and "out"
// of the team risk, and its view of payments.
func teams(t *testing.T, store relayer.Store, options ...relayer.Option) (all, view *relayer.Manager) {
	t.Helper()
	all = managerOf(t, store, options...)
	for _, r := range []struct{ id, team string }{{"in", "payments"}, {"out", "risk"}, {"in2", "payments"}} {
		req := withURLs(r.id, "https://rpc.example/key")
		req.Labels = map[string]string{"team": r.team}
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
				_, unknown := operation(view, t.Context(), "any", options...)
				_, err := operation(view, t.Context(), "out", options...)
				if !errors.Is(err, relayer.ErrNotFound) || err.Error() != strings.Replace(unknown.Error(), "any", "out", 1) {
					t.Errorf("outside: %v, unknown: %v", err, unknown)
				}
			}
			if after := mustGet(t, all, "out"); !reflect.DeepEqual(after, before) {
				t.Errorf("changed to %v", after)
			}
			must(operation(view, t.Context(), "in"))(t)
		})
	}
}

// A change must not move a relayer out of the view.
func TestWithin_MoveOut(t *testing.T) {
	for _, test := range []struct {
		name, selector, field, values string
		move                          operation
	}{
		{"update of a label", "label.team=payments", "labels.team", `"payments"`, updating(func(r *relayer.Relayer) { r.Labels["team"] = "risk" })},
		{"patch of a label", "label.team=payments", "labels.team", `"payments"`, patching(`{"labels":{"team":"risk"}}`)},
		{"removal of labels", "label.team=payments|risk", "labels.team", `"payments" or "risk"`, patchingDocument(`{"labels":null}`)},
		{"pause", "paused=false", "paused", `"false"`, (*relayer.Manager).Pause},
		{"pause by patch", "paused=false", "paused", `"false"`, patchingDocument(`{"paused":true}`)},
		{"disable", "system_disabled=false", "system_disabled", `"false"`, disabling(relayer.DisabledReason{Type: "x"})},
		{"notification", "notification_id=x", "notification_id", `"x"`, patchingDocument(`{"notification_id":null}`)},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, _ := teams(t, memory.New())
			must(all.Patch(t.Context(), "in", []byte(`{"notification_id":"x"}`)))(t)
			before := storedDocument(t, all, "in")
			want := relayer.FieldError{Field: test.field, Message: "must be " + test.values + ", to which the access is limited"}
			for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
				_, err := test.move(all.Within(mustParse(t, test.selector)), t.Context(), "in", options...)
				if problems := fieldErrors(t, err); len(problems) != 1 || problems[0] != want {
					t.Errorf("problems %+v, want %+v", problems, want)
				}
			}
			if after := storedDocument(t, all, "in"); after != before {
				t.Errorf("stored %s", after)
			}
			if _, err := test.move(all, t.Context(), "in"); err != nil {
				t.Errorf("without a view: %v", err)
			}
		})
	}
}

func TestWithin_Create(t *testing.T) {
	payments, risk := map[string]string{"team": "payments"}, map[string]string{"team": "risk"}
	for _, test := range []struct {
		selector string
		labels   map[string]string
		want     []string
	}{
		{"label.team=payments", payments, nil},
		{"label.team=payments", risk, []string{"labels.team"}},
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
			if test.want == nil {
				mustSucceed(t, err)
				continue
			}
			wantFields(t, fieldErrors(t, err), test.want...)
		}
		if _, err := m.Get(t.Context(), "new"); (err == nil) != (test.want == nil) {
			t.Errorf("%s: get: %v", test.selector, err)
		}
	}
	// A generated ID is not one of the selector.
	_, err := newManager(t).Within(mustParse(t, "id=a,network=mainnet")).Documents().Create(t.Context(), []byte(evmBody()))
	wantFields(t, fieldErrors(t, err), "id", "network")
}

// IDs and exclusive signers are those of the whole store.
func TestWithin_TakenOutside(t *testing.T) {
	m := newManager(t, relayer.WithExclusiveSigners())
	mustCreate(t, m, minimal("a"))
	view := m.Within(mustParse(t, "notification_id=x"))
	for _, options := range [][]relayer.WriteOption{{relayer.DryRun()}, nil} {
		req := minimal("a")
		req.NotificationID = "x"
		if _, err := view.Create(t.Context(), req, options...); !errors.Is(err, relayer.ErrExists) {
			t.Errorf("taken ID: %v", err)
		}
		req.ID = "b"
		wantFields(t, fieldErrors(t, second(view.Create(t.Context(), req, options...))), "signer_id")
	}
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
			errs := errorsOfReads(t, m, relayer.Selector{})
			errs["create"], errs["create document"] = second(m.Create(ctx, minimal("new"))), second(m.Documents().Create(ctx, []byte(evmBody())))
			for operation, run := range operationsOn {
				if operation != "invalid patch" {
					errs[operation] = second(run(m, ctx, "in"))
				}
			}
			if field != "search" { // which is no error in the selector of a read
				for operation, err := range errorsOfReads(t, all, invalid) {
					errs[operation+" of the selector"] = err
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
	for _, selector := range []string{"", "search=ou"} {
		for name, err := range errorsOfLists(t, view, mustParse(t, selector)) {
			if err == nil || strings.Contains(err.Error(), "out") || errors.Is(err, relayer.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A damaged record has no terms, so that it is outside of every view.
func TestWithin_DamagedRecord(t *testing.T) {
	all, view := teams(t, unreadable(memory.New(), nil, "in", "out"))
	for name, operation := range operationsOn {
		for _, id := range []string{"in", "out"} {
			if _, err := operation(view, t.Context(), id); !errors.Is(err, relayer.ErrNotFound) || errors.Is(err, relayer.ErrCorrupt) {
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
			return must(all.Patch(t.Context(), id, []byte(patch)))(t)
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

// A view has the change that paused a relayer, even after later changes, without the paths of any
// change.
func TestWithin_PausedBy(t *testing.T) {
	m, ctx := newManager(t), t.Context()
	mustCreate(t, m, minimal("a"))
	must(m.Pause(ctx, "a", relayer.Reason("incident 42")))(t)
	must(m.Patch(ctx, "a", []byte(`{"name":"new","labels":{"team":"payments"}}`)))(t)
	must(m.Disable(ctx, "a", relayer.DisabledReason{Type: "x"}))(t)
	for _, selector := range []string{"", "paused=true", "label.team=payments"} {
		view := m.Within(mustParse(t, selector))
		for name, r := range map[string]*relayer.Relayer{
			"get": mustGet(t, view, "a"), "all": allOf(t, view, relayer.Selector{})[0], "write": must(view.Pause(ctx, "a"))(t),
			"list": must(view.List(ctx, relayer.ListQuery{}))(t).Relayers[0],
		} {
			if by := r.LastChange.PausedBy; by == nil || by.Reason != "incident 42" || by.Changed != nil {
				t.Errorf("%s within %q: paused by %+v", name, selector, by)
			}
		}
	}
}

// The paths of a change that may have moved a relayer into a view are hidden, even if they are only
// the members at the top, because there are many.
func TestWithin_MovedInByLongChange(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("a"))
	patch := `{"labels":{"team":"payments"`
	for i := range 15 {
		patch += fmt.Sprintf(`,"%060d":"x"`, i)
	}
	must(m.Patch(t.Context(), "a", []byte(patch+"}}")))(t)
	for selector, want := range map[string][]string{"network=sepolia": {"labels"}, "label.team=payments": nil} {
		if got := mustGet(t, m.Within(mustParse(t, selector)), "a").LastChange.Changed; !slices.Equal(got, want) {
			t.Errorf("within %s the change is of %q, want %q", selector, got, want)
		}
	}
}
