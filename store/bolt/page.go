package bolt

import (
	"encoding/binary"
	"io"
)

// The engine's pages, as far as a check has to know them. All numbers are in the
// byte order of the machine.
const (
	pageHeaderSize = 16 // id 8, kind 2, number of elements 2, overflow 4
	elementSize    = 16
	bucketSize     = 16 // root 8, sequence 8; the page itself follows where root is 0

	branchPage   = 0x01
	leafPage     = 0x02
	headerPage   = 0x04
	freelistPage = 0x10

	bucketFlag = 0x01

	// engineKeySize is the longest key that the engine takes.
	engineKeySize = 32768
)

var native = binary.NativeEndian

// page is one page with what overflows it. Nothing it says is believed before it
// is compared with the room there is.
type page struct {
	file   io.ReaderAt
	at     int64
	extent int64
	head   []byte // the first bytes; more are read when they are asked for
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

// overflow is how many pages belong to the page beside itself.
func overflow(head []byte) uint64 { return uint64(native.Uint32(head[12:])) }

// part returns some bytes of the page. It is false where they do not lie in it
// or cannot be read.
func (p *page) part(from, size int64) ([]byte, bool) {
	if from < 0 || size < 0 || from+size > p.extent {
		return nil, false
	}
	if end := from + size; end <= int64(len(p.head)) {
		return p.head[from:end], true
	}
	read := make([]byte, size)
	_, err := p.file.ReadAt(read, p.at+from)
	return read, err == nil
}

// element is an entry of a branch, with the page it leads to, or of a leaf.
type element struct {
	key   []byte
	child uint64
	flags uint32

	valueAt, valueSize int64
}

// elements reads the table at the front of the page, and every key. It is false
// where anything of that, or a value, does not lie in the page.
func (p *page) elements() ([]element, bool) {
	end := pageHeaderSize + elementSize*int64(p.count)
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

// element reads one entry of the table, which counts from where it stands itself.
// Keys and values come after the table.
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
