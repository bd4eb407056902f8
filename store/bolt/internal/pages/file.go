package pages

import "errors"

var (
	// ErrDamaged reports a page that contradicts itself or the file.
	ErrDamaged = errors.New("a page of a tree is damaged")

	// ErrNoHeader reports a file without the header that is needed.
	ErrNoHeader = errors.New("neither header is valid")
)

// File is the used part of a mapped file. It is immutable.
type File struct {
	mapped   []byte
	pageSize int
	count    uint64
}

// NewFile returns ErrNoHeader if there is no room for two headers.
func NewFile(mapped []byte, pageSize int) (File, error) {
	if pageSize < pageHeaderSize+headerSize || len(mapped) < 2*pageSize {
		return File{}, ErrNoHeader
	}
	return File{mapped, pageSize, uint64(len(mapped) / pageSize)}, nil
}

// IsFreelist reports whether a page is a freelist with as many overflow pages as
// its count can need. The engine allocates a freelist before the final count is
// known. The final count is lower by at most the pages of the freelist itself.
func (f File) IsFreelist(id uint64) bool {
	p, ok := f.page(id)
	if !ok || p.kind != freelistPage {
		return false
	}
	ids, ok := p.freeIDs()
	if !ok {
		return false
	}
	pages := len(p.data) / f.pageSize
	most := (pageHeaderSize + idSize*(len(ids)/idSize+1+pages)) / f.pageSize
	return pages <= most+1
}

// page returns a page with its overflow pages. It returns false if the page is
// outside the file or has another ID.
func (f File) page(id uint64) (page, bool) {
	if id < 2 || id >= f.count {
		return page{}, false
	}
	from, size := id*uint64(f.pageSize), uint64(f.pageSize)
	found := parsePage(f.mapped[from : from+size])
	extra := found.overflow()
	if found.id != id || extra >= f.count-id {
		return page{}, false
	}
	found.data = f.mapped[from : from+(extra+1)*size]
	return found, true
}
