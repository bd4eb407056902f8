// Package pages reads and verifies the pages of a bbolt file. It compares every offset, length
// and page ID with the size of the page and of the file, and limits the depth of a tree. Damage
// therefore ends in an error within a bounded time. The engine itself follows a damaged page
// without limit.
//
// Pages are read with ReadAt. From a mapping, a truncated file or a failing disk is a fault,
// which the caller recovers.
package pages

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

var (
	// ErrDamaged reports a page that contradicts itself or the file.
	ErrDamaged = errors.New("a page is damaged")

	// ErrNoBucket reports that the root page has no such bucket. It matches ErrDamaged.
	ErrNoBucket = fmt.Errorf("%w: a bucket is missing", ErrDamaged)

	// ErrNoHeader reports that a file has no header of the engine.
	ErrNoHeader = errors.New("the file is not a database")
)

const (
	headerMagic   = 0xED0CDAED
	headerVersion = 2
	headerSummed  = 56 // the checksum follows
	headerSize    = headerSummed + 8

	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

// Header is the content of one of the two header pages (meta pages in bbolt). Commits write them
// alternately. The valid one with the higher transaction ID is current.
type Header struct {
	PageSize int
	Root     uint64 // page of the tree of all buckets
	Freelist uint64 // page of the freelist
	Pages    uint64 // number of pages in use, free ones included
	TxID     uint64
}

// Size returns the number of bytes in use.
func (h Header) Size() int64 { return int64(h.Pages) * int64(h.PageSize) }

// ReadHeaders returns the current header, and whether the other header is of the commit before:
// otherwise one of them is invalid, or an old version. It returns [ErrDamaged] if neither is
// valid, and [ErrNoHeader] if neither is a header. The second one is at the size of a page, which
// only a valid header has: every power of two is tried.
func ReadHeaders(from io.ReaderAt) (current Header, both bool, err error) {
	found, other, err := 0, Header{}, ErrNoHeader
	for at := int64(0); at <= maxPageSize; at = max(minPageSize, 2*at) {
		if found > 0 && at != int64(current.PageSize) {
			continue
		}
		switch h, problem := readHeader(from, at); {
		case problem == nil:
			if other = h; found == 0 || h.TxID > current.TxID {
				current, other = h, current
			}
			found++
		case errors.Is(problem, ErrDamaged):
			err = fmt.Errorf("%w: neither header is valid", ErrDamaged)
		case !errors.Is(problem, ErrNoHeader):
			return Header{}, false, problem
		}
	}
	if found > 0 {
		err = nil
	}
	return current, found == 2 && other.TxID+1 == current.TxID, err
}

// readHeader returns a header, or ErrNoHeader if there is none, or ErrDamaged if it does not
// match its checksum, its limits or its place. The engine ignores the ID of its page.
func readHeader(from io.ReaderAt, at int64) (Header, error) {
	var data [pageHeaderSize + headerSize]byte
	if _, err := from.ReadAt(data[:], at); err != nil && !errors.Is(err, io.EOF) {
		return Header{}, err
	}
	body := data[pageHeaderSize:]
	if native.Uint32(body) != headerMagic || native.Uint32(body[4:]) != headerVersion {
		return Header{}, ErrNoHeader
	}
	h := Header{
		PageSize: int(native.Uint32(body[8:])),
		Root:     native.Uint64(body[16:]),
		Freelist: native.Uint64(body[32:]),
		Pages:    native.Uint64(body[40:]),
		TxID:     native.Uint64(body[48:]),
	}
	sum := fnv.New64a()
	_, _ = sum.Write(body[:headerSummed])
	if native.Uint64(body[headerSummed:]) != sum.Sum64() || h.PageSize < minPageSize || h.PageSize > maxPageSize ||
		h.Pages > math.MaxInt64/uint64(h.PageSize) || at != 0 && at != int64(h.PageSize) {
		return Header{}, ErrDamaged
	}
	return h, nil
}

// File reads and verifies the pages of a file as one commit left it. Its pages must not be
// written while they are read. It has one buffer for each level of a tree, so that only one
// goroutine at a time may use it.
type File struct {
	from   io.ReaderAt
	header Header
	levels [maxDepth]page // the page that was verified last
	used   []uint64       // a bit for each page that Entries has visited
}

// NewFile returns a File for the state that a header describes.
func NewFile(from io.ReaderAt, h Header) *File {
	return &File{from: from, header: h}
}

// maxKept is the size of the largest buffer that Reset keeps, in bytes.
const maxKept = 1 << 20

// Reset makes the File read another state. It drops the pages that were read and keeps the
// buffers: a commit reads few pages, and new buffers would cost more than the reading.
func (f *File) Reset(from io.ReaderAt, h Header) {
	f.from, f.header, f.used = from, h, nil
	for i := range f.levels {
		if f.levels[i].id = 0; cap(f.levels[i].data) > maxKept {
			f.levels[i] = page{}
		}
	}
}

// page reads a page with its overflow pages into room, which it extends if necessary.
func (f *File) page(id uint64, room []byte) (p page, err error) {
	err = ErrDamaged
	if id >= 2 && id < f.header.Pages {
		p, err = f.read(id, 1, room)
	}
	if err == nil && (p.id != id || p.overflow() >= f.header.Pages-id) {
		err = ErrDamaged
	}
	if err == nil && p.overflow() > 0 {
		p, err = f.read(id, int(p.overflow()+1), p.data)
	}
	if err != nil {
		return page{}, fmt.Errorf("page %d: %w", id, err)
	}
	return p, nil
}

func (f *File) read(id uint64, count int, room []byte) (page, error) {
	size := count * f.header.PageSize
	room = slices.Grow(room[:0], size)[:size]
	_, err := f.from.ReadAt(room, int64(id)*int64(f.header.PageSize))
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the file is too short", ErrDamaged)
	}
	return parsePage(room), err
}

// VerifyFreelist verifies what the engine reads of the freelist for a commit: its kind,
// and that it has no more overflow pages than its count can need. The engine allocates a
// freelist before the final count is known, which is lower by at most its own pages.
func (f *File) VerifyFreelist() error {
	_, _, err := f.freelist()
	return err
}

func (f *File) freelist() (ids []byte, pages uint64, err error) {
	p, err := f.page(f.header.Freelist, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("freelist: %w", err)
	}
	ids, ok := p.freeIDs()
	pages = p.overflow() + 1
	size := uint64(f.header.PageSize)
	allocated := uint64(len(ids)/idSize) + pages
	if allocated >= manyIDs {
		allocated++ // the count itself
	}
	if most := (pageHeaderSize + idSize*allocated) / size; !ok || pages > most+1 {
		return nil, 0, fmt.Errorf("freelist: %w", ErrDamaged)
	}
	return ids, pages, nil
}
