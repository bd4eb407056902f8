package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt/internal/pages"
	"github.com/go-relayer/relayer/store/internal/table"
)

// maxProblems bounds what Check reports: a broken file can have any number.
const maxProblems = 10

// Check reads the whole file and compares it with the records in memory: all pages, the checksum
// and the content of each record, the counters and the free pages. If they contradict each other,
// Check returns [relayer.ErrCorrupt] with the first problems. Meanwhile writes and History wait.
// After damage was found, writes are refused until a check finds none. A record that was damaged
// when the file was opened is reported too, but writes are not refused. A change of the history
// that was damaged when the file was opened is only logged: reads, backups and compacted files
// omit it.
//
// It returns the error of ctx if ctx ends first, and [relayer.ErrUnavailable] if
// the store is closed or Close cancels the check.
func (s *Store) Check(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.recoverFile(ctx); err != nil {
		return err
	}
	known := s.damage
	s.damage = nil
	records, _, _ := s.table.Snapshot()
	c := &comparison{ctx: ctx, closing: s.closing, state: s.state, want: records, history: &s.history}
	err := s.verifyFile(nil)
	if err == nil {
		err = c.compareFile(pages.NewFile(s.file, s.header))
		if err != nil && c.ended() == nil {
			err = readError(err)
		}
	}
	if c.damage != nil {
		_ = s.foundDamage(c.damage)
	}
	if err != nil {
		s.damage = cmp.Or(s.damage, known)
		return err
	}
	if _, both, _ := pages.ReadHeaders(s.file); !both {
		c.report(errors.New("a header is invalid: the last commit may be lost"))
	}
	if c.damagedChanges > 0 {
		s.opts.logger.Warn("changes of the history are damaged: they are left out", "path", s.path, "damaged", c.damagedChanges)
	}
	if len(c.problems) == 0 {
		return nil
	}
	return fmt.Errorf("bolt: check %s: %w: %w", s.path, relayer.ErrCorrupt, errors.Join(c.problems...))
}

// compareFile compares the state, the records and the history, and verifies the free pages.
func (c *comparison) compareFile(file *pages.File) error {
	entries, err := readMeta(file)
	if err == nil && !bytes.Equal(entries[stateKey], c.state.stored) {
		c.found("the counters are not those in memory")
	}
	if err == nil {
		err = file.Entries(recordsBucket, c.record)
	}
	if err == nil {
		c.missing(len(c.want))
		err = file.Freelist()
	}
	if err == nil {
		err = file.Entries(historyBucket, c.change)
	}
	if err == nil && c.changes != c.state.changes.total {
		c.found("the history has %d of %d changes", c.changes, c.state.changes.total)
	}
	if errors.Is(err, pages.ErrDamaged) {
		c.found("%w", err)
		err = nil
	}
	return err
}

// comparison compares entries of the file with records in memory, in their order.
type comparison struct {
	ctx      context.Context
	closing  context.Context
	state    state
	want     []*table.Record
	next     int // index of the record that the file must have next
	problems []error
	damage   error // the first problem that was not known before

	history        *history // nil: not compared
	changes        uint64   // of the history
	damagedChanges int      // that are known
}

func (c *comparison) ended() error {
	if c.closing.Err() != nil {
		return errClosed
	}
	return c.ctx.Err()
}

func (c *comparison) found(format string, args ...any) {
	problem := fmt.Errorf(format, args...)
	c.damage = cmp.Or(c.damage, problem)
	c.report(problem)
}

func (c *comparison) report(problem error) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, problem)
	}
}

// record compares an entry with the record that must be next.
func (c *comparison) record(key, value []byte) (more bool, err error) {
	if err := c.ended(); err != nil {
		return false, err
	}
	found, ok := decodeEntry(key, value)
	if !ok && found.Sequence == 0 {
		c.found("a record has no key")
		return true, nil
	}
	at, isThere := slices.BinarySearchFunc(c.want[c.next:], found.Sequence, func(r *table.Record, sequence uint64) int {
		return cmp.Compare(r.Sequence, sequence)
	})
	c.missing(c.next + at)
	if !isThere {
		c.found("record %d is in the file and not in memory", found.Sequence)
		return true, nil
	}
	switch want := c.want[c.next]; {
	case want.IsDamaged:
		c.report(fmt.Errorf("record %d, ID %q, does not match its checksum: delete it", want.Sequence, want.ID))
	case found.IsDamaged || found.ID != want.ID || found.Revision != want.Revision || found.Checksum != want.Checksum:
		c.found("record %d, ID %q, is not the one in memory", want.Sequence, want.ID)
	}
	c.next++
	return true, nil
}

// change compares an entry of the history with the index in memory.
func (c *comparison) change(key, value []byte) (more bool, err error) {
	c.changes++
	e, p, ok := decodePast(key, value)
	if c.history != nil && ok {
		_, _, ok = c.history.entry(e, p)
	}
	switch {
	case !ok:
		c.found("change %d of the history is not the one in memory", p.revision)
	case p.time == 0:
		c.damagedChanges++
	}
	return true, c.ended()
}

// missing reports the records in memory up to an index that the file does not have.
func (c *comparison) missing(end int) {
	for ; c.next < end; c.next++ {
		c.found("record %d, ID %q, is not in the file", c.want[c.next].Sequence, c.want[c.next].ID)
	}
}

const (
	// probeSize is what a small write needs on a full disk: some pages of the tree.
	probeSize = 64 << 10

	// probeInterval bounds the cost of frequent calls of Ready.
	probeInterval = time.Second
)

// Ready returns nil if the store can take writes, the error of ctx if ctx ends first, and
// otherwise [relayer.ErrUnavailable] with the reason. The reason can be that the file was
// deleted, replaced, truncated or overwritten, that damage was found, that a failed commit cannot
// be recovered, or that the disk has no room. If it has the permission, it writes and removes a
// small file next to the store's own, unless that worked in the last second. It waits for a
// running check. A recovery that Ready begins goes on if ctx ends. Writes wait for it.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	// A recovery goes on after ctx, which may be shorter than each attempt.
	ready := make(chan error, 1)
	go func() {
		defer s.unlock()
		ready <- s.ready()
	}()
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) ready() error {
	if s.damage != nil { // a full disk does not hide it
		return corruptData(s.damage)
	}
	err := s.recoverToWrite(s.closing)
	if s.closing.Err() != nil {
		return errClosed
	}
	if err == nil {
		err = s.verifyFile(nil)
	}
	if err == nil && time.Since(s.probed) >= probeInterval {
		if err = probeDisk(s.path); err == nil {
			s.probed = time.Now()
		}
	}
	return err
}

// resolved returns the path of the file that a link leads to.
func resolved(path string) string {
	target, _ := filepath.EvalSymlinks(path) // "" with an error
	return cmp.Or(target, path)
}

// probeDisk writes a file next to the store's own. Without the permission to create one it returns
// nil: a write needs only the store's own file.
func probeDisk(path string) error {
	path = resolved(path)
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+tempSuffix+"*")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) && !isReadOnly(path) {
		return nil
	}
	if err == nil {
		_, err = file.Write(make([]byte, probeSize))
		err = cmp.Or(err, file.Sync(), file.Close(), os.Remove(file.Name()))
	}
	if err != nil {
		return unavailable(withoutPath(err))
	}
	return nil
}
