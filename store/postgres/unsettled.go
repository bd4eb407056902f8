package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
)

// maxUnsettled bounds what is remembered. A create that is forgotten finds a
// stranger's row in its own.
const maxUnsettled = 10_000

// unsettled remembers the creates whose outcome is unknown. A row has the attempt
// that made it: so the same create, made again, can tell its own row.
type unsettled struct {
	mu       sync.Mutex
	attempts map[digest]uuid.UUID
}

// digest stands for a record that is to be created: another one of the same id is
// a stranger's.
type digest [sha256.Size]byte

func digestOf(rec relayer.Record) digest {
	whole := sha256.New()
	for _, part := range [][]byte{[]byte(rec.ID), []byte(rec.Claim), rec.Document, rec.Private} {
		_ = binary.Write(whole, binary.BigEndian, int64(len(part)))
		whole.Write(part)
	}
	return digest(whole.Sum(nil))
}

// attempt is what a create goes by, and whether one before went by it.
type attempt struct {
	uuid.UUID
	again bool
}

func newUnsettled() *unsettled {
	return &unsettled{attempts: make(map[digest]uuid.UUID)}
}

// take returns the attempt of the create before, where that is unsettled. Of two
// creates that are made at once only one is given it.
func (u *unsettled) take(rec relayer.Record) attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.attempts) == 0 {
		return attempt{uuid.New(), false}
	}
	key := digestOf(rec)
	if before, ok := u.attempts[key]; ok {
		delete(u.attempts, key)
		return attempt{before, true}
	}
	return attempt{uuid.New(), false}
}

// put takes note of how a create ended: whether an attempt is settled now.
func (u *unsettled) put(rec relayer.Record, a attempt, err error) {
	isSettled := err == nil || errors.Is(err, relayer.ErrExists) || errors.Is(err, relayer.ErrClaimed)
	isUnknown := errors.Is(err, relayer.ErrOutcomeUnknown) || a.again && !isSettled
	if !isUnknown {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for other := range u.attempts {
		if len(u.attempts) < maxUnsettled {
			break
		}
		delete(u.attempts, other)
	}
	u.attempts[digestOf(rec)] = a.UUID
}
