package table

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
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
	lists      []list // the selected records are in one of them
	conditions []condition
	searched   search
	isExact    bool // all records of the only list are selected
}

// condition is terms, of which a record must have one.
type condition []string

// selection returns the selection of a query. The lists are those of the table.
func (t *Table) selection(query relayer.StoreQuery) selection {
	s := selection{lists: []list{t.order}, searched: newSearch(query.Contains)}
	least, uncompared := len(t.order)+1, len(query.Terms) // conditions that the lists do not imply
	if len(query.IDs) > 0 {
		s.lists, least = []list{t.withIDs(query.IDs)}, 0
	}
	for _, texts := range query.Terms {
		var c condition
		lists, size := []list{t.damaged}, len(t.damaged)
		for _, text := range texts {
			if l := t.byTerm[text]; l != nil {
				c, lists, size = append(c, l.term), append(lists, l.list), size+len(l.list)
			}
		}
		if s.conditions = append(s.conditions, c); size < least {
			s.lists, least, uncompared = lists, size, len(query.Terms)-1
		}
	}
	s.lists = slices.DeleteFunc(s.lists, func(l list) bool { return len(l) == 0 })
	s.isExact = len(s.lists) < 2 && uncompared+len(query.IDs)+len(query.Contains) == 0
	return s
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

// records returns the selected records. It returns the error of ctx if ctx ends.
func (s *selection) records(ctx context.Context) (all list, err error) {
	if len(s.lists) > 0 {
		all = s.lists[0]
		for _, l := range s.lists[1:] {
			all = merged(all, l)
		}
	}
	count := 0
	all = slices.DeleteFunc(all, func(r *Record) bool {
		if count++; count%1024 == 0 && err == nil {
			err = ctx.Err()
		}
		return err != nil || !s.selects(r)
	})
	return all, err
}

// selects reports whether a record meets the conditions. The terms and the text of a damaged record
// are not known: every selection has it, so that its page is an error.
func (s *selection) selects(r *Record) bool {
	if r.IsDamaged {
		return true
	}
	for _, c := range s.conditions {
		if !slices.ContainsFunc(c, func(term string) bool { return slices.Contains(r.Terms, term) }) {
			return false
		}
	}
	return s.searched.finds(r)
}
