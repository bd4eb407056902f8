package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// ErrDamaged reports a page that cannot be followed.
var ErrDamaged = errors.New("a page of a tree is damaged")

// File is the mapped pages of one snapshot.
type File struct {
	mapped []byte
	size   int
}

// NewFile returns the pages that are mapped.
func NewFile(mapped []byte, pageSize int) File { return File{mapped, pageSize} }

// IsFreelist reports whether a page lies inside the file and is a freelist.
func (f File) IsFreelist(id uint64) bool {
	p, ok := f.at(id)
	return ok && p.kind == freelistPage
}

// at returns a page with its overflow pages. It returns false if the page lies
// outside the file or has another ID.
func (f File) at(id uint64) (page, bool) {
	count := uint64(len(f.mapped) / f.size)
	if id < 2 || id >= count {
		return page{}, false
	}
	from := id * uint64(f.size)
	found := parsePage(f.mapped[from : from+uint64(f.size)])
	extra := overflow(found.head)
	if found.id != id || extra >= count-id {
		return page{}, false
	}
	found.extent = int64(extra+1) * int64(f.size)
	found.head = f.mapped[from : from+uint64(found.extent)]
	return found, true
}

// Tree is the B+tree of a bucket. Reads go through it and not through the cursors
// of the engine, which follow a damaged page without limit.
type Tree struct {
	file File
	root page
}

// Bucket opens a bucket of the tree of all buckets.
func (t Tree) Bucket(name []byte) (Tree, error) {
	c, err := t.Seek(name)
	if err != nil {
		return Tree{}, err
	}
	e, ok, err := c.element()
	if err != nil {
		return Tree{}, err
	}
	if !ok || !bytes.Equal(e.key, name) || e.flags != bucketFlag || e.valueSize < bucketSize {
		return Tree{}, fmt.Errorf("bucket %s is missing", name)
	}
	leaf := c.path[len(c.path)-1].page
	value, ok := leaf.part(e.valueAt, e.valueSize)
	if !ok {
		return Tree{}, ErrDamaged
	}
	if root := native.Uint64(value); root != 0 {
		return t.file.Tree(root)
	}
	if len(value) < bucketSize+pageHeaderSize {
		return Tree{}, ErrDamaged
	}
	return Tree{t.file, parsePage(value[bucketSize:])}, nil
}

// Tree opens the tree with a root page.
func (f File) Tree(root uint64) (Tree, error) {
	p, ok := f.at(root)
	if !ok {
		return Tree{}, ErrDamaged
	}
	return Tree{f, p}, nil
}

// Get returns the value of a key, or nil.
func (t Tree) Get(key []byte) ([]byte, error) {
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
			return nil, ErrDamaged
		}
	}
	return nil, ErrDamaged
}

// valueOf returns the value at an index of a leaf if the key there is the given
// one, and otherwise nil.
func (p *page) valueOf(key []byte, index int) ([]byte, error) {
	if index >= p.count {
		return nil, nil
	}
	e, ok := p.elementAt(index)
	if !ok {
		return nil, ErrDamaged
	}
	if !bytes.Equal(e.key, key) {
		return nil, nil
	}
	value, ok := p.part(e.valueAt, e.valueSize)
	if !ok || e.flags != 0 {
		return nil, ErrDamaged
	}
	return value, nil
}

// Cursor is a position in a tree: an element on each level, from the root down.
type Cursor struct {
	file File
	path []position
}

type position struct {
	page  page
	index int
}

// Seek returns a cursor at the first entry whose key is not below the given one.
func (t Tree) Seek(key []byte) (*Cursor, error) {
	c := &Cursor{file: t.file, path: make([]position, 0, 4)}
	return c, c.descend(t.root, key)
}

// descend goes down from a page to a leaf. A nil key leads to the first entry.
func (c *Cursor) descend(p page, key []byte) error {
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
			return ErrDamaged
		}
		if p, ok = c.file.at(e.child); !ok {
			return ErrDamaged
		}
	}
	return ErrDamaged
}

// search returns the index of the element that leads to a key: in a leaf the
// first that is not below it, in a branch the last that is not above it.
func (p *page) search(key []byte) (int, error) {
	if p.kind != leafPage && (p.kind != branchPage || p.count == 0) {
		return 0, ErrDamaged
	}
	low, high := 0, p.count
	for low < high {
		middle := (low + high) / 2
		found, ok := p.keyAt(middle)
		if !ok {
			return 0, ErrDamaged
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
func (c *Cursor) element() (element, bool, error) {
	for {
		leaf := &c.path[len(c.path)-1]
		if leaf.index < leaf.page.count {
			e, ok := leaf.page.elementAt(leaf.index)
			if !ok {
				return element{}, false, ErrDamaged
			}
			return e, true, nil
		}
		more, err := c.nextLeaf()
		if err != nil || !more {
			return element{}, false, err
		}
	}
}

// Entry returns the key and the value at the cursor. The key is nil after the
// last one.
func (c *Cursor) Entry() (key, value []byte, err error) {
	e, ok, err := c.element()
	if err != nil || !ok {
		return nil, nil, err
	}
	leaf := &c.path[len(c.path)-1].page
	value, ok = leaf.part(e.valueAt, e.valueSize)
	if !ok || e.flags != 0 {
		return nil, nil, ErrDamaged
	}
	return e.key, value, nil
}

// Next moves the cursor to the following entry.
func (c *Cursor) Next() { c.path[len(c.path)-1].index++ }

// nextLeaf moves the cursor to the first entry of the following leaf. It returns
// false at the end of the tree.
func (c *Cursor) nextLeaf() (bool, error) {
	for up := len(c.path) - 2; up >= 0; up-- {
		branch := &c.path[up]
		if branch.index++; branch.index >= branch.page.count {
			continue
		}
		e, ok := branch.page.elementAt(branch.index)
		if !ok {
			return false, ErrDamaged
		}
		child, ok := c.file.at(e.child)
		if !ok {
			return false, ErrDamaged
		}
		c.path = c.path[:up+1]
		return true, c.descend(child, nil)
	}
	return false, nil
}

// Each visits all entries of a tree.
func (t Tree) Each(ctx context.Context, visit func(key, value []byte)) error {
	cursor, err := t.Seek(nil)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var key, value []byte
		if key, value, err = cursor.Entry(); key == nil {
			return err
		}
		visit(key, value)
		cursor.Next()
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

// VerifyRoot verifies the root page alone.
func (t Tree) VerifyRoot() error {
	if !t.root.sound() {
		return ErrDamaged
	}
	return nil
}

// VerifyPath checks the pages that the engine reads to write a key: those on the
// path to it, and on each level some siblings on either side. It skips the pages
// that are already verified.
func (t Tree) VerifyPath(key []byte, siblings int, verified map[uint64]bool) error {
	p := t.root
	for range maxDepth {
		if !verified[p.id] && !p.sound() {
			return ErrDamaged
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
			return ErrDamaged
		}
	}
	return ErrDamaged
}

func (t Tree) verifySiblings(parent *page, index, siblings int, verified map[uint64]bool) error {
	for i := max(0, index-siblings); i <= min(index+siblings, parent.count-1); i++ {
		if i == index {
			continue
		}
		sibling, ok := t.child(parent, i)
		if !ok || !verified[sibling.id] && !sibling.sound() {
			return ErrDamaged
		}
		verified[sibling.id] = true
	}
	return nil
}

func (t Tree) child(parent *page, index int) (page, bool) {
	e, ok := parent.elementAt(index)
	if !ok {
		return page{}, false
	}
	return t.file.at(e.child)
}
