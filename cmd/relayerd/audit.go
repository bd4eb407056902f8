package main

import (
	"context"
	"log/slog"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/observe/outcome"
)

// auditWrites logs each write. The API logs each read of full RPC URLs, and counts what the
// roles of tokens do not permit.
func auditWrites(logger *slog.Logger) relayer.Observer {
	return func(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
		if operation.DryRun || !operation.Action.IsWrite() {
			return ctx, nil
		}
		return ctx, func(err error) {
			id := operation.ID
			if !relayer.IsID(id) { // clients may put any text in its place
				id = ""
			}
			logger.LogAttrs(ctx, slog.LevelInfo, "audit", append([]slog.Attr{
				slog.String("actor", operation.Actor.ID),
				slog.String("address", operation.Actor.Address),
				slog.String("request_id", operation.Actor.RequestID),
				slog.String("action", string(operation.Action)),
				slog.String("relayer_id", id),
				slog.String("outcome", string(outcome.Of(ctx, err))),
			}, effect(operation)...)...)
		}
	}
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
