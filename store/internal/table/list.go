package table

import (
	"math"
	"slices"
	"sort"
)

// maxChunk is the number of records in a full chunk. A change moves up to this many
// pointers, and adjusts one running total for each later chunk: about a microsecond
// each in a list of a million records.
const maxChunk = 512

// list is a list of records in creation order with access by offset. It consists of
// chunks with running totals, so that an offset is found by binary search. The zero value
// is empty. It has no lock.
type list struct {
	size   int
	chunks []chunk
}

// chunk has at least one record.
type chunk struct {
	before  int // number of records in earlier chunks
	records []*Record
}

// insert adds a record that is not in the list.
func (l *list) insert(r *Record) {
	if len(l.chunks) == 0 {
		l.chunks = []chunk{{}}
	}
	in, at := l.find(r.sequence)
	if len(l.chunks[in].records) == maxChunk {
		in, at = l.split(in, at)
	}
	into := &l.chunks[in].records
	*into = slices.Insert(*into, at, r)
	l.count(in, 1)
}

// split makes room for a record at a position of a full chunk, and returns its new
// position. A record after all others begins a new chunk, so that chunks fill up.
func (l *list) split(in, at int) (chunkIndex, position int) {
	full := l.chunks[in]
	middle := maxChunk / 2
	if in == len(l.chunks)-1 && at == maxChunk {
		middle = maxChunk
	}
	later := append(make([]*Record, 0, maxChunk), full.records[middle:]...)
	l.chunks = slices.Insert(l.chunks, in+1, chunk{full.before + middle, later})
	if middle < maxChunk {
		l.chunks[in].records = slices.Clone(full.records[:middle])
	}
	if at < middle {
		return in, at
	}
	return in + 1, at - middle
}

// remove removes a record, which must be in the list.
func (l *list) remove(r *Record) {
	in, at := l.find(r.sequence)
	from := &l.chunks[in].records
	*from = slices.Delete(*from, at, at+1)
	l.count(in, -1)
	l.merge(in)
}

// merge removes an empty chunk, and moves the records of two small neighbors into one,
// so that the number of chunks stays proportional to that of the records.
func (l *list) merge(in int) {
	if len(l.chunks[in].records) == 0 {
		l.chunks = slices.Delete(l.chunks, in, in+1)
		return
	}
	for _, left := range []int{in - 1, in} {
		if left < 0 || left+1 >= len(l.chunks) {
			continue
		}
		into, from := &l.chunks[left], l.chunks[left+1]
		if len(into.records)+len(from.records) <= maxChunk/2 {
			into.records = append(into.records, from.records...)
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
	records := l.chunks[in].records
	if n := len(records); n == 0 || records[n-1].sequence < sequence {
		return in, n // a create
	}
	// The first chunk that begins after the sequence number follows the one that has it.
	in = max(0, sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].records[0].sequence > sequence })-1)
	return in, positionOf(l.chunks[in].records, sequence)
}

// positionOf returns the index of the first record that is not before a sequence number.
func positionOf(records []*Record, sequence uint64) int {
	return sort.Search(len(records), func(i int) bool { return records[i].sequence >= sequence })
}

// appendRange appends up to limit records from an offset on to dst.
func (l *list) appendRange(dst []*Record, offset, limit int) []*Record {
	if offset < 0 || offset >= l.size || limit <= 0 {
		return dst
	}
	limit = min(limit, l.size-offset)
	dst = slices.Grow(dst, limit)
	in := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].before > offset }) - 1
	offset -= l.chunks[in].before
	for ; limit > 0 && in < len(l.chunks); in++ {
		part := l.chunks[in].records[offset:]
		part = part[:min(limit, len(part))]
		dst = append(dst, part...)
		limit -= len(part)
		offset = 0
	}
	return dst
}

// appendAfter appends up to limit records after a sequence number to dst, without the first
// ones up to an offset.
func (l *list) appendAfter(dst []*Record, sequence uint64, offset, limit int) []*Record {
	if l.size == 0 || sequence == math.MaxUint64 {
		return dst
	}
	in, at := l.find(sequence + 1)
	begin := l.chunks[in].before + at
	return l.appendRange(dst, begin+min(offset, l.size-begin), limit)
}

// each calls visit with all records.
func (l *list) each(visit func(*Record)) {
	for _, c := range l.chunks {
		for _, r := range c.records {
			visit(r)
		}
	}
}

// cursor moves through a list.
type cursor struct {
	*list
	in, at int
}

// near is how many records a cursor tries before it searches: in a walk the next one is close.
const near = 8

// seek moves to the first record that is not before a sequence number, and returns it, or nil
// if there is none. It never moves back.
func (c *cursor) seek(sequence uint64) *Record {
	if c.in == len(c.chunks) {
		return nil
	}
	records := c.chunks[c.in].records
	for end := min(c.at+near, len(records)); c.at < end; c.at++ {
		if r := records[c.at]; r.sequence >= sequence {
			return r
		}
	}
	c.in += sort.Search(len(c.chunks)-c.in, func(i int) bool {
		records := c.chunks[c.in+i].records
		return records[len(records)-1].sequence >= sequence
	})
	if c.in == len(c.chunks) {
		return nil
	}
	records = c.chunks[c.in].records
	c.at = positionOf(records, sequence)
	return records[c.at]
}
