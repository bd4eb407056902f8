package joined

import "math/bits"

// Set is a bit set of slots of a piece.
type Set uint32

// Len returns the number of slots in the set.
func (s Set) Len() int { return bits.OnesCount32(uint32(s)) }

// Has reports whether a slot is in the set.
func (s Set) Has(slot int) bool { return s&(1<<slot) != 0 }

// With returns the set with a slot added.
func (s Set) With(slot int) Set { return s | 1<<slot }

// Without returns the set with a slot removed.
func (s Set) Without(slot int) Set { return s &^ (1 << slot) }

// Contains reports whether all slots of another set are in the set.
func (s Set) Contains(other Set) bool { return other&^s == 0 }

// First returns the first slot of the set, which must not be empty.
func (s Set) First() int { return bits.TrailingZeros32(uint32(s)) }

// Last returns the last slot of the set, which must not be empty.
func (s Set) Last() int { return bits.Len32(uint32(s)) - 1 }

// From returns the slots of the set from the given one on.
func (s Set) From(slot int) Set { return s >> slot << slot }

// Skip returns the set without its first n slots.
func (s Set) Skip(n int) Set {
	for ; n > 0 && s != 0; n-- {
		s &= s - 1
	}
	return s
}

// Take returns the first n slots of the set.
func (s Set) Take(n int) Set { return s &^ s.Skip(n) }
