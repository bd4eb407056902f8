package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
)

// maxAttempts bounds the attempts that are remembered. The repetition of a create
// that is not remembered returns [relayer.ErrExists].
const maxAttempts = 10_000

// attempts are the creates of unknown outcome. Each row stores the attempt that
// created it, so that a repetition of the same create recognizes its own row.
type attempts struct {
	mu  sync.Mutex
	ids map[digest]uuid.UUID
}

// digest identifies a record to create. Another record with the same ID has another
// digest.
type digest [sha256.Size]byte

func digestOf(rec relayer.Record) digest {
	hash := sha256.New()
	parts := [][]byte{[]byte(rec.ID), []byte(rec.Claim), rec.Document, rec.Private}
	for _, term := range rec.Terms {
		parts = append(parts, []byte(term))
	}
	for _, part := range parts {
		_ = binary.Write(hash, binary.BigEndian, int64(len(part)))
		hash.Write(part)
	}
	return digest(hash.Sum(nil))
}

// attempt is the idempotency key of a create.
type attempt struct {
	uuid.UUID
	isRepeated bool
}

// take returns the attempt of an earlier create of the record if its outcome is
// unknown, else a new one. Of two concurrent creates only one gets the earlier one.
func (a *attempts) take(rec relayer.Record) attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ids) == 0 {
		return attempt{UUID: uuid.New()}
	}
	key := digestOf(rec)
	if earlier, ok := a.ids[key]; ok {
		delete(a.ids, key)
		return attempt{UUID: earlier, isRepeated: true}
	}
	return attempt{UUID: uuid.New()}
}

// put remembers the attempt if err leaves its outcome unknown and its statement
// inserted or found its own row. An attempt that was refused has no row, and must
// not replace the concurrent one that has.
func (a *attempts) put(rec relayer.Record, tried attempt, hasRow bool, err error) {
	isKnown := err == nil || errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrClaimed)
	isUnknown := hasRow && errors.Is(err, relayer.ErrOutcomeUnknown)
	if !isUnknown && (isKnown || !tried.isRepeated) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil {
		a.ids = make(map[digest]uuid.UUID)
	}
	for other := range a.ids {
		if len(a.ids) < maxAttempts {
			break
		}
		delete(a.ids, other)
	}
	a.ids[digestOf(rec)] = tried.UUID
}
