package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

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
		if authorize == nil {
			return errors.New("httpapi: authorizer is nil")
		}
		if s.authorize != nil {
			return errors.New("httpapi: a second authorizer would replace the first one: give one WithAuthorizer")
		}
		s.authorize = authorize
		return nil
	}}
}

// authorized asks the authorizer before an endpoint, sets the view of the relayers that the
// caller may use, and parses the query. It logs a permitted request for full RPC URLs.
func (a *API) authorized(route route, handle endpoint) endpoint {
	return func(x *exchange) response {
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
		if problem != nil {
			return a.errorResponse(x, problem)
		}
		if route.method != http.MethodGet {
			if x.input.options, err = x.writeOptions(); err != nil {
				return a.errorResponse(x, err)
			}
		}
		if isReveal {
			a.log(x, slog.LevelInfo, "full RPC URLs requested", slog.String("relayer_id", loggedID(x.relayerID)))
		}
		x.within, x.manager = permission.within, a.manager
		if !x.within.IsZero() {
			x.manager = a.manager.Within(x.within)
		}
		return handle(x)
	}
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

// logForbidden logs a refusal. An actor that repeats a refused request could fill the log, so each
// actor and action has one line a second, with the number of refusals.
func (a *API) logForbidden(x *exchange, action relayer.Action) {
	line := func(count int) {
		a.log(x, slog.LevelInfo, "request forbidden",
			slog.String("action", string(action)), slog.String("relayer_id", loggedID(x.relayerID)), slog.Int("count", count))
	}
	if a.draining.Err() != nil { // nothing may be left to log when the process ends
		line(1)
		return
	}
	a.forbidden.add(refusal{x.actor.ID, action}, line)
}

type refusal struct {
	actor  string
	action relayer.Action
}

// refusals has the refusals that had a line in the last second.
type refusals struct {
	mu      sync.Mutex
	entries map[refusal]*repeated
}

// repeated counts the refusals since the last line.
type repeated struct {
	line  func(count int) // of the latest refusal
	count int
}

func (r *refusals) add(key refusal, line func(count int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry, isRepeated := r.entries[key]; isRepeated {
		entry.line = line
		entry.count++
		return
	}
	line(1)
	r.entries[key] = new(repeated)
	time.AfterFunc(time.Second, func() { r.logRepeated(key) })
}

// logRepeated logs what was counted in a second. The entry ends if there is nothing.
func (r *refusals) logRepeated(key refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entries[key].count == 0 {
		delete(r.entries, key)
		return
	}
	r.entries[key].log()
	time.AfterFunc(time.Second, func() { r.logRepeated(key) })
}

// logAll logs all that was counted.
func (r *refusals) logAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range r.entries {
		entry.log()
	}
}

func (e *repeated) log() {
	if e.count > 0 {
		e.line(e.count)
	}
	e.count = 0
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

type accessReport struct {
	Principal string `json:"principal"`

	// Actions are the permitted actions.
	Actions []relayer.Action `json:"actions"`

	// Selector is the selector of lists, and of the other actions unless Selectors has
	// theirs. It is empty if the caller may use all relayers.
	Selector  string                    `json:"selector"`
	Selectors map[relayer.Action]string `json:"selectors,omitempty"`
}

// getAccess reports what the caller may do. It asks the authorizer about each action, with
// no ID.
func (a *API) getAccess(x *exchange) response {
	report := accessReport{Principal: x.actor.ID, Actions: []relayer.Action{}}
	for _, action := range a.actions() {
		decision, err := a.decide(x, Access{Actor: x.actor, Action: action})
		if err != nil {
			a.logFault(x, err)
			return overloaded()
		}
		if decision.isAllowed {
			report.add(action, decision.within.String())
		}
	}
	return x.success(http.StatusOK, append(x.startBody(), encodeJSON(report)...), relayer.Envelope{})
}

// add adds a permitted action. The first one determines Selector.
func (p *accessReport) add(action relayer.Action, selector string) {
	p.Actions = append(p.Actions, action)
	if len(p.Actions) == 1 {
		p.Selector = selector
	}
	if selector == p.Selector {
		return
	}
	if p.Selectors == nil {
		p.Selectors = make(map[relayer.Action]string)
	}
	p.Selectors[action] = selector
}
