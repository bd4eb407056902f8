// Package keyring seals small secrets under a file of named keys that rotate. A
// [Keyring] is a sealer for the RPC URLs of relayers: see docs/security.md.
//
// The encryption is AES-256-GCM with random nonces, under keys that HKDF-SHA256 derives from
// a key of the file and a random salt of 128 bits. One derived key seals at most 2^20 texts
// (1,048,576), so that the probability of a repeated nonce under it is below 2^-57. Then, and
// in each process, another salt is used. The number of texts that one key of the file may
// seal is therefore not limited in practice: after 2^48 texts, the probability of a repeated
// nonce is below 2^-28.
package keyring

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/go-relayer/relayer"
)

// The errors of Open and of [Keyring.KeyOf]. Match them with [errors.Is].
var (
	// ErrUnknownKey reports that the keyring does not have the key, or has another key of
	// the same ID. The error that wraps it names the key and its fingerprint, and
	// that of the other key.
	ErrUnknownKey = errors.New("no such key in the keyring")

	// ErrNotAuthentic reports that a sealed text or its associated data was changed.
	ErrNotAuthentic = errors.New("sealed text is not authentic")

	// errFormat reports that a text was not sealed by this package, was truncated, or
	// was sealed by a newer version.
	errFormat = errors.New("not a sealed text of this version")
)

// Keyring seals and opens texts. It has one primary key, which seals, and any number of
// other keys, which only open. It never changes, and all methods are safe for concurrent
// use. Get one from [Load] or [Parse]; the zero value has no keys, and
// [relayer.WithSealer] refuses it.
//
// A key is identified by its fingerprint, which is derived from its value. Its ID is a name
// for people: a text is opened with the key that sealed it, even if the key was renamed.
//
// A keyring that is printed, logged or encoded shows no key.
type Keyring struct {
	// load is a function, because package fmt prints only its address. In an unexported
	// field of another struct fmt does not call Format, and prints all data that it can
	// reach.
	load func() *ring
}

func newKeyring(r *ring) Keyring { return Keyring{func() *ring { return r }} }

// ring returns the keys. Those of the zero value are empty.
func (k Keyring) ring() *ring {
	if k.load == nil {
		return new(ring)
	}
	return k.load()
}

type ring struct {
	primary string
	keys    []key // in the order of the file

	sealing atomic.Pointer[sealingCipher] // under the primary key
	opening cipherCache
}

const keyLength = 32

type key struct {
	relayer.SealingKey
	value []byte
}

func newKey(id string, value []byte) (key, error) {
	fingerprint, err := hkdf.Expand(sha256.New, value, fingerprintPurpose, fingerprintLength)
	return key{relayer.SealingKey{ID: id, Fingerprint: hex.EncodeToString(fingerprint)}, value}, err
}

// named returns nil if there is no such key.
func (r *ring) named(id string) *key {
	for i := range r.keys {
		if r.keys[i].ID == id {
			return &r.keys[i]
		}
	}
	return nil
}

// find returns the key that sealed a text.
func (r *ring) find(sealedUnder relayer.SealingKey) (*key, error) {
	for i := range r.keys {
		if r.keys[i].Fingerprint == sealedUnder.Fingerprint {
			return &r.keys[i], nil
		}
	}
	if len(r.keys) == 0 { // it does not support opening at all
		return nil, fmt.Errorf("%w: the keyring has no keys: %w", noKey(sealedUnder.ID), errors.ErrUnsupported)
	}
	err := fmt.Errorf("%w with the fingerprint %s", noKey(sealedUnder.ID), sealedUnder.Fingerprint)
	if named := r.named(sealedUnder.ID); named != nil {
		err = fmt.Errorf("%w: that of the keyring has the fingerprint %s", err, named.Fingerprint)
	}
	return nil, err
}

// Keys returns the ID and the fingerprint of every key: first those of the primary key,
// which Seal uses, and then the others in the order of the file.
func (k Keyring) Keys() []relayer.SealingKey {
	var keys []relayer.SealingKey
	r := k.ring()
	if primary := r.named(r.primary); primary != nil {
		keys = append(keys, primary.SealingKey)
	}
	for _, other := range r.keys {
		if other.ID != r.primary {
			keys = append(keys, other.SealingKey)
		}
	}
	return keys
}

// Format prints the IDs and fingerprints of the keys, for every verb.
func (k Keyring) Format(state fmt.State, _ rune) { fmt.Fprintf(state, "keyring%v", k.Keys()) }

// A sealed text is a header, a nonce, the encrypted text and its authentication tag. The
// header is the version, the length of the key ID, the key ID, the fingerprint of the key
// and the salt.
const (
	version           = 2
	fingerprintLength = 8
	saltLength        = 16
)

// The purposes separate the derived keys and the fingerprint from other uses of a key.
const (
	purpose            = "relayer keyring 1"
	fingerprintPurpose = "relayer keyring fingerprint 1"
)

// Seal encrypts plaintext under the primary key. Open needs the same associatedData,
// which is authenticated and not stored. The result is 54 bytes longer than plaintext
// and the key ID together.
func (k Keyring) Seal(_ context.Context, plaintext, associatedData []byte) ([]byte, error) {
	c, err := k.ring().sealingCipher()
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	sealed := make([]byte, len(c.header), len(c.header)+overhead+len(plaintext))
	copy(sealed, c.header)
	return c.aead.Seal(sealed, nil, plaintext, authenticated(c.header, associatedData)), nil
}

// Open decrypts a result of Seal. It returns an error that matches [ErrUnknownKey] and
// names the key, one that matches [ErrNotAuthentic], or one that reports that no keyring of
// this version sealed the text. If the keyring has no keys, the error matches
// [errors.ErrUnsupported] too.
func (k Keyring) Open(_ context.Context, sealed, associatedData []byte) ([]byte, error) {
	header, err := headerOf(sealed)
	if err != nil {
		return nil, fmt.Errorf("keyring: %w", err)
	}
	r := k.ring()
	aead := r.opening.get(header)
	if aead == nil {
		if aead, err = r.openingCipher(header); err != nil {
			return nil, fmt.Errorf("keyring: %w", err)
		}
	}
	plaintext, err := aead.Open(nil, nil, sealed[len(header):], authenticated(header, associatedData))
	if err != nil {
		return nil, fmt.Errorf("keyring: key %s: %w", keyOf(header).ID, ErrNotAuthentic)
	}
	r.opening.add(header, aead)
	return plaintext, nil
}

func (r *ring) openingCipher(header []byte) (cipher.AEAD, error) {
	found, err := r.find(keyOf(header))
	if err != nil {
		return nil, err
	}
	return found.cipher(header)
}

// KeyOf returns the key that sealed a text, with the ID that it then had. It does not verify
// the text, and needs no key. It returns an error if no keyring of this version sealed the text.
func (Keyring) KeyOf(sealed []byte) (relayer.SealingKey, error) {
	header, err := headerOf(sealed)
	if err != nil {
		return relayer.SealingKey{}, fmt.Errorf("keyring: %w", err)
	}
	return keyOf(header), nil
}

func headerOf(sealed []byte) ([]byte, error) {
	if len(sealed) < 2 || sealed[0] != version {
		return nil, errFormat
	}
	idEnd := 2 + int(sealed[1])
	length := idEnd + fingerprintLength + saltLength
	if len(sealed) < length+overhead || !isKeyID(string(sealed[2:idEnd])) {
		return nil, errFormat
	}
	return sealed[:length], nil
}

func keyOf(header []byte) relayer.SealingKey {
	idEnd := 2 + int(header[1])
	fingerprint := header[idEnd : len(header)-saltLength]
	return relayer.SealingKey{ID: string(header[2:idEnd]), Fingerprint: hex.EncodeToString(fingerprint)}
}

// overhead is the length of nonce and authentication tag.
const overhead = 12 + 16

// cipher derives the cipher of the sealed texts with a header. It chooses random nonces.
func (k *key) cipher(header []byte) (cipher.AEAD, error) {
	salt := header[len(header)-saltLength:]
	derived, err := hkdf.Expand(sha256.New, k.value, purpose+string(salt), keyLength)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// authenticated returns header and associatedData. The header contains its own length,
// so that the concatenation is unambiguous.
func authenticated(header, associatedData []byte) []byte {
	return append(header[:len(header):len(header)], associatedData...)
}

func isKeyID(id string) bool {
	const permitted = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return len(id) >= 1 && len(id) <= 64 && strings.Trim(id, permitted) == ""
}
