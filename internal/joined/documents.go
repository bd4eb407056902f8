// Package joined keeps the documents of adjacent records next to each other in memory, so
// that a page of them is copied in few pieces.
package joined

// Slots is the number of records in one piece.
const Slots = 32

// Documents is the documents in up to [Slots] slots, in one piece of memory whose bytes never
// change. The zero value has none.
type Documents struct {
	text []byte     // each document with a comma after it
	ends [Slots]int // in text, after the comma
}

// Join copies the documents and replaces each by its copy, so that they need not be in
// memory twice. The pointer of an empty slot is nil.
func (d *Documents) Join(documents *[Slots]*[]byte) {
	size := 0
	for _, document := range documents {
		if document != nil {
			size += len(*document) + len(",")
		}
	}
	d.text = make([]byte, 0, size)
	for slot, document := range documents {
		if document != nil {
			start := len(d.text)
			d.text = append(d.text, *document...)
			*document = d.text[start:len(d.text):len(d.text)]
			d.text = append(d.text, ',')
		}
		d.ends[slot] = len(d.text)
	}
}

// AreJoined reports whether Join was called since the last Clear.
func (d *Documents) AreJoined() bool { return d.text != nil }

// Clear is called when the document of a slot changes.
func (d *Documents) Clear() { d.text = nil }

// Append appends the documents from the first slot to the last one, each with a comma after
// it.
func (d *Documents) Append(dst []byte, first, last int) []byte {
	start := 0
	if first > 0 {
		start = d.ends[first-1]
	}
	return append(dst, d.text[start:d.ends[last]]...)
}
