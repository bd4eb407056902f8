package pages

import (
	"bytes"
	"fmt"
	"slices"
)

// verified reads and verifies a page of a tree. It is not read again below the same element of a
// branch, until another page of its level or of the one above is read. The result is valid until
// another page of its level or above is read.
func (f *File) verified(id uint64, within keyRange, level int) (*page, error) {
	if level == maxDepth {
		return nil, fmt.Errorf("%w: page %d is deeper than a tree can be", ErrDamaged, id)
	}
	p := &f.levels[level]
	if id != 0 && p.id == id && bytes.Equal(p.within.first, within.first) {
		return p, nil
	}
	if level+1 < maxDepth {
		f.levels[level+1].id = 0 // its range of keys is in the buffer that is read into
	}
	found, err := f.page(id, p.data)
	found.elements = p.elements
	if err == nil && !found.verify(f.header.PageSize, within) {
		err = fmt.Errorf("page %d: %w", id, ErrDamaged)
	}
	if err != nil {
		found.id = 0
	}
	*p = found
	return p, err
}

// bucket returns the root page of a bucket, which is at level 1, below the tree of all
// buckets. That must be a single page.
func (f *File) bucket(name string) (*page, error) {
	all, err := f.verified(f.header.Root, keyRange{}, 0)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all.elements, func(e element) bool { return string(e.key) == name })
	if at < 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoBucket, name)
	}
	switch e := all.elements[at]; {
	case all.kind != leafPage || e.flags != bucketFlag || len(e.value) < bucketSize:
	case native.Uint64(e.value) != 0:
		return f.verified(native.Uint64(e.value), keyRange{}, 1)
	case len(e.value) >= bucketSize+pageHeaderSize:
		inline := parsePage(e.value[bucketSize:])
		inline.id = 0
		if inline.kind == leafPage && inline.verify(f.header.PageSize, keyRange{}) {
			return &inline, nil
		}
	}
	return nil, fmt.Errorf("%w: bucket %s", ErrDamaged, name)
}

func (f *File) child(branch *page, index, level int) (*page, error) {
	return f.verified(branch.elements[index].child, branch.below(index), level)
}

// Entries calls visit for each entry of a bucket in the order of the keys, and verifies every
// page on the way. A page that two calls meet is damaged. It ends early if visit returns false or an
// error. Key and value are valid during the call. It returns [ErrNoBucket] if there is no such bucket.
func (f *File) Entries(bucket string, visit Visit) error {
	return f.walk(bucket, walk{marks: true, visit: visit})
}

// Ascend is [File.Entries] from the first key that is not below from. It is for a few entries:
// calls may meet the same pages.
func (f *File) Ascend(bucket string, from []byte, visit Visit) error {
	return f.walk(bucket, walk{from: from, visit: visit})
}

// Descend is [File.Ascend] in the descending order of the keys, from the last one below
// before. Without before, it begins with the last key of the bucket.
func (f *File) Descend(bucket string, before []byte, visit Visit) error {
	return f.walk(bucket, walk{from: before, descends: true, visit: visit})
}

// Visit is called for an entry, and returns false to end the walk.
type Visit func(key, value []byte) (more bool, err error)

type walk struct {
	from            []byte
	descends, marks bool
	visit           Visit
}

func (f *File) walk(bucket string, w walk) error {
	root, err := f.bucket(bucket)
	if err == nil {
		_, err = f.entries(root, 1, w)
	}
	return err
}

func (f *File) entries(p *page, level int, w walk) (more bool, err error) {
	isInline := p.id == 0
	if w.marks && !isInline && !f.mark(p.id, p.overflow()+1) {
		return false, fmt.Errorf("%w: page %d is used twice", ErrDamaged, p.id)
	}
	for i := range p.elements {
		if w.descends {
			i = len(p.elements) - 1 - i
		}
		e := p.elements[i]
		more = true
		switch {
		case p.kind == leafPage && e.flags != 0:
			err = fmt.Errorf("%w: page %d holds something other than keys and values", ErrDamaged, p.id)
		case !w.selects(p, i):
		case p.kind == leafPage:
			more, err = w.visit(e.key, e.value)
		default:
			var child *page
			if child, err = f.child(p, i, level+1); err == nil {
				more, err = f.entries(child, level+1, w)
			}
		}
		if err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// selects reports whether an element of a page is in the range of the walk, or leads to it.
func (w walk) selects(p *page, index int) bool {
	key := p.elements[index].key
	switch {
	case w.descends:
		return w.from == nil || bytes.Compare(key, w.from) < 0
	case p.kind == branchPage:
		limit := p.below(index).limit
		return limit == nil || bytes.Compare(limit, w.from) > 0
	}
	return bytes.Compare(key, w.from) >= 0
}

// mark marks pages as used. It returns false if one is already.
func (f *File) mark(id, count uint64) bool {
	if f.used == nil {
		f.used = make([]uint64, f.header.Pages/64+1)
	}
	for end := id + count; id < end; id++ {
		if f.used[id/64]&(1<<(id%64)) != 0 {
			return false
		}
		f.used[id/64] |= 1 << (id % 64)
	}
	return true
}

// Freelist verifies that each free page is inside the file, is listed once, and is not a
// page that Entries has visited: the next commits overwrite free pages. Later calls of Entries
// return ErrDamaged for a page that is free.
func (f *File) Freelist() error {
	h := f.header
	ids, pages, err := f.freelist()
	if err != nil {
		return err
	}
	if !f.mark(h.Root, 1) || !f.mark(h.Freelist, pages) {
		return fmt.Errorf("%w: a page of the freelist or of the root is used twice", ErrDamaged)
	}
	for ; len(ids) > 0; ids = ids[idSize:] {
		if id := native.Uint64(ids); id < 2 || id >= h.Pages || !f.mark(id, 1) {
			return fmt.Errorf("%w: page %d is listed as free", ErrDamaged, id)
		}
	}
	return nil
}

// Verify verifies the pages on the path to a key, and on each level some siblings on either side,
// which the engine may merge after a delete. It reports whether the bucket has the key. Without
// siblings, it reads each page of the paths of ascending keys once.
func (f *File) Verify(bucket string, key []byte, siblings int) (found bool, err error) {
	p, err := f.bucket(bucket)
	for level := 2; err == nil && p.kind == branchPage; level++ {
		branch, index := p, max(0, p.after(key)-1)
		for i := max(0, index-siblings); i <= min(index+siblings, len(branch.elements)-1) && err == nil; i++ {
			if i != index {
				err = f.verifyEdge(branch, i, level, i < index)
			}
		}
		if err == nil {
			p, err = f.child(branch, index, level)
		}
	}
	if err != nil {
		return false, err
	}
	at := p.after(key)
	return at > 0 && bytes.Equal(p.elements[at-1].key, key), nil
}

// verifyEdge verifies a child of a branch, and below it the pages at its last or at its first
// key: they become siblings of others when branches are merged.
func (f *File) verifyEdge(branch *page, index, level int, last bool) error {
	p, err := f.child(branch, index, level)
	for err == nil && p.kind == branchPage {
		level++
		edge := 0
		if last {
			edge = len(p.elements) - 1
		}
		p, err = f.child(p, edge, level)
	}
	return err
}
