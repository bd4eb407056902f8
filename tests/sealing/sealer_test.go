package sealing_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/testing/fakekms"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/tests/sealing"
)

const secret = "https://rpc.example.com/v3/0123456789abcdef"

// keysetSealer stores a new keyset encrypted under a key of the service, reads it back
// as a host does when it starts, and returns its sealer.
func keysetSealer(t *testing.T) relayer.Sealer {
	t.Helper()
	service := newService(t)
	created, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := created.WriteWithContext(t.Context(), keyset.NewJSONWriter(&file), service, nil); err != nil {
		t.Fatal(err)
	}
	handle, err := keyset.ReadWithContext(t.Context(), keyset.NewJSONReader(&file), service, nil)
	if err != nil {
		t.Fatal(err)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		t.Fatal(err)
	}
	return sealing.KeysetSealer{AEAD: primitive}
}

// service is a key management service that can be made to hang.
type service struct {
	*aead.KMSEnvelopeAEADWithContext
	isAway bool
}

func newService(t *testing.T) *service {
	t.Helper()
	uri, err := fakekms.NewKeyURI()
	if err != nil {
		t.Fatal(err)
	}
	remote, err := fakekms.NewAEADWithContext(uri)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), remote)
	if err != nil {
		t.Fatal(err)
	}
	return &service{KMSEnvelopeAEADWithContext: envelope}
}

func (s *service) EncryptWithContext(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	if s.isAway {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.KMSEnvelopeAEADWithContext.EncryptWithContext(ctx, plaintext, associatedData)
}

func (s *service) DecryptWithContext(ctx context.Context, sealed, associatedData []byte) ([]byte, error) {
	if s.isAway {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.KMSEnvelopeAEADWithContext.DecryptWithContext(ctx, sealed, associatedData)
}

func TestSealer_SealAndOpen(t *testing.T) {
	for name, sealer := range map[string]relayer.Sealer{
		"keyset": keysetSealer(t),
		"KMS":    sealing.KMSSealer{AEADWithContext: newService(t)},
	} {
		t.Run(name, func(t *testing.T) {
			sealed, err := sealer.Seal(t.Context(), []byte(secret), []byte("a"))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(sealed, []byte("rpc.example.com")) {
				t.Error("the sealed text contains a part of the plaintext")
			}
			if opened, err := sealer.Open(t.Context(), sealed, []byte("a")); err != nil || string(opened) != secret {
				t.Errorf("Open returned %q and %v", opened, err)
			}
			if _, err := sealer.Open(t.Context(), sealed, []byte("b")); err == nil {
				t.Error("Open accepted other associated data")
			}
			sealed[len(sealed)-1] ^= 1
			if _, err := sealer.Open(t.Context(), sealed, []byte("a")); err == nil {
				t.Error("Open accepted a changed text")
			}
		})
	}
}

func TestKMSSealer_ServiceAway(t *testing.T) {
	remote := newService(t)
	remote.isAway = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (sealing.KMSSealer{AEADWithContext: remote}).Seal(ctx, []byte(secret), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}
