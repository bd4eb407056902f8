package bolt

import "hash/fnv"

const (
	headerMagic   = 0xED0CDAED
	headerVersion = 2
	headerSummed  = 56
	headerSize    = headerSummed + 8

	// noFreelist says that the engine finds the free pages at open.
	noFreelist = 1<<64 - 1
)

// header is one of the two pages that say where everything is. They are written
// in turns, and the newer one counts.
type header struct {
	root     uint64
	freelist uint64
	pages    uint64
	txid     uint64
}

// parseHeader is false where the page is not as it was written.
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
