package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Authenticator returns who sent a request: from a bearer token, a cookie, a client certificate,
// or the context. [Tokens] and [TrustHost] return one. Browsers add cookies to requests of other
// sites, and the credentials of HTTP Basic authentication too: with either, wrap the API in
// [http.CrossOriginProtection]. Rate limits and logs use the ID of the actor, which must not be
// empty. The API sets the RequestID and Address of the actor.
//
// An error that matches [ErrUnauthorized] rejects the request with 401. Any other error is
// a fault of the host, such as a database that it cannot reach: it is logged, and the response is
// 503, which promises that the request had no effect. A panic is logged, and the response is 500.
// The function must be safe for concurrent use, and must not read the body.
//
// The function is called for every request, and every 10 to 15 seconds for an open stream, which
// ends if the function rejects it, or if the actor then sees other relayers. Nothing limits
// guesses, so credentials need 128 random bits, and the function itself must limit its calls of a
// slow service.
type Authenticator func(r *http.Request) (relayer.Actor, error)

// ErrUnauthorized is the error of an [Authenticator] that does not accept a request.
var ErrUnauthorized = wire.ErrUnauthorized

// minTokenBytes is the length of the shortest token that [Tokens] accepts: one of 128
// random bits in Base64 or hexadecimal digits is longer.
const minTokenBytes = 16

// Tokens accepts bearer tokens, by the name of their owner, which is the ID of the actor. An
// owner with several tokens can rotate them without a gap:
//
//	httpapi.Tokens(map[string][]string{"deploy": {newToken, oldToken}, "dashboard": {token}})
//
// It returns an error, which quotes no token, if there is no token, if one has no name, or if a
// token occurs twice, has fewer than 16 bytes, or has spaces, control or non-ASCII characters.
// The map can be changed after the call. Tokens must be random and have at least 128 bits:
// nothing limits guesses.
func Tokens(byName map[string][]string) (Authenticator, error) {
	// The digests are the keys, so the duration of a lookup reveals nothing about a token.
	names := make(map[[sha256.Size]byte]string)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		for _, token := range byName[name] {
			digest, problem := sha256.Sum256([]byte(token)), ""
			switch {
			case name == "":
				problem = "has no name"
			case !wire.IsToken(token):
				problem = "is empty or contains spaces, control or non-ASCII characters"
			case len(token) < minTokenBytes:
				problem = fmt.Sprintf("has fewer than %d bytes: generate one with openssl rand -hex 16", minTokenBytes)
			case names[digest] != "":
				problem = "is given twice"
			}
			if problem != "" {
				return nil, fmt.Errorf("httpapi: a bearer token of %q %s", name, problem)
			}
			names[digest] = name
		}
	}
	if len(names) == 0 {
		return nil, errors.New("httpapi: no bearer token given")
	}
	return func(r *http.Request) (relayer.Actor, error) {
		token, ok := BearerToken(r)
		name := names[sha256.Sum256([]byte(token))]
		if !ok || name == "" {
			return relayer.Actor{}, ErrUnauthorized
		}
		return relayer.Actor{ID: name}, nil
	}, nil
}

// TrustHost accepts every request whose context has an actor with an ID, for a host whose
// own middleware has authenticated it and has called [relayer.WithActor]. Any other request
// is rejected with 401, so a forgotten middleware does not open the API. If the login is a
// cookie or HTTP Basic, wrap the API in [http.CrossOriginProtection].
//
// The middleware runs once per request, so a change stream continues after a logout. A host that
// ends sessions passes an [Authenticator] that reads the session instead: a stream calls it again
// every 10 to 15 seconds.
func TrustHost() Authenticator {
	return func(r *http.Request) (relayer.Actor, error) {
		actor, _ := relayer.ActorFrom(r.Context())
		if actor.ID == "" {
			return relayer.Actor{}, ErrUnauthorized
		}
		return actor, nil
	}
}

// BearerToken returns the token of the Authorization header, for an [Authenticator]. It
// reports false if the request has no valid one, or more than one Authorization header: a
// proxy in front of the handler may have checked another one.
func BearerToken(r *http.Request) (token string, ok bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", false
	}
	token, ok = bearerToken(values[0])
	return token, ok && wire.IsToken(token)
}

func bearerToken(value string) (token string, isBearer bool) {
	scheme, token, _ := strings.Cut(value, " ")
	return strings.Trim(token, " "), strings.EqualFold(scheme, "Bearer")
}

// challenge returns the value of WWW-Authenticate, which says whether a token was sent.
func challenge(r *http.Request) string {
	for _, value := range r.Header["Authorization"] {
		if token, isBearer := bearerToken(value); isBearer && token != "" {
			return `Bearer error="invalid_token"`
		}
	}
	return "Bearer"
}

// WithClientAddress sets the function that returns the address of a client, for a host behind a
// proxy. The function should read a header that the proxy sets and that no client can set. The
// default is the address of the connection. It is the Address of the [relayer.Actor], and the
// caller of a request before authentication ([WithMaxInFlight]).
func WithClientAddress(address func(*http.Request) string) Option {
	return option(address != nil, "client address function is nil", func(s *settings) { s.address = address })
}

// connectionAddress returns the remote address of the connection without its port.
func connectionAddress(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return cmp.Or(host, r.RemoteAddr)
}

// Access describes a request to an [Authorizer].
type Access struct {
	// Actor is the authenticated caller.
	Actor relayer.Actor

	// Action is what the request does: [relayer.ActionGet], [relayer.ActionList],
	// [relayer.ActionWatch], [relayer.ActionCreate], [relayer.ActionUpdate],
	// [relayer.ActionDelete], [relayer.ActionPause] and [relayer.ActionResume] of several
	// relayers, and the actions of [WithEngineOperations]. HEAD has the action of GET. A pause of
	// one relayer is an update. A dry run has the action of its write. The history of one relayer
	// is a get, and the history of all is a list. A read of full RPC URLs asks twice: about the
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
// A refusal is 403, and is logged. Any error is a fault of the host: the response is 503, as for an
// [Authenticator]. A panic is logged, and the response is 500.
//
// A change stream asks again every 10 to 15 seconds. It ends if it is refused. It also ends if
// the selector has changed: a stream of another selection begins with a resync event.
type Authorizer func(ctx context.Context, access Access) (Decision, error)

// WithAuthorizer sets the function that decides about every request to the relayers. [New]
// rejects a second one. Without it every authenticated caller may do everything.
func WithAuthorizer(authorize Authorizer) Option {
	return option(authorize != nil, "authorizer is nil", func(s *settings) { s.authorize, s.authorizers = authorize, s.authorizers+1 })
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
	permission, err := a.permission(x, x, x.actor)
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
func (a *API) permission(ctx context.Context, x *exchange, actor relayer.Actor) (all Decision, err error) {
	all.isAllowed = true
	for _, action := range x.actions {
		decision, err := a.decide(ctx, Access{Actor: actor, Action: action, ID: x.relayerID})
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
