// Package mirror keeps an always-current view of relayers in memory, for programs that ask
// on every transaction whether a relayer is paused and what its policy allows.
//
// [Open] reads all relayers of a registry, a Manager or a client, and then follows its
// changes. It reconnects, repairs gaps, and never replaces a relayer by an older state of
// it. While the registry is unreachable, the view remains as it was, and [Mirror.CaughtUp]
// returns how old it is.
//
// Relayers of a view are shared by all callers and must not be modified. Their RPC URLs are
// as the source returns them: in full from a Manager without a sealer, and from a client with
// client.WithFullRPCURLs; otherwise masked.
//
// A registry that is restored from a backup, or whose store was in memory, can have older
// revisions than the view. The view then remains as it was, and ages. Open it again then.
package mirror
