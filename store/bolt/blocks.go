package bolt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sort"
)

// blockSize is the number of sequence numbers in a block: its bitmap is small
// enough to be searched at once, and a million records are a thousand blocks.
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

func (b *bitmap) population() int { return population(b[:]) }

func population(bitmap []byte) int {
	count := 0
	for at := 0; at < bitmapSize; at += 8 {
		count += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap[at:]))
	}
	return count
}

// selectBit returns the position of the set bit that has rank set bits before it:
// the select operation of a bitmap.
func selectBit(bitmap []byte, rank int) (uint64, bool) {
	for at := 0; at < bitmapSize; at += 8 {
		word := binary.LittleEndian.Uint64(bitmap[at:])
		count := bits.OnesCount64(word)
		if rank >= count {
			rank -= count
			continue
		}
		for ; rank > 0; rank-- {
			word &= word - 1
		}
		return uint64(at*8 + bits.TrailingZeros64(word)), true
	}
	return 0, false
}

// blockCount is the number of records in all blocks up to and including a block.
type blockCount struct {
	block uint64
	upTo  int
}

// blockCounts has the running total of records for each block (prefix sums), so
// that an offset is found by binary search. It is immutable. Blocks without a
// record are left out.
type blockCounts []blockCount

// readBlockCounts counts the records of each block in the bitmaps: 128 bytes for up
// to 1024 records, and none of the records. It compares the sum with the stored
// total.
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
		total += population(value)
		counts = append(counts, blockCount{binary.BigEndian.Uint64(key), total})
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
	snap   *snapshot
	block  int // index in the counts
	bitmap []byte
	bit    uint64
}

// sequencesFrom starts at the record at an offset below the total.
func (s *snapshot) sequencesFrom(offset int) (*sequences, error) {
	at, rank := s.counts.find(offset)
	q := &sequences{snap: s, block: at}
	if err := q.load(); err != nil {
		return nil, err
	}
	var ok bool
	if q.bit, ok = selectBit(q.bitmap, rank); !ok {
		return nil, errBlocks
	}
	return q, nil
}

// load reads the bitmap of the block.
func (q *sequences) load() (err error) {
	if q.bitmap, err = q.snap.blocks.Get(numberKey(q.snap.counts[q.block].block)); err != nil {
		return err
	}
	if len(q.bitmap) != bitmapSize || population(q.bitmap) != q.snap.counts.population(q.block) {
		return errBlocks
	}
	return nil
}

func (q *sequences) sequence() uint64 { return q.snap.counts[q.block].block*blockSize + q.bit }

// advance moves to the next record. There must be one.
func (q *sequences) advance() error {
	for q.bit++; q.bit < blockSize; q.bit++ {
		if q.bitmap[q.bit/8]&(1<<(q.bit%8)) != 0 {
			return nil
		}
	}
	if q.block++; q.block == len(q.snap.counts) {
		return errBlocks
	}
	if err := q.load(); err != nil {
		return err
	}
	first, ok := selectBit(q.bitmap, 0)
	if !ok {
		return errBlocks
	}
	q.bit = first
	return nil
}

// countDelta is how a transaction changes the number of records in one block.
type countDelta struct {
	block uint64
	delta int
}

// after returns the counts after a transaction. A new block follows all others,
// because sequence numbers only grow.
func (c blockCounts) after(deltas []countDelta) blockCounts {
	if len(deltas) == 0 {
		return c
	}
	slices.SortFunc(deltas, func(a, b countDelta) int { return cmp.Compare(a.block, b.block) })
	next := make(blockCounts, 0, len(c)+len(deltas))
	previous, shift := 0, 0
	for _, count := range c {
		inBlock := count.upTo - previous
		previous = count.upTo
		if len(deltas) > 0 && deltas[0].block == count.block {
			inBlock += deltas[0].delta
			shift += deltas[0].delta
			deltas = deltas[1:]
		}
		if inBlock > 0 {
			next = append(next, blockCount{count.block, count.upTo + shift})
		}
	}
	for _, added := range deltas {
		shift += added.delta
		if added.delta > 0 {
			next = append(next, blockCount{added.block, previous + shift})
		}
	}
	return next
}
