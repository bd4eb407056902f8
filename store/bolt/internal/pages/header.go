package pages

import (
	"errors"
	"hash/fnv"
	"os"
)

const (
	headerMagic   = 0xED0CDAED
	headerVersion = 2
	headerSummed  = 56
	headerSize    = headerSummed + 8

	// HeaderEnd is where the content of a header page ends.
	HeaderEnd = pageHeaderSize + headerSize

	// NoFreelist marks a file without a stored freelist: the engine rebuilds it
	// at open.
	NoFreelist = 1<<64 - 1
)

var errHeaders = errors.New("neither header is valid")

// Header is the content of one of the two meta pages. Commits write them
// alternately, and the valid one with the higher transaction ID is in force.
type Header struct {
	Root     uint64
	Freelist uint64
	Pages    uint64
	TxID     uint64
}

// parseHeader returns false if the page is not a valid header.
func parseHeader(p page, number uint64) (Header, bool) {
	body, ok := p.part(pageHeaderSize, headerSize)
	if !ok || p.id != number || p.kind != headerPage {
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

// Header returns the header of a transaction.
func (f File) Header(txid uint64) (Header, error) {
	for number := range 2 {
		at := number * f.size
		h, ok := parseHeader(parsePage(f.mapped[at:at+f.size]), uint64(number))
		if ok && h.TxID == txid {
			return h, nil
		}
	}
	return Header{}, errHeaders
}

// NewestTransaction returns the ID of the last transaction whose header is in the
// file, synced or not.
func NewestTransaction(file *os.File, pageSize int) (uint64, error) {
	newest, found := uint64(0), false
	buffer := make([]byte, pageSize)
	for number := range uint64(2) {
		if _, err := file.ReadAt(buffer, int64(number)*int64(pageSize)); err != nil {
			return 0, err
		}
		if h, ok := parseHeader(parsePage(buffer), number); ok {
			newest, found = max(newest, h.TxID), true
		}
	}
	if !found {
		return 0, errHeaders
	}
	return newest, nil
}
