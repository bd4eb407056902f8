package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
)

var _ relayer.CheckStore = (*Store)(nil)

// maxProblems bounds what Check reports: a broken file has no end of them.
const maxProblems = 10

// Check reads the whole file and returns [relayer.ErrCorrupt], with what it found, where
// its parts do not fit together: the pages of the engine, and then that each
// record has an intact checksum, one id, its claim and its place, and that the
// counts and the total are theirs. Reads go on meanwhile, and writes wait. Where
// pages are damaged they are refused from then on, until a check finds the pages
// sound: they would make it worse, or follow the damage without end.
//
// It returns the context's error where that ends first, and
// [relayer.ErrUnavailable] where the store is closed.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	// The engine can tell used pages from free ones only while nothing changes
	// them: that is what the write transaction is for.
	tx, err := s.beginWrite()
	if err != nil {
		return err
	}
	defer s.abandon(tx)
	found := &findings{}
	if err := s.checkAll(ctx, tx, found); err != nil {
		return err
	}
	return found.err(s.path)
}

// checkAll lets the engine near the records only where its pages are sound: it
// follows them wherever they lead.
func (s *Store) checkAll(ctx context.Context, tx *bbolt.Tx, found *findings) (err error) {
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if cause := recover(); cause != nil {
			found.add("%v", cause)
		}
	}()
	sound, err := s.checkPages(ctx, tx, found)
	if err != nil {
		return err
	}
	s.unsound = !sound
	if s.unsound {
		return nil
	}
	return s.checkRecords(ctx, tx, found)
}

type findings struct {
	problems []error
}

func (f *findings) add(format string, args ...any) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, fmt.Errorf(format, args...))
	}
}

func (f *findings) err(path string) error {
	if len(f.problems) == 0 {
		return nil
	}
	return fmt.Errorf("bolt: check %s: %w: %w", path, relayer.ErrCorrupt, errors.Join(f.problems...))
}

// checkRecords compares every bucket with the records, and then the sizes of
// all: equal sizes and one direction make both directions.
func (s *Store) checkRecords(ctx context.Context, tx *bbolt.Tx, found *findings) error {
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			found.add("bucket %s is missing", name)
			return nil
		}
	}
	now, err := readState(tx)
	if err != nil {
		found.add("%v", err)
		return nil
	}
	c := &checker{tx: tx, now: now, found: found}
	cursor := tx.Bucket(relayersBucket).Cursor()
	for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.record(key, value)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.sizes()
	s.checkViews(tx, found)
	return nil
}

// checker counts what the records say while it walks them.
type checker struct {
	tx      *bbolt.Tx
	now     state
	found   *findings
	records int
	claimed int
}

func (c *checker) record(key, value []byte) {
	c.records++
	sequence, ok := sequenceOf(key)
	if !ok || sequence >= c.now.nextSequence {
		c.found.add("record %x is out of sequence", key)
		return
	}
	rec, err := decode(value)
	if err != nil || !checksumHolds(value) {
		c.found.add("record %d is not as it was written", sequence)
		return
	}
	if rec.revision == 0 || rec.revision >= c.now.nextRevision {
		c.found.add("record %d stands at a revision that was never given", sequence)
	}
	if !bytes.Equal(c.tx.Bucket(idsBucket).Get(rec.id), key) {
		c.found.add("the id of record %d leads elsewhere", sequence)
	}
	if len(rec.claim) > 0 {
		c.claimed++
		if !bytes.Equal(c.tx.Bucket(claimsBucket).Get(rec.claim), key) {
			c.found.add("the claim of record %d leads elsewhere", sequence)
		}
	}
	value = c.tx.Bucket(blocksBucket).Get(numberKey(sequence / blockSize))
	if len(value) != bitmapSize || !(*bitmap)(value).has(sequence%blockSize) {
		c.found.add("record %d is not counted", sequence)
	}
}

func (c *checker) sizes() {
	if total := c.now.total; total != uint64(c.records) {
		c.found.add("%d records and a total of %d", c.records, total)
	}
	if ids := keys(c.tx.Bucket(idsBucket)); ids != c.records {
		c.found.add("%d records and %d ids", c.records, ids)
	}
	if claims := keys(c.tx.Bucket(claimsBucket)); claims != c.claimed {
		c.found.add("%d records with a claim and %d claims", c.claimed, claims)
	}
	alive, err := count(c.tx)
	if err != nil {
		c.found.add("%v", err)
		return
	}
	if alive.total() != c.records {
		c.found.add("%d records, and the blocks count %d", c.records, alive.total())
	}
	previous := 0
	for _, b := range alive.blocks {
		if b.upTo == previous {
			c.found.add("block %d is empty", b.number)
		}
		previous = b.upTo
	}
}

// checkViews compares the blocks in memory with those in the file.
func (s *Store) checkViews(tx *bbolt.Tx, found *findings) {
	kept, ok := s.views.Load().of(tx.ID() - 1)
	counted, err := count(tx)
	if err != nil || !ok || len(kept.blocks) != len(counted.blocks) {
		found.add("the blocks in memory are not those of the file")
		return
	}
	for i, b := range counted.blocks {
		if kept.blocks[i] != b {
			found.add("block %d is counted differently in memory", b.number)
		}
	}
}

func keys(bucket *bbolt.Bucket) int {
	count := 0
	cursor := bucket.Cursor()
	for key, _ := cursor.First(); key != nil; key, _ = cursor.Next() {
		count++
	}
	return count
}
