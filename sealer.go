package relayer

import (
	"context"
	"errors"
	"fmt"

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
