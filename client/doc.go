// Package client uses a relayer registry over HTTP: a server of package httpapi, or
// the public OpenZeppelin Relayer.
//
// A [*Client] is a [relayer.Registry], like a [*relayer.Manager]. A program that accepts
// a Registry works on a store in its own process and on a server alike.
//
// # Differences from a Manager
//
//   - RPC URLs that a server returns are masked.
//   - The relayers of List and All have the Revision 0, because lists have no revisions.
//     Get the relayer before a change with [relayer.IfRevision].
//   - A server without entity tags has no revisions at all, and neither has one behind a
//     proxy that rewrites them, such as "7-gzip" for "7" by mod_deflate of Apache. The
//     condition IfRevision(0) never holds, so that such a change returns
//     [relayer.ErrConflict].
//
// # Retries
//
// Requests that the server rejects with 429 or 503, and those that did not reach it,
// had no effect. They are sent again, with exponential backoff, full jitter and the wait
// of Retry-After. Reads are also repeated after a lost connection, a truncated response,
// and a 5xx of a proxy. [WithRetries] sets the limits.
//
// A write whose response was lost may have taken effect. The client then reads the
// relayer and compares it with the request. It repeats the write only if the server
// rejects it while the first is in effect: a create by its ID, a change under the
// revisions of [relayer.IfRevision]. If the outcome cannot be determined, the error matches
// [relayer.ErrOutcomeUnknown]. The methods document their rules.
//
// # Errors
//
// Failures match the errors of package relayer: [relayer.ErrNotFound],
// [relayer.ErrExists], [relayer.ErrConflict], [*relayer.ValidationError],
// [relayer.ErrUnavailable] and [relayer.ErrOutcomeUnknown]. Those of HTTP are
// [ErrUnauthorized], [ErrForbidden] and [*RateError]. Every failed response is also a
// [*ResponseError] with its status and request ID. No error contains the token, a full
// RPC URL, or the body of a response that is not one of the API.
package client
