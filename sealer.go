package relayer

import "context"

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
