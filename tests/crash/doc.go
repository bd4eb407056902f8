// Package crash kills a process while it writes to a store, again and again,
// and compares what is left with what the process had been told. Where the store
// is on PostgreSQL it also kills the server or one of its sessions, makes it hang,
// and cuts the connections to it, while the process goes on.
//
// What is killed leaves the system running, so that this proves the order of
// things (nothing is acknowledged before it is committed, and a commit is all or
// nothing) and not that a disk keeps what it has synced.
package crash
