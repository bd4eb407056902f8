package pages

import (
	"bytes"
	"context"
	"fmt"
)

// use is what a page is used for. No page has two uses, so that a check visits each
// page once.
type use byte

const (
	unused use = iota
	used
	listedFree
)

// checker verifies the pages of a file.
type checker struct {
	ctx      context.Context
	file     File
	uses     []use
	report   func(problem error)
	problems int
}

// Check verifies every page of a file: the elements and the order of the keys in
// all trees, and that each page is either used once or listed as free. It compares
// the free pages with those of the engine: free reports whether the engine regards
// a page as free. It passes each problem to report, and returns whether there was
// none. The error is that of ctx or of free.
func (f File) Check(ctx context.Context, h Header, free func(id int) (bool, error), report func(problem error)) (sound bool, err error) {
	c := f.newChecker(ctx, h, report)
	if c.problems > 0 {
		return false, nil
	}
	c.freelist(h.Freelist)
	err = c.tree(h.Root, keyRange{}, 0, func(p *page, e element, level int) error {
		return c.bucket(p, e, level, c.entry)
	})
	if err != nil {
		return false, err
	}
	err = c.compare(free)
	return c.problems == 0, err
}

// CheckBuckets verifies the freelist, the tree of all buckets, and the trees of the
// named buckets. It returns the first problem.
func (f File) CheckBuckets(h Header, names ...[]byte) error {
	var first error
	c := f.newChecker(context.Background(), h, func(problem error) {
		if first == nil {
			first = problem
		}
	})
	if first != nil {
		return first
	}
	if h.Freelist != NoFreelist {
		c.freelist(h.Freelist)
	}
	_ = c.tree(h.Root, keyRange{}, 0, func(p *page, e element, level int) error {
		for _, name := range names {
			if bytes.Equal(e.key, name) {
				return c.bucket(p, e, level, func(*page, element, int) error { return nil })
			}
		}
		return nil
	})
	return first
}

func (f File) newChecker(ctx context.Context, h Header, report func(problem error)) *checker {
	c := &checker{ctx: ctx, file: f, uses: make([]use, f.count), report: report}
	c.uses[0], c.uses[1] = used, used
	if h.Pages != f.count {
		c.problem("the header counts %d pages, and the file has %d", h.Pages, f.count)
	}
	return c
}

func (c *checker) problem(format string, args ...any) {
	c.problems++
	c.report(fmt.Errorf(format, args...))
}

// page returns a page and marks it and its overflow pages as used.
func (c *checker) page(id uint64) (page, bool) {
	p, ok := c.file.page(id)
	if !ok {
		c.problem("page %d is outside the file or damaged", id)
		return page{}, false
	}
	for each := id; each <= id+p.overflow(); each++ {
		if !c.mark(each, used) {
			return page{}, false
		}
	}
	return p, true
}

func (c *checker) mark(id uint64, as use) bool {
	if c.uses[id] != unused {
		c.problem("page %d is used twice, or is used and free", id)
		return false
	}
	c.uses[id] = as
	return true
}

// freelist marks the pages that the file lists as free.
func (c *checker) freelist(id uint64) {
	p, ok := c.page(id)
	if !ok {
		return
	}
	ids, ok := p.freeIDs()
	if !ok || p.kind != freelistPage {
		c.problem("page %d is not a freelist", id)
		return
	}
	for ; len(ids) > 0; ids = ids[idSize:] {
		listed := native.Uint64(ids)
		if listed >= c.file.count {
			c.problem("page %d is free, and the file has %d pages", listed, c.file.count)
			continue
		}
		c.mark(listed, listedFree)
	}
}

// keyRange is the range of the keys below an element of a branch: from first on,
// and below limit unless that is nil.
type keyRange struct {
	first, limit []byte
}

// visitor is called for an element of a leaf on a level.
type visitor func(p *page, e element, level int) error

// tree verifies a tree from a page down, and visits the elements of its leaves.
func (c *checker) tree(id uint64, within keyRange, level int, visit visitor) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if level == maxDepth {
		c.problem("page %d is deeper than a tree can be", id)
		return nil
	}
	p, ok := c.page(id)
	if !ok {
		return nil
	}
	if p.kind == branchPage && p.count > 0 {
		return c.branch(p, within, level, visit)
	}
	return c.leaf(p, within, level, visit)
}

func (c *checker) branch(p page, within keyRange, level int, visit visitor) error {
	elements, ok := c.ordered(p, within)
	if !ok {
		return nil
	}
	for i, e := range elements {
		below := keyRange{e.key, within.limit}
		if i+1 < len(elements) {
			below.limit = elements[i+1].key
		}
		if err := c.tree(e.child, below, level+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) leaf(p page, within keyRange, level int, visit visitor) error {
	if p.kind != leafPage {
		c.problem("page %d is not part of a tree", p.id)
		return nil
	}
	elements, ok := c.ordered(p, within)
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

// ordered returns the elements of a page if they are inside it and their keys
// ascend within the range.
func (c *checker) ordered(p page, within keyRange) ([]element, bool) {
	elements := make([]element, 0, min(p.count, len(p.data)/elementSize))
	for i := range p.count {
		e, ok := p.element(i)
		if !ok {
			c.problem("page %d has an element that is not inside it", p.id)
			return nil, false
		}
		low := bytes.Compare(e.key, within.first) < 0 || i > 0 && bytes.Compare(e.key, elements[i-1].key) <= 0
		high := within.limit != nil && bytes.Compare(e.key, within.limit) >= 0
		if low || high {
			c.problem("the keys of page %d are out of order", p.id)
			return nil, false
		}
		elements = append(elements, e)
	}
	if !p.sound(c.file.pageSize) {
		c.problem("page %d has another size or count than its elements", p.id)
		return nil, false
	}
	return elements, true
}

// bucket verifies the tree of a bucket, which is an element of the tree of all
// buckets.
func (c *checker) bucket(p *page, e element, level int, visit visitor) error {
	if e.flags != bucketFlag {
		c.problem("page %d holds something other than buckets", p.id)
		return nil
	}
	root, inline, ok := bucketRoot(e.value)
	switch {
	case !ok:
		c.problem("a bucket of page %d is cut off", p.id)
		return nil
	case root != 0:
		return c.tree(root, keyRange{}, level+1, visit)
	}
	inline.id = p.id // for the problems
	return c.leaf(inline, keyRange{}, level, visit)
}

// entry verifies an element of a bucket: no bucket has another one inside.
func (c *checker) entry(p *page, e element, _ int) error {
	if e.flags != 0 {
		c.problem("page %d holds something other than keys and values", p.id)
	}
	return nil
}

// compare compares all pages with those that the engine regards as free: the next
// commits overwrite them.
func (c *checker) compare(free func(id int) (bool, error)) error {
	for id, use := range c.uses {
		if id%1024 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		isFree, err := free(id)
		if err != nil {
			return err
		}
		switch {
		case use == unused:
			c.problem("page %d is neither used nor free", id)
		case (use == listedFree) != isFree:
			c.problem("page %d is free in the file or in memory, and not in both", id)
		}
	}
	return nil
}
