// Package move copies many relayers from a file to PostgreSQL and back into
// another file, interrupts the copy by a cancellation and by a kill, and compares
// what arrives with what was there.
package move
