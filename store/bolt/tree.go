package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

var errTree = errors.New("a page of a tree is damaged")

// pages are the pages of one snapshot, as they are mapped.
type pages struct {
	mapped []byte
	size   int
}

// at returns a page with its overflow pages. It returns false if the page lies
// outside the file or has another ID.
func (p pages) at(id uint64) (page, bool) {
	count := uint64(len(p.mapped) / p.size)
	if id < 2 || id >= count {
		return page{}, false
	}
	from := id * uint64(p.size)
	found := parsePage(p.mapped[from : from+uint64(p.size)])
	extra := overflow(found.head)
	if found.id != id || extra >= count-id {
		return page{}, false
	}
	found.extent = int64(extra+1) * int64(p.size)
	found.head = p.mapped[from : from+uint64(found.extent)]
	return found, true
}

// tree is the B+tree of a bucket. Reads go through it and not through the cursors
// of the engine, which follow a damaged page without limit.
type tree struct {
	pages pages
	root  page
}

// bucket opens a bucket of the tree of all buckets.
func (t tree) bucket(name []byte) (tree, error) {
	c, err := t.seek(name)
	if err != nil {
		return tree{}, err
	}
	e, ok, err := c.element()
	if err != nil {
		return tree{}, err
	}
	if !ok || !bytes.Equal(e.key, name) || e.flags != bucketFlag || e.valueSize < bucketSize {
		return tree{}, fmt.Errorf("bucket %s is missing", name)
	}
	leaf := c.path[len(c.path)-1].page
	value, ok := leaf.part(e.valueAt, e.valueSize)
	if !ok {
		return tree{}, errTree
	}
	if root := native.Uint64(value); root != 0 {
		return openTree(t.pages, root)
	}
	if len(value) < bucketSize+pageHeaderSize {
		return tree{}, errTree
	}
	return tree{t.pages, parsePage(value[bucketSize:])}, nil
}

func openTree(of pages, root uint64) (tree, error) {
	p, ok := of.at(root)
	if !ok {
		return tree{}, errTree
	}
	return tree{of, p}, nil
}

// get returns the value of a key, or nil.
func (t tree) get(key []byte) ([]byte, error) {
	p := t.root
	for range maxDepth {
		index, err := p.search(key)
		if err != nil {
			return nil, err
		}
		if p.kind == leafPage {
			return p.valueOf(key, index)
		}
		var ok bool
		if p, ok = t.child(&p, index); !ok {
			return nil, errTree
		}
	}
	return nil, errTree
}

// valueOf returns the value at an index of a leaf if the key there is the given
// one, and otherwise nil.
func (p *page) valueOf(key []byte, index int) ([]byte, error) {
	if index >= p.count {
		return nil, nil
	}
	e, ok := p.elementAt(index)
	if !ok {
		return nil, errTree
	}
	if !bytes.Equal(e.key, key) {
		return nil, nil
	}
	value, ok := p.part(e.valueAt, e.valueSize)
	if !ok || e.flags != 0 {
		return nil, errTree
	}
	return value, nil
}

// cursor is a position in a tree: an element on each level, from the root down.
type cursor struct {
	pages pages
	path  []position
}

type position struct {
	page  page
	index int
}

// seek returns a cursor at the first entry whose key is not below the given one.
func (t tree) seek(key []byte) (*cursor, error) {
	c := &cursor{pages: t.pages, path: make([]position, 0, 4)}
	return c, c.descend(t.root, key)
}

// descend goes down from a page to a leaf. A nil key leads to the first entry.
func (c *cursor) descend(p page, key []byte) error {
	for len(c.path) < maxDepth {
		index, err := p.search(key)
		if err != nil {
			return err
		}
		c.path = append(c.path, position{p, index})
		if p.kind == leafPage {
			return nil
		}
		e, ok := p.elementAt(index)
		if !ok {
			return errTree
		}
		if p, ok = c.pages.at(e.child); !ok {
			return errTree
		}
	}
	return errTree
}

// search returns the index of the element that leads to a key: in a leaf the
// first that is not below it, in a branch the last that is not above it.
func (p *page) search(key []byte) (int, error) {
	if p.kind != leafPage && (p.kind != branchPage || p.count == 0) {
		return 0, errTree
	}
	low, high := 0, p.count
	for low < high {
		middle := (low + high) / 2
		found, ok := p.keyAt(middle)
		if !ok {
			return 0, errTree
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

// element returns the element at the cursor, and false after the last one.
func (c *cursor) element() (element, bool, error) {
	for {
		leaf := &c.path[len(c.path)-1]
		if leaf.index < leaf.page.count {
			e, ok := leaf.page.elementAt(leaf.index)
			if !ok {
				return element{}, false, errTree
			}
			return e, true, nil
		}
		more, err := c.nextLeaf()
		if err != nil || !more {
			return element{}, false, err
		}
	}
}

// entry returns the key and the value at the cursor. The key is nil after the
// last one.
func (c *cursor) entry() (key, value []byte, err error) {
	e, ok, err := c.element()
	if err != nil || !ok {
		return nil, nil, err
	}
	leaf := &c.path[len(c.path)-1].page
	value, ok = leaf.part(e.valueAt, e.valueSize)
	if !ok || e.flags != 0 {
		return nil, nil, errTree
	}
	return e.key, value, nil
}

// next moves the cursor to the following entry.
func (c *cursor) next() { c.path[len(c.path)-1].index++ }

// nextLeaf moves the cursor to the first entry of the following leaf. It returns
// false at the end of the tree.
func (c *cursor) nextLeaf() (bool, error) {
	for up := len(c.path) - 2; up >= 0; up-- {
		branch := &c.path[up]
		if branch.index++; branch.index >= branch.page.count {
			continue
		}
		e, ok := branch.page.elementAt(branch.index)
		if !ok {
			return false, errTree
		}
		child, ok := c.pages.at(e.child)
		if !ok {
			return false, errTree
		}
		c.path = c.path[:up+1]
		return true, c.descend(child, nil)
	}
	return false, nil
}

// each visits all entries of a tree.
func (t tree) each(ctx context.Context, visit func(key, value []byte)) error {
	cursor, err := t.seek(nil)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var key, value []byte
		if key, value, err = cursor.entry(); key == nil {
			return err
		}
		visit(key, value)
		cursor.next()
	}
	return err
}

// sound reports whether a page of a tree has all its elements inside.
func (p *page) sound() bool {
	if p.kind != leafPage && (p.kind != branchPage || p.count == 0) {
		return false
	}
	for i := range p.count {
		if _, ok := p.elementAt(i); !ok {
			return false
		}
	}
	return true
}

// verifyPath checks the pages that the engine reads to write a key: those on the
// path to it, and on each level some siblings on either side. It skips the pages
// that are already verified.
func (t tree) verifyPath(key []byte, siblings int, verified map[uint64]bool) error {
	p := t.root
	for range maxDepth {
		if !verified[p.id] && !p.sound() {
			return errTree
		}
		verified[p.id] = p.id != 0 // inline pages have no ID
		if p.kind == leafPage {
			return nil
		}
		index, err := p.search(key)
		if err != nil {
			return err
		}
		if err := t.verifySiblings(&p, index, siblings, verified); err != nil {
			return err
		}
		var ok bool
		if p, ok = t.child(&p, index); !ok {
			return errTree
		}
	}
	return errTree
}

func (t tree) verifySiblings(parent *page, index, siblings int, verified map[uint64]bool) error {
	for i := max(0, index-siblings); i <= min(index+siblings, parent.count-1); i++ {
		if i == index {
			continue
		}
		sibling, ok := t.child(parent, i)
		if !ok || !verified[sibling.id] && !sibling.sound() {
			return errTree
		}
		verified[sibling.id] = true
	}
	return nil
}

func (t tree) child(parent *page, index int) (page, bool) {
	e, ok := parent.elementAt(index)
	if !ok {
		return page{}, false
	}
	return t.pages.at(e.child)
}
