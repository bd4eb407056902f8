// Package relayerotel reports the operations of a [relayer.Manager] to OpenTelemetry:
// one span and one measurement for each.
//
//	observer, err := relayerotel.NewObserver()
//	// …
//	manager, err := relayer.New(store, relayer.WithObserver(observer))
//
// It uses the global providers by default. Its instrumentation scope is the
// import path of this package.
//
// # Spans
//
// A span is named relayer.create, relayer.get and so on. Its parent is the span
// in the context passed to the Manager, and spans that a store or a hook starts during
// the operation are its children.
//
//	relayer.operation  the action of the operation
//	relayer.id         the ID, if it is valid
//	error.type         if the operation failed: its outcome, or _OTHER
//
// The status is Error for a fault (see [outcome.Outcome.IsFault]) and unset
// otherwise. An unknown ID or an invalid request is a normal result and does not
// set the status.
//
// # Metrics
//
// The histogram relayer.operation.duration, in seconds, also counts the
// operations. It has these attributes:
//
//	relayer.operation  the action of the operation
//	relayer.outcome    the outcome, a word of package outcome
//
// IDs are not attributes of the metric: each ID would create a new time series.
//
// # Privacy
//
// Error texts are never exported, neither as events nor as status descriptions.
// They may repeat client input, and those of stores and hooks may contain
// addresses and credentials. An ID is exported only if it is valid, so a URL or
// a long text in its place is not exported. A secret that has the form of a
// valid ID, and is sent as one by mistake, is exported.
package relayerotel
