package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// failedInterval is the shortest time between two lines about failed writes of the same
// actor, action and outcome.
const failedInterval = time.Second

// auditLog logs each write that succeeded, was a fault, or has an unknown outcome. Of the
// other failed writes it logs the first at once, and counts the later ones: an actor
// cannot flood the log. The API logs each read of full RPC URLs, and counts what the roles of
// tokens do not permit.
type auditLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	stopped bool
	failed  map[failedKey]*failedWrites // with a line in the last interval
}

type failedKey struct {
	actor   string
	action  relayer.Action
	outcome outcome.Outcome
}

type failedWrites struct {
	latest relayer.Operation
	count  int // since the last line
}

func newAuditLog(logger *slog.Logger) *auditLog {
	return &auditLog{logger: logger, failed: make(map[failedKey]*failedWrites)}
}

func (l *auditLog) observe(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
	if operation.DryRun || !operation.Action.IsWrite() {
		return ctx, nil
	}
	return ctx, func(err error) {
		result := outcome.Of(ctx, err)
		if result == outcome.OK || result.IsFault() {
			l.write(operation, slog.String("outcome", string(result)))
			return
		}
		l.countFailed(operation, result)
	}
}

// countFailed logs the first failed write of an actor, action and outcome at once. Later ones
// are counted, and logged once in each interval.
func (l *auditLog) countFailed(operation *relayer.Operation, result outcome.Outcome) {
	key := failedKey{operation.Actor.ID, operation.Action, result}
	l.mu.Lock()
	defer l.mu.Unlock()
	if writes, ok := l.failed[key]; ok && !l.stopped {
		writes.latest = *operation
		writes.count++
		return
	}
	l.writeFailed(key, failedWrites{*operation, 1})
	if !l.stopped {
		l.failed[key] = new(failedWrites)
		time.AfterFunc(failedInterval, func() { l.writeCounted(key) })
	}
}

// writeCounted logs what was counted in an interval. The entry ends if there is nothing.
func (l *auditLog) writeCounted(key failedKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	writes := l.failed[key]
	if writes.count == 0 {
		delete(l.failed, key)
		return
	}
	l.writeFailed(key, *writes)
	writes.count = 0
	time.AfterFunc(failedInterval, func() { l.writeCounted(key) })
}

// stop logs all that was counted. Later writes are logged at once.
func (l *auditLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for key, writes := range l.failed {
		if writes.count > 0 {
			l.writeFailed(key, *writes)
			writes.count = 0
		}
	}
}

func (l *auditLog) writeFailed(key failedKey, writes failedWrites) {
	l.write(&writes.latest, slog.String("outcome", string(key.outcome)), slog.Int("count", writes.count))
}

func (l *auditLog) write(operation *relayer.Operation, result ...slog.Attr) {
	id := operation.ID
	if !relayer.IsID(id) { // clients may put any text in its place
		id = ""
	}
	l.logger.LogAttrs(context.Background(), slog.LevelInfo, "audit", slices.Concat([]slog.Attr{
		slog.String("actor", operation.Actor.ID),
		slog.String("address", operation.Actor.Address),
		slog.String("request_id", operation.Actor.RequestID),
		slog.String("action", string(operation.Action)),
		slog.String("relayer_id", id),
	}, result, effect(operation))...)
}

// effect returns what a write changed and why. The reason is last: it may be any text.
func effect(operation *relayer.Operation) (attributes []slog.Attr) {
	if operation.Paused != nil {
		attributes = append(attributes, slog.Bool("paused", *operation.Paused))
	}
	attributes = append(attributes, slog.Uint64("old_revision", operation.OldRevision))
	if operation.Revision != 0 || operation.OldRevision == 0 { // a deleted relayer has none
		attributes = append(attributes, slog.Uint64("revision", operation.Revision))
	}
	attributes = append(attributes, slog.Any("changed", operation.Changed))
	if operation.Reason != "" {
		attributes = append(attributes, slog.String("reason", operation.Reason))
	}
	return attributes
}
