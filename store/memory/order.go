package memory

import (
	"bytes"
	"math/bits"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/joined"
)

// entry is one record. Writes and join replace parts of rec, but never change the bytes in
// it.
type entry struct {
	rec  relayer.Record
	slot int
}

// order is a list of entries in creation order with access by offset.
//
// Each entry has a slot, and a slot is not reused. Adjacent slots are in one piece. A Fenwick
// tree counts the entries of the pieces, so that a descent of it finds the k-th entry. When
// most slots are empty, they are renumbered.
type order struct {
	live   int
	slots  []*entry
	pieces []piece
	counts []int // counts[i] covers the pieces (i - lowbit(i), i], from 1 on
}

// piece describes [joined.Slots] slots.
type piece struct {
	used      joined.Set
	documents joined.Documents // joined when a list has read them
}

// add adds an entry in the slot after the last one.
func (o *order) add(added *entry) {
	added.slot = len(o.slots)
	o.slots = append(o.slots, added)
	if added.slot%joined.Slots == 0 {
		o.addPiece()
	}
	into := o.invalidate(added)
	into.used = into.used.With(added.slot % joined.Slots)
	o.addCount(added, 1)
}

func (o *order) addPiece() {
	o.pieces = append(o.pieces, piece{})
	if len(o.counts) == 0 {
		o.counts = append(o.counts, 0)
	}
	at, count := len(o.pieces), 0
	for child := at - 1; child > at-(at&-at); child -= child & -child {
		count += o.counts[child]
	}
	o.counts = append(o.counts, count)
}

// invalidate discards the joined documents of the piece of an entry, and returns the piece.
func (o *order) invalidate(e *entry) *piece {
	of := &o.pieces[e.slot/joined.Slots]
	of.documents.Clear()
	return of
}

// addCount adds a difference to the number of entries in the piece of an entry.
func (o *order) addCount(e *entry, difference int) {
	o.live += difference
	for at := e.slot/joined.Slots + 1; at < len(o.counts); at += at & -at {
		o.counts[at] += difference
	}
}

func (o *order) remove(e *entry) {
	o.slots[e.slot] = nil
	from := o.invalidate(e)
	from.used = from.used.Without(e.slot % joined.Slots)
	if from.used.Len() <= joined.Slots/4 {
		// Few documents must not keep those of deleted entries in memory.
		o.joinPiece(e.slot / joined.Slots)
	}
	o.addCount(e, -1)
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
	old := o.slots
	*o = order{slots: make([]*entry, 0, o.live+spareSlots)}
	for _, e := range old {
		if e != nil {
			// A joined document keeps its whole piece in memory, with deleted documents.
			e.rec.Document = bytes.Clone(e.rec.Document)
			o.add(e)
		}
	}
}

// at returns the piece of the entry at an offset, which must be less than the number of
// entries, and how many entries of the piece come before it.
func (o *order) at(offset int) (number, rank int) {
	rank = offset
	for step := 1 << (bits.Len(uint(len(o.pieces))) - 1); step > 0; step >>= 1 {
		if number+step < len(o.counts) && o.counts[number+step] <= rank {
			number += step
			rank -= o.counts[number]
		}
	}
	return number, rank
}

// span identifies the entries of a page that are in one piece.
type span struct {
	piece int // index in the pieces
	slots joined.Set
}

// spans calls yield for each span of a page, which must be in the list, until it returns
// false.
func (o *order) spans(offset, limit int, yield func(span) bool) bool {
	for limit > 0 {
		number, rank := o.at(offset)
		for ; limit > 0 && number < len(o.pieces) && o.pieces[number].used != 0; number++ {
			slots := o.pieces[number].used.Skip(rank).Take(limit)
			if !yield(span{number, slots}) {
				return false
			}
			offset, limit, rank = offset+slots.Len(), limit-slots.Len(), 0
		}
	}
	return true
}

// appendDocuments appends the documents of a page, separated by commas. It returns false if
// some of them are not joined.
func (o *order) appendDocuments(dst []byte, offset, limit int) (extended []byte, ok bool) {
	if limit == 0 {
		return dst, true
	}
	extended = dst
	ok = o.spans(offset, limit, func(s span) bool {
		documents := &o.pieces[s.piece].documents
		if documents.AreJoined() {
			extended = documents.Append(extended, s.slots.First(), s.slots.Last())
		}
		return documents.AreJoined()
	})
	if !ok {
		return dst, false
	}
	return extended[:len(extended)-len(",")], true
}

// join joins the documents of all pieces that contain entries of a page.
func (o *order) join(offset, limit int) {
	o.spans(offset, limit, func(s span) bool {
		if !o.pieces[s.piece].documents.AreJoined() {
			o.joinPiece(s.piece)
		}
		return true
	})
}

func (o *order) joinPiece(number int) {
	var documents [joined.Slots]*[]byte
	for i, e := range o.inPiece(number) {
		if e != nil {
			documents[i] = &e.rec.Document
		}
	}
	o.pieces[number].documents.Join(&documents)
}

// inPiece returns the slots of a piece.
func (o *order) inPiece(number int) []*entry {
	return o.slots[number*joined.Slots : min(len(o.slots), (number+1)*joined.Slots)]
}
