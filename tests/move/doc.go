// Package move copies many relayers from a file to PostgreSQL and back into
// another file. It interrupts each copy by a cancellation and by a kill, and
// compares the copies with the source.
package move
