package table

import (
	"slices"
	"sort"
)

// maxChunk is the number of records in a full chunk. A change moves up to this many
// pointers, and adjusts one running total for each later chunk: about a microsecond
// each in a list of a million records.
const maxChunk = 512

// List is a list of records in creation order with access by offset. It consists of
// chunks with running totals, so that an offset is found by binary search. The zero value
// is empty. It has no lock.
type List struct {
	size   int
	chunks []chunk
}

// chunk has at least one record.
type chunk struct {
	before  int // number of records in earlier chunks
	records []*Record
}

// Len returns the number of records.
func (l *List) Len() int { return l.size }

// Insert adds a record whose sequence number is not in the list.
func (l *List) Insert(r *Record) {
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
func (l *List) split(in, at int) (chunkIndex, position int) {
	full := l.chunks[in]
	middle := maxChunk / 2
	if in == len(l.chunks)-1 && at == maxChunk {
		middle = maxChunk
	}
	l.chunks = slices.Insert(l.chunks, in+1, chunk{full.before + middle, slices.Clone(full.records[middle:])})
	if at < middle {
		l.chunks[in].records = slices.Clone(full.records[:middle])
		return in, at
	}
	if middle < maxChunk {
		l.chunks[in].records = slices.Clone(full.records[:middle])
	}
	return in + 1, at - middle
}

// Replace replaces the record with the same sequence number, which must be in the list.
func (l *List) Replace(r *Record) {
	in, at := l.find(r.sequence)
	l.chunks[in].records[at] = r
}

// Remove removes the record with the sequence number of r, which must be in the list.
func (l *List) Remove(r *Record) {
	in, at := l.find(r.sequence)
	from := &l.chunks[in].records
	*from = slices.Delete(*from, at, at+1)
	l.count(in, -1)
	l.merge(in)
}

// merge removes an empty chunk, and moves the records of two small neighbors into one,
// so that the number of chunks stays proportional to that of the records.
func (l *List) merge(in int) {
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
func (l *List) count(in, difference int) {
	l.size += difference
	for i := in + 1; i < len(l.chunks); i++ {
		l.chunks[i].before += difference
	}
}

// find returns the position of a sequence number, or the position at which to insert it.
func (l *List) find(sequence uint64) (chunkIndex, position int) {
	in := len(l.chunks) - 1
	if records := l.chunks[in].records; len(records) == 0 || records[0].sequence > sequence {
		// The first chunk that begins after the sequence number follows the one that has it.
		in = max(0, sort.Search(in, func(i int) bool { return l.chunks[i].records[0].sequence > sequence })-1)
	}
	records := l.chunks[in].records
	return in, sort.Search(len(records), func(i int) bool { return records[i].sequence >= sequence })
}

// AppendRange appends up to limit records from an offset on to dst.
func (l *List) AppendRange(dst []*Record, offset, limit int) []*Record {
	if offset < 0 || offset >= l.size || limit <= 0 {
		return dst
	}
	in := sort.Search(len(l.chunks), func(i int) bool { return l.chunks[i].before > offset }) - 1
	offset -= l.chunks[in].before
	dst = slices.Grow(dst, min(limit, l.size-offset-l.chunks[in].before))
	for ; limit > 0 && in < len(l.chunks); in++ {
		part := l.chunks[in].records[offset:]
		part = part[:min(limit, len(part))]
		dst = append(dst, part...)
		limit -= len(part)
		offset = 0
	}
	return dst
}

// AppendFrom appends up to limit records from a sequence number on to dst.
func (l *List) AppendFrom(dst []*Record, sequence uint64, limit int) []*Record {
	if l.size == 0 {
		return dst
	}
	in, at := l.find(sequence)
	return l.AppendRange(dst, l.chunks[in].before+at, limit)
}
