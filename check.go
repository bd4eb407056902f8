package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Check compares the document of each relayer with the terms, text, claim and RPC URLs of its
// [Record]. Without keys, Check skips sealed URLs. It yields the ID and an error that matches
// [ErrCorrupt] for each relayer that differs, and for each that the store cannot read. If a seal
// is unreadable, or the keys of the store cannot open it, the error matches [ErrSealed] instead.
// An error without an ID is the last, unless it matches ErrCorrupt. Check changes nothing.
func (m *Manager) Check(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for rec, err := range m.allRecords(ctx, Selector{}) {
			if corrupt, isDamaged := errors.AsType[*CorruptError](err); isDamaged {
				rec.ID = corrupt.ID
			} else if err = cmp.Or(err, checkRecord(rec)); err == nil {
				if _, err = m.fullRelayerOf(ctx, rec); errors.Is(err, errors.ErrUnsupported) {
					err = nil // sealed, and there are no keys
				}
			}
			if err != nil && !yield(rec.ID, err) {
				return
			}
		}
	}
}

func checkRecord(rec Record) error {
	r, err := documentRelayer(rec)
	if err != nil {
		return err
	}
	part := cmp.Or(
		problemIf(rec.ID != r.ID, "id"),
		problemIf(rec.Claim != "" && rec.Claim != signerClaim(r), "claim"),
		problemIf(!slices.Equal(rec.Terms, termsOf(r, rec.Claim)), "terms"),
		problemIf(rec.Text != searchText(r), "text"),
	)
	if part == "" {
		return nil
	}
	return fmt.Errorf("%w: the %s of relayer %s does not match its document: store the relayer again, or restore a backup", ErrCorrupt, part, rec.ID)
}
