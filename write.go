package relayer

import (
	"errors"
	"sync"
)

// write carries out one write of the store and tells those who watch. Writes of
// one id go one after the other, so that their changes are told in the order
// of their revisions. Only the write itself is inside: a host's hook that
// writes the same id does not wait for itself.
func (m *Manager) write(id string, kind ChangeKind, store func() (Record, error)) (Record, error) {
	defer m.writing.lock(id)()
	rec, err := store()
	switch {
	case err == nil:
		m.watchers.publish(recordChange{kind, rec})
	case errors.Is(err, ErrOutcomeUnknown):
		m.watchers.miss()
	}
	return rec, err
}

// idLocks is a lock for each id that is being written.
type idLocks struct {
	mu   sync.Mutex
	held map[string]*idLock
}

type idLock struct {
	sync.Mutex
	users int
}

// lock waits for the id's lock and returns how to let go of it.
func (l *idLocks) lock(id string) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = make(map[string]*idLock)
	}
	own := l.held[id]
	if own == nil {
		own = new(idLock)
		l.held[id] = own
	}
	own.users++
	l.mu.Unlock()

	own.Lock()
	return func() {
		own.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(l.held, id)
		}
	}
}
