package pages

import (
	"encoding/binary"
	"io"
)

// The layout of the engine's pages. All numbers are in the byte order of the
// machine.
const (
	pageHeaderSize = 16 // id 8, kind 2, number of elements 2, overflow 4
	elementSize    = 16
	bucketSize     = 16 // root 8, sequence 8; if root is 0 the page follows inline

	branchPage   = 0x01
	leafPage     = 0x02
	headerPage   = 0x04
	freelistPage = 0x10

	bucketFlag = 0x01

	// engineKeySize is the longest key that the engine takes.
	engineKeySize = 32768

	// maxDepth is more levels than any tree has.
	maxDepth = 64
)

var native = binary.NativeEndian

// page is one page with its overflow pages. Every offset and length in it is
// compared with its extent before it is used.
type page struct {
	file   io.ReaderAt // nil if head holds the whole extent
	at     int64
	extent int64
	head   []byte
	id     uint64
	kind   uint16
	count  int
}

func parsePage(head []byte) page {
	return page{
		head:   head,
		extent: int64(len(head)),
		id:     native.Uint64(head),
		kind:   native.Uint16(head[8:]),
		count:  int(native.Uint16(head[10:])),
	}
}

// overflow returns the number of pages that follow and belong to this one.
func overflow(head []byte) uint64 { return uint64(native.Uint32(head[12:])) }

// part returns a range of the page. It returns false if the range is not inside
// the page or cannot be read.
func (p *page) part(from, size int64) ([]byte, bool) {
	if from < 0 || size < 0 || from+size > p.extent {
		return nil, false
	}
	if end := from + size; end <= int64(len(p.head)) {
		return p.head[from:end], true
	}
	if p.file == nil {
		return nil, false
	}
	read := make([]byte, size)
	_, err := p.file.ReadAt(read, p.at+from)
	return read, err == nil
}

// element is an entry: of a branch, with the child page, or of a leaf.
type element struct {
	key   []byte
	child uint64
	flags uint32

	valueAt, valueSize int64
}

// elements returns all entries of the page. It returns false if a key or a value
// is not inside the page.
func (p *page) elements() ([]element, bool) {
	end := p.tableEnd()
	table, ok := p.part(0, end)
	if !ok {
		return nil, false
	}
	elements := make([]element, p.count)
	for i := range elements {
		at := pageHeaderSize + elementSize*int64(i)
		if elements[i], ok = p.element(table[at:at+elementSize], at, end); !ok {
			return nil, false
		}
	}
	return elements, true
}

// elementAt returns one entry. The index must be below the count.
func (p *page) elementAt(index int) (element, bool) {
	at := pageHeaderSize + elementSize*int64(index)
	entry, ok := p.part(at, elementSize)
	if !ok {
		return element{}, false
	}
	return p.element(entry, at, p.tableEnd())
}

// keyAt returns only the key of an entry, for searches.
func (p *page) keyAt(index int) ([]byte, bool) {
	at := pageHeaderSize + elementSize*index
	if at+elementSize > len(p.head) {
		return nil, false
	}
	entry := p.head[at : at+elementSize]
	if p.kind == leafPage {
		entry = entry[4:]
	}
	from := at + int(native.Uint32(entry))
	size := int(native.Uint32(entry[4:]))
	if size > engineKeySize || from+size > len(p.head) {
		return nil, false
	}
	return p.head[from : from+size], true
}

func (p *page) tableEnd() int64 { return pageHeaderSize + elementSize*int64(p.count) }

// element parses an entry of the table. Its offsets count from its own position.
// Keys and values follow the table.
func (p *page) element(entry []byte, at, tableEnd int64) (element, bool) {
	var e element
	var keyAt, keySize int64
	if p.kind == branchPage {
		keyAt, keySize = at+int64(native.Uint32(entry)), int64(native.Uint32(entry[4:]))
		e.child = native.Uint64(entry[8:])
	} else {
		e.flags = native.Uint32(entry)
		keyAt, keySize = at+int64(native.Uint32(entry[4:])), int64(native.Uint32(entry[8:]))
		e.valueAt, e.valueSize = keyAt+keySize, int64(native.Uint32(entry[12:]))
	}
	if keyAt < tableEnd || keySize > engineKeySize || e.valueAt+e.valueSize > p.extent {
		return element{}, false
	}
	var ok bool
	e.key, ok = p.part(keyAt, keySize)
	return e, ok
}
