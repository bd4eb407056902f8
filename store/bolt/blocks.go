package bolt

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"sort"

	"go.etcd.io/bbolt"
)

// blockSize is the number of sequences in a block: a bitmap of them is small
// enough to be searched at once, and a million of them are a thousand blocks.
const (
	blockSize  = 1024
	bitmapSize = blockSize / 8
)

var errBlocks = errors.New("the blocks bucket cannot be read")

// bitmap has a bit for each sequence of a block, set while its record lives.
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

// block says how many records live in the blocks up to and including it.
type block struct {
	number uint64
	upTo   int
}

// live lists the blocks that hold a record, by number, as one transaction has
// them. It is never changed once made.
type live struct {
	txid   int
	blocks []block
}

// count reads the blocks of a transaction: a hundred bytes for a thousand
// records, and none of the records.
func count(tx *bbolt.Tx) (live, error) {
	counted := live{txid: tx.ID()}
	total := 0
	cursor := tx.Bucket(blocksBucket).Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if len(key) != numberSize || len(value) != bitmapSize {
			return live{}, errBlocks
		}
		total += population(value)
		counted.blocks = append(counted.blocks, block{binary.BigEndian.Uint64(key), total})
	}
	return counted, nil
}

func (l live) total() int {
	if len(l.blocks) == 0 {
		return 0
	}
	return l.blocks[len(l.blocks)-1].upTo
}

// find returns the block that the record at an offset lives in, and the number
// of live records before it in that block. The offset is below the total.
func (l live) find(offset int) (number uint64, rank int) {
	at := sort.Search(len(l.blocks), func(i int) bool { return l.blocks[i].upTo > offset })
	if at > 0 {
		offset -= l.blocks[at-1].upTo
	}
	return l.blocks[at].number, offset
}

// shift is what a transaction changes about the population of one block.
type shift struct {
	number uint64
	by     int
}

// after returns the blocks as the transaction leaves them. A block that is not
// in the list comes after all that are, because sequences only grow.
func (l live) after(txid int, shifts []shift) live {
	if len(shifts) == 0 {
		return live{txid: txid, blocks: l.blocks}
	}
	slices.SortFunc(shifts, func(a, b shift) int { return cmp.Compare(a.number, b.number) })
	next := live{txid: txid, blocks: make([]block, 0, len(l.blocks)+len(shifts))}
	previous, moved := 0, 0
	for _, b := range l.blocks {
		alive := b.upTo - previous
		previous = b.upTo
		if len(shifts) > 0 && shifts[0].number == b.number {
			alive += shifts[0].by
			moved += shifts[0].by
			shifts = shifts[1:]
		}
		if alive > 0 {
			next.blocks = append(next.blocks, block{b.number, b.upTo + moved})
		}
	}
	for _, s := range shifts {
		moved += s.by
		if s.by > 0 {
			next.blocks = append(next.blocks, block{s.number, previous + moved})
		}
	}
	return next
}

// views are the two lists that a reader may need: a commit becomes visible to
// readers some time before it is done.
type views struct {
	current, coming live
}

// of returns the list of one transaction, where it is kept.
func (v *views) of(txid int) (live, bool) {
	switch txid {
	case v.current.txid:
		return v.current, true
	case v.coming.txid:
		return v.coming, true
	}
	return live{}, false
}

// liveIn returns the blocks as a transaction sees them. They are counted where
// the transaction is older than what is kept.
func (s *Store) liveIn(tx *bbolt.Tx) (live, error) {
	if kept, ok := s.views.Load().of(tx.ID()); ok {
		return kept, nil
	}
	return count(tx)
}
