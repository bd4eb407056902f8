package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/internal/wire"
)

// Action is what a request does with relayers.
type Action string

// The actions of the API. HEAD is the action of GET.
const (
	ActionList   Action = "list"
	ActionCreate Action = "create"
	ActionGet    Action = "get"
	ActionUpdate Action = "update"
	ActionDelete Action = "delete"

	// ActionWatch follows the changes of all relayers. It is checked when the stream
	// begins and about every 15 seconds; a stream that is refused ends.
	ActionWatch Action = "watch"
)

// Access describes a request to the function of [WithAuthorizer].
type Access struct {
	// Principal is the authenticated caller: the result of an [AuthFunc], the value of
	// [WithPrincipal], or "token-1" and so on for [Tokens].
	Principal string

	Action Action

	// ID is the relayer ID in the path of a get, update or delete, and otherwise
	// empty. It is the text of the client: the relayer may not exist, and the text may
	// not be a valid ID.
	ID string
}

// ErrForbidden is the error of an authorizer that refuses a request: see
// [WithAuthorizer].
var ErrForbidden = wire.ErrForbidden

// WithAuthorizer calls a function for every request to the relayers, after
// authentication and before the rate limit, the body and the store. The request
// proceeds only if the function returns nil. Otherwise the response is
//
//   - 403 if the error matches [ErrForbidden];
//   - 404 if the error matches [relayer.ErrNotFound]: the response to an unknown relayer,
//     so that the caller does not learn which exist. It is 403 if the request has no ID;
//   - 503 for every other error: a fault of the host, such as a database that it cannot
//     reach. It is logged. 503 promises that the request had no effect;
//   - 500 for a panic, which is logged.
//
// The function must be safe for concurrent use. A list and the change feed show all
// relayers: a function that hides single relayers must refuse [ActionList] and
// [ActionWatch]. A caller that may create relayers can still detect a hidden one: a create
// with its ID returns 409.
//
// Without the option every authenticated caller may do everything.
func WithAuthorizer(authorize func(ctx context.Context, access Access) error) Option {
	return func(a *API) error {
		if authorize == nil {
			return errors.New("httpapi: authorizer is nil")
		}
		a.authorize = authorize
		return nil
	}
}

// authorized calls the authorizer before an endpoint.
func (a *API) authorized(action Action, handle endpoint) endpoint {
	if a.authorize == nil {
		return handle
	}
	return func(x *exchange, r *http.Request) response {
		access := Access{Principal: x.principal, Action: action, ID: x.relayerID}
		err := a.authorize(r.Context(), access)
		switch {
		case err == nil:
			return handle(x, r)
		case errors.Is(err, relayer.ErrNotFound) && access.ID != "":
			return failureOf(http.StatusNotFound, access.ID)
		case errors.Is(err, relayer.ErrNotFound), errors.Is(err, ErrForbidden):
			return failure(http.StatusForbidden)
		}
		a.logFault(x, r, fmt.Errorf("authorizer: %w", err))
		return overloaded()
	}
}
