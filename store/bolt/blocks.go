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

// nth returns the number of the set bit that has rank set bits before it.
func nth(bitmap []byte, rank int) (uint64, bool) {
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

// block holds the number of records in all blocks up to and including it.
type block struct {
	number uint64
	upTo   int
}

// live lists the blocks that hold a record, by number. It is immutable.
type live []block

// countLive counts the records of each block: it reads some hundred bytes for a
// thousand records, and none of the records. It compares the sum with the stored
// total.
func (s *snapshot) countLive() (live, error) {
	now, err := s.readState()
	if err != nil {
		return nil, err
	}
	var counted live
	total, malformed := 0, false
	err = s.blocks.Each(context.Background(), func(key, value []byte) {
		if len(key) != numberSize || len(value) != bitmapSize {
			malformed = true
			return
		}
		total += population(value)
		counted = append(counted, block{binary.BigEndian.Uint64(key), total})
	})
	if err != nil {
		return nil, err
	}
	if malformed || uint64(total) != now.total {
		return nil, errBlocks
	}
	return counted, nil
}

func (l live) total() int {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1].upTo
}

// population returns the number of records in a block, by its index.
func (l live) population(at int) int {
	if at == 0 {
		return l[0].upTo
	}
	return l[at].upTo - l[at-1].upTo
}

// find returns the index of the block of the record at an offset below the total,
// and how many records of the block come before it.
func (l live) find(offset int) (at, rank int) {
	at = sort.Search(len(l), func(i int) bool { return l[i].upTo > offset })
	return at, offset - (l[at].upTo - l.population(at))
}

// sequences iterates over the sequence numbers of records, in their order.
type sequences struct {
	snap   *snapshot
	block  int // index in live
	bitmap []byte
	bit    uint64
}

// sequencesFrom starts at the record at an offset below the total.
func (s *snapshot) sequencesFrom(offset int) (*sequences, error) {
	at, rank := s.live.find(offset)
	q := &sequences{snap: s, block: at}
	if err := q.load(); err != nil {
		return nil, err
	}
	var ok bool
	if q.bit, ok = nth(q.bitmap, rank); !ok {
		return nil, errBlocks
	}
	return q, nil
}

// load reads the bitmap of the block.
func (q *sequences) load() (err error) {
	if q.bitmap, err = q.snap.blocks.Get(numberKey(q.snap.live[q.block].number)); err != nil {
		return err
	}
	if len(q.bitmap) != bitmapSize || population(q.bitmap) != q.snap.live.population(q.block) {
		return errBlocks
	}
	return nil
}

func (q *sequences) sequence() uint64 { return q.snap.live[q.block].number*blockSize + q.bit }

// advance moves to the next record. There must be one.
func (q *sequences) advance() error {
	for q.bit++; q.bit < blockSize; q.bit++ {
		if q.bitmap[q.bit/8]&(1<<(q.bit%8)) != 0 {
			return nil
		}
	}
	if q.block++; q.block == len(q.snap.live) {
		return errBlocks
	}
	if err := q.load(); err != nil {
		return err
	}
	first, ok := nth(q.bitmap, 0)
	if !ok {
		return errBlocks
	}
	q.bit = first
	return nil
}

// shift is how a transaction changes the population of one block.
type shift struct {
	number uint64
	by     int
}

// after returns the blocks after a transaction. A new block follows all others,
// because sequence numbers only grow.
func (l live) after(shifts []shift) live {
	if len(shifts) == 0 {
		return l
	}
	slices.SortFunc(shifts, func(a, b shift) int { return cmp.Compare(a.number, b.number) })
	next := make(live, 0, len(l)+len(shifts))
	previous, moved := 0, 0
	for _, b := range l {
		alive := b.upTo - previous
		previous = b.upTo
		if len(shifts) > 0 && shifts[0].number == b.number {
			alive += shifts[0].by
			moved += shifts[0].by
			shifts = shifts[1:]
		}
		if alive > 0 {
			next = append(next, block{b.number, b.upTo + moved})
		}
	}
	for _, s := range shifts {
		moved += s.by
		if s.by > 0 {
			next = append(next, block{s.number, previous + moved})
		}
	}
	return next
}
