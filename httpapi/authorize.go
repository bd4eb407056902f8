package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-relayer/relayer"
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

// WithAuthorizer calls a function for every request to the relayers, after
// authentication and before the rate limit, the body and the store. The request
// proceeds if the function returns nil. Otherwise the response is
//
//   - 503 if the error matches [relayer.ErrUnavailable], or if ctx is done;
//   - 404 if the error matches [relayer.ErrNotFound] and the request has an ID: the
//     response to an unknown relayer, so that the caller does not learn which exist;
//   - 403 for every other error. Its text is neither sent nor logged.
//
// A panic of the function is a fault (500), and the request does not proceed. The
// function must be safe for concurrent use. A list and the change feed show all
// relayers: a function that hides single relayers must refuse [ActionList] and
// [ActionWatch].
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
		err := a.authorize(&x.ctx, access)
		switch {
		case err == nil:
			return handle(x, r)
		case isUnavailable(&x.ctx, err):
			return a.errorResponse(x, r, err)
		case errors.Is(err, relayer.ErrNotFound) && access.ID != "":
			return relayerNotFound(access.ID)
		}
		return failure(http.StatusForbidden, messageForbidden)
	}
}
