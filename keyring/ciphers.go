package keyring

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// maxSeals is the number of texts that one derived key seals.
const maxSeals = 1 << 20

type sealingCipher struct {
	aead   cipher.AEAD
	header []byte // of each text
	seals  atomic.Uint32
}

// sealingCipher returns the cipher for one more text under the primary key.
func (r *ring) sealingCipher() (*sealingCipher, error) {
	for {
		current := r.sealing.Load()
		if current != nil && current.seals.Add(1) <= maxSeals {
			return current, nil
		}
		next, err := r.newSealingCipher()
		if err != nil {
			return nil, err
		}
		r.sealing.CompareAndSwap(current, next)
	}
}

func (r *ring) newSealingCipher() (*sealingCipher, error) {
	primary := r.named(r.primary)
	if primary == nil {
		return nil, errors.New("the keyring has no keys")
	}
	fingerprint, err := hex.DecodeString(primary.Fingerprint)
	if err != nil {
		return nil, err
	}
	header := slices.Concat([]byte{version, byte(len(primary.ID))}, []byte(primary.ID), fingerprint, make([]byte, saltLength))
	rand.Read(header[len(header)-saltLength:]) // never fails
	aead, err := primary.cipher(header)
	return &sealingCipher{aead: aead, header: header}, err
}

// maxCached bounds the memory of a cipherCache to about 1 MiB.
const maxCached = 1024

// cipherCache has the ciphers of texts that were opened, by their headers.
type cipherCache struct {
	mu      sync.RWMutex
	ciphers map[string]cipher.AEAD
}

// get returns nil if the cache does not have the cipher.
func (c *cipherCache) get(header []byte) cipher.AEAD {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.ciphers[string(header)]
}

// add replaces an arbitrary cipher if the cache is full.
func (c *cipherCache) add(header []byte, aead cipher.AEAD) {
	if c.get(header) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ciphers == nil {
		c.ciphers = make(map[string]cipher.AEAD)
	}
	for other := range c.ciphers {
		if len(c.ciphers) < maxCached {
			break
		}
		delete(c.ciphers, other)
	}
	c.ciphers[string(header)] = aead
}
