package relayer_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// walked reads all pages by cursor, and calls between after each.
func walked(t *testing.T, m relayer.Reader, s relayer.Selector, perPage int, between func()) (ids []string) {
	t.Helper()
	cursor, isLast := new(relayer.Cursor), false
	for !isLast {
		page, err := m.List(t.Context(), relayer.ListQuery{Selector: s, PerPage: perPage, After: cursor})
		if err != nil {
			t.Fatal(err)
		}
		if page.Pagination.CurrentPage != 0 || page.Pagination.PerPage != perPage || page.Position == "" {
			t.Errorf("pagination %+v at position %q", page.Pagination, page.Position)
		}
		if len(page.Relayers) > perPage || page.Next != "" && len(page.Relayers) < perPage {
			t.Errorf("a page of %d relayers before %q, want %d", len(page.Relayers), page.Next, perPage)
		}
		ids = append(ids, idsOf(page.Relayers)...)
		*cursor, isLast = page.Next, page.Next == ""
		between()
	}
	return ids
}

func TestList_After(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		ids := created(t, m, 25)
		for _, perPage := range []int{1, 5, 24, 25, 26} {
			if got := walked(t, m, relayer.Selector{}, perPage, func() {}); !slices.Equal(got, ids) {
				t.Errorf("pages of %d: %q", perPage, got)
			}
		}
		some := ids[3:9]
		if got := walked(t, m, relayer.Selector{}.Where("id", some...), 2, func() {}); !slices.Equal(got, some) {
			t.Errorf("a selection: %q, want %q", got, some)
		}
		// What is deleted and created meanwhile moves nothing.
		next := 0
		got := walked(t, m, mustParse(t, "network=sepolia"), 4, func() {
			if next < 5 {
				remove(t, store, ids[next])
				mustCreate(t, m, minimal(fmt.Sprint("later-", next)))
				next++
			}
		})
		wantEachOnce(t, got, append(slices.Clone(ids[5:]), "later-0", "later-1", "later-2", "later-3", "later-4"))
	})
}

func TestList_AfterInvalid(t *testing.T) {
	m := newManager(t)
	for _, query := range []relayer.ListQuery{
		{After: new(relayer.Cursor("x"))},
		{After: new(relayer.Cursor("-1"))},
		{After: new(relayer.Cursor("01"))},
		{After: new(relayer.Cursor(" 1"))},
		{After: new(relayer.Cursor("9223372036854775808"))},
		{After: new(relayer.Cursor), Page: 1},
	} {
		_, err := m.List(t.Context(), query)
		wantFields(t, fieldErrors(t, err), "after")
	}
	if page, err := m.List(t.Context(), relayer.ListQuery{After: new(relayer.Cursor("9223372036854775807"))}); err != nil || len(page.Relayers) != 0 || page.Next != "" {
		t.Errorf("past the end: %+v, %v", page, err)
	}
}

// A list, and then the changes after its position: nothing is missing or doubled, for all
// relayers and for selections, while others write.
func TestList_ThenWatch(t *testing.T) {
	eachStore(t, func(t *testing.T, store relayer.Store) {
		m := managerOf(t, store)
		const writers, writes = 8, 60
		last := named("last", "1 2 3") // in every selection
		last.Paused = true
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range writes {
					id := fmt.Sprintf("r-%d-%d", w, i%5)
					req := minimal(id)
					req.Paused = i%2 == 0
					_, err := m.Create(t.Context(), req)
					if errors.Is(err, relayer.ErrExists) {
						if i%3 == 0 {
							err = m.Delete(t.Context(), id)
						} else {
							_, err = m.Patch(t.Context(), id, patchtest.JSON(map[string]any{"paused": i%2 == 0, "name": fmt.Sprint(i)}))
						}
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		selections := []string{"", "paused=true", "search=1", "", "paused=true,search=3"}
		var followers, listing sync.WaitGroup
		listing.Add(len(selections))
		for f, text := range selections {
			selector := mustParse(t, text)
			followers.Go(func() {
				held := make(map[string]uint64)
				page, err := m.List(t.Context(), relayer.ListQuery{Selector: selector, PerPage: 100})
				listing.Done()
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range page.Relayers {
					held[r.ID] = r.Revision
				}
				for change, err := range m.Watch(t.Context(), relayer.WatchQuery{Selector: selector, After: page.Position}) {
					if err != nil {
						t.Errorf("follower %d: %v", f, err)
						return
					}
					before, isHeld := held[change.Relayer.ID]
					if isHeld == (change.Kind == relayer.ChangeCreated) || change.Relayer.Revision <= before {
						t.Errorf("follower %d of %q: %s of %s at %d, held is %t at %d", f, text, change.Kind, change.Relayer.ID, change.Relayer.Revision, isHeld, before)
						return
					}
					if held[change.Relayer.ID] = change.Relayer.Revision; change.Kind == relayer.ChangeDeleted {
						delete(held, change.Relayer.ID)
					}
					if change.Relayer.ID == last.ID {
						break
					}
				}
				end, err := m.List(t.Context(), relayer.ListQuery{Selector: selector, PerPage: 100})
				if err != nil || len(end.Relayers) != len(held) {
					t.Errorf("follower %d of %q has %d relayers, and there are %+v; error %v", f, text, len(held), end, err)
					return
				}
				for _, r := range end.Relayers {
					if held[r.ID] != r.Revision {
						t.Errorf("follower %d of %q has %s at %d, want %d", f, text, r.ID, held[r.ID], r.Revision)
					}
				}
			})
		}
		writing.Wait()
		listing.Wait() // a follower that lists the last one waits for it forever
		mustCreate(t, m, last)
		followers.Wait()
	})
}

// A position resumes a watch of the same selection only: another one would lack changes.
func TestWatch_PositionOfAnotherSelector(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, minimal("r"))
	selectors := map[string]*relayer.Manager{
		"": m, "network=sepolia": m, "network=sepolia,paused=false": m, "network=sepolia|x": m, "network=x": m,
	}
	for from := range selectors {
		page, err := m.List(t.Context(), relayer.ListQuery{Selector: mustParse(t, from)})
		if err != nil {
			t.Fatal(err)
		}
		for to := range selectors {
			synchronous, err := firstChange(t, m, relayer.WatchQuery{Selector: mustParse(t, to), After: page.Position, Heartbeats: true}, func() {
				if _, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"name": "n" + from + to})); err != nil {
					t.Fatal(err)
				}
			})
			if isGap := errors.Is(err, relayer.ErrGap); isGap != (from != to) || !isGap && err != nil {
				t.Errorf("a position of %q in a watch of %q: %+v, error %v", from, to, synchronous, err)
			}
		}
	}
	page, err := m.Within(mustParse(t, "network=sepolia")).List(t.Context(), relayer.ListQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if err := firstError(m.Watch(t.Context(), relayer.WatchQuery{After: page.Position})); !errors.Is(err, relayer.ErrGap) {
		t.Errorf("a position of a view in a watch of all: %v", err)
	}
}

// firstChange begins a watch, calls write, and returns the first element.
func firstChange(t *testing.T, m *relayer.Manager, query relayer.WatchQuery, write func()) (first relayer.Change, err error) {
	t.Helper()
	changes := m.Watch(t.Context(), query)
	write()
	for first, err = range changes {
		break
	}
	return first, err
}
