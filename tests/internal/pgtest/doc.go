// Package pgtest opens stores on a PostgreSQL server of package pgserver, and waits
// for the sessions of processes that were killed.
package pgtest
