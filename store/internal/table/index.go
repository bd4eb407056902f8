package table

import (
	"cmp"
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

// move moves a record from the lists of its old terms to those of its new ones. It returns the
// new terms, which then share their memory with the index.
func (x index) move(r *Record, old, terms []string) []string {
	if slices.Equal(old, terms) {
		return old
	}
	for _, term := range old {
		if contains(terms, term) {
			continue
		}
		l := x[term]
		if l.remove(r); l.size == 0 {
			delete(x, term)
		}
	}
	for i, term := range terms {
		l := x[term]
		if l == nil {
			l = &termList{term: strings.Clone(term)}
			x[l.term] = l
		}
		if !contains(old, term) {
			l.insert(r)
		}
		terms[i] = l.term
	}
	return terms
}

func contains(terms []string, term string) bool {
	_, found := slices.BinarySearch(terms, term)
	return found
}

// selected appends the records of the page to dst, and returns the number of all selected
// records. A page of one term is found by its offset. For several terms the lists are
// walked, the shortest first, because the total has to be exact.
func (t *Table) selected(dst []*Record, query relayer.StoreQuery) (page []*Record, total int) {
	if len(query.IDs) > 0 {
		return t.selectedByID(dst, query)
	}
	if len(query.Terms) == 0 {
		return t.order.appendRange(dst, query.Offset, query.Limit), t.order.size
	}
	all := t.conditions(query.Terms)
	if len(all) == 1 && len(all[0]) == 1 {
		only := all[0][0].list
		return only.appendRange(dst, query.Offset, query.Limit), only.size
	}
	for r := all.seek(0); r != nil; r = all.seek(r.sequence + 1) {
		if total >= query.Offset && len(dst) < query.Limit {
			dst = append(dst, r)
		}
		total++
	}
	return dst, total
}

func (t *Table) selectedByID(dst []*Record, query relayer.StoreQuery) (page []*Record, total int) {
	var found []*Record
	for _, id := range query.IDs {
		r := t.byID[id]
		if r != nil && (r.isDamaged || storeutil.Selects(relayer.StoreQuery{Terms: query.Terms}, r.Record())) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *Record) int { return cmp.Compare(a.sequence, b.sequence) })
	found = slices.Compact(found)
	start := min(query.Offset, len(found))
	return append(dst, found[start:start+min(query.Limit, len(found)-start)]...), len(found)
}

// union is the records that are in any of some lists.
type union []cursor

func (u union) seek(sequence uint64) (first *Record) {
	for i := range u {
		if r := u[i].seek(sequence); r != nil && (first == nil || r.sequence < first.sequence) {
			first = r
		}
	}
	return first
}

func (u union) size() (size int) {
	for _, c := range u {
		size += c.list.size
	}
	return size
}

// intersection is the records that are in all of some unions, of which there is at least one.
type intersection []union

// conditions returns the selection of a query. The terms of a damaged record are not known:
// every selection has it, so that its page is an error.
func (t *Table) conditions(terms [][]string) intersection {
	all := make(intersection, len(terms))
	for i, any := range terms {
		for _, term := range any {
			if l := t.byTerm[term]; l != nil {
				all[i] = append(all[i], cursor{list: &l.list})
			}
		}
		if t.damaged.size > 0 {
			all[i] = append(all[i], cursor{list: &t.damaged})
		}
	}
	slices.SortFunc(all, func(a, b union) int { return cmp.Compare(a.size(), b.size()) })
	return all
}

// seek returns the first record that is not before a sequence number, or nil if there is none.
func (all intersection) seek(sequence uint64) (found *Record) {
	for i, agreed := 0, 0; agreed < len(all); agreed++ {
		if found = all[i].seek(sequence); found == nil {
			return nil
		}
		if found.sequence > sequence {
			sequence, agreed = found.sequence, 0
		}
		if i++; i == len(all) {
			i = 0
		}
	}
	return found
}
