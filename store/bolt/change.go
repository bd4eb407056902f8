package bolt

import (
	"bytes"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

// appendFill lets the pages of records fill up: they are appended in order, so
// that a page left behind is rarely written to again.
const appendFill = 0.9

// change is what one batch does to the file, in one transaction. Each of its
// methods decides first and writes then, so that a refused one leaves no trace
// and the rest of the batch is none the worse for it. Where writing itself
// fails, broken says so, and the transaction must not be committed.
type change struct {
	tx       *bbolt.Tx
	relayers *bbolt.Bucket
	ids      *bbolt.Bucket
	claims   *bbolt.Bucket
	state    state
	blocks   map[uint64]*changedBlock
	writes   int
	broken   error
}

type changedBlock struct {
	bitmap
	before int
}

func newChange(tx *bbolt.Tx) (*change, error) {
	now, err := readState(tx)
	if err != nil {
		return nil, err
	}
	c := &change{
		tx:       tx,
		relayers: tx.Bucket(relayersBucket),
		ids:      tx.Bucket(idsBucket),
		claims:   tx.Bucket(claimsBucket),
		state:    now,
		blocks:   make(map[uint64]*changedBlock),
	}
	c.relayers.FillPercent = appendFill
	return c, nil
}

func (c *change) create(id, claim string, rec encoded) (uint64, error) {
	if err := c.free(id, claim); err != nil {
		return 0, err
	}
	revision := c.state.nextRevision
	return revision, c.add(id, claim, rec, revision)
}

// free refuses an id and a claim that are taken.
func (c *change) free(id, claim string) error {
	if c.ids.Get([]byte(id)) != nil {
		return relayer.ErrExists
	}
	if claim != "" && c.claims.Get([]byte(claim)) != nil {
		return relayer.ErrClaimed
	}
	return nil
}

// add puts a record whose id and claim are free, after all others.
func (c *change) add(id, claim string, rec encoded, revision uint64) error {
	sequence := c.state.nextSequence
	home, err := c.block(sequence / blockSize)
	if err != nil {
		return err
	}
	key := numberKey(sequence)
	err = c.written(
		c.relayers.Put(key, rec.at(revision)),
		c.ids.Put([]byte(id), key),
		c.hold(claim, key),
	)
	home.set(sequence % blockSize)
	c.state.nextSequence++
	c.state.nextRevision = max(c.state.nextRevision, revision+1)
	c.state.total++
	return err
}

func (c *change) update(id string, revision uint64, claim string, rec encoded) (uint64, error) {
	key, stands, err := c.standing(id, revision)
	if err != nil {
		return 0, err
	}
	holder := []byte(nil)
	if claim != "" {
		holder = c.claims.Get([]byte(claim))
	}
	if holder != nil && !bytes.Equal(holder, key) {
		return 0, relayer.ErrClaimed
	}
	if string(stands.claim) != claim {
		err = errors.Join(c.release(stands.claim), c.hold(claim, key))
	}
	next := c.state.nextRevision
	err = c.written(err, c.relayers.Put(key, rec.at(next)))
	c.state.nextRevision++
	return next, err
}

func (c *change) delete(id string, revision uint64) error {
	key, stands, err := c.standing(id, revision)
	if err != nil {
		return err
	}
	sequence, _ := sequenceOf(key)
	home, err := c.block(sequence / blockSize)
	if err != nil {
		return err
	}
	err = c.written(
		c.release(stands.claim),
		c.ids.Delete([]byte(id)),
		c.relayers.Delete(key),
	)
	home.clear(sequence % blockSize)
	c.state.total--
	return err
}

// written takes note of what a write met on its way into the file.
func (c *change) written(errs ...error) error {
	c.writes++
	err := errors.Join(errs...)
	if err != nil && c.broken == nil {
		c.broken = err
	}
	return err
}

// standing finds the record that a write is based on, and its key.
func (c *change) standing(id string, revision uint64) ([]byte, stored, error) {
	found := c.ids.Get([]byte(id))
	if found == nil {
		return nil, stored{}, relayer.ErrNotFound
	}
	sequence, ok := sequenceOf(found)
	if !ok {
		return nil, stored{}, damagedRead(errRecord)
	}
	key := numberKey(sequence)
	rec, err := decode(c.relayers.Get(key))
	if err != nil {
		return nil, stored{}, damagedRead(err)
	}
	if rec.revision != revision {
		return nil, stored{}, relayer.ErrConflict
	}
	return key, rec, nil
}

func (c *change) hold(claim string, key []byte) error {
	if claim == "" {
		return nil
	}
	return c.claims.Put([]byte(claim), key)
}

// release copies the claim before it lets go of it: it is the file's own bytes.
func (c *change) release(claim []byte) error {
	if len(claim) == 0 {
		return nil
	}
	return c.claims.Delete(bytes.Clone(claim))
}

// block returns a block's bitmap for the batch to change.
func (c *change) block(number uint64) (*changedBlock, error) {
	if known := c.blocks[number]; known != nil {
		return known, nil
	}
	opened := &changedBlock{}
	if value := c.tx.Bucket(blocksBucket).Get(numberKey(number)); value != nil {
		if len(value) != bitmapSize {
			return nil, damagedRead(errBlocks)
		}
		opened.before = population(value)
		copy(opened.bitmap[:], value)
	}
	c.blocks[number] = opened
	return opened, nil
}

// finish writes what the batch has gathered, and returns how it shifts the
// populations of the blocks.
func (c *change) finish() ([]shift, error) {
	bucket := c.tx.Bucket(blocksBucket)
	var shifts []shift
	for number, changed := range c.blocks {
		alive := changed.population()
		if err := putBlock(bucket, number, changed, alive); err != nil {
			return nil, err
		}
		if alive != changed.before {
			shifts = append(shifts, shift{number, alive - changed.before})
		}
	}
	return shifts, c.tx.Bucket(metaBucket).Put(stateKey, c.state.encoded())
}

// putBlock keeps no block without a live record, so that what a list has to
// know grows with the records alone.
func putBlock(bucket *bbolt.Bucket, number uint64, changed *changedBlock, alive int) error {
	if alive == 0 {
		return bucket.Delete(numberKey(number))
	}
	return bucket.Put(numberKey(number), changed.bitmap[:])
}
