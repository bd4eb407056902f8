// Package client uses a relayer registry over HTTP: a server of package httpapi. It can also read
// the relayers of a server of OpenZeppelin Relayer.
//
// A [*Client] is a [relayer.Registry], like a [*relayer.Manager]. A program that accepts
// a Registry works on a store in its own process and on a server alike.
//
// # Differences from a Manager
//
//   - URLs and header values of endpoints are masked, unless [WithFullRPCURLs] is given. All else
//     of a relayer is as in the Manager, LastChange included.
//   - An operation that the server does not offer returns an error that matches
//     [errors.ErrUnsupported]. So does a response 404, 405 or 501 of a wrong base URL or of a
//     proxy.
//   - Relayers of OpenZeppelin Relayer have the Revision 0. Such a server has no filters, dry
//     runs or change feed: [Client.All] filters in the client.
//   - An Update that only changes Paused is a pause or a resume. With a Manager it is an update,
//     and an admission can refuse such a pause.
//   - [relayer.WithActor] has no effect: the server takes the actor from the token, and the client
//     generates each request ID. [relayer.Reason] is stored with a change.
//   - A write whose URLs cannot be sealed matches [relayer.ErrUnavailable], and not ErrSealed.
//   - Update cannot change SystemDisabled. A changed list is sent whole: its elements lose
//     members that only a newer server has.
//
// # Retries
//
// Requests that the server rejects with 429 or 503, or that get no connection, had no effect.
// Their errors match [relayer.ErrUnavailable]. Such requests are sent again, with exponential
// backoff, full jitter and the wait of Retry-After. A certificate that is not trusted is another
// error, and final, except for a Watch that was connected. Reads are also repeated after a lost
// connection, a truncated response, and a 5xx of a proxy. [WithRetries] sets the limits.
//
// # Lost responses
//
// A write whose response was lost may have taken effect. All attempts of a write have the same
// X-Request-Id, which the server stores with the change. The client looks for it in the last
// change of the relayer, then in its history. If it is there, the write has succeeded, and the
// result is the relayer as it was then. If it is not, and a condition no longer holds, the result
// is [relayer.ErrConflict], [relayer.ErrExists] or [relayer.ErrNotFound]. Otherwise the client
// sends the write again. A change that the history has pruned, such as after 1,000 later ones, is
// not found.
//
// A lost request may arrive later, even after the call, and then repeats a write that has no
// condition. A write with [relayer.IfRevision] takes effect once, and so does a create unless a
// client deletes the relayer in between.
//
// The error of a lost write matches [relayer.ErrOutcomeUnknown] if the attempts or their time are
// exhausted, or ctx ends or would end before the next attempt. Without a history, or with a proxy
// that replaces X-Request-Id, it also matches if the relayer does not show the outcome. Its text
// has the request ID of the write. To find a write in the history later, give it a
// [relayer.Reason] that no other write has.
//
// # Errors
//
// Most failures match an error of package relayer, [ErrUnauthorized] or [ErrForbidden]. Every
// complete failure response is also a [*ResponseError], unless a write may have taken effect.
// Errors name the operation and the ID of the relayer. No error contains the token, a full RPC
// URL, or the body of a response that is not one of the API.
package client
