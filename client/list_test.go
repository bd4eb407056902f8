package client_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/client"
)

func TestList_Pages(t *testing.T) {
	m := newManager(t, relayer.WithMaxPerPage(7))
	createAll(t, m, 12)
	c := serve(t, m)
	for _, query := range []relayer.ListQuery{
		{}, {Page: 1, PerPage: 5}, {PerPage: 5}, {Page: 3, PerPage: 5}, {Page: 4, PerPage: 5}, {Page: 1}, {Page: 2, PerPage: 100},
		{Page: 4294967295, PerPage: math.MaxInt}, {After: new(relayer.Cursor), PerPage: 5}, {After: new(relayer.Cursor)},
	} {
		want := must(m.List(t.Context(), query))(t)
		got, err := c.List(t.Context(), query)
		if err != nil || got.Pagination != want.Pagination || !slices.Equal(ids(got.Relayers), ids(want.Relayers)) {
			t.Errorf("page %v: %+v, want %+v, error %v", query, got, want, err)
		}
		if query.After != nil && (got.Next != want.Next || got.Position != want.Position || got.Next == "" || got.Position == "") {
			t.Errorf("page %v: next %q at %q, want %q at %q", query, got.Next, got.Position, want.Next, want.Position)
		}
		if fmt.Sprint(got.Relayers[:min(1, len(got.Relayers))]) != "[]" && !reflect.DeepEqual(got.Relayers[0].LastChange, want.Relayers[0].LastChange) {
			t.Errorf("page %v: the last change is %v, want %v", query, got.Relayers[0].LastChange, want.Relayers[0].LastChange)
		}
		if !slices.Equal(revisionsOf(got), revisionsOf(want)) {
			t.Errorf("page %v: revisions %d, want %d", query, revisionsOf(got), revisionsOf(want))
		}
	}
}

// A server without revisions returns relayers with the Revision 0.
func TestList_NoRevisions(t *testing.T) {
	const two = `{"success":true,"data":[{"id":"a","network_type":"evm"},{"id":"b","network_type":"evm"}],%s"pagination":{"current_page":1,"per_page":100,"total_items":2}}`
	for revisions, want := range map[string][]uint64{
		``:                {0, 0},
		`"changes":null,`: {0, 0},
		`"changes":[{"revision":7},{"revision":0}],`: {7, 0},
		`"changes":[{"revision":7},{"revision":8}],`: {7, 8},
	} {
		c, s := scripted(t, nil, respondJSON(200, fmt.Sprintf(two, revisions)))
		page, err := c.List(t.Context(), relayer.ListQuery{PerPage: 100})
		if err != nil || !slices.Equal(revisionsOf(page), want) {
			t.Errorf("%s: %v, error %v, want %v", revisions, page, err, want)
		}
		var all []uint64
		for r, err := range c.All(t.Context(), relayer.Selector{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r.Revision)
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s: revisions %v, want %v", revisions, all, want)
		}
		if !strings.Contains(s.seen[0].path, "changes=true") {
			t.Errorf("requested %s", s.seen[0].path)
		}
	}
}

func TestList_InvalidQuery(t *testing.T) {
	c, s := scripted(t, nil, fail(500, ""))
	for field, query := range map[string]relayer.ListQuery{
		"page": {Page: -1}, "per_page": {PerPage: -1}, "owner": {Selector: relayer.Selector{}.Where("owner", "ci")},
	} {
		_, err := c.List(t.Context(), query)
		if invalid, ok := errors.AsType[*relayer.ValidationError](err); !ok || len(invalid.Fields) != 1 || invalid.Fields[0].Field != field || len(s.seen) > 0 {
			t.Errorf("%s: error %v after %d requests", field, err, len(s.seen))
		}
	}
}

func ids(relayers []*relayer.Relayer) []string {
	list := []string{}
	for _, r := range relayers {
		list = append(list, r.ID)
	}
	return list
}

func TestList_InvalidResponse(t *testing.T) {
	const one = `{"success":true,"data":[{"id":"a","network_type":"evm"}]`
	for what, body := range map[string]string{
		"no pagination":   one + `}`,
		"no list":         `{"success":true,"data":null,"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
		"too few changes": strings.Replace(one, "{", `{"changes":[],`, 1) + `,"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
		"no relayers":     `{"success":true,"data":[1],"pagination":{"current_page":1,"per_page":100,"total_items":1}}`,
	} {
		c, _ := scripted(t, nil, respondJSON(200, body))
		n := 0
		for r, err := range c.All(t.Context(), relayer.Selector{}) {
			if n++; n > 1 || err == nil || r != nil {
				t.Fatalf("%s: %v, error %v", what, r, err)
			}
		}
	}
}

// createAll creates a number of relayers, and returns their IDs.
func createAll(t *testing.T, m *relayer.Manager, count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprint("r", i))
		must(m.Create(t.Context(), evm(ids[i])))(t)
	}
	return ids
}

// revisionsOf returns the revisions of the relayers of a page.
func revisionsOf(page *relayer.Page) (revisions []uint64) {
	for _, r := range page.Relayers {
		revisions = append(revisions, r.Revision)
	}
	return revisions
}

func TestAll_Break(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 3)
	for r, err := range serve(t, m).All(t.Context(), relayer.Selector{}) {
		if err != nil || r.ID != "r0" {
			t.Errorf("%v, error %v", r, err)
		}
		break
	}
}

// A failure ends the iteration after the relayers that were read.
func TestAll_FailureInTheMiddle(t *testing.T) {
	m := newManager(t)
	createAll(t, m, 250)
	api, requests := handlerOf(t, m), 0
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests > 2 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		api.ServeHTTP(w, r)
	}), client.WithRetries(1, 0))
	n, failures := 0, 0
	for _, err := range c.All(t.Context(), relayer.Selector{}) {
		if err != nil {
			failures++
		} else {
			n++
		}
	}
	if n < 150 || n >= 250 || failures != 1 {
		t.Errorf("%d relayers and %d failures", n, failures)
	}
}

// A server that returns the cursor of the request would be read without end.
func TestAll_SameCursor(t *testing.T) {
	page := respondJSON(200, `{"success":true,"data":[],"changes":[],"pagination":{"per_page":100,"total_items":1},"next":"c"}`)
	c, s := scripted(t, once, page, page, fail(403, "Forbidden"))
	if err := firstError(c.All(t.Context(), relayer.Selector{})); err == nil || !strings.Contains(err.Error(), "the same cursor again") {
		t.Errorf("error %v after %s", err, s.methods())
	}
}
