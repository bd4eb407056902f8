//go:build soak

package sealing_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/testing/fakekms"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
	"github.com/go-relayer/relayer/store/sealed"
)

// KeysetKeys are [sealed.Keys] of a keyset of Tink in memory, with keys that write its prefix.
// docs/security.md names them and [KMSKeys].
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

// KMSKeys are [sealed.Keys] of a key management service that Tink supports. It is called for every
// text, and rotates a key under one name.
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

const secret = "https://rpc.example.com/v3/0123456789abcdef"

// keysetSealer stores a new keyset encrypted under a key of the service, reads it back
// as a host does when it starts, and returns its keys.
func keysetKeys(t *testing.T) KeysetKeys {
	t.Helper()
	service := newService(t)
	created := mustGet(keyset.NewHandle(aead.AES256GCMKeyTemplate()))(t)
	var file bytes.Buffer
	must(t, created.WriteWithContext(t.Context(), keyset.NewJSONWriter(&file), service, nil))
	handle := mustGet(keyset.ReadWithContext(t.Context(), keyset.NewJSONReader(&file), service, nil))(t)
	primitive := mustGet(aead.New(handle))(t)
	return KeysetKeys{AEAD: primitive, Primary: handle.KeysetInfo().GetPrimaryKeyId()}
}

// service is a key management service that can be made to hang when it encrypts.
type service struct {
	*aead.KMSEnvelopeAEADWithContext
	isAway bool
}

func newService(t *testing.T) *service {
	t.Helper()
	uri := mustGet(fakekms.NewKeyURI())(t)
	remote := mustGet(fakekms.NewAEADWithContext(uri))(t)
	envelope := mustGet(aead.NewKMSEnvelopeAEADWithContext(aead.AES256GCMKeyTemplate(), remote))(t)
	return &service{KMSEnvelopeAEADWithContext: envelope}
}

func (s *service) EncryptWithContext(ctx context.Context, plaintext, associatedData []byte) ([]byte, error) {
	if s.isAway {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.KMSEnvelopeAEADWithContext.EncryptWithContext(ctx, plaintext, associatedData)
}

func TestKeys_SealAndOpen(t *testing.T) {
	for name, keys := range map[string]sealed.Keys{
		"keyset": keysetKeys(t),
		"KMS":    KMSKeys{AEADWithContext: newService(t), Name: "kms"},
	} {
		t.Run(name, func(t *testing.T) {
			text := mustGet(keys.Seal(t.Context(), []byte(secret), []byte("a")))(t)
			if bytes.Contains(text, []byte("rpc.example.com")) {
				t.Error("the sealed text contains a part of the plaintext")
			}
			if opened, err := keys.Open(t.Context(), text, []byte("a")); err != nil || string(opened) != secret {
				t.Errorf("Open returned %q and %v", opened, err)
			}
			if _, err := keys.Open(t.Context(), text, []byte("b")); err == nil {
				t.Error("Open accepted other associated data")
			}
			text[len(text)-1] ^= 1
			if _, err := keys.Open(t.Context(), text, []byte("a")); err == nil {
				t.Error("Open accepted a changed text")
			}
		})
	}
}

// A keyset names the key of each text, so that a rotation seals each relayer once. A service does
// not, so that each Reseal seals all.
func TestKeys_Reseal(t *testing.T) {
	keyset, service := keysetKeys(t), KMSKeys{AEADWithContext: newService(t), Name: "a"}
	for name, c := range map[string]struct {
		before, after sealed.Keys
		again         int
	}{
		"keyset": {keyset, either{keysetKeys(t), keyset}, 0},
		"KMS":    {service, service, 3},
	} {
		m := mustGet(managerWith(memory.New(), c.before))(t)
		for _, id := range []string{"a", "b", "c"} {
			mustGet(m.Create(t.Context(), definition(id, []relayer.RPCConfig{{URL: secret}})))(t)
		}
		rotated := mustGet(managerWith(m.store.Store, c.after))(t)
		for _, want := range []int{3, c.again} {
			if count := rotated.reseal(t); count != want {
				t.Errorf("%s: %d relayers were sealed, want %d", name, count, want)
			}
		}
		if endpoints, err := rotated.RPCURLs(t.Context(), "b"); err != nil || endpoints[0].URL != secret {
			t.Errorf("%s: the URL is %v, error %v", name, endpoints, err)
		}
	}
}

// either seals with its own keyset, and opens with both.
type either struct {
	KeysetKeys
	earlier sealed.Keys
}

func (e either) Open(ctx context.Context, text, associatedData []byte) ([]byte, error) {
	opened, err := e.KeysetKeys.Open(ctx, text, associatedData)
	if err != nil {
		return e.earlier.Open(ctx, text, associatedData)
	}
	return opened, nil
}

func TestKMSKeys_ServiceAway(t *testing.T) {
	remote := newService(t)
	remote.isAway = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (KMSKeys{AEADWithContext: remote}).Seal(ctx, []byte(secret), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
}
