package bolt

import (
	"context"
	"fmt"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/internal/limits"
)

var _ relayer.ImportStore = (*Store)(nil)

// Import adds the records after all others, with the given revisions: all of them
// or none, with one sync. It returns [relayer.ErrExists] if an ID is taken or
// occurs twice, and [relayer.ErrClaimed] if a claim is held or occurs twice.
//
// All records are one transaction. Other writes wait for it, and its pages stay
// in memory until it ends: import some thousands of records at a time.
func (s *Store) Import(ctx context.Context, records []relayer.Record) error {
	values := make([]encoded, len(records))
	size := 0
	for i, rec := range records {
		if err := limits.CheckImport(rec, maxRecordSize); err != nil {
			return refused(rec, err)
		}
		values[i] = encode(rec)
		size += len(values[i].value)
	}
	return s.do(ctx, size, func(b *batchTx) error { return b.importAll(records, values) })
}

func (b *batchTx) importAll(records []relayer.Record, values []encoded) error {
	if err := b.checkAllFree(records); err != nil {
		return err
	}
	for i, rec := range records {
		// An import can be long: the first verification was before its first write.
		err := b.verifyAppend(rec.ID, rec.Claim)
		if err == nil {
			err = b.add(rec.ID, rec.Claim, values[i], rec.Revision)
		}
		if err != nil {
			// The records before it must not be committed without it.
			return b.countWrite(err)
		}
	}
	return nil
}

// checkAllFree returns an error if a record has an ID or a claim that is taken in
// the file or by a record before it.
func (b *batchTx) checkAllFree(records []relayer.Record) error {
	ids := make(map[string]bool, len(records))
	claims := make(map[string]bool)
	for _, rec := range records {
		if ids[rec.ID] {
			return refused(rec, relayer.ErrExists)
		}
		if err := b.checkFree(rec.ID, rec.Claim); err != nil {
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

// refused names the record that the error is about.
func refused(rec relayer.Record, err error) error {
	return fmt.Errorf("import %q: %w", rec.ID, err)
}
