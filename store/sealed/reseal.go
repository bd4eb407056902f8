package sealed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/go-relayer/relayer"
)

// Reseal stores every private part as the options require: sealed under the primary key, or in
// clear with [Off]. It yields the ID of each relayer that it has stored, and the ID and an
// error for each that it cannot open or store, and continues with the next one. An error with
// an empty ID is the last: it reports damaged records after all others are sealed, or, before
// any is stored, the error of [Store.Count] for wrong keys. To bound the rate, wait in the loop
// body. To resume an interrupted Reseal, call it again.
//
// A rotation first changes the primary key and then calls Reseal, on every instance. Reseal
// waits for the writes of this Store that began before the call. When it ends without an error,
// nothing that existed is under another key, and this Store can write nothing under one. When it
// has ended on every instance, the inner store has nothing under another key. Do not call it
// from a hook of a write.
//
// Each relayer is stored with a compare-and-swap, and has a new revision with the note of the one
// before: who changed it last stays as it is. The sequence can be ranged over once.
func (s *Store) Reseal(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if len(s.keys.Keys()) == 0 {
			yield("", fmt.Errorf("relayer: resealing needs keys: %w", errors.ErrUnsupported))
			return
		}
		err := s.awaitWrites(ctx)
		if err == nil {
			_, err = s.Count(ctx)
		}
		if err != nil && (!errors.Is(err, relayer.ErrCorrupt) || errors.Is(err, relayer.ErrSealed)) {
			yield("", err)
			return
		}
		var damage error
		for rec, err := range s.records(ctx) {
			if errors.Is(err, relayer.ErrCorrupt) {
				damage = cmp.Or(damage, err)
				continue
			}
			isStored := false
			if err == nil {
				isStored, err = s.reseal(ctx, rec)
			}
			if (isStored || err != nil) && !yield(rec.ID, err) {
				return
			}
		}
		if damage != nil {
			yield("", damage)
		}
	}
}

// reseal stores a private part as the options require, and reports whether it has. It begins
// again if another writer was faster.
func (s *Store) reseal(ctx context.Context, rec relayer.Record) (isStored bool, err error) {
	for !s.isAsRequired(rec.Private) {
		opened, err := s.Open(ctx, rec)
		if err != nil {
			return false, err
		}
		if _, err = s.store(ctx, opened, s.Store.Update); err == nil {
			return true, nil
		}
		if errors.Is(err, relayer.ErrConflict) {
			rec, err = s.Get(ctx, rec.ID)
		}
		if errors.Is(err, relayer.ErrNotFound) { // another writer has deleted it
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func (s *Store) isAsRequired(private []byte) bool {
	if len(private) == 0 || s.off {
		return !isSealed(private)
	}
	keys := s.keys.Keys()
	return isSealed(private) && len(keys) > 0 && s.keyOf(private) == keys[0]
}

// keyOf returns the zero Key if the key of a sealed private part cannot be determined.
func (s *Store) keyOf(private []byte) Key {
	if key, err := s.keys.KeyOf(private[1:]); err == nil && private[0] == mark {
		return key
	}
	return Key{}
}

// Counts has the numbers of private parts by the key that sealed them.
type Counts struct {
	Clear int         // those that are not sealed
	Keys  map[Key]int // under the zero Key those whose key cannot be determined
}

// Count counts the private parts of all relayers by the key that sealed them, without opening
// them. A relayer without RPC URLs has none. It returns the counts with an error that matches
// [relayer.ErrSealed], and names both fingerprints, if a part is under a key that the keys do
// not have, but of which they have the ID: the keys are probably those of another database.
// Call it before a Manager uses new keys. If relayers are damaged, it returns the counts of the
// others with an error that matches [relayer.ErrCorrupt].
func (s *Store) Count(ctx context.Context) (Counts, error) {
	counts := Counts{Keys: make(map[Key]int)}
	var damage error
	for rec, err := range s.records(ctx) {
		switch {
		case errors.Is(err, relayer.ErrCorrupt):
			damage = cmp.Or(damage, err)
		case err != nil:
			return Counts{}, err
		case isSealed(rec.Private):
			counts.Keys[s.keyOf(rec.Private)]++
		case len(rec.Private) > 0:
			counts.Clear++
		}
	}
	return counts, errors.Join(s.checkKeys(counts), damage)
}

// checkKeys returns an error if parts are under another key than the one of the same ID.
func (s *Store) checkKeys(counts Counts) error {
	keys := s.keys.Keys()
	for sealedUnder, count := range counts.Keys {
		isIt := func(key Key) bool { return key.Fingerprint == sealedUnder.Fingerprint }
		isNamesake := func(key Key) bool { return key.ID == sealedUnder.ID }
		if i := slices.IndexFunc(keys, isNamesake); i >= 0 && sealedUnder.Fingerprint != "" && !slices.ContainsFunc(keys, isIt) {
			return fmt.Errorf("relayer: %w under another key of the same name: key %s has the fingerprint %s, and the URLs of %d are under one with the fingerprint %s: use the right keys, or add that key under another name",
				relayer.ErrSealed, keys[i].ID, keys[i].Fingerprint, count, sealedUnder.Fingerprint)
		}
	}
	return nil
}

// records yields all records in creation order. It yields an error that matches
// [relayer.ErrCorrupt] for each damaged record and continues behind it. Any other error is the
// last.
func (s *Store) records(ctx context.Context) iter.Seq2[relayer.Record, error] {
	const pageSize = 100
	return func(yield func(relayer.Record, error) bool) {
		for after := uint64(0); ; {
			page, err := s.List(ctx, relayer.StoreQuery{After: after, Limit: pageSize})
			for _, rec := range page.Records {
				if after = rec.Sequence; !yield(rec, nil) {
					return
				}
			}
			if err == nil && len(page.Records) < pageSize || err != nil && !yield(relayer.Record{}, err) {
				return
			}
			if corrupt, isDamaged := errors.AsType[*relayer.CorruptError](err); isDamaged && corrupt.Sequence > after {
				after = corrupt.Sequence
			} else if err != nil {
				return
			}
		}
	}
}
