package keyring_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/sealed"
)

var _ sealed.Keys = keyring.Keyring{}

const secret = "https://rpc.example.com/v3/0123456789abcdef"

var boundTo = []byte("relayer sepolia-1")

// keyValue returns the text of a key whose bytes are all b.
func keyValue(b byte) string {
	return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32))
}

// keyFile returns the content of a key file. The value of a key depends only on its ID.
func keyFile(primary string, ids ...string) string {
	text := "relayer-keyring 1\nprimary " + primary + "\n"
	for _, id := range ids {
		text += "key " + id + " " + keyValue(id[0]) + "\n"
	}
	return text
}

func parse(t testing.TB, primary string, ids ...string) keyring.Keyring {
	t.Helper()
	ring, err := keyring.Parse([]byte(keyFile(primary, ids...)))
	must(t, err)
	return ring
}

func seal(t testing.TB, ring keyring.Keyring) []byte {
	t.Helper()
	sealed, err := ring.Seal(t.Context(), []byte(secret), boundTo)
	must(t, err)
	return sealed
}

// expectRefused opens a text that must be refused with the error.
func expectRefused(t testing.TB, ring keyring.Keyring, sealed, associatedData []byte, want error) {
	t.Helper()
	plaintext, err := ring.Open(context.Background(), sealed, associatedData)
	if !errors.Is(err, want) || plaintext != nil {
		t.Fatalf("Open returned %q and %v, want %v", plaintext, err, want)
	}
}

func TestOpen_ReturnsWhatWasSealed(t *testing.T) {
	ring := parse(t, "b", "a", "b")
	for _, plaintext := range []string{"", "x", secret, strings.Repeat(secret, 1000)} {
		sealed, err := ring.Seal(t.Context(), []byte(plaintext), boundTo)
		must(t, err)
		if plaintext != "" && plaintext != "x" && bytes.Contains(sealed, []byte(plaintext[:8])) {
			t.Error("the sealed text contains a part of the plaintext")
		}
		opened, err := ring.Open(t.Context(), sealed, boundTo)
		if err != nil || string(opened) != plaintext {
			t.Errorf("opened %d bytes with error %v, sealed %d", len(opened), err, len(plaintext))
		}
		if extra := len(sealed) - len(plaintext) - len("b"); extra != 50 {
			t.Errorf("the sealed text is %d bytes longer than plaintext and key ID, want 50", extra)
		}
	}
}

// The nonce follows the header. A repeated one would disclose texts.
func TestSeal_Nonces(t *testing.T) {
	ring, seen := parse(t, "a", "a"), make(map[string]bool)
	for range 1000 {
		sealed := seal(t, ring)
		nonce := string(sealed[len(sealed)-len(secret)-16-24:][:24])
		if seen[nonce] || strings.Contains(nonce, "\x00\x00\x00\x00\x00\x00\x00\x00") {
			t.Fatalf("the nonce %x is not random", nonce)
		}
		seen[nonce] = true
	}
}

// The text is that of XChaCha20-Poly1305 under the key of the file, with the header and the
// associated data as additional data.
func TestSeal_Format(t *testing.T) {
	ring := parse(t, "a", "a")
	sealed := seal(t, ring)
	header, nonce, encrypted := sealed[:3+8], sealed[3+8:][:24], sealed[3+8+24:]
	if fingerprint := ring.Keys()[0].Fingerprint; string(header[:3]) != "\x03\x01a" || hex.EncodeToString(header[3:]) != fingerprint {
		t.Errorf("the header is %x, the fingerprint of the key %s", header, fingerprint)
	}
	aead, err := chacha20poly1305.NewX(bytes.Repeat([]byte("a"), 32))
	must(t, err)
	if opened, err := aead.Open(nil, nonce, encrypted, slices.Concat(header, boundTo)); err != nil || string(opened) != secret {
		t.Errorf("another implementation opens %q, error %v", opened, err)
	}
}

func TestSeal_ArgumentsUnchanged(t *testing.T) {
	ring := parse(t, "a", "a")
	plaintext, associated := append(make([]byte, 0, 500), secret...), append(make([]byte, 0, 500), boundTo...)
	if _, err := ring.Seal(t.Context(), plaintext, associated); err != nil {
		t.Fatal(err)
	}
	if string(plaintext) != secret || !bytes.Equal(associated, boundTo) ||
		!bytes.Equal(plaintext[:500][len(secret):], make([]byte, 500-len(secret))) {
		t.Error("Seal changed its arguments")
	}
}

func TestOpen_UsesTheKeyThatSealed(t *testing.T) {
	sealed := seal(t, parse(t, "a", "a"))
	rotated := parse(t, "b", "a", "b")
	if opened, err := rotated.Open(t.Context(), sealed, boundTo); err != nil || string(opened) != secret {
		t.Errorf("after a rotation Open returned %q and %v", opened, err)
	}
	if key, err := rotated.KeyOf(sealed); key != rotated.Keys()[1] || err != nil {
		t.Errorf("KeyOf is %v with error %v, want a", key, err)
	}
	if key, err := rotated.KeyOf(seal(t, rotated)); key != rotated.Keys()[0] || err != nil {
		t.Errorf("KeyOf after the rotation is %v with error %v, want b", key, err)
	}
}

// withKey returns a keyring with one key, whose bytes are all b.
func withKey(t testing.TB, id string, b byte) keyring.Keyring {
	t.Helper()
	ring, err := keyring.Parse([]byte("relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + keyValue(b) + "\n"))
	must(t, err)
	return ring
}

func TestOpen_RemovedKey(t *testing.T) {
	sealed := seal(t, parse(t, "old-key", "old-key"))
	ring := parse(t, "b", "b")
	expectRefused(t, ring, sealed, boundTo, keyring.ErrUnknownKey)
	if _, err := ring.Open(t.Context(), sealed, boundTo); !strings.Contains(err.Error(), "old-key") || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the error must name the key, and not match ErrUnsupported: %v", err)
	}
}

func TestOpen_OtherKeyOfTheSameName(t *testing.T) {
	right, wrong := withKey(t, "a", 'a'), withKey(t, "a", 'b')
	sealed := seal(t, right)
	expectRefused(t, wrong, sealed, boundTo, keyring.ErrUnknownKey)
	_, err := wrong.Open(t.Context(), sealed, boundTo)
	for _, part := range []string{"key a:", right.Keys()[0].Fingerprint, wrong.Keys()[0].Fingerprint} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not have %q: %v", part, err)
		}
	}
}

// The ID is only a name: the fingerprint finds the key.
func TestOpen_RenamedKey(t *testing.T) {
	sealed := seal(t, withKey(t, "a", 'v'))
	if opened, err := withKey(t, "renamed", 'v').Open(t.Context(), sealed, boundTo); err != nil || string(opened) != secret {
		t.Errorf("Open returned %q and %v", opened, err)
	}
}

func TestKeys_Fingerprints(t *testing.T) {
	keys := parse(t, "b", "a", "b", "c").Keys()
	var ids []string
	for i, key := range keys {
		ids = append(ids, key.ID)
		if len(key.Fingerprint) != 16 || key != withKey(t, key.ID, key.ID[0]).Keys()[0] {
			t.Errorf("the fingerprint of %s is %q", key.ID, key.Fingerprint)
		}
		if i > 0 && key.Fingerprint == keys[0].Fingerprint {
			t.Errorf("the keys %s and %s have the same fingerprint", key.ID, keys[0].ID)
		}
	}
	if !slices.Equal(ids, []string{"b", "a", "c"}) {
		t.Errorf("the keys are %q, want the primary key first", ids)
	}
}

// A text cannot be claimed for another key of the ring either.
func TestOpen_KeyIDReplaced(t *testing.T) {
	ring := parse(t, "a", "a", "b")
	sealed := seal(t, ring)
	sealed[2] = 'b'
	expectRefused(t, ring, sealed, boundTo, keyring.ErrNotAuthentic)
}

func TestOpen_OtherAssociatedData(t *testing.T) {
	ring := parse(t, "a", "a")
	for _, other := range []string{"", "relayer sepolia-2", string(boundTo) + " ", string(boundTo[1:])} {
		expectRefused(t, ring, seal(t, ring), []byte(other), keyring.ErrNotAuthentic)
	}
}

func TestOpen_Truncated(t *testing.T) {
	ring := parse(t, "a", "a")
	sealed := seal(t, ring)
	shortest := len(sealed) - len(secret)
	for length := range len(sealed) {
		want := keyring.ErrNotAuthentic
		if length < shortest {
			want = keyring.ErrFormat
		}
		expectRefused(t, ring, sealed[:length], boundTo, want)
	}
	expectRefused(t, ring, append(sealed, 0), boundTo, keyring.ErrNotAuthentic)
}

func TestOpen_EveryBitChanged(t *testing.T) {
	ring := parse(t, "a", "a")
	sealed := seal(t, ring)
	for i := range sealed {
		for bit := range 8 {
			changed := slices.Clone(sealed)
			changed[i] ^= 1 << bit
			plaintext, err := ring.Open(t.Context(), changed, boundTo)
			if plaintext != nil || !isKnown(err) {
				t.Fatalf("with bit %d of byte %d changed, Open returned %q and %v", bit, i, plaintext, err)
			}
		}
	}
}

// isKnown reports whether an error matches exactly one of the sentinel errors.
func isKnown(err error) bool {
	matches := 0
	for _, known := range []error{keyring.ErrFormat, keyring.ErrNotAuthentic, keyring.ErrUnknownKey} {
		if errors.Is(err, known) {
			matches++
		}
	}
	return matches == 1
}

func TestOpen_OtherVersion(t *testing.T) {
	ring := parse(t, "a", "a")
	for _, version := range []byte{0, 1, 2, 4} {
		sealed := seal(t, ring)
		sealed[0] = version
		expectRefused(t, ring, sealed, boundTo, keyring.ErrFormat)
	}
}

// A forged name could forge lines of a log.
func TestKeyOf_InvalidID(t *testing.T) {
	ring := parse(t, "a", "a")
	sealed := seal(t, ring)
	sealed[2] = '\n'
	if key, err := ring.KeyOf(sealed); !errors.Is(err, keyring.ErrFormat) {
		t.Errorf("KeyOf returned %q and %v", key.ID, err)
	}
	expectRefused(t, ring, sealed, boundTo, keyring.ErrFormat)
}

func TestKeyring_ZeroValue(t *testing.T) {
	var zero keyring.Keyring
	if sealed, err := zero.Seal(t.Context(), []byte(secret), nil); !errors.Is(err, errors.ErrUnsupported) || sealed != nil {
		t.Errorf("Seal returned %q and %v", sealed, err)
	}
	sealed := seal(t, parse(t, "a", "a"))
	for _, want := range []error{keyring.ErrUnknownKey, errors.ErrUnsupported} {
		expectRefused(t, zero, sealed, boundTo, want)
	}
	if zero.Keys() != nil {
		t.Errorf("the keys are %v", zero.Keys())
	}
}

func TestKeyring_NeverPrintsKeys(t *testing.T) {
	ring := parse(t, "k", "k")
	type holder struct {
		ring    keyring.Keyring
		pointer *keyring.Keyring
		any     any
	}
	held := holder{ring, &ring, ring}
	var printed strings.Builder
	for _, value := range []any{ring, &ring, held, &held, []keyring.Keyring{ring}, map[string]any{"ring": ring}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%o", "%b"} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
		encoded, err := json.Marshal(value)
		must(t, err)
		printed.Write(encoded)
		slog.New(slog.NewTextHandler(&printed, nil)).Info("text", "value", value)
		slog.New(slog.NewJSONHandler(&printed, nil)).Info("json", "value", value)
	}
	expectNoKey(t, printed.String(), 'k')
	if !strings.Contains(printed.String(), "keyring[k (fingerprint "+ring.Keys()[0].Fingerprint+")]") {
		t.Errorf("the IDs and fingerprints of the keys were not printed")
	}
}

// expectNoKey checks that text has no part of the key whose bytes are all b, in any
// usual form.
func expectNoKey(t *testing.T, text string, b byte) {
	t.Helper()
	for _, form := range []string{"%s", "%x", "%X", "% x", "%d", "%o", "%b", "%#v"} {
		part := fmt.Sprintf(form, bytes.Repeat([]byte{b}, 8))
		part = strings.Trim(strings.TrimPrefix(part, "[]byte{"), "[]{}")
		if strings.Contains(text, part) {
			t.Errorf("found the key in the form %s", form)
		}
	}
	if strings.Contains(text, keyValue(b)[:16]) {
		t.Error("found the key in base64")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
