package bolt

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
)

var _ relayer.ImportStore = (*Store)(nil)

// Import adds the records after all others, with the revisions given: all of
// them or none, with one sync. It returns [relayer.ErrExists] where an id is
// taken or comes twice, and [relayer.ErrClaimed] where a claim is held or comes
// twice.
//
// All of them are one transaction, which other writes wait for and whose pages
// are in memory until its end: rather import some thousands at a time than all.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	values := make([]encoded, len(records))
	size := 0
	for i, rec := range records {
		if err := keepsImportLimits(rec); err != nil {
			return refused(rec, err)
		}
		values[i] = encode(rec)
		size += len(values[i].value)
	}
	return s.queue.do(ctx, size, func(c *change) error { return c.importAll(records, values) })
}

func (c *change) importAll(records []relayer.Record, values []encoded) error {
	if err := c.allFree(records); err != nil {
		return err
	}
	for i, rec := range records {
		if err := c.add(rec.ID, rec.Claim, values[i], rec.Revision); err != nil {
			// Those before it are put, and must not be committed without it.
			return c.written(err)
		}
	}
	return nil
}

// allFree refuses records of which one has an id or a claim that the file, or a
// record before it, has already.
func (c *change) allFree(records []relayer.Record) error {
	ids := make(map[string]bool, len(records))
	claims := make(map[string]bool)
	for _, rec := range records {
		if ids[rec.ID] {
			return refused(rec, relayer.ErrExists)
		}
		if err := c.free(rec.ID, rec.Claim); err != nil {
			return refused(rec, err)
		}
		if claims[rec.Claim] {
			return refused(rec, relayer.ErrClaimed)
		}
		ids[rec.ID] = true
		claims[rec.Claim] = rec.Claim != ""
	}
	return nil
}

// refused says which of many records the error is about.
func refused(rec relayer.Record, err error) error {
	return fmt.Errorf("import %q: %w", rec.ID, err)
}
