package table

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/storeutil"
)

// index has a list of records for each term.
type index map[string]*termList

type termList struct {
	list
	term string // all records share its memory
}

// move moves a record from the lists of its old terms to those of its new ones, in which it
// replaces the old record. Its terms then share their memory with the index.
func (x index) move(old, r *Record) {
	for _, term := range old.Terms {
		if _, isKept := slices.BinarySearch(r.Terms, term); isKept {
			continue
		}
		l := x[term]
		if l.remove(old); len(l.list) == 0 {
			delete(x, term)
		}
	}
	r.Terms = slices.Clone(r.Terms) // changes that are published have them too
	for i, term := range r.Terms {
		l := x[term]
		if l == nil {
			l = &termList{term: strings.Clone(term)}
			x[l.term] = l
		}
		l.put(r)
		r.Terms[i] = l.term
	}
}

// selection is what a query selects, apart from the page. It is made under the lock of the table.
type selection struct {
	lists []list             // the selected records are in one of them
	query relayer.StoreQuery // the conditions that the lists do not imply
}

// selection returns the selection of a query. The lists can belong to the table.
func (t *Table) selection(query relayer.StoreQuery) selection {
	s := selection{lists: []list{t.order}, query: query}
	least := len(t.order) + 1
	if len(query.IDs) > 0 {
		s.lists, s.query.IDs, least = []list{t.withIDs(query.IDs)}, nil, 0
	}
	for i, terms := range query.Terms {
		lists, size := []list{t.damaged}, len(t.damaged)
		for _, term := range terms {
			if l := t.byTerm[term]; l != nil {
				lists, size = append(lists, l.list), size+len(l.list)
			}
		}
		if size < least {
			s.lists, least = lists, size
			s.query.Terms = slices.Concat(query.Terms[:i], query.Terms[i+1:])
		}
	}
	s.lists = slices.DeleteFunc(s.lists, func(l list) bool { return len(l) == 0 })
	return s
}

// isExact reports whether all records of the only list are selected.
func (s *selection) isExact() bool {
	return len(s.lists) < 2 && len(s.query.Terms)+len(s.query.Contains) == 0
}

func (t *Table) withIDs(ids []string) (found list) {
	for _, id := range ids {
		if r := t.byID[id]; r != nil {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *Record) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return slices.Compact(found)
}

// records returns the selected records. It checks ctx between merges, and once for 1,024 records.
// The terms and the text of a damaged record are not known: a selection without IDs has it, so
// that its page is an error.
func (s *selection) records(ctx context.Context) (all list, err error) {
	// The lists are merged in pairs, round after round: of n lists, log n merges copy a record.
	for len(s.lists) > 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.lists = append(s.lists[2:], merged(s.lists[0], s.lists[1]))
	}
	if len(s.lists) > 0 {
		all = s.lists[0]
	}
	count := 0
	all = slices.DeleteFunc(all, func(r *Record) bool {
		if count++; count%1024 == 0 && err == nil {
			err = ctx.Err()
		}
		return err != nil || !r.IsDamaged && !storeutil.Selects(s.query, r.Record)
	})
	return all, err
}
