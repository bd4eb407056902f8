package table

import "strings"

// search finds texts that contain one of some parts. The zero value finds all.
type search []searchedPart

type searchedPart struct {
	text string
	signature
}

// signature has a bit for each two adjacent bytes of a text, which others can share. A text
// can contain only parts whose bits it has: most others are not read.
type signature uint64

func signatureOf(text string) (bits signature) {
	for i := 1; i < len(text); i++ {
		pair := uint32(text[i-1])<<8 | uint32(text[i])
		bits |= 1 << (pair * 2654435769 >> 26) // Fibonacci hashing to 6 bits
	}
	return bits
}

func newSearch(parts []string) search {
	s := make(search, len(parts))
	for i, part := range parts {
		s[i] = searchedPart{part, signatureOf(part)}
	}
	return s
}

// finds reports whether the text of a record contains one of the parts.
func (s search) finds(r *Record) bool {
	for i := range s {
		if s[i].signature&^r.signature == 0 && strings.Contains(r.Text, s[i].text) {
			return true
		}
	}
	return len(s) == 0
}
