// Package bolt stores relayers in one file, for one process. A write returns after
// its commit is synced to the disk.
//
// Concurrent writes share one commit (group commit). A write that waits alone is committed at
// once. A write that is rejected (the ID is taken, the revision is not current, the claim is
// held) does not affect the others. Reads except [Store.History] run concurrently with writes and
// with each other, each on the snapshot of one durable commit, and a page costs the same at any
// offset.
//
// [Open] creates the file if it does not exist. It refuses a file that it cannot use, and does
// not change it: [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat], [relayer.ErrCorrupt]. One
// process at a time can have a file open: [ErrLocked].
//
// [Store.History] returns the changes of the past: see [WithHistory].
//
// [Store.Backup] backs up while serving, [Store.Check] verifies the whole file, and [Store.Ready]
// reports whether the store can take writes. docs/internals.md describes the file, what is
// guaranteed, and what happens when the file is damaged, deleted or overwritten.
package bolt
