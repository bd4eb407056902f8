package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
)

// forbiddenInterval is the shortest time between two lines about the same actor and action.
const forbiddenInterval = time.Second

// forbiddenRequests counts the requests that the authorizer has refused and that are not in
// the log yet. It has an entry for each actor and action with a line in the last interval.
type forbiddenRequests struct {
	mu      sync.Mutex
	entries map[forbiddenKey]*forbiddenEntry
}

type forbiddenKey struct {
	actor  string
	action relayer.Action
}

type forbiddenEntry struct {
	latest Access
	count  int // since the last line
}

// logForbidden logs the first refusal of an actor and action at once. Later ones are counted,
// and logged once in each interval.
func (a *API) logForbidden(access Access) {
	key := forbiddenKey{access.Actor.ID, access.Action}
	f := &a.forbidden
	f.mu.Lock()
	defer f.mu.Unlock()
	entry, ok := f.entries[key]
	switch {
	case a.draining.Err() != nil:
		a.logForbiddenEntry(forbiddenEntry{access, 1})
	case ok:
		entry.latest = access
		entry.count++
	default:
		f.entries[key] = new(forbiddenEntry)
		a.logForbiddenEntry(forbiddenEntry{access, 1})
		time.AfterFunc(forbiddenInterval, func() { a.logCounted(key) })
	}
}

// logCounted logs what was counted in an interval. The entry ends if there is nothing.
func (a *API) logCounted(key forbiddenKey) {
	f := &a.forbidden
	f.mu.Lock()
	defer f.mu.Unlock()
	entry := f.entries[key]
	if entry.count == 0 {
		delete(f.entries, key)
		return
	}
	a.logForbiddenEntry(*entry)
	entry.count = 0
	time.AfterFunc(forbiddenInterval, func() { a.logCounted(key) })
}

// logAllCounted logs all that was counted.
func (a *API) logAllCounted() {
	a.forbidden.mu.Lock()
	defer a.forbidden.mu.Unlock()
	for _, entry := range a.forbidden.entries {
		if entry.count > 0 {
			a.logForbiddenEntry(*entry)
			entry.count = 0
		}
	}
}

func (a *API) logForbiddenEntry(e forbiddenEntry) {
	a.log(context.Background(), slog.LevelInfo, "requests forbidden",
		slog.String("principal", e.latest.Actor.ID),
		slog.String("address", e.latest.Actor.Address),
		slog.String("request_id", e.latest.Actor.RequestID),
		slog.String("action", string(e.latest.Action)),
		slog.String("relayer_id", loggedID(e.latest.ID)),
		slog.Int("count", e.count))
}
