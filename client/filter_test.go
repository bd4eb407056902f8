package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-relayer/relayer"
)

// createTeams creates relayers of two teams, in turns.
func createTeams(t *testing.T, g relayer.Registry, count int) {
	t.Helper()
	for i := range count {
		req := evm(fmt.Sprintf("r%03d", i))
		req.Labels = map[string]string{"team": []string{"payments", "risk"}[i%2]}
		req.Paused = i%3 == 0
		must(g.Create(t.Context(), req))(t)
	}
}

func where(key string, values ...string) relayer.Selector {
	return relayer.Selector{}.Where(key, values...)
}

func allIDs(t *testing.T, g relayer.Registry, selector relayer.Selector) (all []string) {
	t.Helper()
	for r, err := range g.All(t.Context(), selector) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.ID)
	}
	return all
}

func TestSelector_SameAsManager(t *testing.T) {
	m := newManager(t)
	createTeams(t, m, 250)
	c := serve(t, m)
	for _, selector := range []relayer.Selector{
		{},
		where("label.team", "payments"),
		where("label.team", "payments", "risk"),
		where("label.team", "risk").Where("paused", "true"),
		where("id", "r001", "r003", "unknown"),
		where("search", "R01", "24"),
		where("label.team", "a|b,c %=&"),
		where("network"), // selects nothing
	} {
		want := must(m.List(t.Context(), relayer.ListQuery{Selector: selector, Page: 2, PerPage: 20}))(t)
		got, err := c.List(t.Context(), relayer.ListQuery{Selector: selector, Page: 2, PerPage: 20})
		if err != nil || got.Pagination != want.Pagination || !slices.Equal(ids(got.Relayers), ids(want.Relayers)) {
			t.Errorf("%s: page %+v, want %+v, error %v", selector, got, want, err)
		}
		if got, want := allIDs(t, c, selector), allIDs(t, m, selector); !slices.Equal(got, want) {
			t.Errorf("%s: all are %v, want %v", selector, got, want)
		}
	}
}

// OpenZeppelin Relayer ignores the parameters.
func TestSelector_OpenZeppelinRelayer(t *testing.T) {
	server := newPublicServer(150)
	for _, i := range []int{7, 140} {
		server.relayers[i]["paused"] = true
	}
	c := clientOf(t, server)
	if got := allIDs(t, c, where("paused", "true")); !slices.Equal(got, []string{"r7", "r140"}) {
		t.Errorf("all are %v", got)
	}
	for _, selector := range []relayer.Selector{where("paused", "true"), where("network", "sepolia")} { // none and all match
		if page, err := c.List(t.Context(), relayer.ListQuery{Selector: selector}); !errors.Is(err, errors.ErrUnsupported) || page != nil {
			t.Errorf("%s: page %v, error %v", selector, page, err)
		}
	}
}

// The changes of a selection keep a consumer's view equal to it.
func TestWatch_Selector(t *testing.T) {
	m := newManager(t)
	c := serve(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := c.Watch(ctx, relayer.WatchQuery{Selector: where("label.team", "payments")})
	createTeams(t, m, 2)
	move := func(id, team string) {
		must(m.Patch(ctx, id, fmt.Appendf(nil, `{"labels":{"team":%q}}`, team)))(t)
	}
	move("r001", "payments")
	move("r000", "risk")
	must(m.Pause(ctx, "r001"))(t)
	if err := m.Delete(ctx, "r001"); err != nil {
		t.Fatal(err)
	}
	revisions := make(map[string]uint64)
	var got []string
	for change, err := range changes {
		if err != nil {
			t.Fatal(err)
		}
		r := change.Relayer
		isKnown := change.Info.Action != "" && reflect.DeepEqual(change.Info, r.LastChange)
		if change.ID != r.ID || change.Kind != relayer.ChangeDeleted && !isKnown {
			t.Errorf("%+v of %v", change, r)
		}
		if change.Kind != relayer.ChangeDeleted && r.Revision <= revisions[r.ID] {
			t.Errorf("revision %d of %s after %d", r.Revision, r.ID, revisions[r.ID])
		}
		revisions[r.ID] = r.Revision
		if got = append(got, fmt.Sprint(change.Kind, " ", r.ID)); len(got) == 5 {
			break
		}
	}
	if want := []string{"created r000", "created r001", "deleted r000", "updated r001", "deleted r001"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %v, want %v", got, want)
	}
}

func TestWatch_InvalidSelector(t *testing.T) {
	c, s := scripted(t, nil, fail(500, ""))
	wantFailure(t, c.Watch(t.Context(), relayer.WatchQuery{Selector: where("owner", "ci")}), relayer.ErrInvalid, "owner")
	for r, err := range c.All(t.Context(), where("owner", "ci")) {
		if !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%v, error %v", r, err)
		}
	}
	if len(s.seen) > 0 {
		t.Errorf("%d requests", len(s.seen))
	}
}
