// Package bench measures reads and writes of the stores that need no server.
package bench
