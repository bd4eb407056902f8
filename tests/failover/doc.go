// Package failover kills the primary of a PostgreSQL pair under the writers of two
// instances, promotes the standby, and compares what is left with what the writers
// and the watchers received.
package failover
