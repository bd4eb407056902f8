package bolt

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-relayer/relayer"
)

// cache holds documents of the current snapshot that were verified when they were read
// from the file. Its entries are records of one snapshot, and a read of another snapshot
// bypasses them. The result of a read is therefore the same with and without the cache.
type cache struct {
	limit int64 // in bytes
	size  atomic.Int64

	mu     sync.RWMutex // guards the fields below, and changes of size
	snap   *snapshot    // whose records the entries are
	byID   map[string]*cached
	chunks map[uint64]*chunk // by sequence number / chunkSize
}

// cached is a record in a slot of a chunk; the slot is empty if the ID is. The mutex of the
// cache guards it, because remove empties the slot in place.
type cached struct {
	id       string
	sequence uint64
	revision uint64
	document []byte
}

// chunk holds the entries of adjacent sequence numbers next to each other, so that a page
// is read from few areas of the memory.
type chunk struct {
	entries [chunkSize]cached
	count   int
}

const (
	chunkSize = 32

	// About what an entry needs in addition to its ID and its document, and what a chunk
	// needs.
	entryOverhead = 80
	chunkOverhead = 2304
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
	c.snap, c.byID, c.chunks = snap, make(map[string]*cached), make(map[uint64]*chunk)
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

// appendPage appends the documents of consecutive records, separated by commas. If one of
// them is not cached, it returns dst unchanged and false.
func (c *cache) appendPage(snap *snapshot, dst []byte, from *sequences, records int) (extended []byte, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snap != snap {
		return dst, false
	}
	extended = dst
	for {
		entry := c.at(from.sequence())
		if entry == nil {
			return dst, false
		}
		extended = append(extended, entry.document...)
		if records--; records == 0 {
			return extended, true
		}
		extended = append(extended, ',')
		if from.advance() != nil {
			return dst, false
		}
	}
}

// at returns the entry of a sequence number, or nil.
func (c *cache) at(sequence uint64) *cached {
	chunk := c.chunks[sequence/chunkSize]
	if chunk == nil || chunk.entries[sequence%chunkSize].id == "" {
		return nil
	}
	return &chunk.entries[sequence%chunkSize]
}

// admits reports whether a read should add its records. A cache that is nearly full takes
// those of one read in 128: each record displaces another one, which costs more than to
// read it from the file.
func (c *cache) admits() bool {
	return c.size.Load() < c.limit-c.limit/16 || c.limit > 0 && rand.IntN(128) == 0
}

// add adds a record, and evicts others at random if there is no room.
func (c *cache) add(snap *snapshot, rec stored) {
	entry := cached{id: string(rec.id), sequence: rec.sequence, revision: rec.revision, document: bytes.Clone(rec.document)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snap != snap || c.byID[entry.id] != nil || !c.makeRoom(entry.size()+chunkOverhead) {
		return
	}
	into := c.chunks[entry.sequence/chunkSize]
	if into == nil {
		into = new(chunk)
		c.chunks[entry.sequence/chunkSize] = into
		c.size.Add(chunkOverhead)
	}
	slot := &into.entries[entry.sequence%chunkSize]
	*slot = entry
	into.count++
	c.byID[entry.id] = slot
	c.size.Add(entry.size())
}

// makeRoom evicts entries in the order of a map, which is random. It returns false if the
// cache is too small.
func (c *cache) makeRoom(size int64) bool {
	for _, entry := range c.byID {
		if c.size.Load()+size <= c.limit {
			break
		}
		c.remove(entry)
	}
	return c.size.Load()+size <= c.limit
}

func (c *cache) remove(entry *cached) {
	delete(c.byID, entry.id)
	c.size.Add(-entry.size())
	number := entry.sequence / chunkSize
	*entry = cached{}
	if c.chunks[number].count--; c.chunks[number].count == 0 {
		delete(c.chunks, number)
		c.size.Add(-chunkOverhead)
	}
}
