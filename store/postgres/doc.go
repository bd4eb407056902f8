// Package postgres stores relayers in PostgreSQL 15 or newer, for services whose
// instances share one registry.
//
// [Open] connects with a connection string; [New] uses a pool of the host
// application. Both create the schema if it is missing; of several instances that
// start at once, one does so. A schema that this module
// did not create, or an earlier development version of it, is [relayer.ErrUnknownFormat], and
// one that does not permit writers of this version is [relayer.ErrNewerFormat]. Both are left
// unchanged.
//
// # Writes
//
// Writes are serialized across instances by an advisory lock that is held until
// the commit is visible. So the creation order, the revisions and the order of changes
// are the same for every reader. Writes of one instance that arrive together share
// one transaction (group commit). A write that arrives alone does not wait for
// others, and a write that is refused does not fail the others.
//
// A write returns after its commit, and the commit is durable by the standard of the
// server: on disk, and on the synchronous standbys if there are any. If the session
// has synchronous_commit off, the Store turns it on for the write.
//
// # Reads
//
// A page, its total and the position of the feed come from one statement and one snapshot. A
// tree of counts over the creation order leads to the beginning of a page, so a page costs
// the same at any offset. An index of bits, one for each term and sequence number, gives the
// total and the pages of a selection. A search reads the texts of what the other conditions
// select. Reads and writes use the primary only.
//
// # Failures
//
// If no connection to a primary is available within [WithConnectTimeout], or the
// server does not respond within [WithTimeout], an operation returns
// [relayer.ErrUnavailable]. A write that cannot have been committed is first
// repeated on another connection. A refusal that does not pass, such as a missing privilege
// or a trigger that raises, is another error, which has the SQLSTATE. A write that a trigger or
// row-level security drops without an error is another error too.
//
// A Store remembers the highest timeline of the write-ahead log that it has seen. It
// refuses a former primary, which has a lower one and may still accept connections, and a
// server that belongs to another cluster. It asks all hosts of the connection string for
// their timelines if a write takes long. If the primary lacks revisions that the Store has
// seen, as after a failover that lost writes, the Store logs an error and goes on.
//
// If the connection is lost during the commit, a write returns
// [relayer.ErrOutcomeUnknown]. A caller settles it: it repeats the write, or reads the
// record. After an unknown outcome, no write of the Store returns before a commit has
// succeeded, not even a refused one: a write that is visible may be missing on the
// synchronous standby. For the same reason [Store.Get] of that record returns
// [relayer.ErrUnavailable] until then. Other reads do not show the outcome reliably:
// the server may still carry out the commit, or lose it in a failover.
//
// # Changes
//
// [Store.Watch] returns the changes made by all instances, and [Store.History] those of the
// past. They are stored in one table, numbered in the order of their commits, without private
// parts, and for as long as the database says: see [WithHistory]. Its newest part, of
// [WithChangeRetention], is the change feed. The feed takes the private part from the record,
// so a change that a later one has replaced or deleted has none. A notification is only a hint
// to read that table, so a lost connection loses no change.
package postgres
