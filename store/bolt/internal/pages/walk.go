package pages

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// use is what a page is there for. No page has two uses, so that a walk ends.
type use byte

const (
	unused use = iota
	inUse
	isFree
)

// Walk looks at every page of a file. It reads them from the file and not from
// where the engine has it mapped, as the engine's own check does: what a damaged
// page says can lead anywhere, and there a step too far ends the process.
type Walk struct {
	ctx      context.Context
	file     *os.File
	pageSize int64
	uses     []use
	report   func(problem error)
	problems int
	buffers  [][]byte // one for each level: a level's keys bound those below
}

// NewWalk begins a walk at the header of a transaction. The used part of the file
// has the given size.
func NewWalk(ctx context.Context, file *os.File, pageSize int, txid uint64, size int64, report func(problem error)) (*Walk, Header, bool) {
	w := &Walk{ctx: ctx, file: file, pageSize: int64(pageSize), report: report}
	newest, ok := w.newest(txid)
	if !ok || int64(newest.Pages)*w.pageSize != size {
		w.add("neither header is that of the last commit")
		return nil, Header{}, false
	}
	w.problems = 0
	w.uses = make([]use, newest.Pages)
	w.uses[0], w.uses[1] = inUse, inUse
	return w, newest, true
}

func (w *Walk) add(format string, args ...any) {
	w.problems++
	w.report(fmt.Errorf(format, args...))
}

// Problems returns how many problems were found after the headers.
func (w *Walk) Problems() int { return w.problems }

// Buckets walks the tree of all buckets, and those whose name is selected.
func (w *Walk) Buckets(root uint64, selected func(name []byte) bool) error {
	return w.tree(root, keyRange{}, 0, func(p *page, e element, level int) error {
		if !selected(e.key) {
			return nil
		}
		return w.openBucket(p, e, level, nothing)
	})
}

func nothing(*page, element, int) error { return nil }

// All walks every tree.
func (w *Walk) All(root uint64) error {
	return w.tree(root, keyRange{}, 0, w.bucket(w.entry))
}

// newest returns the header of a transaction. The other one has to be whole too:
// where it was the newer one, what counts now is the commit before.
func (w *Walk) newest(txid uint64) (newest Header, ok bool) {
	for number := range uint64(2) {
		p, read := w.read(number, w.buffer(0))
		h, whole := parseHeader(p, number)
		if !read || !whole {
			w.add("header %d is not as it was written: the last commit may be lost", number)
			continue
		}
		if h.TxID == txid {
			newest, ok = h, true
		}
	}
	return newest, ok
}

func (w *Walk) buffer(level int) []byte {
	for level >= len(w.buffers) {
		w.buffers = append(w.buffers, make([]byte, w.pageSize))
	}
	return w.buffers[level]
}

func (w *Walk) read(id uint64, buffer []byte) (page, bool) {
	at := int64(id) * w.pageSize
	_, err := w.file.ReadAt(buffer, at)
	p := parsePage(buffer)
	p.file, p.at = w.file, at
	return p, err == nil
}

// page reads a page and takes it, and what overflows it, into use.
func (w *Walk) page(id uint64, level int) (page, bool) {
	pages := uint64(len(w.uses))
	if id < 2 || id >= pages {
		w.add("page %d is asked for, of %d pages", id, pages)
		return page{}, false
	}
	p, ok := w.read(id, w.buffer(level))
	if !ok || p.id != id {
		w.add("page %d cannot be read", id)
		return page{}, false
	}
	more := overflow(p.head)
	if more >= pages-id {
		w.add("page %d is followed by %d more, of %d pages", id, more, pages)
		return page{}, false
	}
	p.extent = int64(more+1) * w.pageSize
	for each := id; each <= id+more; each++ {
		if !w.take(each, inUse) {
			return page{}, false
		}
	}
	return p, true
}

func (w *Walk) take(id uint64, as use) bool {
	if w.uses[id] != unused {
		w.add("page %d is used twice, or is used and free", id)
		return false
	}
	w.uses[id] = as
	return true
}

// Freelist reads which pages are free.
func (w *Walk) Freelist(id uint64) {
	p, ok := w.page(id, 0)
	if !ok {
		return
	}
	from, count := int64(pageHeaderSize), uint64(p.count)
	if p.count == 0xFFFF {
		if first, ok := p.part(from, 8); ok {
			from, count = from+8, native.Uint64(first)
		}
	}
	if p.kind != freelistPage || count > uint64(len(w.uses)) {
		w.add("page %d is not a list of free pages", id)
		return
	}
	ids, ok := p.part(from, 8*int64(count))
	if !ok {
		w.add("the list of free pages does not lie in page %d", id)
		return
	}
	for ; len(ids) > 0; ids = ids[8:] {
		listed := native.Uint64(ids)
		if listed >= uint64(len(w.uses)) {
			w.add("page %d is free, of %d pages", listed, len(w.uses))
			continue
		}
		w.take(listed, isFree)
	}
}

// keyRange holds the keys from the first up to the last, without the last. A
// bound that is not there is nil.
type keyRange struct {
	first, last []byte
}

// tree walks a tree from a page on, and visits the elements of its leaves.
func (w *Walk) tree(id uint64, within keyRange, level int, visit visitor) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if level == maxDepth {
		w.add("page %d lies deeper than a tree can be", id)
		return nil
	}
	p, ok := w.page(id, level)
	if !ok {
		return nil
	}
	if p.kind == branchPage && p.count > 0 {
		return w.branch(p, within, level, visit)
	}
	return w.leaf(p, within, level, visit)
}

// visitor is told of an element of a leaf, and at which level that stands.
type visitor func(p *page, e element, level int) error

func (w *Walk) branch(p page, within keyRange, level int, visit visitor) error {
	elements, ok := w.ordered(p, within)
	if !ok {
		return nil
	}
	for i, e := range elements {
		below := keyRange{e.key, within.last}
		if i+1 < len(elements) {
			below.last = elements[i+1].key
		}
		if err := w.tree(e.child, below, level+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (w *Walk) leaf(p page, within keyRange, level int, visit visitor) error {
	if p.kind != leafPage {
		w.add("page %d is not part of a tree", p.id)
		return nil
	}
	elements, ok := w.ordered(p, within)
	if !ok {
		return nil
	}
	for _, e := range elements {
		if err := visit(&p, e, level); err != nil {
			return err
		}
	}
	return nil
}

// ordered returns the elements of a page, unless they do not lie in it or their
// keys do not ascend within their range.
func (w *Walk) ordered(p page, within keyRange) ([]element, bool) {
	elements, ok := p.elements()
	if !ok {
		w.add("the elements of page %d do not lie in it", p.id)
		return nil, false
	}
	for i, e := range elements {
		early := i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0
		early = early || bytes.Compare(e.key, within.first) < 0
		late := within.last != nil && bytes.Compare(e.key, within.last) >= 0
		if early || late {
			w.add("the keys of page %d are out of order", p.id)
			return nil, false
		}
	}
	return elements, true
}

// bucket visits what the root is made of, and has what is in it visited.
func (w *Walk) bucket(entry visitor) visitor {
	return func(p *page, e element, level int) error { return w.openBucket(p, e, level, entry) }
}

func (w *Walk) openBucket(p *page, e element, level int, entry visitor) error {
	value, ok := p.part(e.valueAt, min(e.valueSize, w.pageSize))
	if !ok || e.flags != bucketFlag || len(value) < bucketSize {
		w.add("page %d has something else in it than buckets", p.id)
		return nil
	}
	if root := native.Uint64(value); root != 0 {
		return w.tree(root, keyRange{}, level+1, entry)
	}
	if len(value) < bucketSize+pageHeaderSize {
		w.add("a bucket of page %d is cut off", p.id)
		return nil
	}
	inline := parsePage(value[bucketSize:])
	inline.id = p.id
	return w.leaf(inline, keyRange{}, level, entry)
}

// entry visits what a bucket is made of: no bucket has another in it.
func (w *Walk) entry(p *page, e element, _ int) error {
	if e.flags != 0 {
		w.add("page %d has something else in it than keys and values", p.id)
	}
	return nil
}

// Compare holds every page against what the engine believes to be free: it is
// there that the next commits are written.
func (w *Walk) Compare(free func(id int) (bool, error)) error {
	for id, use := range w.uses {
		if id%1024 == 0 && w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		believedFree, err := free(id)
		if err != nil {
			return err
		}
		switch {
		case use == unused:
			w.add("page %d is neither used nor free", id)
		case (use == isFree) != believedFree:
			w.add("page %d is free in the file or in memory, and not in both", id)
		}
	}
	return nil
}
