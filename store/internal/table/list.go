package table

import (
	"slices"
	"sort"

	"github.com/go-relayer/relayer"
)

// list is records in creation order. A change moves up to 8 MB of a list of a million.
type list []*Record

// find returns the index of the first record that is not before a sequence number.
func (l list) find(sequence uint64) int {
	if n := len(l); n == 0 || l[n-1].Sequence < sequence {
		return n // a create
	}
	return sort.Search(len(l), func(i int) bool { return l[i].Sequence >= sequence })
}

// put adds a record, or replaces the one with its sequence number.
func (l *list) put(r *Record) {
	at := l.find(r.Sequence)
	if at < len(*l) && (*l)[at].Sequence == r.Sequence {
		(*l)[at] = r
		return
	}
	*l = slices.Insert(*l, at, r)
}

// remove removes the record with the sequence number of r, which must be in the list. It moves
// the shorter part.
func (l *list) remove(r *Record) {
	at := l.find(r.Sequence)
	if at >= len(*l)/2 {
		*l = slices.Delete(*l, at, at+1)
		return
	}
	copy((*l)[1:at+1], *l)
	(*l)[0] = nil // frees its memory
	*l = (*l)[1:]
}

// page returns the part that a query selects by After, Offset and Limit.
func (l list) page(query relayer.StoreQuery) list {
	if query.After > 0 {
		at := sort.Search(len(l), func(i int) bool { return l[i].Sequence > query.After })
		l = l[at:]
	}
	if query.Offset < 0 || query.Offset >= len(l) || query.Limit <= 0 {
		return nil
	}
	l = l[query.Offset:]
	return l[:min(query.Limit, len(l))]
}

// merged returns the records that are in either of two lists.
func merged(a, b list) list {
	both := make(list, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch first, second := a[0].Sequence, b[0].Sequence; {
		case first < second:
			both, a = append(both, a[0]), a[1:]
		case first > second:
			both, b = append(both, b[0]), b[1:]
		default:
			b = b[1:]
		}
	}
	return append(append(both, a...), b...)
}
