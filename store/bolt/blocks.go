package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/bits"
	"slices"
	"sort"

	"github.com/go-relayer/relayer/internal/joined"
)

// blockSize is the number of sequence numbers in a block. The bitmap of a block is small
// enough to be scanned, and a million records need only a thousand blocks.
const (
	blockSize  = 1024
	bitmapSize = blockSize / 8
)

var errBlocks = errors.New("the counts of the blocks do not match the records")

// bitmap has a bit for each sequence number of a block. It is set while the
// record exists.
type bitmap [bitmapSize]byte

func (b *bitmap) set(bit uint64)      { b[bit/8] |= 1 << (bit % 8) }
func (b *bitmap) clear(bit uint64)    { b[bit/8] &^= 1 << (bit % 8) }
func (b *bitmap) has(bit uint64) bool { return b[bit/8]&(1<<(bit%8)) != 0 }

func (b *bitmap) population() int {
	count := 0
	for at := 0; at < bitmapSize; at += 8 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(b[at:]))
	}
	return count
}

// selectBit returns the position of the set bit that has rank set bits before it: the
// select operation of a bitmap. There must be one.
func (b *bitmap) selectBit(rank int) uint64 {
	for at := 0; ; at += 8 {
		word := binary.LittleEndian.Uint64(b[at:])
		count := bits.OnesCount64(word)
		if rank >= count {
			rank -= count
			continue
		}
		for ; rank > 0; rank-- {
			word &= word - 1
		}
		return uint64(at*8 + bits.TrailingZeros64(word))
	}
}

type block struct {
	number  uint64
	upTo    int // the number of records in this block and all before it
	records *bitmap
}

// blockCounts has the running total of records for each block (prefix sums), so that an
// offset is found by binary search. It is immutable, and so are its bitmaps. Blocks without
// a record are left out.
type blockCounts []block

// readBlockCounts reads the bitmaps, counts their records, and compares the sum with the
// stored total. It does not read the records.
func (s *snapshot) readBlockCounts() (blockCounts, error) {
	now, err := s.readState()
	if err != nil {
		return nil, err
	}
	var counts blockCounts
	total, malformed := 0, false
	err = s.blocks.Each(context.Background(), func(key, value []byte) {
		if len(key) != numberSize || len(value) != bitmapSize {
			malformed = true
			return
		}
		records := bitmap(value)
		total += records.population()
		counts = append(counts, block{binary.BigEndian.Uint64(key), total, &records})
	})
	if err != nil {
		return nil, err
	}
	if malformed || uint64(total) != now.total {
		return nil, errBlocks
	}
	return counts, nil
}

func (c blockCounts) total() int {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].upTo
}

// population returns the number of records in a block, by its index.
func (c blockCounts) population(at int) int {
	if at == 0 {
		return c[0].upTo
	}
	return c[at].upTo - c[at-1].upTo
}

// find returns the index of the block of the record at an offset below the total,
// and how many records of the block come before it.
func (c blockCounts) find(offset int) (at, rank int) {
	at = sort.Search(len(c), func(i int) bool { return c[i].upTo > offset })
	return at, offset - (c[at].upTo - c.population(at))
}

// sequences iterates over the sequence numbers of records, in their order.
type sequences struct {
	counts blockCounts
	block  int // index in the counts
	bit    uint64
}

// sequencesFrom starts at the record at an offset below the total.
func (c blockCounts) sequencesFrom(offset int) *sequences {
	at, rank := c.find(offset)
	return &sequences{counts: c, block: at, bit: c[at].records.selectBit(rank)}
}

func (q *sequences) sequence() uint64 { return q.counts[q.block].number*blockSize + q.bit }

// advance moves to the next record. There must be one.
func (q *sequences) advance() {
	records := q.counts[q.block].records
	for q.bit++; q.bit < blockSize; q.bit++ {
		if records.has(q.bit) {
			return
		}
	}
	q.block++
	q.bit = q.counts[q.block].records.selectBit(0)
}

// span identifies the records of a page that are in one piece of [joined.Slots] adjacent
// sequence numbers.
type span struct {
	piece uint64 // sequence number / joined.Slots
	slots joined.Set
}

// spans calls yield for each span of the given number of records, which must exist, until it
// returns false.
func (q *sequences) spans(records int, yield func(span) bool) {
	for {
		slots := q.inPiece().Take(records)
		if !yield(span{q.sequence() / joined.Slots, slots}) {
			return
		}
		if records -= slots.Len(); records == 0 {
			return
		}
		q.bit |= joined.Slots - 1
		q.advance()
	}
}

// inPiece returns the records of the piece from the current one on.
func (q *sequences) inPiece() joined.Set {
	first := q.bit / joined.Slots * joined.Slots
	records := joined.Set(binary.LittleEndian.Uint32(q.counts[q.block].records[first/8:]))
	return records.From(int(q.bit - first))
}

// after returns the counts after a transaction that has changed the records of some blocks.
// A new block follows all others, because sequence numbers only grow.
func (c blockCounts) after(changed map[uint64]*bitmap) blockCounts {
	if len(changed) == 0 {
		return c
	}
	next := make(blockCounts, 0, len(c)+len(changed))
	total := 0
	add := func(number uint64, records *bitmap, count int) {
		if total += count; count > 0 {
			next = append(next, block{number, total, records})
		}
	}
	for at, old := range c {
		if records := changed[old.number]; records != nil {
			add(old.number, records, records.population())
		} else {
			add(old.number, old.records, c.population(at))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(changed)) {
		if len(c) == 0 || number > c[len(c)-1].number {
			add(number, changed[number], changed[number].population())
		}
	}
	return next
}

func (c blockCounts) equal(other blockCounts) bool {
	return slices.EqualFunc(c, other, func(a, b block) bool {
		return a.number == b.number && a.upTo == b.upTo && *a.records == *b.records
	})
}
