package bolt

import (
	"bytes"
	"cmp"
	"errors"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// appendFill lets the pages of records fill up: records are appended in order, so
// that a page left behind is rarely written to again.
const appendFill = 0.9

// batchTx applies the writes of one batch in one bbolt transaction. Each method
// validates before it writes, so that a rejected write does not affect the rest of
// the batch. If a put fails, failed is set and the transaction must not be
// committed.
type batchTx struct {
	tx       *bbolt.Tx
	base     *snapshot
	verified map[uint64]bool // pages of base, by ID
	relayers *bbolt.Bucket
	ids      *bbolt.Bucket
	claims   *bbolt.Bucket
	state    state
	blocks   map[uint64]*bitmap // those that the batch changes
	writes   int
	failed   error

	// Used after the commit.
	changes []relayer.RecordChange
	counts  blockCounts
}

func newBatchTx(tx *bbolt.Tx, base *snapshot) (*batchTx, error) {
	now, err := base.readState()
	if err != nil {
		return nil, err
	}
	b := &batchTx{tx: tx, base: base, verified: make(map[uint64]bool, 16), state: now, blocks: make(map[uint64]*bitmap)}
	if err := base.meta.VerifyPath(stateKey, 0, b.verified); err != nil {
		return nil, err
	}
	b.relayers, b.ids, b.claims = tx.Bucket(relayersBucket), tx.Bucket(idsBucket), tx.Bucket(claimsBucket)
	b.relayers.FillPercent = appendFill
	return b, nil
}

// verify verifies the pages that a write of the key reads. The engine would follow
// a damaged page: at worst without end, or into a copy of damaged data. A delete
// also reads siblings, to merge small pages.
func (b *batchTx) verify(tree pages.Tree, key []byte, siblings int) error {
	if err := tree.VerifyPath(key, siblings, b.verified); err != nil {
		return corruptData(err)
	}
	return nil
}

// verifyAppend verifies the pages that adding the next record reads.
func (b *batchTx) verifyAppend(id, claim string) error {
	sequence := b.state.nextSequence
	return cmp.Or(
		b.verify(b.base.relayers, numberKey(sequence), 0),
		b.verify(b.base.ids, []byte(id), 0),
		b.verify(b.base.claims, []byte(claim), 0),
		b.verify(b.base.blocks, numberKey(sequence/blockSize), 0),
	)
}

func (b *batchTx) create(id, claim string, rec encoded) (uint64, error) {
	if err := b.checkFree(id, claim); err != nil {
		return 0, err
	}
	revision := b.state.nextRevision
	return revision, b.add(id, claim, rec, revision)
}

// checkFree returns an error if the ID or the claim is taken.
func (b *batchTx) checkFree(id, claim string) error {
	if err := b.verifyAppend(id, claim); err != nil {
		return err
	}
	if b.ids.Get([]byte(id)) != nil {
		return relayer.ErrExists
	}
	if claim != "" && b.claims.Get([]byte(claim)) != nil {
		return relayer.ErrClaimed
	}
	return nil
}

// add appends a record whose ID and claim are free, and whose pages are verified.
func (b *batchTx) add(id, claim string, rec encoded, revision uint64) error {
	sequence := b.state.nextSequence
	block, err := b.block(sequence / blockSize)
	if err != nil {
		return err
	}
	key := numberKey(sequence)
	err = b.countWrite(
		b.relayers.Put(key, rec.at(revision)),
		b.ids.Put([]byte(id), key),
		b.holdClaim(claim, key),
	)
	b.addChange(relayer.Created, rec.record(revision))
	block.set(sequence % blockSize)
	b.state.nextSequence++
	b.state.nextRevision = max(b.state.nextRevision, revision+1)
	b.state.total++
	return err
}

func (b *batchTx) update(id string, revision uint64, claim string, rec encoded) (uint64, error) {
	key, current, err := b.find(id, revision)
	if err != nil {
		return 0, err
	}
	if err := b.verify(b.base.claims, []byte(claim), 0); err != nil {
		return 0, err
	}
	holder := []byte(nil)
	if claim != "" {
		holder = b.claims.Get([]byte(claim))
	}
	if holder != nil && !bytes.Equal(holder, key) {
		return 0, relayer.ErrClaimed
	}
	if string(current.claim) != claim {
		err = errors.Join(b.releaseClaim(current.claim), b.holdClaim(claim, key))
	}
	next := b.state.nextRevision
	err = b.countWrite(err, b.relayers.Put(key, rec.at(next)))
	b.addChange(relayer.Updated, rec.record(next))
	b.state.nextRevision++
	return next, err
}

func (b *batchTx) delete(id string, revision uint64) error {
	key, current, err := b.find(id, revision)
	if err != nil {
		return err
	}
	block, err := b.block(current.sequence / blockSize)
	if err != nil {
		return err
	}
	b.addChange(relayer.Deleted, current.copyRecord(id))
	err = b.countWrite(
		b.releaseClaim(current.claim),
		b.ids.Delete([]byte(id)),
		b.relayers.Delete(key),
	)
	block.clear(current.sequence % blockSize)
	b.state.total--
	return err
}

// addChange adds to the changes that are published after the commit. A record can
// share its bytes with the transaction, which does not modify them.
func (b *batchTx) addChange(kind relayer.ChangeKind, rec relayer.Record) {
	b.changes = append(b.changes, relayer.RecordChange{Kind: kind, Record: rec})
}

// countWrite counts a write and keeps the first error of the engine.
func (b *batchTx) countWrite(errs ...error) error {
	b.writes++
	err := errors.Join(errs...)
	if err != nil && b.failed == nil {
		b.failed = err
	}
	return err
}

// find returns the stored record and its key if it has the given revision. What
// it returns may be changed or deleted.
func (b *batchTx) find(id string, revision uint64) ([]byte, stored, error) {
	if err := b.verify(b.base.ids, []byte(id), 1); err != nil {
		return nil, stored{}, err
	}
	value := b.ids.Get([]byte(id))
	if value == nil {
		return nil, stored{}, relayer.ErrNotFound
	}
	sequence, ok := sequenceOf(value)
	if !ok {
		return nil, stored{}, corruptData(errRecord)
	}
	key := numberKey(sequence)
	if err := b.verify(b.base.relayers, key, 1); err != nil {
		return nil, stored{}, err
	}
	rec, err := decodeOf(id, b.relayers.Get(key))
	if err != nil {
		return nil, stored{}, corruptData(err)
	}
	err = cmp.Or(
		b.verify(b.base.claims, rec.claim, 1),
		b.verify(b.base.blocks, numberKey(sequence/blockSize), 1),
	)
	if err != nil {
		return nil, stored{}, err
	}
	if rec.revision != revision {
		return nil, stored{}, relayer.ErrConflict
	}
	rec.sequence = sequence
	return key, rec, nil
}

func (b *batchTx) holdClaim(claim string, key []byte) error {
	if claim == "" {
		return nil
	}
	return b.claims.Put([]byte(claim), key)
}

// releaseClaim copies the claim first: it is part of a page that the delete changes.
func (b *batchTx) releaseClaim(claim []byte) error {
	if len(claim) == 0 {
		return nil
	}
	return b.claims.Delete(bytes.Clone(claim))
}

// block returns the bitmap of a block for the batch to modify.
func (b *batchTx) block(number uint64) (*bitmap, error) {
	if known := b.blocks[number]; known != nil {
		return known, nil
	}
	opened := new(bitmap)
	if value := b.tx.Bucket(blocksBucket).Get(numberKey(number)); value != nil {
		if len(value) != bitmapSize {
			return nil, corruptData(errBlocks)
		}
		copy(opened[:], value)
	}
	b.blocks[number] = opened
	return opened, nil
}

// finish writes the modified blocks and the state.
func (b *batchTx) finish() error {
	bucket := b.tx.Bucket(blocksBucket)
	for number, block := range b.blocks {
		if err := putBlock(bucket, number, block); err != nil {
			return unavailable(err)
		}
	}
	b.counts = b.base.counts.after(b.blocks)
	if b.counts.total() != int(b.state.total) {
		return corruptData(errBlocks)
	}
	if err := b.tx.Bucket(metaBucket).Put(stateKey, b.state.encoded()); err != nil {
		return unavailable(err)
	}
	return nil
}

// putBlock deletes a block without records, so that the memory for the counts depends
// only on the number of records.
func putBlock(bucket *bbolt.Bucket, number uint64, block *bitmap) error {
	if block.population() == 0 {
		return bucket.Delete(numberKey(number))
	}
	return bucket.Put(numberKey(number), block[:])
}
