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
	return must(keyring.Parse([]byte(keyFile(primary, ids...))))(t)
}

func seal(t testing.TB, ring keyring.Keyring) []byte {
	t.Helper()
	return must(ring.Seal(t.Context(), []byte(secret), boundTo))(t)
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
		sealed := must(ring.Seal(t.Context(), []byte(plaintext), boundTo))(t)
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
	aead := must(chacha20poly1305.NewX(bytes.Repeat([]byte("a"), 32)))(t)
	if opened, err := aead.Open(nil, nonce, encrypted, slices.Concat(header, boundTo)); err != nil || string(opened) != secret {
		t.Errorf("another implementation opens %q, error %v", opened, err)
	}
}

func TestSeal_ArgumentsUnchanged(t *testing.T) {
	ring := parse(t, "a", "a")
	plaintext, associated := append(make([]byte, 0, 500), secret...), append(make([]byte, 0, 500), boundTo...)
	must(ring.Seal(t.Context(), plaintext, associated))(t)
	if string(plaintext) != secret || !bytes.Equal(associated, boundTo) ||
		!bytes.Equal(plaintext[:500][len(secret):], make([]byte, 500-len(secret))) {
		t.Error("Seal changed its arguments")
	}
}

// The fingerprint finds the key that sealed a text, after a rotation and after the key was renamed.
func TestOpen_UsesTheKeyThatSealed(t *testing.T) {
	sealed := seal(t, parse(t, "a", "a"))
	rotated := parse(t, "b", "a", "b")
	for _, ring := range []keyring.Keyring{rotated, withKey(t, "renamed", 'a')} {
		if opened := must(ring.Open(t.Context(), sealed, boundTo))(t); string(opened) != secret {
			t.Errorf("Open returned %q", opened)
		}
	}
	for i, text := range [][]byte{seal(t, rotated), sealed} {
		if key := must(rotated.KeyOf(text))(t); key != rotated.Keys()[i] {
			t.Errorf("KeyOf is %v, want %v", key, rotated.Keys()[i])
		}
	}
}

// withKey returns a keyring with one key, whose bytes are all b.
func withKey(t testing.TB, id string, b byte) keyring.Keyring {
	t.Helper()
	return must(keyring.Parse([]byte("relayer-keyring 1\nprimary " + id + "\nkey " + id + " " + keyValue(b) + "\n")))(t)
}

// The error names the key that is missing, and another key of the same name.
func TestOpen_UnknownKey(t *testing.T) {
	right, wrong := withKey(t, "old-key", 'a'), withKey(t, "old-key", 'b')
	sealed := seal(t, right)
	for _, ring := range []keyring.Keyring{parse(t, "b", "b"), wrong} {
		expectRefused(t, ring, sealed, boundTo, keyring.ErrUnknownKey)
		_, err := ring.Open(t.Context(), sealed, boundTo)
		if !strings.Contains(err.Error(), "old-key") || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("the error must name the key, and not match ErrUnsupported: %v", err)
		}
		if ring.Keys()[0].ID == "old-key" && (!strings.Contains(err.Error(), right.Keys()[0].Fingerprint) || !strings.Contains(err.Error(), wrong.Keys()[0].Fingerprint)) {
			t.Errorf("the error does not have both fingerprints: %v", err)
		}
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

// A text cannot be claimed for other data, for another version, or for another key, also one of the
// ring. A forged name could forge lines of a log.
func TestOpen_ChangedHeader(t *testing.T) {
	ring := parse(t, "a", "a", "b")
	sealed := seal(t, ring)
	for _, other := range []string{"", "relayer sepolia-2", string(boundTo) + " ", string(boundTo[1:])} {
		expectRefused(t, ring, sealed, []byte(other), keyring.ErrNotAuthentic)
	}
	for _, c := range []struct {
		index int
		value byte
		want  error
	}{
		{0, 0, keyring.ErrFormat}, {0, 1, keyring.ErrFormat}, {0, 2, keyring.ErrFormat}, {0, 4, keyring.ErrFormat},
		{2, 'b', keyring.ErrNotAuthentic}, {2, '\n', keyring.ErrFormat},
	} {
		changed := slices.Clone(sealed)
		changed[c.index] = c.value
		expectRefused(t, ring, changed, boundTo, c.want)
		if key, err := ring.KeyOf(changed); (err != nil) != (c.want == keyring.ErrFormat) || err != nil && !errors.Is(err, keyring.ErrFormat) {
			t.Errorf("KeyOf returned %q and %v", key.ID, err)
		}
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
		encoded := must(json.Marshal(value))(t)
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

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns the first result of a call, or a function that fails the test with its error.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		mustSucceed(t, err)
		return value
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(keyFile("a", "a")))
	f.Add([]byte(keyFile("b", "a", "b")))
	f.Add([]byte("relayer-keyring 1\nprimary a\nkey a x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		ring, err := keyring.Parse(data)
		if err != nil {
			for line := range bytes.Lines(data) {
				if fields := bytes.Fields(line); len(fields) == 3 && len(fields[2]) > 16 && bytes.Contains([]byte(err.Error()), fields[2]) {
					t.Errorf("the error quotes a value: %v", err)
				}
			}
			return
		}
		sealed := seal(t, ring)
		if key, err := ring.KeyOf(sealed); err != nil || key != ring.Keys()[0] {
			t.Errorf("KeyOf is %v with error %v", key, err)
		}
		if opened, err := ring.Open(t.Context(), sealed, boundTo); err != nil || string(opened) != secret {
			t.Errorf("Open returned %q and %v", opened, err)
		}
	})
}

// Open returns one of the sentinel errors for every text that Seal has not returned.
func FuzzOpen(f *testing.F) {
	ring := parse(f, "a", "a", "b")
	sealed := seal(f, ring)
	f.Add(sealed, boundTo)
	f.Add(sealed[:len(sealed)-1], boundTo)
	f.Add(seal(f, parse(f, "b", "b")), []byte("relayer sepolia-2"))
	f.Add(seal(f, parse(f, "c", "c")), boundTo)
	f.Add([]byte{1, 255, 'a'}, boundTo)
	f.Add([]byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, text, associatedData []byte) {
		plaintext, err := ring.Open(t.Context(), text, associatedData)
		switch {
		case err == nil && string(plaintext) != secret:
			t.Errorf("Open returned %q, which was never sealed", plaintext)
		case err != nil && (plaintext != nil || !isKnown(err)):
			t.Errorf("Open returned %q and %v", plaintext, err)
		}
	})
}
