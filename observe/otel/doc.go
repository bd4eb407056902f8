// Package otel reports the operations of a [relayer.Manager] to OpenTelemetry:
// a span and a measurement for each.
//
//	observer, err := otel.NewObserver()
//	// …
//	manager, err := relayer.New(store, relayer.WithObserver(observer))
//
// It uses the global providers unless it is told of others. Its scope is named
// by the path of this package.
//
// # Spans
//
// A span is named relayer.create, relayer.get and so on, and is a child of the
// span in the context that the Manager was called with. It begins and ends when
// the operation did. It is made after the operation has ended, so that spans
// that a store or a hook made meanwhile are its siblings.
//
//	relayer.operation  the kind of the operation
//	relayer.id         the id, unless it is none that a relayer can have
//	error.type         where the operation returned an error: its outcome, or _OTHER
//
// The status is Error for a fault (see [outcome.Outcome.IsFault]) and is left
// unset otherwise. A relayer that is not there, or a request that breaks a rule,
// is an answer and no failure of the registry.
//
// # Metrics
//
// The histogram relayer.operation.duration, in seconds, has these attributes. It
// counts the operations too.
//
//	relayer.operation  the kind of the operation
//	relayer.outcome    how it ended, in the words of package outcome
//
// Ids are not among them: each value would be a series of its own, for ever.
//
// # What is never exported
//
// The text of an error is not, neither as an event nor as the description of a
// status: it may repeat what a caller sent, and that of a store or a hook may
// have addresses and credentials in it. An id is exported only where it has the
// form of one, so that a URL or a long text sent in its place is not. Nothing
// tells an id from a secret of the same form that was sent by mistake.
package otel
