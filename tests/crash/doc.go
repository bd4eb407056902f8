// Package crash kills a process while it writes to a store, again and again,
// and compares what is left with what the process had been told.
//
// A killed process leaves the system running, so that this proves the order of
// things (nothing is acknowledged before it is committed, and a commit is all or
// nothing) and not that a disk keeps what it has synced.
package crash
