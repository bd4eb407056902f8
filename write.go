package relayer

import (
	"context"
	"errors"
	"sync"
)

// write carries out one write of the store and tells those who watch. Writes of
// one id go one after the other, so that their changes are told in the order
// of their revisions. Only the write itself is inside: a host's hook that
// writes the same id does not wait for itself.
func (m *Manager) write(ctx context.Context, id string, kind ChangeKind, store func() (Record, error)) (Record, error) {
	unlock, err := m.writing.lock(ctx, id)
	if err != nil {
		return Record{}, err
	}
	defer unlock()
	rec, err := store()
	switch {
	case err == nil:
		m.watchers.publish(RecordChange{kind, rec})
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
	turn  chan struct{} // of 1: held while it is full
	users int
}

// lock waits for the id's lock and returns how to let go of it, or the error of
// a context that is over first.
func (l *idLocks) lock(ctx context.Context, id string) (unlock func(), err error) {
	own := l.use(id)
	unlock = func() {
		<-own.turn
		l.leave(id, own)
	}
	// A lock that is free is taken whatever the context says: what a context that
	// is over means for a write is the store's to say, and always the same.
	select {
	case own.turn <- struct{}{}:
		return unlock, nil
	default:
	}
	select {
	case own.turn <- struct{}{}:
		return unlock, nil
	case <-ctx.Done():
		l.leave(id, own)
		return nil, ctx.Err()
	}
}

func (l *idLocks) use(id string) *idLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[string]*idLock)
	}
	own := l.held[id]
	if own == nil {
		own = &idLock{turn: make(chan struct{}, 1)}
		l.held[id] = own
	}
	own.users++
	return own
}

func (l *idLocks) leave(id string, own *idLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(l.held, id)
	}
}
