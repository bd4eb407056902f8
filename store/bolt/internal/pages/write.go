package pages

import (
	"bufio"
	"cmp"
	"io"
)

// Bucket is the content of a bucket to write. Size and Entry are called for each index
// below Len, in order, and several times. Keys ascend.
type Bucket struct {
	Name  string
	Len   int
	Size  func(i int) (key, value int)
	Entry func(i int) (key, value []byte)
}

// fill is the part of a page that Write fills, in percent, so that an update that makes
// an entry longer rarely splits its page.
const fill = 90

// Write writes a new file with two buckets, first the smaller one, whose entries must fit
// in a page together. The names must ascend.
func Write(to io.Writer, pageSize int, small, large Bucket) error {
	w := &writer{to: bufio.NewWriterSize(to, 256<<10), size: pageSize, next: 3}
	leaves := w.plan(large)
	levels := w.planBranches(leaves)
	root := w.next
	largeRoot := root - 1
	for id := range uint64(2) {
		w.header(id, root)
	}
	w.page(make([]byte, pageHeaderSize), 2, freelistPage, 0, 1)
	for _, l := range leaves {
		w.leaf(large, l)
	}
	for _, level := range levels {
		for _, b := range level {
			w.branch(b)
		}
	}
	w.roots(root, small, large.Name, largeRoot)
	return cmp.Or(w.err, w.to.Flush())
}

// writer writes pages in the order of their IDs and keeps the first error.
type writer struct {
	to   *bufio.Writer
	size int
	next uint64 // ID of the next page to plan
	err  error
}

// node is a planned page: of a leaf with the entries from first to end, or of a branch
// with children.
type node struct {
	id, pages  uint64
	first, end int
	key        []byte
	children   []node
}

// take plans a page with a number of bytes and returns it.
func (w *writer) take(n node, bytes int) node {
	n.id, n.pages = w.next, uint64(bytes+w.size-1)/uint64(w.size)
	w.next += n.pages
	return n
}

// plan distributes the entries of a bucket over leaves.
func (w *writer) plan(b Bucket) (leaves []node) {
	first, used := 0, pageHeaderSize
	add := func(end int) {
		n := node{first: first, end: end}
		if first < end {
			n.key, _ = b.Entry(first)
		}
		leaves = append(leaves, w.take(n, used))
		first, used = end, pageHeaderSize
	}
	for i := range b.Len {
		key, value := b.Size(i)
		size := elementSize + key + value
		if i > first && used+size > w.size*fill/100 {
			add(i)
		}
		used += size
	}
	add(b.Len)
	return leaves
}

// planBranches plans branches over nodes until there is a single root, which comes last.
func (w *writer) planBranches(nodes []node) (levels [][]node) {
	for len(nodes) > 1 {
		var level []node
		first, used := 0, pageHeaderSize
		for i, n := range nodes {
			size := elementSize + len(n.key)
			if i > first+1 && used+size > w.size*fill/100 {
				level = append(level, w.take(node{key: nodes[first].key, children: nodes[first:i]}, used))
				first, used = i, pageHeaderSize
			}
			used += size
		}
		level = append(level, w.take(node{key: nodes[first].key, children: nodes[first:]}, used))
		levels, nodes = append(levels, level), level
	}
	return levels
}

func (w *writer) header(id, root uint64) {
	data := make([]byte, pageHeaderSize+headerSize)
	body := data[pageHeaderSize:]
	native.PutUint32(body, headerMagic)
	native.PutUint32(body[4:], headerVersion)
	native.PutUint32(body[8:], uint32(w.size))
	native.PutUint64(body[16:], root)
	native.PutUint64(body[32:], 2) // the freelist
	native.PutUint64(body[40:], root+1)
	native.PutUint64(body[48:], id) // of the transaction
	native.PutUint64(body[headerSummed:], headerSum(body))
	w.page(data, id, headerPage, 0, 1)
}

func (w *writer) leaf(b Bucket, n node) {
	table := pageHeaderSize + elementSize*(n.end-n.first)
	data := make([]byte, table, int(n.pages)*w.size)
	for i := n.first; i < n.end; i++ {
		key, value := b.Entry(i)
		data = appendElement(data, i-n.first, 0, key, value)
	}
	w.page(data, n.id, leafPage, n.end-n.first, n.pages)
}

// appendElement appends a key and a value, and fills in their element.
func appendElement(data []byte, index int, flags uint32, key, value []byte) []byte {
	at := pageHeaderSize + elementSize*index
	native.PutUint32(data[at:], flags)
	native.PutUint32(data[at+4:], uint32(len(data)-at))
	native.PutUint32(data[at+8:], uint32(len(key)))
	native.PutUint32(data[at+12:], uint32(len(value)))
	return append(append(data, key...), value...)
}

func (w *writer) branch(n node) {
	data := make([]byte, pageHeaderSize+elementSize*len(n.children), int(n.pages)*w.size)
	for i, child := range n.children {
		at := pageHeaderSize + elementSize*i
		native.PutUint32(data[at:], uint32(len(data)-at))
		native.PutUint32(data[at+4:], uint32(len(child.key)))
		native.PutUint64(data[at+8:], child.id)
		data = append(data, child.key...)
	}
	w.page(data, n.id, branchPage, len(n.children), n.pages)
}

// roots writes the tree of all buckets: the small one inline, and the root of the large
// one.
func (w *writer) roots(id uint64, small Bucket, largeName string, largeRoot uint64) {
	inline := make([]byte, pageHeaderSize+elementSize*small.Len)
	for i := range small.Len {
		key, value := small.Entry(i)
		inline = appendElement(inline, i, 0, key, value)
	}
	native.PutUint16(inline[8:], leafPage)
	native.PutUint16(inline[10:], uint16(small.Len))
	data := make([]byte, pageHeaderSize+2*elementSize)
	data = appendElement(data, 0, bucketFlag, []byte(small.Name), append(make([]byte, bucketSize), inline...))
	large := make([]byte, bucketSize)
	native.PutUint64(large, largeRoot)
	data = appendElement(data, 1, bucketFlag, []byte(largeName), large)
	w.page(data, id, leafPage, 2, 1)
}

// page writes a page, whose content begins with room for its header.
func (w *writer) page(data []byte, id uint64, kind uint16, count int, pages uint64) {
	native.PutUint64(data, id)
	native.PutUint16(data[8:], kind)
	native.PutUint16(data[10:], uint16(count))
	native.PutUint32(data[12:], uint32(pages-1))
	w.write(data)
	w.write(make([]byte, int(pages)*w.size-len(data)))
}

func (w *writer) write(data []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(data)
	}
}
