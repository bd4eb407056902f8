package main

import (
	"context"
	"log/slog"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/httpapi"
	"github.com/go-relayer/relayer/observe/outcome"
)

// auditLog logs who read full RPC URLs and, if hasWrites is set, who changed which relayer.
// It also logs who was refused one of the two.
type auditLog struct {
	logger    *slog.Logger
	hasWrites bool
}

func (a auditLog) logs(action relayer.Action) bool {
	return action == relayer.ActionReveal || a.hasWrites
}

// observe is a [relayer.Observer]. It logs each write, and each read of full RPC URLs.
func (a auditLog) observe(ctx context.Context, operation *relayer.Operation) (context.Context, func(error)) {
	isLogged := operation.Action.IsWrite() || operation.Action == relayer.ActionReveal
	if operation.DryRun || !isLogged || !a.logs(operation.Action) {
		return ctx, nil
	}
	return ctx, func(err error) {
		a.log(ctx, operation.Actor, operation.Action, operation.ID, string(outcome.Of(ctx, err)), effect(operation)...)
	}
}

// effect returns what a write changed and why. The reason is last: it may be any text.
func effect(operation *relayer.Operation) (attributes []slog.Attr) {
	if !operation.Action.IsWrite() {
		return nil
	}
	if operation.Paused != nil {
		attributes = append(attributes, slog.Bool("paused", *operation.Paused))
	}
	attributes = append(attributes,
		slog.Uint64("old_revision", operation.OldRevision),
		slog.Uint64("revision", operation.Revision),
		slog.Any("changed", operation.Changed))
	if operation.Reason != "" {
		attributes = append(attributes, slog.String("reason", operation.Reason))
	}
	return attributes
}

// refused logs a request that the role of its token does not permit.
func (a auditLog) refused(ctx context.Context, access httpapi.Access) {
	if !access.IsInquiry && a.logs(access.Action) {
		a.log(ctx, access.Actor, access.Action, access.ID, "forbidden")
	}
}

// log logs no ID that cannot be one: clients may put any text in its place.
func (a auditLog) log(ctx context.Context, actor relayer.Actor, action relayer.Action, id, result string, more ...slog.Attr) {
	if !relayer.IsID(id) {
		id = ""
	}
	a.logger.LogAttrs(ctx, slog.LevelInfo, "audit", append([]slog.Attr{
		slog.String("actor", actor.ID),
		slog.String("address", actor.Address),
		slog.String("request_id", actor.RequestID),
		slog.String("action", string(action)),
		slog.String("relayer_id", id),
		slog.String("outcome", result),
	}, more...)...)
}
