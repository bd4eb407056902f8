// Package sealing has the adapters that docs/security.md names for keysets of Tink and for the key
// management services that Tink supports.
package sealing

import (
	"context"

	"github.com/tink-crypto/tink-go/v2/tink"
)

// KeysetSealer is a [relayer.Sealer] for a keyset in memory.
type KeysetSealer struct{ tink.AEAD }

// Seal implements [relayer.Sealer].
func (s KeysetSealer) Seal(_ context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return s.Encrypt(plaintext, associatedData)
}

// Open implements [relayer.Sealer].
func (s KeysetSealer) Open(_ context.Context, sealed, associatedData []byte) ([]byte, error) {
	return s.Decrypt(sealed, associatedData)
}

// KMSSealer is a [relayer.Sealer] that calls a key management service for every text.
type KMSSealer struct{ tink.AEADWithContext }

// Seal implements [relayer.Sealer].
func (s KMSSealer) Seal(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	return s.EncryptWithContext(ctx, plaintext, associatedData)
}

// Open implements [relayer.Sealer].
func (s KMSSealer) Open(ctx context.Context, sealed, associatedData []byte) ([]byte, error) {
	return s.DecryptWithContext(ctx, sealed, associatedData)
}
