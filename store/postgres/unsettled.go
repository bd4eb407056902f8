package postgres

import (
	"errors"
	"sync"

	"github.com/google/uuid"

	"github.com/go-relayer/relayer"
)

// maxUnsettled bounds what is remembered. A create that is forgotten finds a
// stranger's row in its own.
const maxUnsettled = 10_000

// unsettled remembers the creates whose outcome is unknown, by id. A row has the
// attempt that made it: so the same create, made again, can tell its own row.
type unsettled struct {
	mu       sync.Mutex
	attempts map[string]uuid.UUID
}

// attempt is what a create goes by, and whether one before went by it.
type attempt struct {
	uuid.UUID
	again bool
}

func newUnsettled() *unsettled {
	return &unsettled{attempts: make(map[string]uuid.UUID)}
}

// take returns the attempt of the create before, where that is unsettled. Of two
// creates that are made at once only one is given it.
func (u *unsettled) take(id string) attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	if before, ok := u.attempts[id]; ok {
		delete(u.attempts, id)
		return attempt{before, true}
	}
	return attempt{uuid.New(), false}
}

// put takes note of how a create ended: whether an attempt is settled now.
func (u *unsettled) put(id string, a attempt, err error) {
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
	u.attempts[id] = a.UUID
}
