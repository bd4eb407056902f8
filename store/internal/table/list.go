package table

import (
	"slices"
	"sort"
)

// slot is the place of a record in the creation order. Lists hold slots, so that an update
// does not change them.
type slot struct {
	sequence uint64
	record   *Record // the current one
}

// maxChunk is the number of slots in a full chunk. A change moves up to this many
// pointers, and adjusts one running total for each later chunk: about a microsecond
// each in a list of a million records.
const maxChunk = 512

// list is a list of slots in creation order with access by offset. It consists of
// chunks with running totals, so that an offset is found by binary search. The zero value
// is empty. It has no lock.
type list struct {
	size   int
	chunks []chunk
}

// chunk has at least one slot.
type chunk struct {
	before int // number of slots in earlier chunks
	slots  []*slot
}

// insert adds a slot that is not in the list.
func (l *list) insert(s *slot) {
	if len(l.chunks) == 0 {
		l.chunks = []chunk{{}}
	}
	in, at := l.find(s.sequence)
	if len(l.chunks[in].slots) == maxChunk {
		in, at = l.split(in, at)
	}
	into := &l.chunks[in].slots
	*into = slices.Insert(*into, at, s)
	l.count(in, 1)
}

// split makes room for a slot at a position of a full chunk, and returns its new
// position. A slot after all others begins a new chunk, so that chunks fill up.
func (l *list) split(in, at int) (chunkIndex, position int) {
	full := l.chunks[in]
	middle := maxChunk / 2
	if in == len(l.chunks)-1 && at == maxChunk {
		middle = maxChunk
	}
	l.chunks = slices.Insert(l.chunks, in+1, chunk{full.before + middle, slices.Clone(full.slots[middle:])})
	if at < middle {
		l.chunks[in].slots = slices.Clone(full.slots[:middle])
		return in, at
	}
	if middle < maxChunk {
		l.chunks[in].slots = slices.Clone(full.slots[:middle])
	}
	return in + 1, at - middle
}

// remove removes a slot, which must be in the list.
func (l *list) remove(s *slot) {
	in, at := l.find(s.sequence)
	from := &l.chunks[in].slots
	*from = slices.Delete(*from, at, at+1)
	l.count(in, -1)
	l.merge(in)
}

// merge removes an empty chunk, and moves the slots of two small neighbors into one,
// so that the number of chunks stays proportional to that of the slots.
func (l *list) merge(in int) {
	if len(l.chunks[in].slots) == 0 {
		l.chunks = slices.Delete(l.chunks, in, in+1)
		return
	}
	for _, left := range []int{in - 1, in} {
		if left < 0 || left+1 >= len(l.chunks) {
			continue
		}
		into, from := &l.chunks[left], l.chunks[left+1]
		if len(into.slots)+len(from.slots) <= maxChunk/2 {
			into.slots = append(into.slots, from.slots...)
			l.chunks = slices.Delete(l.chunks, left+1, left+2)
			return
		}
	}
}

// count adds a difference to the running totals after a chunk.
func (l *list) count(in, difference int) {
	l.size += difference
	for i := in + 1; i < len(l.chunks); i++ {
		l.chunks[i].before += difference
	}
}

// find returns the position of a sequence number, or the position at which to insert it.
func (l *list) find(sequence uint64) (chunkIndex, position int) {
	in := len(l.chunks) - 1
	slots := l.chunks[in].slots
	if n := len(slots); n > 0 && slots[n-1].sequence < sequence {
		return in, n // a create
	}
	if len(slots) == 0 || slots[0].sequence > sequence {
		// The first chunk that begins after the sequence number follows the one that has it.
		in = max(0, sort.Search(in, func(i int) bool { return l.chunks[i].slots[0].sequence > sequence })-1)
	}
	return in, positionOf(l.chunks[in].slots, sequence)
}

// positionOf returns the index of the first slot that is not before a sequence number.
func positionOf(slots []*slot, sequence uint64) int {
	return sort.Search(len(slots), func(i int) bool { return slots[i].sequence >= sequence })
}

// appendRange appends up to limit records from an offset on to dst.
func (l *list) appendRange(dst []*Record, offset, limit int) []*Record {
	if offset < 0 || offset >= l.size || limit <= 0 {
		return dst
	}
	dst = slices.Grow(dst, min(limit, l.size-offset))
	l.visit(offset, limit, func(part []*slot) {
		for _, s := range part {
			dst = append(dst, s.record)
		}
	})
	return dst
}

// visit calls each with up to limit slots from an offset on, chunk by chunk.
func (l *list) visit(offset, limit int, each func(part []*slot)) {
	if offset < 0 || offset >= l.size || limit <= 0 {
		return
	}
	in := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].before > offset }) - 1
	offset -= l.chunks[in].before
	for ; limit > 0 && in < len(l.chunks); in++ {
		part := l.chunks[in].slots[offset:]
		part = part[:min(limit, len(part))]
		each(part)
		limit -= len(part)
		offset = 0
	}
}

// appendFrom appends up to limit records from a sequence number on to dst.
func (l *list) appendFrom(dst []*Record, sequence uint64, limit int) []*Record {
	if l.size == 0 {
		return dst
	}
	in, at := l.find(sequence)
	return l.appendRange(dst, l.chunks[in].before+at, limit)
}

// cursor moves through a list.
type cursor struct {
	*list
	in, at int
}

// near is how many slots a cursor tries before it searches: in a walk the next slot is close.
const near = 8

// seek moves to the first slot that is not before a sequence number, and returns it, or nil
// if there is none. It never moves back.
func (c *cursor) seek(sequence uint64) *slot {
	if c.in == len(c.chunks) {
		return nil
	}
	slots := c.chunks[c.in].slots
	for end := min(c.at+near, len(slots)); c.at < end; c.at++ {
		if s := slots[c.at]; s.sequence >= sequence {
			return s
		}
	}
	c.in += sort.Search(len(c.chunks)-c.in, func(i int) bool {
		slots := c.chunks[c.in+i].slots
		return slots[len(slots)-1].sequence >= sequence
	})
	if c.in == len(c.chunks) {
		return nil
	}
	slots = c.chunks[c.in].slots
	c.at = positionOf(slots, sequence)
	return slots[c.at]
}
