package bolt

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// appendFill lets the pages of records fill up: records are appended in order, so
// that a page left behind is rarely written to again.
const appendFill = 0.9

// change is the transaction of one batch. Each of its methods decides before it
// writes, so that a refused write leaves no trace and the rest of the batch goes
// on. If writing itself fails, broken is set, and the transaction must not be
// committed.
type change struct {
	tx       *bbolt.Tx
	base     *snapshot
	verified map[uint64]bool // pages of base, by ID
	relayers *bbolt.Bucket
	ids      *bbolt.Bucket
	claims   *bbolt.Bucket
	state    state
	blocks   map[uint64]*changedBlock
	writes   int
	broken   error

	// For after the commit.
	changes []relayer.RecordChange
	live    live
}

type changedBlock struct {
	bitmap
	before int
}

func newChange(tx *bbolt.Tx, base *snapshot) (*change, error) {
	now, err := base.readState()
	if err != nil {
		return nil, err
	}
	c := &change{tx: tx, base: base, verified: make(map[uint64]bool), state: now, blocks: make(map[uint64]*changedBlock)}
	if err := base.meta.VerifyPath(stateKey, 0, c.verified); err != nil {
		return nil, err
	}
	c.relayers, c.ids, c.claims = tx.Bucket(relayersBucket), tx.Bucket(idsBucket), tx.Bucket(claimsBucket)
	c.relayers.FillPercent = appendFill
	return c, nil
}

// reach verifies the pages that a write of these keys reads. The engine would
// follow a damaged page: at worst without end, or into a copy of damaged data.
// A delete also reads siblings, to merge small pages.
func (c *change) reach(id, claim string, sequence uint64, siblings int) error {
	err := errors.Join(
		c.base.relayers.VerifyPath(numberKey(sequence), siblings, c.verified),
		c.base.ids.VerifyPath([]byte(id), siblings, c.verified),
		c.base.claims.VerifyPath([]byte(claim), siblings, c.verified),
		c.base.blocks.VerifyPath(numberKey(sequence/blockSize), siblings, c.verified),
	)
	if err != nil {
		return corrupt(pages.ErrDamaged)
	}
	return nil
}

func (c *change) create(id, claim string, rec encoded) (uint64, error) {
	if err := c.free(id, claim); err != nil {
		return 0, err
	}
	revision := c.state.nextRevision
	return revision, c.add(id, claim, rec, revision)
}

// free refuses an ID and a claim that are taken.
func (c *change) free(id, claim string) error {
	if err := c.reach(id, claim, c.state.nextSequence, 0); err != nil {
		return err
	}
	if c.ids.Get([]byte(id)) != nil {
		return relayer.ErrExists
	}
	if claim != "" && c.claims.Get([]byte(claim)) != nil {
		return relayer.ErrClaimed
	}
	return nil
}

// add appends a record whose ID and claim are free.
func (c *change) add(id, claim string, rec encoded, revision uint64) error {
	sequence := c.state.nextSequence
	home, err := c.block(sequence / blockSize)
	if err != nil {
		return err
	}
	// An import has verified the pages of all its records before the first write.
	if err := c.reach(id, claim, sequence, 0); err != nil {
		return err
	}
	key := numberKey(sequence)
	err = c.written(
		c.relayers.Put(key, rec.at(revision)),
		c.ids.Put([]byte(id), key),
		c.hold(claim, key),
	)
	c.report(relayer.Created, rec)
	home.set(sequence % blockSize)
	c.state.nextSequence++
	c.state.nextRevision = max(c.state.nextRevision, revision+1)
	c.state.total++
	return err
}

func (c *change) update(id string, revision uint64, claim string, rec encoded) (uint64, error) {
	key, current, err := c.find(id, revision)
	if err != nil {
		return 0, err
	}
	if err := c.reach(id, claim, current.sequence, 0); err != nil {
		return 0, err
	}
	holder := []byte(nil)
	if claim != "" {
		holder = c.claims.Get([]byte(claim))
	}
	if holder != nil && !bytes.Equal(holder, key) {
		return 0, relayer.ErrClaimed
	}
	if string(current.claim) != claim {
		err = errors.Join(c.release(current.claim), c.hold(claim, key))
	}
	next := c.state.nextRevision
	err = c.written(err, c.relayers.Put(key, rec.at(next)))
	c.report(relayer.Updated, rec)
	c.state.nextRevision++
	return next, err
}

func (c *change) delete(id string, revision uint64) error {
	key, current, err := c.find(id, revision)
	if err != nil {
		return err
	}
	home, err := c.block(current.sequence / blockSize)
	if err != nil {
		return err
	}
	last := relayer.RecordChange{Kind: relayer.Deleted, Record: current.detached(id)}
	c.changes = append(c.changes, last)
	err = c.written(
		c.release(current.claim),
		c.ids.Delete([]byte(id)),
		c.relayers.Delete(key),
	)
	home.clear(current.sequence % blockSize)
	c.state.total--
	return err
}

// report notes a change for watchers. It shares the bytes of the record with the
// transaction, which does not modify them.
func (c *change) report(kind relayer.ChangeKind, rec encoded) {
	current, err := decode(rec.value)
	if err != nil {
		return // it was encoded a moment ago
	}
	c.changes = append(c.changes, relayer.RecordChange{Kind: kind, Record: relayer.Record{
		ID: string(current.id), Claim: string(current.claim), Revision: current.revision,
		Document: current.document, Private: current.private,
	}})
}

// written counts a write and keeps the first error of the engine.
func (c *change) written(errs ...error) error {
	c.writes++
	err := errors.Join(errs...)
	if err != nil && c.broken == nil {
		c.broken = err
	}
	return err
}

// found is the stored record that a write is based on.
type found struct {
	stored
	sequence uint64
}

// find returns the stored record and its key if it has the given revision. What
// it returns may be changed or deleted.
func (c *change) find(id string, revision uint64) ([]byte, found, error) {
	if err := c.base.ids.VerifyPath([]byte(id), 1, c.verified); err != nil {
		return nil, found{}, corrupt(err)
	}
	value := c.ids.Get([]byte(id))
	if value == nil {
		return nil, found{}, relayer.ErrNotFound
	}
	sequence, ok := sequenceOf(value)
	if !ok {
		return nil, found{}, corrupt(errRecord)
	}
	key := numberKey(sequence)
	if err := c.base.relayers.VerifyPath(key, 1, c.verified); err != nil {
		return nil, found{}, corrupt(err)
	}
	rec, err := decodeOf(id, c.relayers.Get(key))
	if err != nil {
		return nil, found{}, corrupt(err)
	}
	if err := c.reach(id, string(rec.claim), sequence, 1); err != nil {
		return nil, found{}, err
	}
	if rec.revision != revision {
		return nil, found{}, relayer.ErrConflict
	}
	return key, found{rec, sequence}, nil
}

func (c *change) hold(claim string, key []byte) error {
	if claim == "" {
		return nil
	}
	return c.claims.Put([]byte(claim), key)
}

// release copies the claim first: it is part of a page that the delete changes.
func (c *change) release(claim []byte) error {
	if len(claim) == 0 {
		return nil
	}
	return c.claims.Delete(bytes.Clone(claim))
}

// block returns the bitmap of a block for the batch to change.
func (c *change) block(number uint64) (*changedBlock, error) {
	if known := c.blocks[number]; known != nil {
		return known, nil
	}
	opened := &changedBlock{}
	if value := c.tx.Bucket(blocksBucket).Get(numberKey(number)); value != nil {
		if len(value) != bitmapSize {
			return nil, corrupt(errBlocks)
		}
		opened.before = population(value)
		copy(opened.bitmap[:], value)
	}
	c.blocks[number] = opened
	return opened, nil
}

// finish writes the changed blocks and the state.
func (c *change) finish() error {
	bucket := c.tx.Bucket(blocksBucket)
	var shifts []shift
	for number, changed := range c.blocks {
		alive := changed.population()
		if err := putBlock(bucket, number, changed, alive); err != nil {
			return unavailable(err)
		}
		if alive != changed.before {
			shifts = append(shifts, shift{number, alive - changed.before})
		}
	}
	c.live = c.base.live.after(shifts)
	if c.live.total() != int(c.state.total) {
		return corrupt(errBlocks)
	}
	if err := c.tx.Bucket(metaBucket).Put(stateKey, c.state.encoded()); err != nil {
		return unavailable(err)
	}
	return nil
}

// putBlock keeps no block without a record, so that the memory for the counts
// depends on the number of records alone.
func putBlock(bucket *bbolt.Bucket, number uint64, changed *changedBlock, alive int) error {
	if alive == 0 {
		return bucket.Delete(numberKey(number))
	}
	return bucket.Put(numberKey(number), changed.bitmap[:])
}
