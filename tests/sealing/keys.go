//go:build soak

// Package sealing has the adapters that docs/security.md names for keysets of Tink and for the key
// management services that Tink supports.
package sealing

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/go-relayer/relayer/store/sealed"
)

// KeysetKeys are [sealed.Keys] of a keyset in memory, with keys that write the prefix of Tink.
type KeysetKeys struct {
	tink.AEAD
	Primary uint32 // the ID of the primary key
}

// Seal implements [sealed.Keys].
func (k KeysetKeys) Seal(_ context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return k.Encrypt(plaintext, associatedData)
}

// Open implements [sealed.Keys].
func (k KeysetKeys) Open(_ context.Context, text, associatedData []byte) ([]byte, error) {
	return k.Decrypt(text, associatedData)
}

// Keys implements [sealed.Keys]. The primary key is enough for a rotation.
func (k KeysetKeys) Keys() []sealed.Key { return []sealed.Key{keysetKey(k.Primary)} }

// KeyOf implements [sealed.Keys].
func (k KeysetKeys) KeyOf(text []byte) (sealed.Key, error) {
	if len(text) < 5 || text[0] != 1 {
		return sealed.Key{}, errors.New("the text has no prefix of Tink")
	}
	return keysetKey(binary.BigEndian.Uint32(text[1:])), nil
}

func keysetKey(id uint32) sealed.Key { return sealed.Key{ID: strconv.FormatUint(uint64(id), 10)} }

// KMSKeys are [sealed.Keys] of a key management service that is called for every text, and that
// rotates a key under one name.
type KMSKeys struct {
	tink.AEADWithContext
	Name string
}

// Seal implements [sealed.Keys].
func (k KMSKeys) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return k.EncryptWithContext(ctx, plaintext, associatedData)
}

// Open implements [sealed.Keys].
func (k KMSKeys) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	return k.DecryptWithContext(ctx, text, associatedData)
}

// Keys implements [sealed.Keys].
func (k KMSKeys) Keys() []sealed.Key { return []sealed.Key{{ID: k.Name}} }

// KeyOf implements [sealed.Keys]. The text does not show the version of the key: Reseal seals
// every text again.
func (k KMSKeys) KeyOf([]byte) (sealed.Key, error) {
	return sealed.Key{}, errors.New("the service does not name the key of a text")
}
