// Package client uses a relayer registry over HTTP: a server of package httpapi, or
// the public OpenZeppelin Relayer.
//
// A [*Client] is a [relayer.Registry], like a [*relayer.Manager]. A program that accepts
// a Registry works on a store in its own process and on a server alike.
//
// # Differences from a Manager
//
//   - RPC URLs that a server returns are masked, unless [WithFullRPCURLs] is given. All else
//     of a relayer is as in the Manager, LastChange included.
//   - If a server returns no revisions, like OpenZeppelin Relayer, relayers have the
//     Revision 0, and changes under it return [relayer.ErrNoRevision].
//   - An operation that the server does not offer returns an error that matches
//     [errors.ErrUnsupported]. OpenZeppelin Relayer has no change feed, no dry runs, no
//     operations of an engine, no filters and no history. [Client.All] then selects relayers itself.
//   - An Update that only changes Paused is a pause or a resume. With a Manager it is an
//     update, which admissions can refuse.
//   - Update cannot change SystemDisabled, and there is no dry run of Disable and Enable. If
//     it changes a list, it sends the whole list, without the members of its elements that
//     only a newer server knows.
//
// # Retries
//
// Requests that the server rejects with 429 or 503, and those for which no connection could be
// made, had no effect, and match [relayer.ErrUnavailable]. They are sent again, with
// exponential backoff, full jitter and the wait of Retry-After. Reads are also repeated after a
// lost connection, a truncated response, and a 5xx of a proxy. [WithRetries] sets the limits.
//
// A write whose response was lost may have taken effect: also one on a connection that is open
// when the server dies. The client then reads the
// relayer and compares it with the request. It repeats the write only if a repetition
// cannot take effect twice: a create with an ID, or a change under the revisions of
// [relayer.IfRevision]. If the outcome cannot be determined, the error matches
// [relayer.ErrOutcomeUnknown]. The methods document their rules.
//
// # Errors
//
// Failures match the errors of package relayer: [relayer.ErrNotFound],
// [relayer.ErrExists], [relayer.ErrConflict], [*relayer.ValidationError],
// [relayer.ErrUnavailable] and [relayer.ErrOutcomeUnknown]. Those of HTTP are
// [ErrUnauthorized] and [ErrForbidden]. Every failed response, except that of
// a write whose outcome is unknown, is also a [*ResponseError] with its status and request
// ID. Errors name the operation and the ID of the relayer. No error contains the token, a
// full RPC URL, or the body of a response that is not one of the API.
package client
