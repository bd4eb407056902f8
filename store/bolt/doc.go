// Package bolt keeps relayers in one file, for one process, as durably as the
// disk can: a write is answered once it is synced.
//
// Writes that arrive together share one sync. A lone write waits for nobody; a
// refused one (a taken id, a lost compare-and-swap, a held claim) is its
// caller's answer alone. Reads run beside writes and beside each other, each on
// a snapshot of its own, and a page costs the same at any offset.
//
// [Open] makes the file where there is none, and refuses any other that is not
// its own, leaving it as it was: [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat], [relayer.ErrCorrupt]. A file
// is open in one process at a time: [ErrLocked].
//
// [Store.WriteTo] backs up while serving, and [Store.Check] reads everything
// and says whether it fits together. docs/store-format.md describes the file,
// how to make it smaller, and what is guaranteed.
package bolt
