package relayer

import (
	"context"
)

// Actor is who calls: the origin of an operation for hooks, observers and logs.
type Actor struct {
	// ID identifies the caller, such as the name of a token. It contains no secret.
	ID string

	// RequestID identifies the request. It is empty outside of a request.
	RequestID string

	// Address is the network address of the client, without its port. It is empty outside
	// of a request.
	Address string

	// Attributes are further properties of the caller, such as its groups or its tenant: the
	// authenticator of the host sets them, and its authorizer reads them. They are neither
	// stored nor logged. The map is shared with all copies of the Actor and must not be
	// modified.
	Attributes map[string][]string
}

type actorKey struct{}

// WithActor returns a context whose operations are those of the actor. Package httpapi
// sets it for each request.
func WithActor(ctx context.Context, actor Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, &actor)
}

// ActorFrom returns the actor of the context, and false if it has none.
func ActorFrom(ctx context.Context) (Actor, bool) {
	actor, ok := ctx.Value(actorKey{}).(*Actor)
	if !ok {
		return Actor{}, false
	}
	return *actor, true
}

// Action is what a caller does to relayers. It names operations in metrics, logs and access
// rules. Later versions may add actions: code that permits actions must refuse those that it
// does not know.
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionGet     Action = "get"
	ActionList    Action = "list"
	ActionWatch   Action = "watch"
	ActionUpdate  Action = "update"
	ActionPause   Action = "pause"
	ActionResume  Action = "resume"
	ActionDisable Action = "disable"
	ActionEnable  Action = "enable"
	ActionDelete  Action = "delete"

	// ActionReveal reads full RPC URLs. See [Manager.RPCURLs].
	ActionReveal Action = "reveal"
)

// IsWrite reports whether the action changes relayers. It is true for an unknown action, and
// false for [ActionReveal], which not every reader should have.
func (a Action) IsWrite() bool {
	return a != ActionGet && a != ActionList && a != ActionWatch && a != ActionReveal
}
