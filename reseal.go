package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Reseal stores every private part as the options of the Manager require: sealed under the
// primary key of a [KeyedSealer], or in clear with [WithUnsealing]. With a Sealer that is
// not a KeyedSealer, all parts are sealed again. It yields the ID of each relayer that it
// has stored, and the ID and an error for each that it cannot open or store; it continues
// with the next one unless ctx is done. Up to 16 are stored at once, in any order, before the
// first of them is yielded. To bound the rate, wait in the loop body.
//
// An error with an empty ID is the last. If the store cannot read a record because it is
// damaged, Reseal seals the others before it yields that error. If a part is under a key
// other than the one of the same ID that the sealer has, Reseal stores nothing, and yields
// the error of [Manager.CountSealed].
//
// A rotation first changes the primary key and then calls Reseal, on every instance. Reseal
// waits for the writes of this Manager and its views that began before the call: they may
// have sealed under the earlier key. When it ends without an error, nothing that existed is
// under another key, and this Manager can write nothing under one. When it has ended on every
// instance, the store has nothing under another key. Do not call it from a hook of a write.
//
// Each is stored with a compare-and-swap, so that it never undoes the change of another
// writer, and has a new revision. To resume an interrupted Reseal, call it again. The
// sequence can be ranged over once.
func (m *Manager) Reseal(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := m.beforeReseal(ctx); err != nil {
			yield("", err)
			return
		}
		var damage error
		outdated := func(yield func(Record, error) bool) {
			for rec, err := range m.allRecords(ctx, Selector{}) {
				if errors.Is(err, ErrCorrupt) {
					damage = cmp.Or(damage, err)
					continue
				}
				if (err != nil || !m.isSealedAsRequired(rec.Private)) && !yield(rec, err) {
					return
				}
			}
		}
		if m.rewriteAll(ctx, outdated, m.resealed, yield) && damage != nil {
			yield("", damage)
		}
	}
}

// beforeReseal waits for the writes that may have sealed under an earlier key, and checks
// the keys.
func (m *Manager) beforeReseal(ctx context.Context) error {
	if m.sealer == nil {
		return fmt.Errorf("relayer: resealing needs a sealer: %w", errors.ErrUnsupported)
	}
	if err := m.writes.await(ctx); err != nil {
		return err
	}
	if _, err := m.CountSealed(ctx); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrSealed) {
		return err
	}
	return nil // Reseal reports the damage
}

// resealed returns the record as the options of the Manager require it.
func (m *Manager) resealed(ctx context.Context, rec Record) (Record, error) {
	if m.isSealedAsRequired(rec.Private) {
		return rec, nil
	}
	opened, err := m.openRecord(ctx, rec)
	if err != nil {
		return Record{}, err
	}
	return m.seal(ctx, opened)
}

func (m *Manager) isSealedAsRequired(private []byte) bool {
	if len(private) == 0 || m.storesClear {
		return !isSealed(private)
	}
	return isUnderPrimaryKey(m.sealer, private)
}

func isUnderPrimaryKey(sealer Sealer, private []byte) bool {
	keyed, ok := sealer.(KeyedSealer)
	if !ok || !isSealed(private) {
		return false
	}
	key, err := keyed.KeyOf(private[1:])
	return err == nil && key == keyed.Keys()[0]
}

// SealCounts has the numbers of private parts by the key that sealed them.
type SealCounts struct {
	// Clear is the number of private parts that are not sealed.
	Clear int

	// Keys has the number of sealed parts by key. The key is the zero SealingKey if the
	// sealer does not return one.
	Keys map[SealingKey]int
}

// CountSealed counts the private parts of all relayers by the key that sealed them. A relayer
// without RPC URLs has none. It opens none of them. It distinguishes the keys if the sealer has
// the method KeyOf of a [KeyedSealer].
//
// It returns the counts with an error that matches [ErrSealed], and names both fingerprints,
// if a part is under a key that the KeyedSealer does not have, but of which it has the ID:
// the file of the keys is probably that of another database. Call it before a Manager uses
// new keys. If relayers are damaged, it counts the others and returns the counts with an
// error that matches [ErrCorrupt].
func (m *Manager) CountSealed(ctx context.Context) (SealCounts, error) {
	counts := SealCounts{Keys: make(map[SealingKey]int)}
	var damage error
	for rec, err := range m.allRecords(ctx, Selector{}) {
		switch {
		case errors.Is(err, ErrCorrupt):
			damage = cmp.Or(damage, err)
		case err != nil:
			return SealCounts{}, err
		case len(rec.Private) == 0:
		case !isSealed(rec.Private):
			counts.Clear++
		default:
			counts.Keys[m.keyOf(rec.Private[1:])]++
		}
	}
	return counts, errors.Join(m.checkKeys(counts), damage)
}

// keyOf returns the zero SealingKey if the sealer has no keys, or the part is damaged.
func (s *settings) keyOf(sealed []byte) SealingKey {
	keyed, ok := s.sealer.(interface {
		KeyOf(sealed []byte) (SealingKey, error)
	})
	if !ok {
		return SealingKey{}
	}
	key, err := keyed.KeyOf(sealed)
	if err != nil {
		return SealingKey{}
	}
	return key
}

// checkKeys returns an error if parts are under another key than the one of the same ID.
func (s *settings) checkKeys(counts SealCounts) error {
	keyed, ok := s.sealer.(KeyedSealer)
	if !ok {
		return nil
	}
	keys := keyed.Keys()
	for sealedUnder, count := range counts.Keys {
		isIt := func(key SealingKey) bool { return key.Fingerprint == sealedUnder.Fingerprint }
		if sealedUnder.Fingerprint == "" || slices.ContainsFunc(keys, isIt) {
			continue
		}
		for _, key := range keys {
			if key.ID == sealedUnder.ID {
				return fmt.Errorf("relayer: %w under another key of the same name: key %s has the fingerprint %s, and the URLs of %d are under one with the fingerprint %s: use the right keys, or add that key under another name",
					sealError{ErrSealed}, key.ID, key.Fingerprint, count, sealedUnder.Fingerprint)
			}
		}
	}
	return nil
}
