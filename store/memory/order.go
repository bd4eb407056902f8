package memory

import (
	"math/bits"

	"github.com/go-relayer/relayer"
)

// entry is one record in its place among its neighbours. Its rec is replaced
// whole, and the bytes in it never change.
type entry struct {
	rec            relayer.Record
	slot           int
	previous, next *entry
}

// order keeps entries in creation order and finds the one at any offset.
//
// Each entry has a slot, and slots are never used again. A Fenwick tree counts
// the slots that are taken, so that the k-th taken one is found by descending
// it; from there a page follows the links and meets no empty slot. Once most
// slots are empty they are numbered anew.
type order struct {
	first, last *entry
	live        int
	slots       []*entry
	counts      []int // counts[i] covers the slots (i - lowbit(i), i], from 1 on
}

func (o *order) add(made *entry) {
	made.previous, made.next = o.last, nil
	if o.last == nil {
		o.first = made
	} else {
		o.last.next = made
	}
	o.last = made
	o.live++
	o.take(made)
}

// take gives the entry the slot after the last.
func (o *order) take(taker *entry) {
	if len(o.counts) == 0 {
		o.counts = append(o.counts, 0)
	}
	taker.slot = len(o.slots)
	o.slots = append(o.slots, taker)
	at := len(o.slots)
	count := 1
	for child := at - 1; child > at-(at&-at); child -= child & -child {
		count += o.counts[child]
	}
	o.counts = append(o.counts, count)
}

func (o *order) remove(gone *entry) {
	if gone.previous == nil {
		o.first = gone.next
	} else {
		gone.previous.next = gone.next
	}
	if gone.next == nil {
		o.last = gone.previous
	} else {
		gone.next.previous = gone.previous
	}
	o.live--
	o.slots[gone.slot] = nil
	for at := gone.slot + 1; at < len(o.counts); at += at & -at {
		o.counts[at]--
	}
	o.renumber()
}

// spareSlots keeps small stores from being renumbered at every other delete.
const spareSlots = 1024

// renumber takes the empty slots out when they outnumber the others. So many
// deletes precede it that each pays for a few steps of it.
func (o *order) renumber() {
	if len(o.slots) < 2*o.live+spareSlots {
		return
	}
	o.slots = make([]*entry, 0, o.live+spareSlots)
	o.counts = make([]int, 0, o.live+spareSlots+1)
	for next := o.first; next != nil; next = next.next {
		o.take(next)
	}
}

// at returns the entry at an offset below the number of live ones.
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
