// Package postgres keeps relayers in PostgreSQL (15 or newer), for services of
// which several instances share one registry.
//
// [Open] connects by a connection string, and [New] takes a pool that the host
// has already. Both make the schema where there is none, whichever of many
// instances comes first, and refuse one that is not theirs or newer than they
// are, leaving it as it was: [relayer.ErrUnknownFormat], [relayer.ErrNewerFormat].
//
// # Writes
//
// Writes take turns, over all instances, and a turn is held until its commit is
// visible: so the order of creation, the revisions and the order in which
// changes are told are the same for everyone who looks. Writes of one instance
// that arrive together share a turn and a commit; a lone write waits for no
// other, and a refused one (a taken id, a lost compare-and-swap, a held claim)
// is its caller's answer alone.
//
// A write is answered once it is committed, and committed means synced: where
// the session has synchronous_commit off, it is turned on for the write.
//
// # Reads
//
// A page and its total are read by one statement, of one snapshot. Counts of how
// many relayers stand in each stretch of the creation order, in three levels, say
// where a page begins, so that it costs the same however many stand before it.
//
// # Faults
//
// A server that is out of reach, and a pool without a free connection, are
// [relayer.ErrUnavailable] after [WithConnectTimeout], and a server that does
// not answer after [WithTimeout]. What has not been committed is tried again on
// a new connection first. A connection lost while the commit is under way is
// [relayer.ErrOutcomeUnknown]. A create that is then made again through the same
// Store, with the same record, finds out whether the row that is there is its
// own, and returns it; a stranger's is [relayer.ErrExists] as always. A read does
// not tell so surely: the server may still be at what it was sent, and a write
// that comes after it waits for its turn. Once the server is back everything goes
// on by itself.
//
// # Changes
//
// [Store.Watch] tells of the changes made by every instance. They are kept in a
// table, numbered in the order of their commits, for [WithChangeRetention]; a
// notification is only a hint to look there, so that a lost connection misses
// nothing.
package postgres
