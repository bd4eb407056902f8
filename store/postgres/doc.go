// Package postgres stores relayers in PostgreSQL 15 or newer, for services whose
// instances share one registry.
//
// [Open] connects with a connection string; [New] uses a pool of the host application. Both
// create the schema if it is missing; of several instances that start at once, one does so. They
// return [relayer.ErrUnknownFormat] if another program or a development version has its tables,
// and [relayer.ErrNewerFormat] for a schema that does not permit writers of this version. Such a
// schema is left unchanged.
//
// # Writes
//
// Writes are serialized across instances by an advisory lock that is held until
// the commit is visible. So the creation order, the revisions and the order of changes
// are the same for every reader. Writes of one instance that arrive together share
// one transaction (group commit), and a write that is refused does not fail the others.
//
// A write returns after its commit, and the commit is durable by the standard of the
// server: on disk, and on the synchronous standbys if there are any. If the session
// has synchronous_commit off, the Store turns it on for the write.
//
// # Reads
//
// A page, its total and the position of the feed come from one snapshot. A page costs the same
// after any sequence number, or at an offset up to a millisecond more for a million relayers. A
// search reads the texts of what the other conditions select. Reads and writes use the primary
// only.
//
// # Failures
//
// If no primary is available or responds in time, an operation returns [relayer.ErrUnavailable]:
// see [WithTimeout]. A write that loses its connection before the commit is first repeated. A
// permanent refusal, such as a missing privilege, or a trigger that raises an error or drops the
// row, is another error, with the SQLSTATE if there is one.
//
// A Store remembers the highest timeline of the write-ahead log that it has seen. It refuses a
// server with a lower timeline, such as a former primary, or of another cluster. It can see a
// promotion a minute late. If a list or a write finds a lower last revision than before, as after
// a failover that lost writes, the Store logs an error and goes on.
//
// If the commit gets no response, a write returns [relayer.ErrOutcomeUnknown]. The caller then
// repeats the write or reads the record. After an unknown outcome, no write of the Store succeeds
// or is refused before a commit has succeeded: a write that is visible may be missing on the
// synchronous standby. For the same reason [Store.Get] of that record returns
// [relayer.ErrUnavailable] until then. Other reads do not show the outcome reliably.
//
// # Changes
//
// [Store.Watch] returns the changes made by all instances, and [Store.History] those of the past,
// for as long as [WithHistory] says. The newest part of the history, of 10 minutes, is the change
// feed. It takes the private part from the record, so a change may have none after a later change
// of the record.
package postgres
