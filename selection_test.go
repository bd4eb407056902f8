package relayer_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/examples/mapstore"
	"github.com/go-relayer/relayer/internal/patchtest"
	"github.com/go-relayer/relayer/store/memory"
)

// naive has the relayers of a registry in creation order.
type naive []*relayer.Relayer

// selected returns those that a selector selects.
func (n naive) selected(s relayer.Selector) []*relayer.Relayer {
	return slices.DeleteFunc(slices.Clone(n), func(r *relayer.Relayer) bool { return !s.Matches(r) })
}

// change makes a random change of a registry and of the model.
func (n *naive) change(t *testing.T, random *rand.Rand, m *relayer.Manager) {
	t.Helper()
	ctx := t.Context()
	value := func(key string) string {
		return selectorValues[key][random.IntN(len(selectorValues[key]))]
	}
	id := fmt.Sprintf("r%d", random.IntN(12))
	position := slices.IndexFunc(*n, func(r *relayer.Relayer) bool { return r.ID == id })
	if position < 0 {
		req := relayer.CreateRequest{
			ID: id, Name: []string{"Été", "main 1", "x"}[random.IntN(3)], Network: value("network"), SignerID: value("signer_id"),
			NetworkType: relayer.NetworkType(value("network_type")), Paused: random.IntN(2) == 0,
		}
		if random.IntN(2) == 0 {
			req.NotificationID = value("notification_id")
		}
		if random.IntN(2) == 0 {
			req.Labels = map[string]string{"team": value("label.team")}
		}
		*n = append(*n, mustCreate(t, m, req))
		return
	}
	var changed *relayer.Relayer
	var err error
	switch random.IntN(8) {
	case 0:
		if err := m.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
		*n = slices.Delete(*n, position, position+1)
		return
	case 1:
		changed, err = m.Pause(ctx, id)
	case 2:
		changed, err = m.Resume(ctx, id)
	case 3:
		changed, err = m.Disable(ctx, id, relayer.DisabledReason{Type: "x"})
	case 4:
		changed, err = m.Enable(ctx, id)
	case 5:
		changed, err = m.Patch(ctx, id, patchtest.JSON(map[string]any{"name": fmt.Sprint("R", random.IntN(30), " été")}))
	case 6:
		changed, err = m.Patch(ctx, id, patchtest.JSON(map[string]any{"labels": map[string]any{"team": value("label.team"), "a/b.c": value("label.a/b.c")}}))
	default:
		changed, err = m.Patch(ctx, id, patchtest.JSON(map[string]any{"labels": nil, "notification_id": nil}))
	}
	if err != nil {
		t.Fatal(err)
	}
	(*n)[position] = changed
}

// compare compares all reads of a selection with the model.
func (n naive) compare(t *testing.T, m *relayer.Manager, s relayer.Selector, page, perPage int) {
	t.Helper()
	selected := n.selected(s)
	from := min((max(page, 1)-1)*perPage, len(selected))
	want := selected[from:min(from+perPage, len(selected))]
	query := relayer.ListQuery{Selector: s, Page: page, PerPage: perPage}
	listed, err := m.List(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	pagination := relayer.Pagination{CurrentPage: max(page, 1), PerPage: perPage, TotalItems: len(selected)}
	if listed.Pagination != pagination || !slices.EqualFunc(listed.Relayers, want, isEqual) {
		t.Fatalf("%s, page %d of %d: %q of %+v, want %q of %+v", s, page, perPage, idsOf(listed.Relayers), listed.Pagination, idsOf(want), pagination)
	}
	read, err := listDocuments(t.Context(), m, query)
	if err != nil || read.Pagination != pagination || len(read.Documents) != len(want) {
		t.Fatalf("%s: documents %+v, error %v", s, read, err)
	}
	for i, document := range read.Documents {
		if document.ID != want[i].ID || document.Revision != want[i].Revision || string(document.JSON) != storedDocument(t, m, want[i].ID) {
			t.Fatalf("%s: document %d is %s", s, i, document.JSON)
		}
	}
	var all []*relayer.Relayer
	for r, err := range m.All(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if !slices.EqualFunc(all, selected, isEqual) {
		t.Fatalf("%s: All returned %q, want %q", s, idsOf(all), idsOf(selected))
	}
}

// isEqual leaves out what changed, which a follower of a selection learns of some changes only.
func isEqual(a, b *relayer.Relayer) bool {
	withoutPaths := func(r *relayer.Relayer) relayer.Relayer {
		if r == nil {
			return relayer.Relayer{}
		}
		other := *r
		other.LastChange.Changed = nil
		return other
	}
	return reflect.DeepEqual(withoutPaths(a), withoutPaths(b))
}

// Pages, totals and All are those of a naive filter, for random selectors and changes, in
// views too.
func TestSelection_Lists(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		random := rand.New(rand.NewPCG(5, 6))
		m := managerOf(t, store)
		var model naive
		nonEmpty := 0
		for range 300 {
			model.change(t, random, m)
			s := drawSelector(random)
			page, perPage := random.IntN(4), 1+random.IntN(5)
			model.compare(t, m, s, page, perPage)
			if len(model.selected(s)) > 0 {
				nonEmpty++
			}
			scope := drawScope(random)
			view := naive(model.selected(scope))
			view.compare(t, m.Within(scope), s, page, perPage)
		}
		if nonEmpty < 50 {
			t.Errorf("only %d selections had relayers", nonEmpty)
		}
	})
}

// drawScope returns a random selector without a search.
func drawScope(random *rand.Rand) (scope relayer.Selector) {
	for key, values := range drawSelector(random).Terms() {
		if key != "search" {
			scope = scope.Where(key, values...)
		}
	}
	return scope
}

// followed is the state of a consumer of a watch.
type followed struct {
	relayers map[string]*relayer.Relayer
	problem  string
}

// apply applies a change as the documentation of Watch says, and checks its kind.
func (f *followed) apply(change relayer.Change, err error, isSearch bool) {
	if err != nil {
		f.problem = err.Error()
		return
	}
	id := change.Relayer.ID
	_, isKnown := f.relayers[id]
	if wasKnown := change.Kind != relayer.ChangeCreated; isKnown != wasKnown && !isSearch {
		f.problem = fmt.Sprintf("%s of %s, known: %t", change.Kind, id, isKnown)
	}
	delete(f.relayers, id)
	if change.Kind != relayer.ChangeDeleted {
		f.relayers[id] = change.Relayer
	}
}

// A follower of a selection has that selection after every change, for random selectors
// and changes, in views too.
func TestSelection_Watch(t *testing.T) {
	// The goroutines of a file would not belong to the bubble.
	for name, store := range map[string]relayer.Store{"memory": memory.New(), "map": new(mapstore.Store)} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, 8))
			m := managerOf(t, store)
			var model naive
			type follower struct {
				selector relayer.Selector
				state    *followed
			}
			var followers []follower
			for i := range 30 {
				scope, s := drawScope(random), drawSelector(random)
				if i == 0 {
					scope, s = relayer.Selector{}, relayer.Selector{}
				}
				state := &followed{relayers: make(map[string]*relayer.Relayer)}
				changes := m.Within(scope).Watch(t.Context(), relayer.WatchQuery{Selector: s})
				_, isSearch := termsIn(s)["search"]
				go func() {
					for change, err := range changes {
						state.apply(change, err, isSearch)
					}
				}()
				followers = append(followers, follower{scope.And(s), state})
			}
			for range 250 {
				model.change(t, random, m)
				synctest.Wait()
				for _, f := range followers {
					want := model.selected(f.selector)
					if f.state.problem != "" || len(f.state.relayers) != len(want) {
						t.Fatalf("%s, %s: follower has %v, want %v, problem %s", name, f.selector, f.state.relayers, want, f.state.problem)
					}
					for _, r := range want {
						if !isEqual(f.state.relayers[r.ID], r) {
							t.Fatalf("%s, %s: follower has %v, want %v", name, f.selector, f.state.relayers[r.ID], r)
						}
					}
				}
			}
		})
	}
}

// A page of a search may be any page of any size.
func TestSelection_SearchPages(t *testing.T) {
	m := newManager(t, relayer.WithMaxPerPage(7))
	ids := created(t, m, 250)
	search := mustParse(t, "search=R0")
	for _, test := range []struct{ page, perPage, from, to, used int }{
		{0, 0, 0, 7, 7}, {1, 3, 0, 3, 3}, {83, 3, 246, 249, 3}, {84, 3, 249, 250, 3}, {85, 3, 250, 250, 3}, {36, 100, 245, 250, 7}, {math.MaxInt, 7, 250, 250, 7},
	} {
		page, err := m.List(t.Context(), relayer.ListQuery{Selector: search, Page: test.page, PerPage: test.perPage})
		if err != nil {
			t.Fatal(err)
		}
		want := relayer.Pagination{CurrentPage: max(test.page, 1), PerPage: test.used, TotalItems: 250}
		if got := idsOf(page.Relayers); !slices.Equal(got, ids[test.from:test.to]) || page.Pagination != want {
			t.Errorf("page %d of %d: %q, %+v", test.page, test.perPage, got, page.Pagination)
		}
	}
}

// A relayer that is selected during the whole iteration is returned once, even if others
// enter and leave the selection.
func TestAll_SelectionChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	m := newManager(t)
	ids := created(t, m, 600)
	constant := func(id string) bool { return id[4]%2 == 0 }
	returned := make(map[string]int)
	for r, err := range m.All(t.Context(), mustParse(t, "paused=false")) {
		if err != nil {
			t.Fatal(err)
		}
		returned[r.ID]++
		for range 3 {
			id := ids[random.IntN(len(ids))]
			if constant(id) {
				continue
			}
			if _, err := m.Update(t.Context(), id, func(r *relayer.Relayer) error { r.Paused = !r.Paused; return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range ids {
		if count := returned[id]; count > 1 || constant(id) && count != 1 {
			t.Errorf("%s was returned %d times", id, count)
		}
	}
}
