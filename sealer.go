package relayer

import (
	"context"
)

// Sealer encrypts and authenticates the private part of records. Package keyring has one
// for a file of keys; docs/security.md says what one for a key management service needs.
//
// Both methods must be safe for concurrent use, must return when ctx is done, and must
// not change their arguments. Their errors must contain no secret, and can be matched in those
// of the Manager. Later versions add no methods to it.
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
