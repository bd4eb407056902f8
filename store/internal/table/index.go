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
func (x index) move(r *Record, old, terms Terms) Terms {
	if slices.EqualFunc(old, terms, func(a, b *string) bool { return *a == *b }) {
		return old
	}
	for _, term := range old {
		if terms.contains(*term) {
			continue
		}
		l := x[*term]
		if l.remove(r); l.size == 0 {
			delete(x, *term)
		}
	}
	for i, term := range terms {
		l := x[*term]
		if l == nil {
			l = &termList{term: strings.Clone(*term)}
			x[l.term] = l
		}
		if !old.contains(*term) {
			l.insert(r)
		}
		terms[i] = &l.term
	}
	return terms
}

// page collects the selected records of a page.
type page struct {
	relayer.StoreQuery
	searched search
	records  []*Record
	total    int
}

// add adds the next selected record.
func (p *page) add(r *Record) {
	p.total++
	switch {
	case r.sequence <= p.After || len(p.records) == p.Limit:
	case p.Offset > 0:
		p.Offset--
	default:
		p.records = append(p.records, r)
	}
}

// cut takes the page from a list of all selected records, by its offset.
func (p *page) cut(l *list) {
	p.total = l.size
	if p.After > 0 {
		p.records = l.appendAfter(p.records, p.After, p.Offset, p.Limit)
		return
	}
	p.records = l.appendRange(p.records, p.Offset, p.Limit)
}

// selected appends the records of the page to dst, and returns the number of all selected
// records. A page of one term is found by its offset. For several terms the lists are
// walked, the shortest first, because the total has to be exact; for a search, all texts of
// what the terms select are read.
func (t *Table) selected(dst []*Record, query relayer.StoreQuery) ([]*Record, int) {
	p := page{StoreQuery: query, searched: newSearch(query.Contains), records: dst}
	switch {
	case len(query.IDs) > 0:
		t.selectIDs(&p)
	case len(query.Terms) == 0 && len(query.Contains) == 0:
		p.cut(&t.order)
	case len(query.Terms) == 0:
		t.order.each(func(r *Record) { p.search(r) })
	default:
		t.selectTerms(&p)
	}
	return p.records, p.total
}

func (t *Table) selectTerms(p *page) {
	all := t.conditions(p.Terms)
	if len(all) == 1 && len(all[0]) == 1 && len(p.Contains) == 0 {
		p.cut(all[0][0].list)
		return
	}
	for r := all.seek(0); r != nil; r = all.seek(r.sequence + 1) {
		p.search(r)
	}
}

// search adds a record in whose text a search finds something. The text of a damaged record
// is not known.
func (p *page) search(r *Record) {
	if r.isDamaged || p.searched.finds(r) {
		p.add(r)
	}
}

func (t *Table) selectIDs(p *page) {
	var found []*Record
	for _, id := range p.IDs {
		r := t.byID[id]
		if r != nil && (r.isDamaged || storeutil.Selects(relayer.StoreQuery{Terms: p.Terms, Contains: p.Contains}, r.Record())) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *Record) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, r := range slices.Compact(found) {
		p.add(r)
	}
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
