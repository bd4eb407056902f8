// Package keyring reads a file of named keys that rotate, and encrypts with them for package
// store/sealed, which seals the RPC URLs of relayers. See docs/security.md.
//
// The encryption is XChaCha20-Poly1305 with a random nonce of 192 bits: one key may seal any
// number of texts in practice. After 2^64 texts, the probability of a repeated nonce is below
// 2^-64.
package keyring

import (
	"context"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/go-relayer/relayer/store/sealed"
)

// Errors of this package. Match them with [errors.Is].
var (
	// ErrUnknownKey reports that the keyring does not have the key, or has another key of the
	// same ID. The error that wraps it names the key. From Open it has the fingerprint of each.
	ErrUnknownKey = errors.New("no such key in the keyring")

	// ErrNotAuthentic reports that a sealed text or its associated data was changed.
	ErrNotAuthentic = errors.New("sealed text is not authentic")

	// errFormat reports that a text was not sealed by this package, was truncated, or
	// was sealed by another version.
	errFormat = errors.New("not a sealed text of this version")
)

// Keyring seals and opens texts. It has one primary key, which seals, and any number of
// other keys, which only open. It never changes, and all methods are safe for concurrent
// use. Get one from [Load] or [Parse]. The zero value has no keys: it neither seals nor opens.
//
// A key is identified by its fingerprint, which is derived from its value. Its ID is a name
// for people: a text is opened with the key that sealed it, even if the key was renamed.
//
// A keyring that is printed, logged or encoded shows no key.
type Keyring struct {
	// load returns the keys, first the primary key. It is a function, because package fmt
	// prints only its address. In an unexported field of another struct fmt does not call
	// Format, and prints all data that it can reach.
	load func() []key
}

// keys returns none for the zero value.
func (k Keyring) keys() []key {
	if k.load == nil {
		return nil
	}
	return k.load()
}

type key struct {
	sealed.Key
	aead  cipher.AEAD
	value []byte
}

// fingerprintPurpose separates the fingerprint from other uses of a key.
const fingerprintPurpose = "relayer keyring fingerprint 1"

func newKey(id string, value []byte) (key, error) {
	aead, err := chacha20poly1305.NewX(value)
	if err != nil {
		return key{}, err
	}
	fingerprint, err := hkdf.Expand(sha256.New, value, fingerprintPurpose, fingerprintLength)
	return key{sealed.Key{ID: id, Fingerprint: hex.EncodeToString(fingerprint)}, aead, value}, err
}

// indexOf returns -1 if no key has the ID.
func indexOf(keys []key, id string) int {
	return slices.IndexFunc(keys, func(k key) bool { return k.ID == id })
}

// Keys returns the ID and the fingerprint of every key: first those of the primary key,
// which Seal uses, and then the others in the order of the file.
func (k Keyring) Keys() (keys []sealed.Key) {
	for _, key := range k.keys() {
		keys = append(keys, key.Key)
	}
	return keys
}

// Format prints the IDs and fingerprints of the keys, for every verb but %p, %T and %w.
func (k Keyring) Format(state fmt.State, _ rune) { fmt.Fprintf(state, "keyring%v", k.Keys()) }

// A sealed text is a header, a nonce, the encrypted text and its authentication tag. The
// header is the version, the length of the key ID, the key ID and the fingerprint of the key.
// It is authenticated together with the associated data.
const (
	version           = 3
	fingerprintLength = 8
	overhead          = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
)

// Seal encrypts plaintext under the primary key. Without keys it returns an error that matches
// [errors.ErrUnsupported]. Open needs the same associatedData, which is authenticated and not
// stored. The result is 50 bytes longer than plaintext and the key ID together.
func (k Keyring) Seal(_ context.Context, plaintext, associatedData []byte) ([]byte, error) {
	keys := k.keys()
	if len(keys) == 0 {
		return nil, fmt.Errorf("keyring: the keyring has no keys: %w", errors.ErrUnsupported)
	}
	text := append([]byte{version, byte(len(keys[0].ID))}, keys[0].ID...)
	text, err := hex.AppendDecode(text, []byte(keys[0].Fingerprint))
	authenticated := append(slices.Clip(text), associatedData...)
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	rand.Read(nonce) // never fails
	return keys[0].aead.Seal(append(text, nonce...), nonce, plaintext, authenticated), err
}

// Open decrypts a result of Seal. It returns an error that matches [ErrUnknownKey] and names the
// key, one that matches [ErrNotAuthentic], or one that reports that no keyring of this version
// sealed the text. Without keys, the first of these matches [errors.ErrUnsupported] too.
func (k Keyring) Open(_ context.Context, text, associatedData []byte) ([]byte, error) {
	header, sealedUnder, err := headerOf(text)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(k.keys(), func(other key) bool { return other.Fingerprint == sealedUnder.Fingerprint })
	if i < 0 {
		return nil, k.unknownKey(sealedUnder)
	}
	authenticated := append(slices.Clip(header), associatedData...)
	nonce, encrypted := text[len(header):][:chacha20poly1305.NonceSizeX], text[len(header)+chacha20poly1305.NonceSizeX:]
	plaintext, err := k.keys()[i].aead.Open(nil, nonce, encrypted, authenticated)
	if err != nil {
		return nil, fmt.Errorf("keyring: key %s: %w", sealedUnder.ID, ErrNotAuthentic)
	}
	return plaintext, nil
}

func (k Keyring) unknownKey(sealedUnder sealed.Key) error {
	err := fmt.Errorf("keyring: %w with the fingerprint %s", noKey(sealedUnder.ID), sealedUnder.Fingerprint)
	if len(k.keys()) == 0 { // it does not support opening at all
		return fmt.Errorf("%w: the keyring has no keys: %w", err, errors.ErrUnsupported)
	}
	if i := indexOf(k.keys(), sealedUnder.ID); i >= 0 {
		return fmt.Errorf("%w: that of the keyring has the fingerprint %s", err, k.keys()[i].Fingerprint)
	}
	return err
}

// KeyOf returns the key that sealed a text, with the ID that it then had. It does not verify the
// text, and needs no key. It returns an error if the text does not have the form of this version.
func (Keyring) KeyOf(text []byte) (sealed.Key, error) {
	_, sealedUnder, err := headerOf(text)
	return sealedUnder, err
}

// headerOf returns the header of a sealed text, and the key in it.
func headerOf(text []byte) ([]byte, sealed.Key, error) {
	if len(text) >= 2 && text[0] == version {
		idEnd := 2 + int(text[1])
		end := idEnd + fingerprintLength
		if len(text) >= end+overhead && keyID.Match(text[2:idEnd]) {
			return text[:end], sealed.Key{ID: string(text[2:idEnd]), Fingerprint: hex.EncodeToString(text[idEnd:end])}, nil
		}
	}
	return nil, sealed.Key{}, fmt.Errorf("keyring: %w", errFormat)
}

var keyID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
