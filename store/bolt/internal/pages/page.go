package pages

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// The layout of the engine's pages. All numbers are in the byte order of the machine.
const (
	pageHeaderSize = 16 // id 8, kind 2, number of elements 2, overflow 4
	elementSize    = 16
	bucketSize     = 16 // root 8, sequence 8; if root is 0 the page follows inline

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketFlag = 0x01

	// manyIDs is the number of elements of a freelist that holds its real number
	// in its first entry.
	manyIDs = 0xFFFF

	idSize = 8

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

	// What verify sets: the entries, and the range of their keys.
	elements []element
	within   keyRange
}

// parsePage parses the header of a page. The data must have room for the header of a page.
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

// part returns a range of the page. It returns false if the range is not inside the page.
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

// element returns one entry, whose key must begin at keyAt and be followed by its value. It
// returns false if it does not, or if a part of the entry is not inside the page. The offsets
// of an entry count from its own position.
func (p *page) element(index int, keyAt int64) (element, bool) {
	at := pageHeaderSize + elementSize*int64(index)
	entry, ok := p.part(at, elementSize)
	if !ok {
		return element{}, false
	}
	var e element
	var offset, keySize, valueSize uint32
	if p.kind == branchPage {
		offset, keySize = native.Uint32(entry), native.Uint32(entry[4:])
		e.child = native.Uint64(entry[8:])
	} else {
		e.flags = native.Uint32(entry)
		offset, keySize, valueSize = native.Uint32(entry[4:]), native.Uint32(entry[8:]), native.Uint32(entry[12:])
	}
	if at+int64(offset) != keyAt {
		return element{}, false
	}
	if e.key, ok = p.part(keyAt, int64(keySize)); !ok {
		return element{}, false
	}
	e.value, ok = p.part(keyAt+int64(keySize), int64(valueSize))
	return e, ok
}

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
	if p.kind != freelistPage || count > uint64(len(p.data)) {
		return nil, false
	}
	return p.part(from, idSize*int64(count))
}

// keyRange is the range of the keys below an element of a branch: from first on,
// and below limit unless that is nil.
type keyRange struct{ first, limit []byte }

// verify sets the entries of a page of a tree. It returns false unless the engine can read
// and free the page: all entries are inside, one after the other, their keys ascend within the
// range, and it has as many overflow pages as they need. The engine would free pages of others
// otherwise. Only the root of a bucket may be empty. An inline page is smaller than pageSize.
func (p *page) verify(pageSize int, within keyRange) bool {
	isRoot := within.first == nil
	if p.kind != leafPage && p.kind != branchPage || p.count == 0 && !(isRoot && p.kind == leafPage) {
		return false
	}
	p.elements, p.within = slices.Grow(p.elements[:0], p.count), within
	end := pageHeaderSize + elementSize*p.count
	var last []byte
	for i := range p.count {
		e, ok := p.element(i, int64(end))
		if !ok || i > 0 && bytes.Compare(e.key, last) <= 0 || i == 0 && bytes.Compare(e.key, within.first) < 0 {
			return false
		}
		end, last = end+len(e.key)+len(e.value), e.key
		p.elements = append(p.elements, e)
	}
	if p.count > 0 && within.limit != nil && bytes.Compare(last, within.limit) >= 0 {
		return false
	}
	isInline := len(p.data) < pageSize
	return isInline || (end+pageSize-1)/pageSize == len(p.data)/pageSize
}

// after returns the index of the first entry whose key is greater than a key.
func (p *page) after(key []byte) int {
	return sort.Search(len(p.elements), func(i int) bool { return bytes.Compare(p.elements[i].key, key) > 0 })
}

// below returns the range of the keys below an element of a branch.
func (p *page) below(index int) keyRange {
	if index+1 < len(p.elements) {
		return keyRange{p.elements[index].key, p.elements[index+1].key}
	}
	return keyRange{p.elements[index].key, p.within.limit}
}
