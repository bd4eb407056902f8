package bolt

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/joined"
)

// cache holds documents of the current snapshot that were verified when they were read
// from the file. Its entries are records of one snapshot, and a read of another snapshot
// bypasses the cache. The result of a read is therefore the same with and without it.
type cache struct {
	limit int64 // in bytes
	size  atomic.Int64

	mu     sync.RWMutex // guards the fields below, and changes of size
	snap   *snapshot    // the snapshot of the entries
	byID   map[string]*cached
	pieces map[uint64]*piece // by sequence number / joined.Slots
}

// cached is a record in a slot of a piece. The mutex of the cache guards it.
type cached struct {
	id       string
	sequence uint64
	revision uint64
	document []byte
	isJoined bool // the document shares its memory with others of the piece, also after Clear
}

// piece holds the entries of [joined.Slots] adjacent sequence numbers.
type piece struct {
	used      joined.Set
	documents joined.Documents // joined when a list has read them

	// size is the memory that the piece holds, in bytes. It includes joined documents of
	// removed entries until the piece is joined again.
	size int64

	entries [joined.Slots]*cached
}

// Estimates in bytes.
const (
	entryOverhead = 144 // of an entry, without its ID and document
	pieceOverhead = 640 // of a piece, without its entries
)

func (c *cached) size() int64 { return int64(len(c.id) + len(c.document) + entryOverhead) }

func newCache(limit int) *cache {
	c := &cache{limit: int64(limit)}
	c.reset(nil)
	return c
}

// reset empties the cache for a snapshot.
func (c *cache) reset(snap *snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snap, c.byID, c.pieces = snap, make(map[string]*cached), make(map[uint64]*piece)
	c.size.Store(0)
}

// advance removes the records that a commit has changed, and continues with the snapshot
// after the commit. It is called before that snapshot is published.
func (c *cache) advance(next *snapshot, changes []relayer.RecordChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snap = next
	for i := range changes {
		if entry := c.byID[changes[i].Record.ID]; entry != nil {
			c.remove(entry)
		}
	}
}

// appendDocument appends the document of an ID. It returns false if it is not cached.
func (c *cache) appendDocument(snap *snapshot, dst []byte, id string) (extended []byte, revision uint64, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snap != snap || c.byID[id] == nil {
		return dst, 0, false
	}
	entry := c.byID[id]
	return append(dst, entry.document...), entry.revision, true
}

// appendPage appends the documents of consecutive records, separated by commas. If they are
// not all cached and joined, it returns dst unchanged and false.
func (c *cache) appendPage(snap *snapshot, dst []byte, from *sequences, records int) (extended []byte, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snap != snap {
		return dst, false
	}
	extended = dst
	from.spans(records, func(s span) bool {
		found := c.pieces[s.piece]
		ok = found != nil && found.documents.AreJoined() && found.used.Contains(s.slots)
		if ok {
			extended = found.documents.Append(extended, s.slots.First(), s.slots.Last())
		}
		return ok
	})
	if !ok {
		return dst, false
	}
	return extended[:len(extended)-len(",")], true
}

// join joins the documents in the pieces of consecutive records, as far as they are cached.
func (c *cache) join(snap *snapshot, from *sequences, records int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snap != snap {
		return
	}
	from.spans(records, func(s span) bool {
		if found := c.pieces[s.piece]; found != nil && !found.documents.AreJoined() {
			c.size.Add(-found.size)
			found.join()
			c.size.Add(found.size)
		}
		return true
	})
}

func (p *piece) join() {
	var documents [joined.Slots]*[]byte
	p.size = pieceOverhead
	for slot, entry := range p.entries {
		if entry != nil {
			documents[slot], entry.isJoined = &entry.document, true
			p.size += entry.size()
		}
	}
	p.documents.Join(&documents)
}

// admits reports whether a read should add its records. A cache that is nearly full admits
// one read in 128: the eviction for a new record costs more than a read from the file.
func (c *cache) admits() bool {
	return c.size.Load() < c.limit-c.limit/16 || c.limit > 0 && rand.IntN(128) == 0
}

// add adds a record, and evicts others at random if there is no room.
func (c *cache) add(snap *snapshot, rec stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snap != snap || c.byID[string(rec.id)] != nil {
		return
	}
	entry := &cached{id: string(rec.id), sequence: rec.sequence, revision: rec.revision, document: bytes.Clone(rec.document)}
	if !c.makeRoom(entry.size() + pieceOverhead) {
		return
	}
	into := c.pieces[entry.sequence/joined.Slots]
	if into == nil {
		into = &piece{size: pieceOverhead}
		c.pieces[entry.sequence/joined.Slots] = into
		c.size.Add(pieceOverhead)
	}
	slot := int(entry.sequence % joined.Slots)
	into.entries[slot], into.used = entry, into.used.With(slot)
	into.documents.Clear()
	into.size += entry.size()
	c.byID[entry.id] = entry
	c.size.Add(entry.size())
}

// makeRoom evicts pieces in the order of a map, which is random. It returns false if the
// cache is too small.
func (c *cache) makeRoom(size int64) bool {
	if size > c.limit {
		return false
	}
	for number, evicted := range c.pieces {
		if c.size.Load()+size <= c.limit {
			break
		}
		for _, entry := range evicted.entries {
			if entry != nil {
				delete(c.byID, entry.id)
			}
		}
		c.drop(number)
	}
	return true
}

// remove removes an entry. The memory of a joined document is freed when its piece is
// joined again or dropped.
func (c *cache) remove(entry *cached) {
	delete(c.byID, entry.id)
	number, slot := entry.sequence/joined.Slots, int(entry.sequence%joined.Slots)
	from := c.pieces[number]
	if !entry.isJoined {
		from.size -= entry.size()
		c.size.Add(-entry.size())
	}
	from.entries[slot], from.used = nil, from.used.Without(slot)
	from.documents.Clear()
	if from.used == 0 {
		c.drop(number)
	}
}

func (c *cache) drop(number uint64) {
	c.size.Add(-c.pieces[number].size)
	delete(c.pieces, number)
}
