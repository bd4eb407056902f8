//go:build unix

// Package pgserver runs a PostgreSQL server of a test's own: the real binaries
// of the machine, on an empty database in a temporary directory, reached over a
// unix socket. A test can kill it, start it again on the same files, stop it in
// the usual way, and make it hang.
//
//	server := pgserver.Start(t)
//	pool, err := pgxpool.New(ctx, server.ConnString())
//
// The server writes as durably as one in production: what a client has been told
// is committed survives [Server.Kill].
//
// PostgreSQL refuses to run as root. Where the tests do, the server runs as the
// user postgres, or as nobody where there is none.
//
// On Linux the server ends with the process that started it, however that ends;
// elsewhere it outlives one that ends without [Server.Close].
package pgserver
