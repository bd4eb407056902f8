package relayer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/patchtest"
)

// A search finds parts of IDs and of the first 900 bytes of names, in lists and streams.
func TestSearch_Meaning(t *testing.T) {
	long := strings.Repeat("x", 899) + "Ä-end"
	for _, c := range []struct {
		name, search string
		want         bool
	}{
		{"Größe", "GRÖSSE", true},
		{"Größe", "größe", true},
		{"100%_\\'\"", `%_\'`, true},
		{"100%", "1_0", false},
		{"n", "the-id", true},
		{"n", "idn", false}, // not across the ID and the name
		{long, strings.Repeat("X", 128), true},
		{long, "ä", false},
		{long, "end", false},
		{strings.Repeat("ΐ", 450), "ΐ", true}, // longer when it is folded
	} {
		m := newManager(t)
		mustCreate(t, m, named("the-id", "before"))
		selector := relayer.Selector{}.Where("search", c.search)
		if err := selector.Err(); err != nil {
			t.Fatal(err)
		}
		watched := m.Watch(t.Context(), relayer.WatchQuery{Selector: selector})
		r, err := m.Patch(t.Context(), "the-id", patchtest.JSON(map[string]any{"name": c.name}))
		if err != nil {
			t.Fatal(err)
		}
		page, err := m.List(t.Context(), relayer.ListQuery{Selector: selector})
		if err != nil || (page.Pagination.TotalItems == 1) != c.want || selector.Matches(r) != c.want {
			t.Errorf("%.20q in %.20q: listed %+v, error %v, matches %t, want %t", c.search, c.name, page, err, selector.Matches(r), c.want)
		}
		if !c.want {
			continue
		}
		for change, err := range watched {
			if err != nil || change.Relayer.Revision != r.Revision {
				t.Errorf("%.20q in %.20q: watched %v, %v", c.search, c.name, change, err)
			}
			break
		}
	}
}

// A relayer whose new name a search no longer finds leaves the selection.
func TestWatch_RenamedOutOfSearch(t *testing.T) {
	m := newManager(t)
	mustCreate(t, m, named("r", "payments"))
	f := follow(t, m.Watch(t.Context(), relayer.WatchQuery{Selector: mustParse(t, "search=pay")}))
	for _, name := range []string{"risk", "Payday", "PAYMENTS"} {
		if _, err := m.Patch(t.Context(), "r", patchtest.JSON(map[string]any{"name": name})); err != nil {
			t.Fatal(err)
		}
	}
	f.expect(relayer.ChangeDeleted, "r")
	f.expect(relayer.ChangeCreated, "r")
	f.expect(relayer.ChangeUpdated, "r")
}

func TestSelector_SearchLimits(t *testing.T) {
	values := func(count, length int) (values []string) {
		for i := range count {
			values = append(values, strings.Repeat("é", length-1)+fmt.Sprint(i%10))
		}
		return values
	}
	for name, c := range map[string]struct {
		values  []string
		isValid bool
	}{
		"most":       {values(8, 128), true},
		"too many":   {values(9, 1), false},
		"too long":   {values(1, 129), false},
		"no UTF-8":   {[]string{"\xff"}, false},
		"NUL":        {[]string{"\x00"}, false},
		"separator":  {[]string{"a\x1fb"}, false},
		"empty":      {[]string{"", "a"}, true},
		"line break": {[]string{"\n"}, true},
	} {
		s := relayer.Selector{}.Where("search", c.values...)
		if (s.Err() == nil) != c.isValid {
			t.Errorf("%s: error %v, want valid: %t", name, s.Err(), c.isValid)
		} else if !c.isValid {
			wantFields(t, fieldErrors(t, s.Err()), "search")
		}
	}
}
