package bolt

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

// places remembers where in the creation order the ids asked for before are, so
// that a get walks one tree and not two. It can forget and it can be out of
// date, and cannot mislead: what stands at a sequence says whose it is, and a
// sequence is never used again.
//
// A slot holds the upper bits of the id's hash and the sequence, plus one so
// that nothing is zero. An id can be in any slot of its row, which is as long as
// a cache line.
type places struct {
	seed  maphash.Seed
	slots []atomic.Uint64
}

const (
	row          = 8
	sequenceBits = 40
	sequenceMask = 1<<sequenceBits - 1

	// Eight bytes for each record, and at most 32 MiB.
	fewestSlots = 1 << 10
	mostSlots   = 1 << 22
)

func placesFor(total int) *places {
	slots := 1 << bits.Len(uint(total+total/4))
	return &places{
		seed:  maphash.MakeSeed(),
		slots: make([]atomic.Uint64, min(max(slots, fewestSlots), mostSlots)),
	}
}

// crowded says whether a larger one would remember more.
func (p *places) crowded(total int) bool {
	return total > len(p.slots) && len(p.slots) < mostSlots
}

func (p *places) row(hash uint64) []atomic.Uint64 {
	start := hash % uint64(len(p.slots)) &^ (row - 1)
	return p.slots[start : start+row]
}

func (p *places) find(hash uint64) (sequence uint64, ok bool) {
	tag := hash >> sequenceBits
	slots := p.row(hash)
	for i := range slots {
		if held := slots[i].Load(); held>>sequenceBits == tag && held&sequenceMask != 0 {
			return held&sequenceMask - 1, true
		}
	}
	return 0, false
}

// learn takes the place of a slot with the same tag, or of an empty one, or of
// any.
func (p *places) learn(hash, sequence uint64) {
	if sequence >= sequenceMask {
		return
	}
	tag := hash >> sequenceBits
	slots := p.row(hash)
	chosen := &slots[tag%row]
	for i := range slots {
		held := slots[i].Load()
		if held == 0 || held>>sequenceBits == tag {
			chosen = &slots[i]
			break
		}
	}
	chosen.Store(tag<<sequenceBits | (sequence + 1))
}

// lookup finds a record by its id.
func (s *Store) lookup(tx *bbolt.Tx, id string) (stored, error) {
	records, known := tx.Bucket(relayersBucket), s.places.Load()
	hash := maphash.String(known.seed, id)
	if sequence, ok := known.find(hash); ok {
		rec, err := decode(records.Get(numberKey(sequence)))
		if err == nil && string(rec.id) == id {
			return rec, nil
		}
	}
	key := tx.Bucket(idsBucket).Get([]byte(id))
	if key == nil {
		return stored{}, relayer.ErrNotFound
	}
	rec, err := decode(records.Get(key))
	if err != nil {
		return stored{}, damagedRead(err)
	}
	if sequence, ok := sequenceOf(key); ok {
		known.learn(hash, sequence)
	}
	return rec, nil
}
