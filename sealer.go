package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/go-relayer/relayer/internal/mask"
)

// Sealer encrypts and authenticates the private part of records. Package keyring has one
// for a file of keys; docs/security.md says what one for a key management service needs.
//
// Both methods must be safe for concurrent use, must return when ctx is done, and must
// not change their arguments. Their errors must contain no secret. Later versions add no
// methods to it.
type Sealer interface {
	// Seal encrypts plaintext. The result authenticates plaintext and associatedData,
	// and need not contain associatedData. It may be any bytes.
	Seal(ctx context.Context, plaintext, associatedData []byte) (sealed []byte, err error)

	// Open decrypts a result of Seal. It returns an error if sealed or associatedData
	// was changed.
	Open(ctx context.Context, sealed, associatedData []byte) (plaintext []byte, err error)
}

// KeyedSealer is an optional capability of a [Sealer] that has several named keys, so that a
// rotation only stores again what is not under the primary key. A sealed text names its key in
// a part that it authenticates.
// [WithSealer], [Manager.Reseal] and [Manager.CountSealed] detect it with a type assertion.
type KeyedSealer interface {
	Sealer

	// Keys returns the keys: first the primary key, which Seal uses, and then those that
	// only open. It may return other keys after a rotation, and is never empty.
	Keys() []SealingKey

	// KeyOf returns the key of a result of Seal. It needs no key, and returns an error if
	// sealed is not a result of such a sealer.
	KeyOf(sealed []byte) (SealingKey, error)
}

// SealingKey identifies a key of a [KeyedSealer].
type SealingKey struct {
	// ID is the name of the key. Two keys may have the same.
	ID string

	// Fingerprint identifies the value of the key, and does not disclose it. It is empty if
	// it is not known.
	Fingerprint string
}

// String returns the ID and the fingerprint, for messages.
func (k SealingKey) String() string {
	if k.Fingerprint == "" {
		return k.ID
	}
	return k.ID + " (fingerprint " + k.Fingerprint + ")"
}

// WithSealer seals the RPC URLs of relayers: the store gets only their encrypted form,
// which is bound to the ID of the relayer. URLs that are stored in clear are read too,
// unless [WithSealedOnly] is set; [Manager.Reseal] seals them. A [KeyedSealer] without keys
// is an error, and so is a second sealer.
//
// [Manager.RPCURLs] and [Manager.Get] open the URLs. All other methods return them masked
// ([RPCURL.IsMasked] is true), and no change calls the sealer unless it changes the URLs.
// The function given to [Manager.Update] gets masked URLs first; if it changes the list
// of endpoints, it is called again with the full URLs.
//
// A Manager without a sealer reads sealed relayers too, with masked URLs. It stores new
// URLs in clear, but does not replace sealed ones.
func WithSealer(sealer Sealer) Option { return withSealer(sealer, false) }

// WithUnsealing turns sealing off: sealer opens the RPC URLs that are sealed, and new ones
// are stored in clear. [Manager.Reseal] then stores all of them in clear. Otherwise it
// behaves like [WithSealer], in place of which it is given. [WithSealedOnly] excludes it.
func WithUnsealing(sealer Sealer) Option { return withSealer(sealer, true) }

func withSealer(sealer Sealer, storesClear bool) Option {
	return Option{func(s *settings) error {
		if sealer == nil || isNilValue(sealer) {
			return errors.New("relayer: sealer is nil")
		}
		if keyed, isKeyed := sealer.(KeyedSealer); isKeyed && len(keyed.Keys()) == 0 {
			return errors.New("relayer: sealer has no keys")
		}
		if s.sealer != nil {
			return errors.New("relayer: a second sealer would replace the first one: give one WithSealer or WithUnsealing")
		}
		s.sealer, s.storesClear = sealer, storesClear
		return nil
	}}
}

// WithSealedOnly treats RPC URLs that are stored in clear as damage: somebody without the
// key may have written them. They are neither returned nor sealed. Operations that need them
// return a [*CorruptError] with the ID of the relayer: [Manager.RPCURLs], a change that keeps
// some of them, [Manager.Reseal] and [Manager.Check]. Other reads return them masked. All
// else works as for sealed URLs that cannot be opened: the relayer can be listed, paused,
// changed and deleted, and a change that replaces all of its URLs repairs it.
//
// Set it when [Manager.CountSealed] counts no URLs in clear. Without [WithSealer], new URLs
// are refused with [ErrSealed].
func WithSealedOnly() Option {
	return Option{func(s *settings) error {
		s.sealedOnly = true
		return nil
	}}
}

// sealedMark is the first byte of a sealed private part, and the version of its format. A
// private part in clear is a JSON object.
const sealedMark = 1

func isSealed(private []byte) bool { return len(private) > 0 && private[0] == sealedMark }

// associatedData binds a sealed private part to its format and its relayer.
func associatedData(id string) []byte { return []byte("relayer private part 1 " + id) }

// openRecord returns the record with its private part in clear. It returns an error that
// matches [ErrSealed] if the sealer cannot open it, and [errors.ErrUnsupported] too if it is
// sealed and there is no sealer.
func (s *settings) openRecord(ctx context.Context, rec Record) (Record, error) {
	if !isSealed(rec.Private) {
		return rec, s.checkClear(rec)
	}
	if s.sealer == nil {
		return Record{}, withoutSealer("opening", rec.ID)
	}
	private, err := s.sealer.Open(ctx, rec.Private[1:], associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("opening", rec.ID, err)
	}
	rec.Private = private
	return rec, nil
}

// checkClear returns a [*CorruptError] if the private part is in clear and must be sealed.
func (s *settings) checkClear(rec Record) error {
	if !s.sealedOnly || len(rec.Private) == 0 || isSealed(rec.Private) {
		return nil
	}
	return corruptPart(rec, "is in clear and must be sealed: replace all RPC URLs of the relayer, or restore a backup")
}

func isUnderPrimaryKey(sealer Sealer, private []byte) bool {
	keyed, ok := sealer.(KeyedSealer)
	if !ok || !isSealed(private) {
		return false
	}
	key, err := keyed.KeyOf(private[1:])
	return err == nil && key == keyed.Keys()[0]
}

// sealRecord seals the private part of a record, which is in clear.
func sealRecord(ctx context.Context, sealer Sealer, rec Record) (Record, error) {
	sealed, err := sealer.Seal(ctx, rec.Private, associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("sealing", rec.ID, err)
	}
	rec.Private = append([]byte{sealedMark}, sealed...)
	return rec, nil
}

func withoutSealer(action, id string) error {
	return sealingError(action, id, fmt.Errorf("there is no sealer: %w", errors.ErrUnsupported))
}

func sealingError(action, id string, err error) error {
	if errors.Is(err, errors.ErrUnsupported) { // there are no keys
		err = mask.Error(err)
	} else {
		err = faultError{err}
	}
	return fmt.Errorf("relayer: %s the RPC URLs of %s: %w: %w", action, id, sealError{ErrSealed}, err)
}

// sealError is an [ErrSealed] that matches [ErrUnavailable] too.
type sealError struct{ error }

func (e sealError) Unwrap() []error { return []error{e.error, ErrUnavailable} }

// seal returns the record, whose private part is in clear, as it is to be stored.
func (s *settings) seal(ctx context.Context, rec Record) (Record, error) {
	switch {
	case len(rec.Private) == 0 || s.storesClear || s.sealer == nil && !s.sealedOnly:
		return rec, nil
	case s.sealer == nil:
		return Record{}, withoutSealer("sealing", rec.ID)
	}
	return sealRecord(ctx, s.sealer, rec)
}

// masks reports whether the Manager returns the RPC URLs of the record masked. With a
// sealer it does so whether or not they are sealed yet.
func (m *Manager) masks(rec Record) bool {
	return m.sealer != nil || m.sealedOnly || isSealed(rec.Private)
}

// relayerOf decodes a record without calling the sealer.
func (m *Manager) relayerOf(rec Record) (*Relayer, error) {
	if m.masks(rec) {
		return maskedRelayerOf(rec)
	}
	return relayerOf(rec)
}

// maskedRelayerOf decodes a record into a relayer whose RPC URLs are masked.
func maskedRelayerOf(rec Record) (*Relayer, error) {
	r, err := documentRelayer(rec)
	if err != nil {
		return nil, err
	}
	for i := range r.CustomRPCURLs {
		r.CustomRPCURLs[i].URL = RPCURL(mask.Marked(r.CustomRPCURLs[i].URL.Unmasked()))
	}
	return r, nil
}

// openedRelayerOf decodes a record into a relayer with its full RPC URLs, or with masked
// ones if they cannot be opened.
func (m *Manager) openedRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	opened, err := m.openRecord(ctx, rec)
	if err != nil {
		return maskedRelayerOf(rec)
	}
	return relayerOf(opened)
}

// RPCURLs returns the RPC endpoints of the relayer with their full URLs. It returns
// [ErrNotFound], or an error that matches [ErrSealed] if they cannot be opened, and
// [errors.ErrUnsupported] too if the Manager has no keys to open them. It returns a
// [*CorruptError] if they are damaged, or in clear despite [WithSealedOnly].
func (m *Manager) RPCURLs(ctx context.Context, id string) ([]RPCConfig, error) {
	return observe(ctx, m, ActionReveal, id, func(ctx context.Context) ([]RPCConfig, error) {
		rec, err := m.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if rec, err = m.openRecord(ctx, rec); err != nil {
			return nil, err
		}
		r, err := relayerOf(rec)
		if err != nil {
			return nil, err
		}
		return r.CustomRPCURLs, nil
	})
}

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
		return errors.New("relayer: resealing needs a sealer")
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

// runningWrites are the writes in progress of a Manager and its views.
type runningWrites struct {
	mu     sync.Mutex
	writes map[chan struct{}]bool // closed when the write has ended
}

// begin adds a write. The caller calls end when it has ended.
func (r *runningWrites) begin() (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes == nil {
		r.writes = make(map[chan struct{}]bool)
	}
	write := make(chan struct{})
	r.writes[write] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.writes, write)
		close(write)
	}
}

// await waits until the writes that have begun have ended, or ctx is done.
func (r *runningWrites) await(ctx context.Context) error {
	r.mu.Lock()
	begun := slices.Collect(maps.Keys(r.writes))
	r.mu.Unlock()
	for _, write := range begun {
		select {
		case <-write:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
