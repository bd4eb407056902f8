package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-relayer/relayer"
)

// ErrDiffers says that the destination of a [Copy] holds something else than the
// source, or than the beginning of it. The error that wraps it tells at which
// offset of the list, and of which ids, and nothing of what is stored.
var ErrDiffers = errors.New("destination differs from source")

// Stage is what a [Copy] is at.
type Stage string

// The stages of a copy, in their order.
const (
	// Checking has the source read everything and say whether it fits together.
	// Only a source that is a [relayer.CheckStore] can.
	Checking Stage = "checking"

	// Copying compares what the destination holds already, and adds the rest.
	Copying Stage = "copying"

	// Verifying compares both stores from the start.
	Verifying Stage = "verifying"
)

// Progress is how far a [Copy] has come.
type Progress struct {
	Stage Stage

	// Done is the number of relayers, of Total, that the stage is done with. What
	// an earlier copy has left in the destination counts as well.
	Done, Total int
}

// Option sets up a [Copy].
type Option func(*copier) error

// WithProgress has a [Copy] tell how far it has come: at the beginning of
// each stage, after each page, and so at last with Done equal to Total. Done
// never falls within a stage. Of [Checking] there is nothing to tell in between. It
// is called on the goroutine that called Copy, which goes on when it returns. Given
// more than once, the last one counts.
func WithProgress(report func(Progress)) Option {
	return func(c *copier) error {
		if report == nil {
			return errors.New("transfer: progress function is nil")
		}
		c.report = report
		return nil
	}
}

// Copy adds every record of src to dst, in creation order, and then compares the
// two: how a host moves from one store to another. The stores stay the
// caller's, and src is only read.
//
// Where src is a [relayer.CheckStore] it is checked once, before anything is written:
// what is damaged there would be kept by dst as if it were sound. Where src does
// not fit together, Copy returns the error of the check.
//
// A copy that ended early, for whatever reason, is taken up by calling Copy
// again: dst holds the beginning of src, record by whole record, and the copy
// goes on where that ends. One that had come to its end is verified once more.
//
// It returns [ErrDiffers] where dst holds anything else: before it has written
// past the difference, or at the end, where the two are not the same in ids,
// order, claims, documents, private parts and number. Nobody may write to either
// store meanwhile. If somebody does, Copy ends with ErrDiffers where it comes to
// matter, and nothing that either store held is changed or lost.
//
// Where dst is an [relayer.ImportStore] the records keep their revisions, which are
// compared too, and are added many at a time, all of them or none. That is what
// to move to. Any other store gives them revisions of its own, so that the ETag
// that a client still holds of a relayer can come to stand for another state of
// it, and its If-Match pass where it should not: have clients read anew. What
// src knows of deleted relayers does not come along: a revision that one of them
// had can be given again.
//
// Errors of the stores are wrapped, so that [relayer.ErrUnavailable] and
// [relayer.ErrOutcomeUnknown] match: after either, call Copy again. A context that is
// done ends the copy with its error. Where dst refuses a record because its id
// or claim is taken, [relayer.ErrExists] or [relayer.ErrClaimed] matches beside ErrDiffers. The
// stores must not be nil, nor the same.
//
// It reads up to 500 records at a time, and fewer where those before were large:
// it aims at 8 MiB of each store in memory. It may be called by many goroutines
// at once, but of two copies into one store one may end with ErrDiffers.
func Copy(ctx context.Context, dst, src relayer.Store, options ...Option) error {
	c, err := newCopier(dst, src, options)
	if err != nil {
		return err
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("transfer: %w", err)
	}
	return nil
}

// The size of a page. Documents can be of any size, and a store tells it only
// with the documents: so the first page is small, and no page is more than twice
// as long as the one before.
const (
	firstCopyPage   = 16
	longestCopyPage = 500
	copyPageBytes   = 8 << 20
)

// copier is one call of [Copy].
type copier struct {
	dst, src relayer.Store
	importer relayer.ImportStore // nil where dst is none
	report   func(Progress)
	total    int // of the source
	limit    int // of the next page
}

func newCopier(dst, src relayer.Store, options []Option) (*copier, error) {
	if dst == nil || src == nil {
		return nil, errors.New("transfer: store is nil")
	}
	if sameStore(dst, src) {
		return nil, errors.New("transfer: destination and source are the same store")
	}
	c := &copier{dst: dst, src: src, report: func(Progress) {}, limit: firstCopyPage}
	c.importer, _ = dst.(relayer.ImportStore)
	for _, option := range options {
		if option == nil {
			return nil, errors.New("transfer: option is nil")
		}
		if err := option(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// sameStore compares no stores that cannot be compared: a host's may be a value
// with a map in it.
func sameStore(a, b relayer.Store) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (c *copier) run(ctx context.Context) error {
	var err error
	if _, c.total, err = c.src.List(ctx, 0, 0); err != nil {
		return fmt.Errorf("read the source: %w", err)
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	_, held, err := c.destination(ctx, 0, 0)
	if err != nil {
		return err
	}
	if err := c.fill(ctx, held); err != nil {
		return err
	}
	return c.verify(ctx)
}

func (c *copier) check(ctx context.Context) error {
	checker, ok := c.src.(relayer.CheckStore)
	if !ok {
		return nil
	}
	c.tell(Checking, 0)
	if err := checker.Check(ctx); err != nil {
		return fmt.Errorf("check the source: %w", err)
	}
	if c.total > 0 {
		c.tell(Checking, c.total)
	}
	return nil
}

// fill adds what the destination does not hold yet, page by page.
func (c *copier) fill(ctx context.Context, held int) error {
	c.tell(Copying, 0)
	for offset := 0; offset < c.total; {
		want, err := c.source(ctx, offset)
		if err != nil {
			return err
		}
		known := 0
		if offset < held {
			if known, err = c.compare(ctx, offset, want); err != nil {
				return err
			}
		}
		if err := c.add(ctx, offset, known, want); err != nil {
			return err
		}
		offset += len(want)
		c.tell(Copying, offset)
	}
	return nil
}

// add writes those of the records that are not known to be there. An id or a claim
// that is taken may be their own: a write of an earlier copy, of which nobody has
// heard how it ended, can end now. That is so where more of them are there than
// were.
func (c *copier) add(ctx context.Context, offset, known int, want []relayer.Record) error {
	for {
		err := c.write(ctx, offset+known, want[known:])
		if !errors.Is(err, relayer.ErrExists) && !errors.Is(err, relayer.ErrClaimed) {
			return err
		}
		now, comparing := c.compare(ctx, offset, want)
		if errors.Is(comparing, ErrDiffers) {
			return fmt.Errorf("%w (%w)", comparing, err)
		}
		if comparing != nil {
			return comparing
		}
		if now <= known {
			return err
		}
		known = now
	}
}

func (c *copier) verify(ctx context.Context) error {
	c.tell(Verifying, 0)
	for offset := 0; offset < c.total; {
		want, err := c.source(ctx, offset)
		if err != nil {
			return err
		}
		known, err := c.compare(ctx, offset, want)
		if err != nil {
			return err
		}
		if known < len(want) {
			return differs(offset+known, "only the source has %q", want[known].ID)
		}
		offset += len(want)
		c.tell(Verifying, offset)
	}
	return nil
}

// source returns the next page of the source, which must not have grown or
// shrunk.
func (c *copier) source(ctx context.Context, offset int) ([]relayer.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, total, err := c.src.List(ctx, offset, c.limit)
	if err != nil {
		return nil, fmt.Errorf("read the source at offset %d: %w", offset, err)
	}
	if total != c.total || len(records) != min(c.limit, total-offset) {
		return nil, differs(offset, "the source had %d relayers, and then %d", c.total, total)
	}
	c.limit = nextCopyPage(records)
	return records, nil
}

// nextCopyPage is how many records to read after these.
func nextCopyPage(records []relayer.Record) int {
	size := 1
	for _, rec := range records {
		size += len(rec.Document) + len(rec.Private)
	}
	fitting := copyPageBytes / (size/len(records) + 1)
	return max(1, min(fitting, 2*len(records), longestCopyPage))
}

// destination returns a page of the destination, which must not hold more than
// the source, and how many records it holds.
func (c *copier) destination(ctx context.Context, offset, limit int) ([]relayer.Record, int, error) {
	records, held, err := c.dst.List(ctx, offset, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read the destination at offset %d: %w", offset, err)
	}
	if held > c.total {
		return nil, 0, c.surplus(ctx)
	}
	return records, held, nil
}

// surplus names the first record that the destination has beyond the source.
func (c *copier) surplus(ctx context.Context) error {
	beyond, held, err := c.dst.List(ctx, c.total, 1)
	if err != nil {
		return fmt.Errorf("read the destination at offset %d: %w", c.total, err)
	}
	if len(beyond) == 0 {
		return differs(c.total, "the destination had more relayers, and then %d", held)
	}
	return differs(c.total, "only the destination has %q", beyond[0].ID)
}

// compare returns how many of the records the destination holds, all of them
// from the first on and as they are.
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

// difference says in which part two records differ. It shows nothing of the
// parts: one of them is secret.
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
		return c.importRuns(ctx, offset, records)
	}
	for i, rec := range records {
		if _, err := c.dst.Create(ctx, rec); err != nil {
			return unwritten(offset+i, fmt.Errorf("create %q: %w", rec.ID, err))
		}
	}
	return nil
}

// importRuns imports as many records at a time as are not too large together: the
// length of a page goes by those before it.
func (c *copier) importRuns(ctx context.Context, offset int, records []relayer.Record) error {
	for len(records) > 0 {
		run := records[:runLength(records)]
		if err := c.importer.Import(ctx, run); err != nil {
			return unwritten(offset, err)
		}
		offset += len(run)
		records = records[len(run):]
	}
	return nil
}

func runLength(records []relayer.Record) int {
	size := 0
	for i, rec := range records {
		size += len(rec.Document) + len(rec.Private)
		if i > 0 && size > copyPageBytes {
			return i
		}
	}
	return len(records)
}

// unwritten says where a write failed. An id or a claim that is taken is taken by
// something that is not at its place in the destination.
func unwritten(offset int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, relayer.ErrExists), errors.Is(err, relayer.ErrClaimed):
		return fmt.Errorf("%w at offset %d: %w", ErrDiffers, offset, err)
	}
	return fmt.Errorf("write at offset %d: %w", offset, err)
}

func (c *copier) tell(stage Stage, done int) {
	c.report(Progress{Stage: stage, Done: done, Total: c.total})
}

func differs(offset int, format string, args ...any) error {
	return fmt.Errorf("%w at offset %d: %s", ErrDiffers, offset, fmt.Sprintf(format, args...))
}
