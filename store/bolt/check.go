package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

var _ relayer.CheckStore = (*Store)(nil)

// maxProblems bounds what Check reports: a broken file can have any number.
const maxProblems = 10

// Check reads the whole file. If its parts contradict each other, Check returns
// [relayer.ErrCorrupt] with the first problems. It checks the pages of the engine, then
// the checksum, ID, claim and position of each record, and all counts and totals. Reads
// go on meanwhile, and writes wait. If pages are damaged, writes are refused until a
// check finds the pages sound: they could spread the damage.
//
// It returns the error of ctx if ctx ends first, and [relayer.ErrUnavailable] if
// the store is closed or Close cancels the check.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = closable{ctx, s.closing}
	select {
	case s.writeLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing.Done():
		return errClosed
	}
	defer func() { <-s.writeLock }()
	// The write transaction keeps the free pages from changing.
	tx, err := s.beginWrite(ctx)
	if err != nil {
		return err
	}
	defer s.engine.rollback(tx)
	found := &findings{}
	if err := s.checkAll(ctx, tx, found); err != nil {
		return err
	}
	return found.err(s.path)
}

// closable is a context that also ends when the store closes.
type closable struct {
	context.Context
	closing context.Context
}

func (c closable) Err() error {
	if c.closing.Err() != nil {
		return errClosed
	}
	return c.Context.Err()
}

// checkAll checks the records only if the pages are sound.
func (s *Store) checkAll(ctx context.Context, tx *bbolt.Tx, found *findings) error {
	var failure error
	panicked := guard(func() error {
		sound, err := s.checkPages(ctx, tx, found)
		if err != nil {
			failure = err
			return nil
		}
		s.pagesDamaged = !sound
		if sound {
			failure = s.current.Load().checkRecords(ctx, found)
		}
		return nil
	})
	if panicked != nil {
		s.pagesDamaged = true
		found.add("%v", panicked)
	}
	return failure
}

// checkPages verifies all pages and reports whether the engine can follow them. A
// damaged header that is not current does not prevent that.
func (s *Store) checkPages(ctx context.Context, tx *bbolt.Tx, found *findings) (sound bool, err error) {
	size, err := s.engine.size()
	if err != nil {
		return false, unavailable(err)
	}
	if size < tx.Size() {
		found.add("the file ends after %d of %d bytes", size, tx.Size())
		return false, nil
	}
	snap := s.current.Load()
	for number := range 2 {
		if _, ok := snap.file.HeaderPage(number); !ok {
			found.add("header %d is invalid: the last commit may be lost", number)
		}
	}
	isFree := func(id int) (bool, error) {
		info, err := tx.Page(id)
		if err != nil {
			return false, unavailable(err)
		}
		return info.Type == "free", nil
	}
	return snap.file.Check(ctx, snap.header, isFree, found.problem)
}

type findings struct {
	problems []error
}

func (f *findings) add(format string, args ...any) { f.problem(fmt.Errorf(format, args...)) }

func (f *findings) problem(problem error) {
	if len(f.problems) < maxProblems {
		f.problems = append(f.problems, problem)
	}
}

func (f *findings) err(path string) error {
	if len(f.problems) == 0 {
		return nil
	}
	return fmt.Errorf("bolt: check %s: %w: %w", path, relayer.ErrCorrupt, errors.Join(f.problems...))
}

// checkRecords looks up every record in every index, and compares the sizes of all:
// with equal sizes, every entry of an index has its record.
func (s *snapshot) checkRecords(ctx context.Context, found *findings) error {
	now, err := s.readState()
	if err != nil {
		found.add("%v", err)
		return nil
	}
	c := &checker{snap: s, now: now, found: found}
	err = s.relayers.Each(ctx, c.record)
	if errors.Is(err, pages.ErrDamaged) {
		found.add("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.sizes(ctx); err != nil {
		return err
	}
	s.checkCounts(found)
	return nil
}

// checker compares the records with the indexes, and counts them.
type checker struct {
	snap    *snapshot
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
	if err != nil {
		c.found.add("%v: %s", err, c.snap.describe(key, rec))
		return
	}
	if rec.revision == 0 || rec.revision >= c.now.nextRevision {
		c.found.add("record %d has a revision that was never given", sequence)
	}
	if !leadsTo(c.snap.ids, rec.id, key) {
		c.found.add("the ID of record %d leads to another record", sequence)
	}
	if len(rec.claim) > 0 {
		c.claimed++
		if !leadsTo(c.snap.claims, rec.claim, key) {
			c.found.add("the claim of record %d leads to another record", sequence)
		}
	}
	block, err := c.snap.blocks.Get(numberKey(sequence / blockSize))
	if err != nil || len(block) != bitmapSize || !(*bitmap)(block).has(sequence%blockSize) {
		c.found.add("record %d is not counted", sequence)
	}
}

func leadsTo(index pages.Tree, name, key []byte) bool {
	held, err := index.Get(name)
	return err == nil && bytes.Equal(held, key)
}

func (c *checker) sizes(ctx context.Context) error {
	if total := c.now.total; total != uint64(c.records) {
		c.found.add("%d records and a total of %d", c.records, total)
	}
	for _, index := range []struct {
		name string
		tree pages.Tree
		want int
	}{{"IDs", c.snap.ids, c.records}, {"claims", c.snap.claims, c.claimed}} {
		count := 0
		if err := index.tree.Each(ctx, func(_, _ []byte) { count++ }); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			c.found.add("%s: %v", index.name, err)
		}
		if count != index.want {
			c.found.add("%d records with %s and %d %s", index.want, index.name, count, index.name)
		}
	}
	return nil
}

// checkCounts compares the counts in memory with those in the file.
func (s *snapshot) checkCounts(found *findings) {
	counted, err := s.readBlockCounts()
	if err != nil {
		found.add("%v", err)
		return
	}
	if !counted.equal(s.counts) {
		found.add("the counts in memory are not those of the file")
	}
	previous := 0
	for _, count := range counted {
		if count.upTo == previous {
			found.add("block %d is empty", count.number)
		}
		previous = count.upTo
	}
}
