package memory

import (
	"math/bits"

	"github.com/go-relayer/relayer"
)

// entry is one record in a list in creation order. Its rec is replaced whole, and the
// bytes in it never change.
type entry struct {
	rec            relayer.Record
	slot           int
	previous, next *entry
}

// order is a list of entries in creation order with access by offset.
//
// Each entry has a slot, and a slot is not reused. A Fenwick tree counts the slots in
// use, so that a descent of it finds the k-th one. From there a page follows the links
// of the list and needs not skip empty slots. When most slots are empty, they are
// renumbered.
type order struct {
	first, last *entry
	live        int
	slots       []*entry
	counts      []int // counts[i] covers the slots (i - lowbit(i), i], from 1 on
}

func (o *order) add(added *entry) {
	added.previous, added.next = o.last, nil
	if o.last == nil {
		o.first = added
	} else {
		o.last.next = added
	}
	o.last = added
	o.live++
	o.assignSlot(added)
}

// assignSlot assigns the slot after the last one to an entry.
func (o *order) assignSlot(e *entry) {
	if len(o.counts) == 0 {
		o.counts = append(o.counts, 0)
	}
	e.slot = len(o.slots)
	o.slots = append(o.slots, e)
	at := len(o.slots)
	count := 1
	for child := at - 1; child > at-(at&-at); child -= child & -child {
		count += o.counts[child]
	}
	o.counts = append(o.counts, count)
}

func (o *order) remove(e *entry) {
	if e.previous == nil {
		o.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		o.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	o.live--
	o.slots[e.slot] = nil
	for at := e.slot + 1; at < len(o.counts); at += at & -at {
		o.counts[at]--
	}
	o.renumber()
}

// spareSlots avoids frequent renumbering of small stores.
const spareSlots = 1024

// renumber removes the empty slots if they outnumber the others. Its cost is amortized
// over the deletes since the last time.
func (o *order) renumber() {
	if len(o.slots) < 2*o.live+spareSlots {
		return
	}
	o.slots = make([]*entry, 0, o.live+spareSlots)
	o.counts = make([]int, 0, o.live+spareSlots+1)
	for next := o.first; next != nil; next = next.next {
		o.assignSlot(next)
	}
}

// at returns the entry at an offset, which must be less than the number of entries.
func (o *order) at(offset int) *entry {
	slot, rest := 0, offset
	for step := 1 << (bits.Len(uint(len(o.slots))) - 1); step > 0; step >>= 1 {
		if slot+step < len(o.counts) && o.counts[slot+step] <= rest {
			slot += step
			rest -= o.counts[slot]
		}
	}
	return o.slots[slot]
}
