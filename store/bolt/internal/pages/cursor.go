package pages

// Cursor is a position in a tree: an element on each level, from the root down.
type Cursor struct {
	file    File
	path    []position
	visited uint64 // pages
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
		// A cursor visits each page at most once, unless a damaged branch leads back
		// to pages that were visited before.
		if c.visited++; c.visited > c.file.count {
			return ErrDamaged
		}
		index, err := p.search(key)
		if err != nil {
			return err
		}
		c.path = append(c.path, position{p, index})
		if p.kind == leafPage {
			return nil
		}
		var ok bool
		if p, ok = c.file.child(&p, index); !ok {
			return ErrDamaged
		}
	}
	return ErrDamaged
}

// element returns the element at the cursor, and false after the last one.
func (c *Cursor) element() (element, bool, error) {
	for {
		leaf := &c.path[len(c.path)-1]
		if leaf.index < leaf.page.count {
			e, ok := leaf.page.element(leaf.index)
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
	if e.flags != 0 {
		return nil, nil, ErrDamaged
	}
	return e.key, e.value, nil
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
		child, ok := c.file.child(&branch.page, branch.index)
		if !ok {
			return false, ErrDamaged
		}
		c.path = c.path[:up+1]
		return true, c.descend(child, nil)
	}
	return false, nil
}
