package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/go-relayer/relayer"
)

// Access describes a request to an [Authorizer].
type Access struct {
	// Actor is the authenticated caller.
	Actor relayer.Actor

	// Action is what the request does: [relayer.ActionGet], [relayer.ActionList],
	// [relayer.ActionWatch], [relayer.ActionCreate], [relayer.ActionUpdate],
	// [relayer.ActionDelete], [relayer.ActionPause] and [relayer.ActionResume] of several
	// relayers, and those of [WithEngineOperations]. HEAD is the action of GET. A pause of one
	// relayer is an update, a dry run is the action of its write, and the
	// history of a relayer is a get, that of all a list. A read of full RPC URLs asks twice: about the
	// read, and about [relayer.ActionReveal].
	Action relayer.Action

	// ID is the relayer ID in the path, and otherwise empty. It is the text of the client:
	// the relayer may not exist, and the text may not be a valid ID. GET /api/v1/access
	// asks about every action with an empty ID.
	ID string
}

// Decision is the result of an [Authorizer]. The zero Decision refuses.
type Decision struct {
	isAllowed bool
	within    relayer.Selector
}

// Allow permits a request within the relayers that the selector selects. The zero
// [relayer.Selector] selects all relayers. The others do not exist for the caller, as with
// [relayer.Manager.Within]. The selector must be valid and have no search.
func Allow(within relayer.Selector) Decision { return Decision{true, within} }

// Authorizer decides whether a request is permitted, and for which relayers. Later versions
// may add actions: an Authorizer refuses those that it does not know. It is called after
// authentication and the rate limit, and before the body and the store. It must be safe for
// concurrent use.
//
// A refusal is 403, and is logged. An error is a fault of the host, such as a database that it
// cannot reach: it is logged, and the response is 503, which promises that the request had no
// effect. A panic is logged, and the response is 500.
//
// A change stream asks again about every 15 seconds. It ends if it is refused, or if the
// selector is another one; the client then gets a resync event when it connects again.
type Authorizer func(ctx context.Context, access Access) (Decision, error)

// WithAuthorizer sets the function that decides about every request to the relayers.
// Without it every authenticated caller may do everything.
func WithAuthorizer(authorize Authorizer) Option {
	return Option{func(s *settings) error {
		if s.authorize != nil {
			return errors.New("httpapi: a second authorizer would replace the first one: give one WithAuthorizer")
		}
		return set(&s.authorize, authorize, authorize != nil, "authorizer is nil")
	}}
}

// authorized parses the query, asks the authorizer, and sets the view of the relayers that the
// caller may use. It logs a permitted request for full RPC URLs. It returns the response to a
// request that is refused or invalid.
func (a *API) authorized(x *exchange, route route) (rejection response) {
	var problem error
	x.input, problem = route.parseQuery(x.request.URL.RawQuery)
	if route.action != "" {
		x.actions = []relayer.Action{route.action}
	}
	isReveal := x.input.is("rpc_urls", "full")
	if isReveal {
		x.actions = append(x.actions, relayer.ActionReveal)
	}
	permission, err := a.permission(x, x.actor)
	if err != nil {
		a.logFault(x, err)
		return overloaded()
	}
	if !permission.isAllowed {
		return failure(http.StatusForbidden)
	}
	if problem == nil && route.method != http.MethodGet {
		x.input.options, problem = x.writeOptions()
	}
	if problem != nil {
		return a.errorResponse(x, problem)
	}
	if isReveal {
		a.log(x, slog.LevelInfo, "full RPC URLs requested", slog.String("relayer_id", loggedID(x.relayerID)))
	}
	x.within, x.manager = permission.within, a.manager
	if !x.within.IsZero() {
		x.manager = a.manager.Within(x.within)
	}
	return response{}
}

// permission returns whether the actor may do all actions of the request, and for which
// relayers. It logs a refusal.
func (a *API) permission(x *exchange, actor relayer.Actor) (all Decision, err error) {
	all.isAllowed = true
	for _, action := range x.actions {
		decision, err := a.decide(x, Access{Actor: actor, Action: action, ID: x.relayerID})
		if err != nil {
			return Decision{}, err
		}
		if !decision.isAllowed {
			a.logForbidden(x, action)
			return Decision{}, nil
		}
		all.within = all.within.And(decision.within)
	}
	return all, nil
}

// documents returns the view for reads. RPC URLs are in full only if the caller was
// permitted to read them.
func (x *exchange) documents() relayer.Documents {
	if slices.Contains(x.actions, relayer.ActionReveal) {
		return x.manager.Documents().WithFullURLs()
	}
	return x.manager.Documents()
}

// decide returns an error if the authorizer fails, or if no view can have its selector.
func (a *API) decide(ctx context.Context, access Access) (Decision, error) {
	if a.authorize == nil {
		return Allow(relayer.Selector{}), nil
	}
	decision, err := a.authorize(ctx, access)
	if err == nil {
		err = decision.within.Err()
	}
	for key := range decision.within.Terms() {
		if key == "search" {
			err = errors.New("the selector of a decision must not have a search")
		}
	}
	if err != nil {
		return Decision{}, fmt.Errorf("authorizer: %w", err)
	}
	return decision, nil
}

// getAccess reports what the caller may do. It asks the authorizer about each action, with no ID.
func (a *API) getAccess(x *exchange) response {
	report := struct {
		Principal string                    `json:"principal"`
		Actions   []relayer.Action          `json:"actions"`             // that are permitted
		Selector  string                    `json:"selector"`            // of lists, and of actions without another
		Selectors map[relayer.Action]string `json:"selectors,omitempty"` // of actions that have another
	}{x.actor.ID, []relayer.Action{}, "", make(map[relayer.Action]string)}
	for _, action := range a.actions() {
		decision, err := a.decide(x, Access{Actor: x.actor, Action: action})
		if err != nil {
			a.logFault(x, err)
			return overloaded()
		}
		if !decision.isAllowed {
			continue
		}
		selector := decision.within.String()
		if report.Actions = append(report.Actions, action); len(report.Actions) == 1 {
			report.Selector = selector
		} else if selector != report.Selector {
			report.Selectors[action] = selector
		}
	}
	return x.success(http.StatusOK, append(x.startBody(), encodeJSON(report)...), relayer.Envelope{})
}
