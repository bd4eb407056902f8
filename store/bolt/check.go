package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

var _ relayer.CheckStore = (*Store)(nil)

// maxProblems bounds what Check reports: a broken file can have any number.
const maxProblems = 10

// Check reads the whole file and compares it with the records in memory: all pages, the
// checksum and the content of each record, the counters and the free pages. If they
// contradict each other, Check returns [relayer.ErrCorrupt] with the first problems.
// Reads go on meanwhile, and writes wait. After damage was found, writes are refused until
// a check finds none. A record that was damaged when the file was opened is reported too,
// but writes are not refused.
//
// It returns the error of ctx if ctx ends first, and [relayer.ErrUnavailable] if
// the store is closed or Close cancels the check.
func (s *Store) Check(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	ctx = closable{ctx, s.closing}
	if err := s.recoverFile(ctx); err != nil {
		return err
	}
	s.damage = nil
	if err := s.verifyFile(); err != nil {
		return err
	}
	c := &comparison{ctx: ctx, table: s.table}
	if _, both, _ := pages.ReadHeaders(s.identity); !both {
		c.report(errors.New("a header is invalid: the last commit may be lost"))
	}
	if err := s.compareAll(c); err != nil {
		return err
	}
	if len(c.problems) == 0 {
		return nil
	}
	return fmt.Errorf("bolt: check %s: %w: %w", s.path, relayer.ErrCorrupt, errors.Join(c.problems...))
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

// compareAll compares the file with memory, and refuses further writes if they differ.
func (s *Store) compareAll(c *comparison) error {
	file := pages.NewFile(s.identity, s.header)
	trees, err := file.Trees()
	if err == nil {
		walk := file.NewWalk()
		err = walk.Entries(trees[metaBucket], nil, c.meta(s.state))
		if err == nil {
			err = walk.Entries(trees[recordsBucket], nil, c.record)
		}
		c.end()
		if err == nil {
			err = walk.Freelist()
		}
	}
	if errors.Is(err, pages.ErrDamaged) {
		c.found("%w", err)
		err = nil
	}
	if err == nil && c.damage != nil {
		_ = s.foundDamage(c.damage)
	}
	return err
}

// comparison compares entries of the file with records in memory.
type comparison struct {
	ctx      context.Context
	table    *table.Table
	from     uint64          // sequence number of the next record to take from the table
	limit    int             // records to compare, or 0 for all
	next     []*table.Record // those that the file must have next
	isAtEnd  bool
	compared int
	problems []error
	damage   error // the first problem that was not known before
}

func (c *comparison) found(format string, args ...any) {
	problem := fmt.Errorf(format, args...)
	if c.damage == nil {
		c.damage = problem
	}
	c.report(problem)
}

func (c *comparison) report(problem error) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, problem)
	}
}

// meta compares the entries about the whole file.
func (c *comparison) meta(want state) func(key, value []byte) (bool, error) {
	return func(key, value []byte) (bool, error) {
		if string(key) == string(stateKey) && string(value) != string(want.encoded()) {
			c.found("the counters are not those in memory")
		}
		return true, nil
	}
}

// expected returns the record that the file must have next, or nil after the last one.
func (c *comparison) expected() *table.Record {
	if len(c.next) == 0 && !c.isAtEnd {
		const step = 1024
		c.next = c.table.AppendFrom(c.next, c.from, step)
		c.isAtEnd = len(c.next) < step
	}
	if len(c.next) == 0 {
		return nil
	}
	return c.next[0]
}

func (c *comparison) take() {
	c.from = c.next[0].Sequence() + 1
	c.next = c.next[1:]
	c.compared++
}

// record compares an entry with the record that must be next.
func (c *comparison) record(key, value []byte) (more bool, err error) {
	if c.compared%1024 == 0 {
		if err := c.ctx.Err(); err != nil {
			return false, err
		}
	}
	found, ok := decodeRecord(key, value)
	if !ok {
		c.found("a record has no ID")
		return true, nil
	}
	for {
		want := c.expected()
		if want == nil || want.Sequence() > found.Sequence() {
			c.found("record %d is in the file and not in memory", found.Sequence())
			return true, nil
		}
		c.take()
		if want.Sequence() == found.Sequence() {
			c.compare(found, want)
			return c.limit == 0 || c.compared < c.limit, nil
		}
		c.found("record %d, ID %q, is not in the file", want.Sequence(), want.ID())
	}
}

func (c *comparison) compare(found, want *table.Record) {
	switch {
	case want.IsDamaged():
		c.report(fmt.Errorf("record %d, ID %q, does not match its checksum: delete it", want.Sequence(), want.ID()))
	case found.IsDamaged() || found.ID() != want.ID() || found.Revision() != want.Revision() || found.Checksum != want.Checksum:
		c.found("record %d, ID %q, is not the one in memory", want.Sequence(), want.ID())
	}
}

// end reports the records that the file does not have after its last entry.
func (c *comparison) end() {
	for want := c.expected(); want != nil; want = c.expected() {
		c.found("record %d, ID %q, is not in the file", want.Sequence(), want.ID())
		c.take()
	}
}

// The comparison in the background takes about an hour for a million relayers, and holds
// up writes for less than a millisecond at a time.
const (
	compareInterval = time.Second
	compareStep     = 256
)

// compareAlways compares the file with memory, slowly and again and again, until the store
// closes. It finds damage that no write meets.
func (s *Store) compareAlways() {
	ticker := time.NewTicker(compareInterval)
	defer ticker.Stop()
	from := uint64(0)
	for {
		select {
		case <-s.closing.Done():
			return
		case <-ticker.C:
		}
		if s.lock(s.closing) != nil {
			return
		}
		from = s.compareSome(from)
		s.unlock()
	}
}

// compareSome compares some records, and returns the sequence number of the next one, or
// 0 after the last.
func (s *Store) compareSome(from uint64) (next uint64) {
	if s.needsRecovery || s.verifyFile() != nil {
		return from
	}
	file := pages.NewFile(s.identity, s.header)
	trees, err := file.Trees()
	c := &comparison{ctx: s.closing, table: s.table, from: from, limit: compareStep}
	if err == nil {
		err = file.NewWalk().Entries(trees[recordsBucket], sequenceKey(from), c.record)
	}
	if c.compared < compareStep && err == nil {
		c.end()
		c.from = 0
	}
	if errors.Is(err, pages.ErrDamaged) {
		c.found("%w", err)
	}
	if c.damage != nil {
		_ = s.foundDamage(c.damage)
	}
	return c.from
}
