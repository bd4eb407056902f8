package relayer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-relayer/relayer/internal/mask"
)

// Sealer encrypts and authenticates the private part of records. Package keyring has one
// for a file of keys; docs/sealing.md shows one for a key management service.
//
// Both methods must be safe for concurrent use, must return when ctx is done, and must
// not change their arguments. Their errors must contain no secret.
type Sealer interface {
	// Seal encrypts plaintext. The result authenticates plaintext and associatedData,
	// and need not contain associatedData.
	Seal(ctx context.Context, plaintext, associatedData []byte) (sealed []byte, err error)

	// Open decrypts a result of Seal. It returns an error if sealed or associatedData
	// was changed.
	Open(ctx context.Context, sealed, associatedData []byte) (plaintext []byte, err error)
}

// KeyedSealer is an optional capability of a [Sealer] that has several named keys.
// [Manager.Reseal] and [Manager.CountSealed] detect it with a type assertion.
type KeyedSealer interface {
	Sealer

	// PrimaryKeyID returns the ID of the key that Seal uses.
	PrimaryKeyID() string

	// KeyID returns the ID of the key of a result of Seal. It needs no key, and returns
	// an error if sealed is not a result of such a sealer.
	KeyID(sealed []byte) (string, error)
}

// WithSealer seals the RPC URLs of relayers: the store gets only their encrypted form,
// which is bound to the ID of the relayer. URLs that are stored in clear are read too;
// [Manager.Reseal] seals them.
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
// behaves like [WithSealer].
func WithUnsealing(sealer Sealer) Option { return withSealer(sealer, true) }

func withSealer(sealer Sealer, storesClear bool) Option {
	return Option{func(s *settings) error {
		if sealer == nil {
			return errors.New("relayer: sealer is nil")
		}
		s.sealer, s.storesClear = sealer, storesClear
		return nil
	}}
}

// sealedMark is the first byte of a sealed private part, and the version of its format. A
// private part in clear is a JSON object.
const sealedMark = 1

func isSealed(private []byte) bool { return len(private) > 0 && private[0] == sealedMark }

// associatedData binds a sealed private part to its format and its relayer.
func associatedData(id string) []byte { return []byte("relayer private part 1 " + id) }

// OpenRecord returns the record with its private part in clear. It returns an error that
// matches [ErrSealed] if the sealer cannot open it, and [errors.ErrUnsupported] too if it is
// sealed and sealer is nil.
func OpenRecord(ctx context.Context, sealer Sealer, rec Record) (Record, error) {
	if !isSealed(rec.Private) {
		return rec, nil
	}
	if sealer == nil {
		return Record{}, sealingError("opening", rec.ID, fmt.Errorf("there is no sealer: %w", errors.ErrUnsupported))
	}
	private, err := sealer.Open(ctx, rec.Private[1:], associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("opening", rec.ID, err)
	}
	rec.Private = private
	return rec, nil
}

// ResealRecord returns the record with its private part sealed under the primary key of the
// sealer. A part that is sealed under it already is returned as it is, if the sealer is a
// [KeyedSealer]. It returns an error that matches [ErrSealed] if the sealer fails.
func ResealRecord(ctx context.Context, sealer Sealer, rec Record) (Record, error) {
	if isUnderPrimaryKey(sealer, rec.Private) {
		return rec, nil
	}
	opened, err := OpenRecord(ctx, sealer, rec)
	if err != nil {
		return Record{}, err
	}
	return sealRecord(ctx, sealer, opened)
}

func isUnderPrimaryKey(sealer Sealer, private []byte) bool {
	keyed, ok := sealer.(KeyedSealer)
	if !ok || !isSealed(private) {
		return false
	}
	id, err := keyed.KeyID(private[1:])
	return err == nil && id == keyed.PrimaryKeyID()
}

// sealRecord seals the private part of a record, which is in clear.
func sealRecord(ctx context.Context, sealer Sealer, rec Record) (Record, error) {
	if len(rec.Private) == 0 {
		return rec, nil
	}
	sealed, err := sealer.Seal(ctx, rec.Private, associatedData(rec.ID))
	if err != nil {
		return Record{}, sealingError("sealing", rec.ID, err)
	}
	rec.Private = append([]byte{sealedMark}, sealed...)
	return rec, nil
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
func (m *Manager) seal(ctx context.Context, rec Record) (Record, error) {
	if m.sealer == nil || m.storesClear {
		return rec, nil
	}
	return sealRecord(ctx, m.sealer, rec)
}

// masks reports whether the Manager returns the RPC URLs of the record masked. With a
// sealer it does so whether or not they are sealed yet.
func (m *Manager) masks(rec Record) bool {
	return m.sealer != nil && len(rec.Private) > 0 || isSealed(rec.Private)
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
		r.CustomRPCURLs[i].URL = marked(r.CustomRPCURLs[i].URL)
	}
	return r, nil
}

// marked adds the mark of hidden user information to a URL of a document that has no
// mark: the full URL may have some.
func marked(url RPCURL) RPCURL {
	text := url.Unmasked()
	scheme, rest, isURL := strings.Cut(text, "://")
	if !isURL || strings.HasSuffix(text, mask.Path) {
		return url
	}
	return RPCURL(scheme + "://" + mask.Hidden + "@" + rest)
}

// openedRelayerOf decodes a record into a relayer with its full RPC URLs, or with masked
// ones if they cannot be opened.
func (m *Manager) openedRelayerOf(ctx context.Context, rec Record) (*Relayer, error) {
	opened, err := OpenRecord(ctx, m.sealer, rec)
	if err != nil {
		return maskedRelayerOf(rec)
	}
	return relayerOf(opened)
}

// RPCURLs returns the RPC endpoints of the relayer with their full URLs. It returns
// [ErrNotFound], or an error that matches [ErrSealed] if they cannot be opened, and
// [errors.ErrUnsupported] too if the Manager has no keys to open them.
func (m *Manager) RPCURLs(ctx context.Context, id string) ([]RPCConfig, error) {
	return observe(ctx, m, ActionReveal, id, func(ctx context.Context) ([]RPCConfig, error) {
		rec, err := m.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if rec, err = OpenRecord(ctx, m.sealer, rec); err != nil {
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
// with the next one unless ctx is done. To bound the rate, wait in the loop body.
//
// An error with an empty ID is the last. If the store cannot read a record because it is
// damaged, Reseal seals the others before it yields that error.
//
// Each is stored with a compare-and-swap, so that it never undoes the change of another
// writer, and has a new revision. To resume an interrupted Reseal, call it again. The
// sequence can be ranged over once.
func (m *Manager) Reseal(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if m.sealer == nil {
			yield("", errors.New("relayer: resealing needs a sealer"))
			return
		}
		ids, damage, err := m.idsToReseal(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, id := range ids {
			stored, err := m.reseal(ctx, id)
			if (stored || err != nil) && !yield(id, err) || ctx.Err() != nil {
				return
			}
		}
		if damage != nil {
			yield("", damage)
		}
	}
}

// idsToReseal returns the IDs of the records that Reseal has to store, and the error of the
// first damaged record. It reads all records first: a walk that is concurrent with a change
// of every record would restart again and again.
func (m *Manager) idsToReseal(ctx context.Context) (ids []string, damage, err error) {
	for rec, err := range m.allRecords(ctx, Selector{}) {
		switch {
		case errors.Is(err, ErrCorrupt):
			damage = cmp.Or(damage, err)
		case err != nil:
			return nil, nil, err
		case !m.isSealedAsRequired(rec.Private):
			ids = append(ids, rec.ID)
		}
	}
	return ids, damage, nil
}

func (m *Manager) isSealedAsRequired(private []byte) bool {
	if len(private) == 0 || m.storesClear {
		return !isSealed(private)
	}
	return isUnderPrimaryKey(m.sealer, private)
}

// reseal reports whether it has stored the record.
func (m *Manager) reseal(ctx context.Context, id string) (isStored bool, err error) {
	_, err = observeWrite(ctx, m, ActionUpdate, &id, nil, func(ctx context.Context, w *write) (Record, error) {
		return retry(ctx, func() (Record, error) {
			rec, err := m.get(ctx, id)
			if errors.Is(err, ErrNotFound) || err == nil && m.isSealedAsRequired(rec.Private) {
				return rec, nil
			}
			if err != nil {
				return Record{}, err
			}
			resealed, err := OpenRecord(ctx, m.sealer, rec)
			if err != nil {
				return Record{}, err
			}
			if resealed, err = m.seal(ctx, resealed); err != nil {
				return Record{}, err
			}
			resealed, err = m.swap(ctx, resealed)
			if isStored = err == nil; isStored {
				w.replaces(rec, resealed)
			}
			return resealed, err
		})
	})
	return isStored, err
}

// SealCounts has the numbers of private parts by the key that sealed them.
type SealCounts struct {
	// Clear is the number of private parts that are not sealed.
	Clear int

	// Keys has the number of sealed parts by key ID. The key ID is "" if the sealer does
	// not return one.
	Keys map[string]int
}

// CountSealed counts the private parts of all relayers by the key that sealed them. It
// opens none of them. Only a [KeyedSealer] distinguishes the keys.
func (m *Manager) CountSealed(ctx context.Context) (SealCounts, error) {
	counts := SealCounts{Keys: make(map[string]int)}
	keyed, _ := m.sealer.(KeyedSealer)
	for rec, err := range m.allRecords(ctx, Selector{}) {
		switch {
		case err != nil:
			return SealCounts{}, err
		case len(rec.Private) == 0:
		case !isSealed(rec.Private):
			counts.Clear++
		default:
			counts.Keys[keyOf(keyed, rec.Private[1:])]++
		}
	}
	return counts, nil
}

func keyOf(keyed KeyedSealer, sealed []byte) string {
	if keyed != nil {
		if id, err := keyed.KeyID(sealed); err == nil {
			return id
		}
	}
	return ""
}
