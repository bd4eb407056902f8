// Package keyring seals small secrets under a file of named keys that rotate. A
// [Keyring] is a sealer for the RPC URLs of relayers: see docs/sealing.md.
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
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// The errors of Open and of [KeyID]. Match them with [errors.Is].
var (
	// ErrUnknownKey reports that the keyring does not have the key. The error that wraps
	// it names the key.
	ErrUnknownKey = errors.New("no such key in the keyring")

	// ErrNotAuthentic reports that a sealed text or its associated data was changed, or
	// that a key has the right name and the wrong value.
	ErrNotAuthentic = errors.New("sealed text is not authentic")

	// ErrFormat reports that a text was not sealed by this package, was truncated, or
	// was sealed by a newer version.
	ErrFormat = errors.New("not a sealed text of this version")
)

// Keyring seals and opens texts. It has one primary key, which seals, and any number of
// other keys, which only open. It never changes, and all methods are safe for concurrent
// use. Get one from [Load] or [Parse]; the zero value has no keys.
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
	ids     []string // in the order of the file
	keys    map[string][]byte

	sealing atomic.Pointer[sealingCipher] // under the primary key
	opening cipherCache
}

const keyLength = 32

// PrimaryKeyID returns the ID of the key that Seal uses.
func (k Keyring) PrimaryKeyID() string { return k.ring().primary }

// KeyIDs returns the IDs of all keys, in the order of the file.
func (k Keyring) KeyIDs() []string { return slices.Clone(k.ring().ids) }

// Format prints the IDs of the keys, for every verb.
func (k Keyring) Format(state fmt.State, _ rune) {
	fmt.Fprintf(state, "keyring%q primary %q", k.KeyIDs(), k.PrimaryKeyID())
}

// A sealed text is a header, a nonce, the encrypted text and its authentication tag. The
// header is the version, the length of the key ID, the key ID and the salt.
const (
	version    = 1
	saltLength = 16
)

// purpose separates the derived keys from other uses of a key.
const purpose = "relayer keyring 1"

// Seal encrypts plaintext under the primary key. Open needs the same associatedData,
// which is authenticated and not stored. The result is 46 bytes longer than plaintext
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
// names the key, [ErrNotAuthentic] or [ErrFormat]. If the keyring has no keys, the error
// matches [errors.ErrUnsupported] too.
func (k Keyring) Open(_ context.Context, sealed, associatedData []byte) ([]byte, error) {
	id, err := KeyID(sealed)
	if err != nil {
		return nil, err
	}
	r, header := k.ring(), sealed[:headerLength(id)]
	if r.keys[id] == nil {
		return nil, fmt.Errorf("keyring: %w", r.unknownKey(id))
	}
	aead := r.opening.get(header)
	if aead == nil {
		if aead, err = r.aead(id, header); err != nil {
			return nil, fmt.Errorf("keyring: key %s: %w", id, err)
		}
	}
	plaintext, err := aead.Open(nil, nil, sealed[len(header):], authenticated(header, associatedData))
	if err != nil {
		return nil, fmt.Errorf("keyring: key %s: %w", id, ErrNotAuthentic)
	}
	r.opening.add(header, aead)
	return plaintext, nil
}

// unknownKey returns the error for a missing key. A keyring without keys is used in place
// of none, and does not support opening at all.
func (r *ring) unknownKey(id string) error {
	if len(r.keys) == 0 {
		return fmt.Errorf("%w: the keyring has no keys: %w", noKey(id), errors.ErrUnsupported)
	}
	return noKey(id)
}

// KeyID returns the ID of the key that sealed a text. It does not verify the text. It
// returns an error that matches [ErrFormat] if no keyring of this version sealed it.
func KeyID(sealed []byte) (string, error) {
	if len(sealed) < 2 || sealed[0] != version {
		return "", fmt.Errorf("keyring: %w", ErrFormat)
	}
	length := int(sealed[1])
	if len(sealed) < 2+length+saltLength+overhead {
		return "", fmt.Errorf("keyring: %w", ErrFormat)
	}
	id := string(sealed[2 : 2+length])
	if !isKeyID(id) {
		return "", fmt.Errorf("keyring: %w", ErrFormat)
	}
	return id, nil
}

// KeyID is [KeyID], as a method of a sealer with named keys.
func (Keyring) KeyID(sealed []byte) (string, error) { return KeyID(sealed) }

// overhead is the length of nonce and authentication tag.
const overhead = 12 + 16

func headerLength(id string) int { return 2 + len(id) + saltLength }

// aead derives the cipher of the sealed texts with a header. It chooses random nonces.
func (r *ring) aead(id string, header []byte) (cipher.AEAD, error) {
	salt := header[len(header)-saltLength:]
	derived, err := hkdf.Expand(sha256.New, r.keys[id], purpose+string(salt), keyLength)
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
