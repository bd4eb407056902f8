package pages

import (
	"bytes"
	"fmt"
	"sort"
)

// Walk visits the entries of trees and marks the pages that they use.
type Walk struct {
	file  File
	used  []uint64 // a bit for each page
	rooms [][]byte // one buffer for each level
	lists [][]element
}

// NewWalk returns a walk that has visited nothing.
func (f File) NewWalk() *Walk { return &Walk{file: f, used: make([]uint64, f.header.Pages/64+1)} }

// Entries calls visit for each entry of a tree whose key is not below from, in the
// order of the keys, and verifies every page on the way. It ends early if visit returns
// false or an error. Key and value are valid during the call.
func (w *Walk) Entries(t Tree, from []byte, visit func(key, value []byte) (more bool, err error)) error {
	e := &entries{w, from, visit}
	if t.root == 0 {
		_, err := e.page(t.inline, keyRange{}, 0)
		return err
	}
	_, err := e.child(t.root, keyRange{}, 0)
	return err
}

type entries struct {
	*Walk
	from  []byte
	visit func(key, value []byte) (bool, error)
}

func (w *entries) child(id uint64, within keyRange, level int) (more bool, err error) {
	if level == len(w.rooms) {
		w.rooms, w.lists = append(w.rooms, nil), append(w.lists, nil)
	}
	if level == maxDepth {
		return false, fmt.Errorf("%w: page %d is deeper than a tree can be", ErrDamaged, id)
	}
	var p page
	if p, w.rooms[level], err = w.file.page(id, w.rooms[level]); err != nil {
		return false, fmt.Errorf("page %d: %w", id, err)
	}
	if !w.mark(id, p.overflow()+1) {
		return false, fmt.Errorf("%w: page %d is used twice", ErrDamaged, id)
	}
	return w.page(p, within, level)
}

func (w *entries) page(p page, within keyRange, level int) (more bool, err error) {
	if level == len(w.lists) {
		w.rooms, w.lists = append(w.rooms, nil), append(w.lists, nil)
	}
	elements, ok := p.elements(w.lists[level][:0], w.file.header.PageSize, within)
	if !ok {
		return false, fmt.Errorf("page %d: %w", p.id, ErrDamaged)
	}
	w.lists[level] = elements
	for i, e := range elements {
		if p.kind == leafPage {
			more, err = w.entry(p, e)
		} else if i+1 < len(elements) && bytes.Compare(elements[i+1].key, w.from) <= 0 {
			more = true // all keys below are less
		} else {
			more, err = w.child(e.child, below(elements, i, within), level+1)
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

func (w *entries) entry(p page, e element) (more bool, err error) {
	if e.flags != 0 {
		return false, fmt.Errorf("%w: page %d holds something other than keys and values", ErrDamaged, p.id)
	}
	if bytes.Compare(e.key, w.from) < 0 {
		return true, nil
	}
	return w.visit(e.key, e.value)
}

// mark marks pages as used. It returns false if one is already.
func (w *Walk) mark(id, count uint64) bool {
	for ; count > 0; count-- {
		if w.used[id/64]&(1<<(id%64)) != 0 {
			return false
		}
		w.used[id/64] |= 1 << (id % 64)
		id++
	}
	return true
}

// Freelist verifies that each free page is inside the file, is listed once, and is not a
// page that the walk has visited: the next commits overwrite free pages. Call it after
// the walk of all trees.
func (w *Walk) Freelist() error {
	h := w.file.header
	ids, pages, err := w.file.freelist()
	if err != nil {
		return err
	}
	if !w.mark(h.Root, 1) || !w.mark(h.Freelist, pages) {
		return fmt.Errorf("%w: a page of the freelist or of the root is used twice", ErrDamaged)
	}
	for ; len(ids) > 0; ids = ids[idSize:] {
		if id := native.Uint64(ids); id < 2 || id >= h.Pages || !w.mark(id, 1) {
			return fmt.Errorf("%w: page %d is listed as free", ErrDamaged, id)
		}
	}
	return nil
}

// Path verifies the pages that the engine reads to write keys of a tree.
type Path struct {
	file    File
	known   map[uint64][]element // verified pages: of a branch with its elements
	buffers []buffer
	used    int // buffers of branches
}

type buffer struct {
	page     []byte
	elements []element
}

// Reset makes the Path one of a file of which nothing is verified. It keeps its memory.
func (p *Path) Reset(f File) {
	if p.known == nil {
		p.known = make(map[uint64][]element)
	}
	clear(p.known)
	p.file, p.used = f, 0
}

// Verify verifies the pages on the path to a key, and on each level some siblings on
// either side, which the engine may merge after a delete. It reads each page once.
func (p *Path) Verify(t Tree, key []byte, siblings int) error {
	if t.root == 0 {
		_, ok := t.inline.elements(nil, p.file.header.PageSize, keyRange{})
		return damagedUnless(ok, 0)
	}
	id, within := t.root, keyRange{}
	for range maxDepth {
		branch, err := p.visit(id, within)
		if err != nil || branch == nil {
			return err
		}
		index := max(0, sort.Search(len(branch), func(i int) bool { return bytes.Compare(branch[i].key, key) > 0 })-1)
		for i := max(0, index-siblings); i <= min(index+siblings, len(branch)-1); i++ {
			if _, err := p.visit(branch[i].child, below(branch, i, within)); err != nil {
				return err
			}
		}
		id, within = branch[index].child, below(branch, index, within)
	}
	return damagedUnless(false, id)
}

// visit verifies a page. It returns the elements of a branch, and nil for a leaf.
func (p *Path) visit(id uint64, within keyRange) (branch []element, err error) {
	if branch, isKnown := p.known[id]; isKnown {
		return branch, nil
	}
	if p.used == len(p.buffers) {
		p.buffers = append(p.buffers, buffer{})
	}
	into := &p.buffers[p.used]
	found, room, err := p.file.page(id, into.page)
	if err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	elements, ok := found.elements(into.elements[:0], p.file.header.PageSize, within)
	if !ok {
		return nil, damagedUnless(false, id)
	}
	*into = buffer{room, elements}
	if found.kind == branchPage {
		branch = elements
		p.used++
	}
	p.known[id] = branch
	return branch, nil
}

func damagedUnless(ok bool, id uint64) error {
	if ok {
		return nil
	}
	return fmt.Errorf("page %d: %w", id, ErrDamaged)
}
