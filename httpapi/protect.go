package httpapi

import "net/http"

// Protect returns a handler that admits requests like the API, and then calls next: for
// routes of the host application behind the same bearer tokens. It applies the limits
// of requests in flight ([WithMaxInFlight]), of unknown tokens ([WithGuessLimit]) and of
// the rate of the principal ([WithRateLimit]). Its requests and those of the API share
// these limits. A rejected request gets the JSON response of the API. The function of
// [WithAuthorizer] is not called, because it decides about relayers.
//
// [Principal] returns the caller from the context of the request that next gets. The
// response has the X-Request-Id of the request, or a new one. A request no longer
// counts as in flight once next is called, and next logs its own requests.
func (a *API) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if principal, ok := a.admit(w, r); ok {
			next.ServeHTTP(w, r.WithContext(WithPrincipal(r.Context(), principal)))
		}
	})
}

// admit reports whether a request may proceed. If not, it has sent the response.
func (a *API) admit(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	a.handle(w, r, func(x *exchange, r *http.Request) {
		if !a.authenticate(x, r) {
			return
		}
		if wait := a.readLimiter.take(x.principal); wait > 0 {
			x.respond(r, tooManyRequests(wait))
			return
		}
		w.Header()["X-Request-Id"] = []string{x.requestID}
		principal, ok = x.principal, true
	})
	return principal, ok
}
