package main

import (
	"context"
	"log/slog"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// auditLog logs each write that reaches the registry: who, from where, what, the outcome, and why.
// The API logs each read of full RPC URLs, and what the roles of tokens do not permit.
type auditLog struct{ logger *slog.Logger }

// observe is a [relayer.Observer].
func (l auditLog) observe(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
	if operation.DryRun || !operation.Action.IsWrite() {
		return ctx, nil
	}
	return ctx, func(err error) {
		l.logger.LogAttrs(ctx, slog.LevelInfo, "audit", auditAttributes(operation, outcome.Of(ctx, err))...)
	}
}

func auditAttributes(operation *relayer.Operation, result outcome.Outcome) []slog.Attr {
	id := operation.ID
	if !relayer.IsID(id) { // clients may put any text in its place
		id = ""
	}
	attributes := []slog.Attr{
		slog.String("actor", operation.Actor.ID),
		slog.String("address", operation.Actor.Address),
		slog.String("request_id", operation.Actor.RequestID),
		slog.String("action", string(operation.Action)),
		slog.String("relayer_id", id),
		slog.String("outcome", string(result)),
	}
	if operation.Paused != nil {
		attributes = append(attributes, slog.Bool("paused", *operation.Paused))
	}
	attributes = append(attributes, slog.Uint64("old_revision", operation.OldRevision))
	if operation.Revision != 0 || operation.OldRevision == 0 { // a deleted relayer has none
		attributes = append(attributes, slog.Uint64("revision", operation.Revision))
	}
	attributes = append(attributes, slog.Any("changed", operation.Changed))
	if operation.Reason != "" { // it is last: it may be any text
		attributes = append(attributes, slog.String("reason", operation.Reason))
	}
	return attributes
}
