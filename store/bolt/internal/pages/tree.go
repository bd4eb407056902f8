package pages

import (
	"context"
	"fmt"
)

// Tree is the B+tree of a bucket. The keys and values that it returns are parts of
// the mapped file.
type Tree struct {
	file File
	root page
}

// Tree opens the tree with a root page.
func (f File) Tree(root uint64) (Tree, error) {
	p, ok := f.page(root)
	if !ok {
		return Tree{}, ErrDamaged
	}
	return Tree{f, p}, nil
}

// Bucket opens a bucket of the tree of all buckets.
func (t Tree) Bucket(name []byte) (Tree, error) {
	e, ok, err := t.find(name)
	if err != nil {
		return Tree{}, err
	}
	if !ok || e.flags != bucketFlag {
		return Tree{}, fmt.Errorf("bucket %s is missing", name)
	}
	root, inline, ok := bucketRoot(e.value)
	switch {
	case !ok:
		return Tree{}, ErrDamaged
	case root != 0:
		return t.file.Tree(root)
	}
	return Tree{t.file, inline}, nil
}

// bucketRoot parses the value of a bucket: the ID of its root page or, if that is
// 0, the page itself, which then has no ID.
func bucketRoot(value []byte) (root uint64, inline page, ok bool) {
	if len(value) < bucketSize {
		return 0, page{}, false
	}
	if root := native.Uint64(value); root != 0 {
		return root, page{}, true
	}
	if len(value) < bucketSize+pageHeaderSize {
		return 0, page{}, false
	}
	inline = parsePage(value[bucketSize:])
	inline.id = 0
	return 0, inline, true
}

// Get returns the value of a key, or nil. It does not allocate.
func (t Tree) Get(key []byte) ([]byte, error) {
	e, ok, err := t.find(key)
	if err != nil || !ok {
		return nil, err
	}
	if e.flags != 0 {
		return nil, ErrDamaged
	}
	return e.value, nil
}

// find returns the entry of a key, and false if there is none.
func (t Tree) find(key []byte) (element, bool, error) {
	p := t.root
	for range maxDepth {
		index, err := p.search(key)
		if err != nil {
			return element{}, false, err
		}
		if p.kind == leafPage {
			return p.entry(key, index)
		}
		var ok bool
		if p, ok = t.file.child(&p, index); !ok {
			return element{}, false, ErrDamaged
		}
	}
	return element{}, false, ErrDamaged
}

// Each visits all entries of a tree, in the order of their keys. It returns the
// error of ctx or [ErrDamaged].
func (t Tree) Each(ctx context.Context, visit func(key, value []byte)) error {
	c, err := t.Seek(nil)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var key, value []byte
		if key, value, err = c.Entry(); key == nil {
			return err
		}
		visit(key, value)
		c.Next()
	}
	return err
}

// VerifyPath verifies the pages that the engine reads to write a key: those on the
// path to it, and on each level some siblings on either side. It skips the pages
// in verified, and adds to them.
func (t Tree) VerifyPath(key []byte, siblings int, verified map[uint64]bool) error {
	p, ok := t.currentRoot()
	if !ok {
		return ErrDamaged
	}
	for range maxDepth {
		if !t.file.verify(&p, verified) {
			return ErrDamaged
		}
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
		if p, ok = t.file.child(&p, index); !ok {
			return ErrDamaged
		}
	}
	return ErrDamaged
}

// currentRoot parses the root page again: the engine reads it as it is now.
func (t Tree) currentRoot() (page, bool) {
	if t.root.id == 0 {
		inline := parsePage(t.root.data)
		inline.id = 0
		return inline, true
	}
	return t.file.page(t.root.id)
}

func (t Tree) verifySiblings(parent *page, index, siblings int, verified map[uint64]bool) error {
	for i := max(0, index-siblings); i <= min(index+siblings, parent.count-1); i++ {
		if i == index {
			continue
		}
		sibling, ok := t.file.child(parent, i)
		if !ok || !t.file.verify(&sibling, verified) {
			return ErrDamaged
		}
	}
	return nil
}

// verify reports whether a page is sound. An inline page has no ID by which it
// could be recognized.
func (f File) verify(p *page, verified map[uint64]bool) bool {
	if verified[p.id] {
		return true
	}
	if !p.sound(f.pageSize) {
		return false
	}
	if p.id != 0 {
		verified[p.id] = true
	}
	return true
}

// child returns the page that an element of a branch leads to.
func (f File) child(parent *page, index int) (page, bool) {
	e, ok := parent.element(index)
	if !ok {
		return page{}, false
	}
	return f.page(e.child)
}
