// Package crash kills a process that writes to a store, again and again, and
// compares what is left with what was acknowledged. With PostgreSQL it also kills
// the server or one of its sessions, pauses the server, and cuts connections,
// while the process continues.
//
// The operating system keeps running, so these tests prove that no write is
// acknowledged before its commit, and that a commit is whole or absent. They do
// not prove that a disk keeps what was synced: see tests/powerloss.
package crash
