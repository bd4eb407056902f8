package keyring_test

import (
	"bytes"
	"testing"

	"github.com/go-relayer/relayer/keyring"
)

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
