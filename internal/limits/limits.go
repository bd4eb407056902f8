// Package limits has limits of relayer.Record and of stores. The Manager keeps the limits of a
// Record, and stores may rely on them.
package limits

// Lengths in bytes, except Terms.
const (
	ID       = 64
	Claim    = 128
	Terms    = 64 // the number of terms
	Term     = 256
	Text     = 1024
	Note     = 16384
	Position = 128
)

// Revision is the greatest revision that a store must accept in an import.
const Revision uint64 = 1 << 62
