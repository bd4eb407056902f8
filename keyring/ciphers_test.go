package keyring

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
)

// textHeader returns the header of a sealed text.
func textHeader(sealed []byte) string {
	header, err := headerOf(sealed)
	if err != nil {
		panic(err)
	}
	return string(header)
}

func newRing(t *testing.T) Keyring {
	t.Helper()
	text := fileHeader + "\nprimary a\nkey a " + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a", keyLength))) + "\n"
	ring, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func mustSeal(t *testing.T, ring Keyring) []byte {
	t.Helper()
	sealed, err := ring.Seal(context.Background(), []byte("text"), []byte("id"))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

func expectOpens(t *testing.T, ring Keyring, sealed []byte) {
	t.Helper()
	if opened, err := ring.Open(context.Background(), sealed, []byte("id")); err != nil || string(opened) != "text" {
		t.Fatalf("Open returned %q and %v", opened, err)
	}
}

// No derived key seals more than maxSeals texts, also with concurrent callers.
func TestSeal_BudgetOfDerivedKey(t *testing.T) {
	const left, goroutines, each = 100, 8, 50
	ring := newRing(t)
	first := textHeader(mustSeal(t, ring))
	ring.ring().sealing.Load().seals.Store(maxSeals - left)
	texts := make(chan []byte, goroutines*each)
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			for range each {
				texts <- mustSeal(t, ring)
			}
		})
	}
	group.Wait()
	close(texts)
	counts := make(map[string]int)
	for sealed := range texts {
		counts[textHeader(sealed)]++
		expectOpens(t, ring, sealed)
	}
	if counts[first] != left || len(counts) != 2 {
		t.Errorf("the first derived key sealed %d texts of %d that it may, and there are %d derived keys, want 2", counts[first], left, len(counts))
	}
}

func TestSeal_SaltOfEachKeyring(t *testing.T) {
	one, other := mustSeal(t, newRing(t)), mustSeal(t, newRing(t))
	if textHeader(one) == textHeader(other) {
		t.Error("two keyrings have the same salt")
	}
}

func TestOpen_BoundedCache(t *testing.T) {
	ring := newRing(t)
	texts := make([][]byte, maxCached+10)
	for i := range texts {
		texts[i] = mustSeal(t, newRing(t))
	}
	for range 2 {
		for _, sealed := range texts {
			expectOpens(t, ring, sealed)
		}
	}
	if cached := len(ring.ring().opening.ciphers); cached != maxCached {
		t.Errorf("%d ciphers are cached, want %d", cached, maxCached)
	}
}

// Texts that cannot be opened do not replace those in the cache.
func TestOpen_CacheWithoutRefusedTexts(t *testing.T) {
	ring := newRing(t)
	sealed := mustSeal(t, ring)
	sealed[len(sealed)-1] ^= 1
	if _, err := ring.Open(t.Context(), sealed, []byte("id")); err == nil {
		t.Fatal("a changed text was opened")
	}
	if cached := len(ring.ring().opening.ciphers); cached != 0 {
		t.Errorf("%d ciphers are cached", cached)
	}
}
