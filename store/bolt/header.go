package bolt

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

	// noFreelist marks a file without a stored freelist: the engine rebuilds it
	// at open.
	noFreelist = 1<<64 - 1
)

var errHeaders = errors.New("neither header is valid")

// header is the content of one of the two meta pages. Commits write them
// alternately, and the valid one with the higher transaction ID is in force.
type header struct {
	root     uint64
	freelist uint64
	pages    uint64
	txid     uint64
}

// parseHeader returns false if the page is not a valid header.
func parseHeader(p page, number uint64) (header, bool) {
	body, ok := p.part(pageHeaderSize, headerSize)
	if !ok || p.id != number || p.kind != headerPage {
		return header{}, false
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body[:headerSummed])
	if native.Uint32(body) != headerMagic || native.Uint32(body[4:]) != headerVersion || native.Uint64(body[headerSummed:]) != sum.Sum64() {
		return header{}, false
	}
	return header{
		root:     native.Uint64(body[16:]),
		freelist: native.Uint64(body[32:]),
		pages:    native.Uint64(body[40:]),
		txid:     native.Uint64(body[48:]),
	}, true
}

// header returns the header of a transaction.
func (p pages) header(txid uint64) (header, error) {
	for number := range 2 {
		at := number * p.size
		h, ok := parseHeader(parsePage(p.mapped[at:at+p.size]), uint64(number))
		if ok && h.txid == txid {
			return h, nil
		}
	}
	return header{}, errHeaders
}

// newestTransaction returns the ID of the last transaction whose header is in the
// file, synced or not.
func newestTransaction(file *os.File, pageSize int) (uint64, error) {
	newest, found := uint64(0), false
	buffer := make([]byte, pageSize)
	for number := range uint64(2) {
		if _, err := file.ReadAt(buffer, int64(number)*int64(pageSize)); err != nil {
			return 0, err
		}
		if h, ok := parseHeader(parsePage(buffer), number); ok {
			newest, found = max(newest, h.txid), true
		}
	}
	if !found {
		return 0, errHeaders
	}
	return newest, nil
}

// syncHeaders makes both headers durable. The engine reuses the pages that a
// transaction freed as soon as it reads that transaction's header. If the header
// was written but never synced (the process was killed in between, or the sync
// failed and the kernel marked the page clean), a power cut then loses the header
// and the reused pages with it. Writing the same bytes again marks the pages
// dirty, so that the sync really writes them.
func syncHeaders(file *os.File, pageSize int) error {
	headers := make([]byte, 2*pageSize)
	if _, err := file.ReadAt(headers, 0); err != nil {
		return err
	}
	if _, err := file.WriteAt(headers, 0); err != nil {
		return err
	}
	return file.Sync()
}
