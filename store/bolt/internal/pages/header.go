package pages

import "hash/fnv"

const (
	headerMagic   = 0xED0CDAED
	headerVersion = 2
	headerSummed  = 56 // the checksum follows
	headerSize    = headerSummed + 8

	// HeaderEnd is where the content of a header page ends.
	HeaderEnd = pageHeaderSize + headerSize

	// NoFreelist marks a file without a stored freelist: the engine rebuilds it
	// at open.
	NoFreelist = 1<<64 - 1
)

// Header is the content of one of the two header pages (meta pages in bbolt).
// Commits write them alternately. The valid one with the higher transaction ID is
// current.
type Header struct {
	Root     uint64 // page of the tree of all buckets
	Freelist uint64 // page of the freelist, or NoFreelist
	Pages    uint64 // number of pages in use, free ones included
	TxID     uint64
}

// HeaderPage returns the content of page 0 or 1. It returns false if the page is
// not a valid header.
func (f File) HeaderPage(number int) (Header, bool) {
	at := number * f.pageSize
	p := parsePage(f.mapped[at : at+f.pageSize])
	body, ok := p.part(pageHeaderSize, headerSize)
	if !ok || p.id != uint64(number) || p.kind != headerPage {
		return Header{}, false
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body[:headerSummed])
	if native.Uint32(body) != headerMagic || native.Uint32(body[4:]) != headerVersion || native.Uint64(body[headerSummed:]) != sum.Sum64() {
		return Header{}, false
	}
	return Header{
		Root:     native.Uint64(body[16:]),
		Freelist: native.Uint64(body[32:]),
		Pages:    native.Uint64(body[40:]),
		TxID:     native.Uint64(body[48:]),
	}, true
}

// Header returns the header of a transaction, or [ErrNoHeader].
func (f File) Header(txid uint64) (Header, error) {
	for number := range 2 {
		if h, ok := f.HeaderPage(number); ok && h.TxID == txid {
			return h, nil
		}
	}
	return Header{}, ErrNoHeader
}

// Newest returns the header of the last transaction, or [ErrNoHeader].
func (f File) Newest() (Header, error) {
	newest, found := f.HeaderPage(0)
	if h, ok := f.HeaderPage(1); ok && (!found || h.TxID > newest.TxID) {
		newest, found = h, true
	}
	if !found {
		return Header{}, ErrNoHeader
	}
	return newest, nil
}
