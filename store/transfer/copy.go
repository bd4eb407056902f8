// Package transfer copies all relayers and their history from one [relayer.Store] to another,
// such as from a file to PostgreSQL. See [Copy].
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-relayer/relayer"
)

// ErrDiffers reports that the destination of a [Copy] contains something other than the beginning
// of the source. The error that wraps it contains, of what is stored, at most offsets, numbers
// and IDs.
var ErrDiffers = errors.New("destination differs from source")

// Copy adds every record of src to dst, in creation order, and then compares the two
// stores. It only reads src. The caller opens and closes both stores.
//
// If src is a [Checker], it is checked before anything is written, because dst
// would store damaged data as sound. If src is damaged, Copy returns the error of the check.
//
// Copy resumes: if it ended early, for any reason, call it again. It finds the records that dst
// already contains and adds the rest. After a complete copy of a src that has relayers and has
// not changed, it only verifies again.
//
// It returns [ErrDiffers] if dst contains anything except the beginning of src. It also does so if
// the stores differ at the end: in the number or order of their records, or in an ID, claim, set
// of terms, text, note, document or private part. There must be no other writers to either store
// during a copy, nor a write of an earlier copy that takes effect late. If there are, Copy may end
// with ErrDiffers; it does not change or remove any record.
//
// If dst is an [Importer], records keep their revisions, which are compared too, and are added
// many at a time, all or none. Any other store assigns new revisions: an ETag that a client still
// has can then match another state of the relayer, so clients must read again.
//
// If dst is a [HistoryImporter] too, the history that src can read is copied before the missing
// relayers. So dst does not assign the revisions in it again. What dst retains of it is up to
// dst: a resumed Copy does not copy the history again if dst has lost all of it. Copy does not
// compare histories at the end. If dst has no relayers, or src has newer changes, the history of
// src must have the last change in the history of dst.
//
// Errors of the stores are wrapped, so that [relayer.ErrUnavailable] and
// [relayer.ErrOutcomeUnknown] match; after either, call Copy again. If ctx is done, the copy ends
// with its error. If dst rejects a record because its ID or claim is taken, [relayer.ErrExists]
// or [relayer.ErrClaimed] matches in addition to ErrDiffers. No store may be nil or a
// [relayer.Opener]: copy its inner store.
//
// Copy reads 100 records at a time. It is safe for concurrent use, but concurrent copies into one
// store may end with ErrDiffers.
func Copy(ctx context.Context, dst, src relayer.Store) error {
	if dst == nil || src == nil {
		return errors.New("transfer: store is nil")
	}
	for _, store := range []relayer.Store{dst, src} {
		if _, isOpener := store.(relayer.Opener); isOpener { // its private parts are in another form
			return errors.New("transfer: a store that seals RPC URLs is not copied: copy the store in it")
		}
	}
	c := &copier{dst: dst, src: src}
	c.importer, _ = dst.(Importer)
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("transfer: %w", err)
	}
	return nil
}

// A page has pageSize records or changes. An import adds maxImportBytes of it at most, or one
// record: stores limit the size of a write, or its time.
const (
	pageSize       = 100
	maxImportBytes = 8 << 20
)

// inParts calls add with the parts of a page.
func inParts[T any](page []T, sizeOf func(T) int, add func(part []T) error) error {
	start, size := 0, 0
	for i, element := range page {
		if size += sizeOf(element); size > maxImportBytes && i > start {
			if err := add(page[start:i]); err != nil {
				return err
			}
			start, size = i, sizeOf(element)
		}
	}
	return add(page[start:])
}

func sizeOf(rec relayer.Record) int { return len(rec.Document) + len(rec.Private) }

type copier struct {
	dst, src relayer.Store
	importer Importer // nil if dst is not one
	total    int      // of the source
}

func (c *copier) run(ctx context.Context) error {
	all, err := c.src.List(ctx, relayer.StoreQuery{})
	if err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	c.total = all.Total
	if checker, ok := c.src.(Checker); ok {
		if err := checker.Check(ctx); err != nil {
			return fmt.Errorf("check the source: %w", err)
		}
	}
	_, held, err := c.destination(ctx, 0, 0)
	if err != nil {
		return err
	}
	// It is copied before the first write, and after the relayers of the destination were compared.
	history := sync.OnceValue(func() error { return c.copyHistory(ctx, held) })
	err = c.eachPage(ctx, func(ctx context.Context, offset int, missing []relayer.Record) error {
		if err := history(); err != nil {
			return err
		}
		return c.write(ctx, offset, missing)
	})
	if err == nil {
		err = history()
	}
	if err != nil {
		return err
	}
	return c.eachPage(ctx, func(_ context.Context, offset int, missing []relayer.Record) error {
		return differs(offset, "only the source has %q", missing[0].ID)
	})
}

// eachPage compares each page of the source with the destination, and adds what is missing there.
func (c *copier) eachPage(ctx context.Context, add func(ctx context.Context, offset int, missing []relayer.Record) error) error {
	for offset := 0; offset < c.total; offset += pageSize {
		want, err := c.source(ctx, offset)
		if err != nil {
			return err
		}
		known, err := c.compare(ctx, offset, want)
		if err == nil && known < len(want) {
			err = add(ctx, offset+known, want[known:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// source returns the next page of the source, whose number of records must not change.
func (c *copier) source(ctx context.Context, offset int) ([]relayer.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	page, err := c.src.List(ctx, relayer.StoreQuery{Offset: offset, Limit: pageSize})
	if err != nil {
		return nil, fmt.Errorf("read the source at offset %d: %w", offset, err)
	}
	if page.Total != c.total || len(page.Records) != min(pageSize, page.Total-offset) {
		return nil, differs(offset, "the source had %d relayers, and then %d", c.total, page.Total)
	}
	return page.Records, nil
}

// destination returns a page of the destination and its number of records, which must not
// exceed that of the source.
func (c *copier) destination(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	page, err := c.dst.List(ctx, relayer.StoreQuery{Offset: offset, Limit: limit})
	if err != nil {
		return nil, 0, fmt.Errorf("read the destination at offset %d: %w", offset, err)
	}
	if page.Total > c.total {
		return nil, 0, differs(c.total, "the destination has %d relayers, and the source %d", page.Total, c.total)
	}
	return page.Records, page.Total, nil
}

// compare returns how many of the records, from the first on, the destination contains unchanged.
func (c *copier) compare(ctx context.Context, offset int, want []relayer.Record) (int, error) {
	have, _, err := c.destination(ctx, offset, len(want))
	if err != nil {
		return 0, err
	}
	for i, rec := range have {
		if what := c.difference(rec, want[i]); what != "" {
			return 0, differs(offset+i, "%s", what)
		}
	}
	return len(have), nil
}

// difference returns in which part two records differ, or "". It does not quote the parts,
// because one of them is secret.
func (c *copier) difference(have, want relayer.Record) string {
	if have.ID != want.ID {
		return fmt.Sprintf("the destination has %q, the source %q", have.ID, want.ID)
	}
	part := ""
	switch {
	case c.importer != nil && have.Revision != want.Revision:
		part = "revision"
	case have.Claim != want.Claim:
		part = "claim"
	case !slices.Equal(have.Terms, want.Terms):
		part = "set of terms"
	case have.Text != want.Text:
		part = "text"
	case !bytes.Equal(have.Note, want.Note):
		part = "note"
	case !bytes.Equal(have.Document, want.Document):
		part = "document"
	case !bytes.Equal(have.Private, want.Private):
		part = "private part"
	default:
		return ""
	}
	return fmt.Sprintf("%q has another %s", want.ID, part)
}

func (c *copier) write(ctx context.Context, offset int, records []relayer.Record) error {
	if c.importer != nil {
		add := func(part []relayer.Record) error { return c.importer.Import(ctx, part) }
		return writeError(offset, inParts(records, sizeOf, add))
	}
	for i, rec := range records {
		if _, err := c.dst.Create(ctx, rec); err != nil {
			return writeError(offset+i, fmt.Errorf("create %q: %w", rec.ID, err))
		}
	}
	return nil
}

// writeError adds the offset to an error of a write. If an ID or a claim is taken, the
// destination has a record at another position than the source.
func writeError(offset int, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrClaimed) {
		return fmt.Errorf("%w at offset %d: %w", ErrDiffers, offset, err)
	}
	return fmt.Errorf("write at offset %d: %w", offset, err)
}

func differs(offset int, format string, args ...any) error {
	return fmt.Errorf("%w at offset %d: %s", ErrDiffers, offset, fmt.Sprintf(format, args...))
}

// errUsed reports a destination that has changes in its history which the source does not have.
var errUsed = fmt.Errorf("%w: the destination has another history, or the source lacks its last change: copy to a new one", ErrDiffers)

// copyHistory adds the changes in the history of the source to the history of the destination. It
// precedes the missing relayers: after them, its revisions would not be greater than all others.
func (c *copier) copyHistory(ctx context.Context, held int) error {
	importer, ok := c.dst.(HistoryImporter)
	if !ok || c.importer == nil {
		return nil // the records get other revisions
	}
	have, err := c.dst.History(ctx, relayer.HistoryQuery{Limit: 1})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the history of the destination: %w", err)
	}
	var last relayer.Record
	if len(have) > 0 {
		last = have[0].Record
	}
	known := last.Revision
	pages, err := c.historyPages(ctx, known)
	if err == nil && known > 0 && (len(pages) > 0 || held == 0) { // otherwise the source may have pruned it
		err = c.findLast(ctx, last)
	}
	if err != nil {
		return err
	}
	for _, before := range slices.Backward(pages) {
		page, err := c.sourceHistory(ctx, before, known)
		if err != nil {
			return err
		}
		slices.Reverse(page)
		if len(page) == 0 {
			continue
		}
		err = inParts(page, func(change relayer.RecordChange) int { return sizeOf(change.Record) },
			func(part []relayer.RecordChange) error { return importer.ImportHistory(ctx, part) })
		switch {
		case errors.Is(err, relayer.ErrConflict) && held > 0 && known == 0:
			return nil // it retains no history of the earlier copy
		case errors.Is(err, relayer.ErrConflict):
			return errUsed
		case err != nil:
			return fmt.Errorf("write the history: %w", err)
		}
		known = page[len(page)-1].Record.Revision
	}
	return nil
}

// findLast returns errUsed unless the source has the last change of the destination.
func (c *copier) findLast(ctx context.Context, last relayer.Record) error {
	same, err := c.src.History(ctx, relayer.HistoryQuery{Before: last.Revision + 1, Limit: 1})
	switch {
	case errors.Is(err, relayer.ErrCorrupt): // historyPages ends at this change too
		return nil
	case errors.Is(err, errors.ErrUnsupported):
		return errUsed
	case err != nil:
		return fmt.Errorf("read the history of the source: %w", err)
	case len(same) == 0 || same[0].Record.Revision != last.Revision || same[0].Record.ID != last.ID:
		return errUsed
	}
	return nil
}

// historyPages returns before which revisions the pages of the source are, the newest first. A
// history is read from its end and written from its start, so that it is read twice and not kept in
// memory.
func (c *copier) historyPages(ctx context.Context, known uint64) (pages []uint64, err error) {
	for before := uint64(0); ; {
		page, err := c.sourceHistory(ctx, before, known)
		if err != nil || len(page) == 0 {
			return pages, err
		}
		pages = append(pages, before)
		before = page[len(page)-1].Record.Revision
	}
}

// sourceHistory returns the changes of the page before a revision that are after a known one. It
// returns none if the source retains none, or can read none of those that are left.
func (c *copier) sourceHistory(ctx context.Context, before, known uint64) ([]relayer.RecordChange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	page, err := c.src.History(ctx, relayer.HistoryQuery{Before: before, Limit: pageSize})
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, relayer.ErrCorrupt) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the history of the source: %w", err)
	}
	return slices.DeleteFunc(page, func(c relayer.RecordChange) bool { return c.Record.Revision <= known }), nil
}

// MaxRevision is the greatest [relayer.Record.Revision] that an [Importer] must accept. A store
// that counts to 2^63 then has 2^62 revisions left for its writes.
const MaxRevision uint64 = 1 << 62

// Importer is a [relayer.Store] that can add records with their revisions, so that the
// ETags that clients have stay valid after a [Copy]. Copy detects it with a type assertion.
// The stores of store/memory, store/bolt and store/postgres are importers.
type Importer interface {
	// Import adds the records after all others, in the order given: all of them or none,
	// so that no other call sees a part. Each keeps its Revision, which is from 1 to
	// [MaxRevision] and need not grow along the order. Every later write, of any ID, gets
	// a greater revision than all imported ones. An import of no records succeeds.
	//
	// It is safe for concurrent use and atomic, like every write of a store. It returns an
	// error if a revision is out of range. It returns [relayer.ErrExists] if an ID is taken
	// or occurs twice, and otherwise [relayer.ErrClaimed] if a claim is held or occurs
	// twice. Its other errors are those of Create. If several records are rejected, the
	// error is that of one of them.
	Import(ctx context.Context, records []relayer.Record) error
}

// HistoryImporter is a [relayer.Store] that can add the changes of another store to its history.
// [Copy] detects it with a type assertion. store/memory, store/bolt and store/postgres are
// history importers.
type HistoryImporter interface {
	// ImportHistory adds changes that [relayer.Store.History] of another store has returned:
	// all of them or none. They are in ascending order of their revisions. Each keeps its
	// revision, and every later write gets a greater one. The private parts of their records
	// are not stored. Their retention begins with the import. Watch does not return them; it
	// may end with [relayer.ErrGap].
	//
	// It is safe for concurrent use and atomic. It returns [relayer.ErrConflict] unless each
	// revision is greater than the one before, and than all that the store has assigned or
	// imported. The error matches [errors.ErrUnsupported] if the store retains no history. Its
	// other errors are the errors of Import.
	ImportHistory(ctx context.Context, changes []relayer.RecordChange) error
}

// Checker is a [relayer.Store] that can read all stored data and verify that its parts agree.
// [Copy] detects it with a type assertion, and checks the source before it copies anything.
type Checker interface {
	// Check returns an error that matches [relayer.ErrCorrupt] and describes what is damaged,
	// quoting at most IDs. If it could not finish, it returns another error, such as the error of
	// ctx. Reads continue during a check; writes may have to wait. A check takes as long as
	// reading all data. It is safe for concurrent use.
	Check(ctx context.Context) error
}
