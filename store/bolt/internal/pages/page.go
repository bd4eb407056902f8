package pages

import (
	"bytes"
	"encoding/binary"
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

	// manyIDs is the number of elements of a freelist that holds its real number
	// in its first entry.
	manyIDs = 0xFFFF

	idSize = 8

	// maxKeySize is the longest key that the engine takes.
	maxKeySize = 32768

	// maxDepth is more levels than any tree has.
	maxDepth = 64
)

var native = binary.NativeEndian

// page is one page with its overflow pages.
type page struct {
	data  []byte
	id    uint64
	kind  uint16
	count int
}

// parsePage parses a page without overflow pages. The data must have room for the
// header of a page.
func parsePage(data []byte) page {
	return page{
		data:  data,
		id:    native.Uint64(data),
		kind:  native.Uint16(data[8:]),
		count: int(native.Uint16(data[10:])),
	}
}

// overflow returns the number of pages that follow and belong to this one.
func (p *page) overflow() uint64 { return uint64(native.Uint32(p.data[12:])) }

// part returns a range of the page. It returns false if the range is not inside
// the page.
func (p *page) part(from, size int64) ([]byte, bool) {
	if from < 0 || size < 0 || from+size > int64(len(p.data)) {
		return nil, false
	}
	return p.data[from : from+size], true
}

// element is an entry: of a branch, with the child page, or of a leaf.
type element struct {
	key   []byte
	child uint64
	flags uint32
	value []byte
}

// element returns one entry. It returns false if a part of the entry is not inside
// the page. The offsets of an entry count from its own position, and keys and
// values follow the table of all entries.
func (p *page) element(index int) (element, bool) {
	at := pageHeaderSize + elementSize*int64(index)
	entry, ok := p.part(at, elementSize)
	if !ok || index >= p.count {
		return element{}, false
	}
	var e element
	var keyAt, keySize, valueSize int64
	if p.kind == branchPage {
		keyAt, keySize = at+int64(native.Uint32(entry)), int64(native.Uint32(entry[4:]))
		e.child = native.Uint64(entry[8:])
	} else {
		e.flags = native.Uint32(entry)
		keyAt, keySize = at+int64(native.Uint32(entry[4:])), int64(native.Uint32(entry[8:]))
		valueSize = int64(native.Uint32(entry[12:]))
	}
	tableEnd := pageHeaderSize + elementSize*int64(p.count)
	if keyAt < tableEnd || keySize > maxKeySize {
		return element{}, false
	}
	if e.key, ok = p.part(keyAt, keySize); !ok {
		return element{}, false
	}
	e.value, ok = p.part(keyAt+keySize, valueSize)
	return e, ok
}

// inTree reports whether the page can be part of a tree.
func (p *page) inTree() bool { return p.kind == leafPage || p.kind == branchPage && p.count > 0 }

// freeIDs returns the page IDs that a freelist holds, 8 bytes each.
func (p *page) freeIDs() ([]byte, bool) {
	from, count := int64(pageHeaderSize), uint64(p.count)
	if p.count == manyIDs {
		first, ok := p.part(from, idSize)
		if !ok {
			return nil, false
		}
		from, count = from+idSize, native.Uint64(first)
	}
	if count > uint64(len(p.data)) {
		return nil, false
	}
	return p.part(from, idSize*int64(count))
}

// countFits reports whether the first key starts at the end of the table, as the
// engine writes it. If the count is damaged it does not.
func (p *page) countFits() bool {
	if p.count == 0 {
		return true
	}
	entry, ok := p.part(pageHeaderSize, elementSize)
	if !ok {
		return false
	}
	if p.kind == leafPage {
		entry = entry[4:]
	}
	return int64(native.Uint32(entry)) == elementSize*int64(p.count)
}

// sound reports whether the engine can read and free a page of a tree: all its
// elements are inside, and it has as many overflow pages as they need. The engine
// would free pages of others otherwise.
func (p *page) sound(pageSize int) bool {
	if !p.inTree() || !p.countFits() {
		return false
	}
	end := pageHeaderSize
	for i := range p.count {
		e, ok := p.element(i)
		if !ok {
			return false
		}
		end += elementSize + len(e.key) + len(e.value)
	}
	isInline := len(p.data) < pageSize
	return isInline || (end+pageSize-1)/pageSize == len(p.data)/pageSize
}

// search returns the index of the element that leads to a key. In a leaf it is the
// first element whose key is not less, in a branch the last whose key is not greater.
func (p *page) search(key []byte) (int, error) {
	if !p.inTree() || !p.countFits() {
		return 0, ErrDamaged
	}
	low, high := 0, p.count
	for low < high {
		middle := (low + high) / 2
		found, ok := p.key(middle)
		if !ok {
			return 0, ErrDamaged
		}
		order := bytes.Compare(found, key)
		if order < 0 || order == 0 && p.kind == branchPage {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if p.kind == branchPage {
		return max(0, low-1), nil
	}
	return low, nil
}

// key returns only the key of an entry, for searches.
func (p *page) key(index int) ([]byte, bool) {
	at := pageHeaderSize + elementSize*int64(index)
	entry, ok := p.part(at, elementSize)
	if !ok {
		return nil, false
	}
	if p.kind == leafPage {
		entry = entry[4:]
	}
	size := int64(native.Uint32(entry[4:]))
	if size > maxKeySize {
		return nil, false
	}
	return p.part(at+int64(native.Uint32(entry)), size)
}

// entry returns the entry at an index of a leaf if its key is the given one, and
// otherwise false.
func (p *page) entry(key []byte, index int) (element, bool, error) {
	if index >= p.count {
		return element{}, false, nil
	}
	e, ok := p.element(index)
	if !ok {
		return element{}, false, ErrDamaged
	}
	return e, bytes.Equal(e.key, key), nil
}
