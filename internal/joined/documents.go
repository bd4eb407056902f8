// Package joined concatenates the documents of adjacent records, so that a page of a list
// is copied from few areas of the memory.
package joined

// Slots is the number of slots in a piece. A slot has room for one record, and may be empty.
const Slots = 32

// Documents holds the concatenated documents of a piece. The zero value is not joined.
type Documents struct {
	text []byte     // each document with a comma after it; its bytes never change
	ends [Slots]int // the offset in text after the comma of each slot
}

// Join concatenates the documents and replaces each by its copy in the concatenation, so
// that memory holds each document once. The pointer of an empty slot is nil.
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

// Clear discards the concatenation. Call it when the document of a slot changes.
func (d *Documents) Clear() { d.text = nil }

// Append appends the documents from the first slot to the last one, each with a comma after
// it. They must be joined.
func (d *Documents) Append(dst []byte, first, last int) []byte {
	start := 0
	if first > 0 {
		start = d.ends[first-1]
	}
	return append(dst, d.text[start:d.ends[last]]...)
}
