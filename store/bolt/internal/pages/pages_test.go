package pages_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// pageSize is small, so that few entries make several levels.
const pageSize = 1024

// contentOf is what the engine wrote to the file of the tests, bucket by bucket:
// none, some inside the tree of all buckets, one page, several levels, and values
// with overflow pages.
var contentOf = map[string][]entry{
	"empty":  {},
	"inline": entries(3, 10),
	"page":   entries(20, 20),
	"levels": entries(400, 100),
	"long":   entries(5, 3*pageSize),
}

type entry struct{ key, value string }

func entries(n, size int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = entry{fmt.Sprintf("key-%04d", i), strings.Repeat(string(rune('a'+i%26)), size)}
	}
	return list
}

// validFile returns the content of a file that the engine wrote, and its header.
var validFile = sync.OnceValues(func() ([]byte, pages.Header) {
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "valid.db")
	err = fill(path)
	content, readErr := os.ReadFile(path)
	header, _, headerErr := pages.ReadHeaders(bytes.NewReader(content))
	if err := errors.Join(err, readErr, headerErr); err != nil {
		panic(err)
	}
	return content[:header.Size()], header
})

// fill writes the content in two transactions, so that the first leaves free pages.
func fill(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, NoSync: true})
	if err != nil {
		return err
	}
	for range 2 {
		err = errors.Join(err, db.Update(func(tx *bbolt.Tx) error {
			for name, list := range contentOf {
				bucket, err := tx.CreateBucketIfNotExists([]byte(name))
				for _, e := range list {
					err = errors.Join(err, bucket.Put([]byte(e.key), []byte(e.value)))
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return errors.Join(err, db.Close())
}

// readAll walks all buckets of a file and the freelist, and returns the first problem.
func readAll(content []byte, header pages.Header, visit func(bucket, key, value string)) error {
	file := pages.NewFile(bytes.NewReader(content), header)
	for name := range contentOf {
		err := file.Entries(name, func(key, value []byte) (bool, error) {
			visit(name, string(key), string(value))
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return file.Freelist()
}

func TestWalk_AllEntries(t *testing.T) {
	content, header := validFile()
	got := make(map[string][]entry)
	err := readAll(content, header, func(bucket, key, value string) { got[bucket] = append(got[bucket], entry{key, value}) })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range contentOf {
		if !slices.Equal(got[name], want) {
			t.Errorf("bucket %s has %d entries, want %d", name, len(got[name]), len(want))
		}
	}
}

func TestWalk_From(t *testing.T) {
	content, header := validFile()
	list := contentOf["levels"]
	for i := range list {
		for from, want := range map[string]int{list[i].key: i, list[i].key + "x": i + 1, "a": 0, "z": len(list)} {
			file := pages.NewFile(bytes.NewReader(content), header)
			before := slices.Clone(list[max(0, want-20):want])
			slices.Reverse(before)
			for name, c := range map[string]struct {
				walk func(bucket string, from []byte, visit pages.Visit) error
				want []entry
			}{
				"ascend":  {file.Ascend, list[want:min(len(list), want+20)]},
				"descend": {file.Descend, before},
			} {
				var got []string
				err := c.walk("levels", []byte(from), func(key, _ []byte) (bool, error) {
					got = append(got, string(key))
					return len(got) < 20, nil
				})
				if err != nil || !slices.EqualFunc(got, c.want, func(key string, e entry) bool { return key == e.key }) {
					t.Fatalf("%s from %s: keys %q, error %v", name, from, got, err)
				}
			}
		}
	}
}

var errStop = errors.New("stop")

func TestWalk_VisitorFails(t *testing.T) {
	content, header := validFile()
	file := pages.NewFile(bytes.NewReader(content), header)
	visited := 0
	err := file.Entries("levels", func(_, _ []byte) (bool, error) {
		visited++
		return true, errStop
	})
	if visited != 1 || !errors.Is(err, errStop) {
		t.Errorf("%d entries, error is %v, want %v", visited, err, errStop)
	}
}

func put[T uint16 | uint32 | uint64](content []byte, page uint64, at int, number T) {
	to := content[page*pageSize+uint64(at):]
	switch number := any(number).(type) {
	case uint16:
		binary.NativeEndian.PutUint16(to, number)
	case uint32:
		binary.NativeEndian.PutUint32(to, number)
	case uint64:
		binary.NativeEndian.PutUint64(to, number)
	}
}

func count(content []byte, page uint64) uint16 {
	return binary.NativeEndian.Uint16(content[page*pageSize+10:])
}

// pageOf returns the page in use of a kind that has the most elements.
func pageOf(t *testing.T, kind uint16) uint64 {
	t.Helper()
	content, header := validFile()
	free := make(map[uint64]bool)
	for i := range uint64(count(content, header.Freelist)) {
		free[binary.NativeEndian.Uint64(content[header.Freelist*pageSize+16+8*i:])] = true
	}
	found, most := uint64(0), uint16(1)
	for id := uint64(2); id < header.Pages; id++ {
		isPage := binary.NativeEndian.Uint64(content[id*pageSize:]) == id && binary.NativeEndian.Uint16(content[id*pageSize+8:]) == kind
		if isPage && !free[id] && id != header.Root && count(content, id) > most {
			found, most = id, count(content, id)
		}
	}
	if found == 0 {
		t.Fatalf("no page of kind %d", kind)
	}
	return found
}

func TestWalk_Damage(t *testing.T) {
	content, header := validFile()
	branch, leaf, freelist := pageOf(t, 1), pageOf(t, 2), header.Freelist
	tests := map[string]func(content []byte, h *pages.Header){
		"root outside the file":         func(_ []byte, h *pages.Header) { h.Root = h.Pages },
		"root that is a branch":         func(_ []byte, h *pages.Header) { h.Root = branch },
		"freelist outside the file":     func(_ []byte, h *pages.Header) { h.Freelist = 1 << 40 },
		"no freelist":                   func(_ []byte, h *pages.Header) { h.Freelist = 1<<64 - 1 },
		"freelist of another kind":      func(content []byte, _ *pages.Header) { put(content, freelist, 8, uint16(2)) },
		"freelist longer than its page": func(content []byte, _ *pages.Header) { put(content, freelist, 10, uint16(0xFFFE)) },
		"freelist of any length": func(content []byte, _ *pages.Header) {
			put(content, freelist, 10, uint16(0xFFFF))
			put(content, freelist, 16, uint64(1<<61+1))
		},
		"freelist with overflow pages": func(content []byte, _ *pages.Header) { put(content, freelist, 12, uint32(3)) },
		"free page outside the file":   func(content []byte, _ *pages.Header) { put(content, freelist, 16, uint64(1<<40)) },
		"free page after the last":     func(content []byte, _ *pages.Header) { put(content, freelist, 16, header.Pages) },
		"free header":                  func(content []byte, _ *pages.Header) { put(content, freelist, 16, uint64(1)) },
		"free page in use":             func(content []byte, _ *pages.Header) { put(content, freelist, 16, leaf) },
		"free root":                    func(content []byte, _ *pages.Header) { put(content, freelist, 16, header.Root) },
		"free freelist":                func(content []byte, _ *pages.Header) { put(content, freelist, 16, freelist) },
		"free page listed twice": func(content []byte, _ *pages.Header) {
			copy(content[freelist*pageSize+16:], content[freelist*pageSize+24:freelist*pageSize+32])
		},
		"child with another ID":    func(content []byte, _ *pages.Header) { put(content, leaf, 0, leaf+1) },
		"child that is its parent": func(content []byte, _ *pages.Header) { put(content, branch, 16+8, branch) },
		"child outside the file":   func(content []byte, _ *pages.Header) { put(content, branch, 16+8, header.Pages) },
		"child that is a header":   func(content []byte, _ *pages.Header) { put(content, branch, 16+8, uint64(0)) },
		"two elements with one child": func(content []byte, _ *pages.Header) {
			copy(content[branch*pageSize+24:], content[branch*pageSize+40:branch*pageSize+48])
		},
		"leaf of another kind": func(content []byte, _ *pages.Header) { put(content, leaf, 8, uint16(3)) },
		"leaf without elements": func(content []byte, _ *pages.Header) {
			put(content, binary.NativeEndian.Uint64(content[branch*pageSize+24:]), 10, uint16(0))
		},
		"branch without elements":      func(content []byte, _ *pages.Header) { put(content, branch, 10, uint16(0)) },
		"overflow beyond the file":     func(content []byte, _ *pages.Header) { put(content, leaf, 12, uint32(1<<31)) },
		"an overflow page too many":    func(content []byte, _ *pages.Header) { put(content, leaf, 12, uint32(1)) },
		"element outside the page":     func(content []byte, _ *pages.Header) { put(content, leaf, 16+12, uint32(1<<31)) },
		"key longer than any":          func(content []byte, _ *pages.Header) { put(content, leaf, 16+8, uint32(1<<20)) },
		"key in the table of elements": func(content []byte, _ *pages.Header) { put(content, leaf, 16+4, uint32(0)) },
		"too many elements":            func(content []byte, _ *pages.Header) { put(content, leaf, 10, uint16(0xFFFF)) },
		"a bucket inside a bucket":     func(content []byte, _ *pages.Header) { put(content, leaf, 16, uint32(1)) },
		"an entry among the buckets":   func(content []byte, h *pages.Header) { put(content, h.Root, 16, uint32(0)) },
		"a bucket cut off":             func(content []byte, h *pages.Header) { put(content, h.Root, 16+12, uint32(20)) },
		"an element outside an inline bucket": func(content []byte, h *pages.Header) {
			bucket := bytes.Index(content[h.Root*pageSize:], []byte("empty")) + len("empty")
			put(content, h.Root, bucket+16+10, uint16(1))
		},
		"keys out of order": func(content []byte, _ *pages.Header) {
			element := leaf*pageSize + 16
			content[element+uint64(binary.NativeEndian.Uint32(content[element+4:]))] = 'z'
		},
		"a key twice": func(content []byte, _ *pages.Header) {
			element := leaf*pageSize + 16
			first := element + uint64(binary.NativeEndian.Uint32(content[element+4:]))
			second := element + 16 + uint64(binary.NativeEndian.Uint32(content[element+16+4:]))
			copy(content[second:second+8], content[first:])
		},
		"keys outside the range of the branch": func(content []byte, _ *pages.Header) {
			element := branch*pageSize + 16 + 16
			content[element+uint64(binary.NativeEndian.Uint32(content[element:]))+6]++ // key-0020 becomes key-0030, or alike
		},
		"a key below the last element of the branch": func(content []byte, _ *pages.Header) {
			element := branch*pageSize + 16*uint64(count(content, branch))
			content[element+uint64(binary.NativeEndian.Uint32(content[element:]))+7]++ // the child begins with the key before
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			content, header := slices.Clone(content), header
			damage(content, &header)
			if err := readAll(content, header, func(_, _, _ string) {}); !errors.Is(err, pages.ErrDamaged) {
				t.Errorf("error is %v, want %v", err, pages.ErrDamaged)
			}
		})
	}
}

func TestWalk_TruncatedFile(t *testing.T) {
	content, header := validFile()
	for size := len(content) - 1; size >= 0; size -= 777 {
		if err := readAll(content[:size], header, func(_, _, _ string) {}); !errors.Is(err, pages.ErrDamaged) {
			t.Errorf("%d of %d bytes: error is %v, want %v", size, len(content), err, pages.ErrDamaged)
		}
	}
}

func TestWalk_NoBucket(t *testing.T) {
	content, header := validFile()
	file := pages.NewFile(bytes.NewReader(content), header)
	if err := file.Entries("other", nil); !errors.Is(err, pages.ErrNoBucket) {
		t.Errorf("error is %v, want %v", err, pages.ErrNoBucket)
	}
}

func TestWalk_FailingDisk(t *testing.T) {
	content, header := validFile()
	file := pages.NewFile(failingDisk{content, pageOf(t, 1) * pageSize}, header)
	err := file.Entries("levels", func(_, _ []byte) (bool, error) { return true, nil })
	if !errors.Is(err, errStop) || errors.Is(err, pages.ErrDamaged) {
		t.Errorf("error is %v, want %v", err, errStop)
	}
}

type failingDisk struct {
	content []byte
	bad     uint64
}

func (d failingDisk) ReadAt(p []byte, at int64) (int, error) {
	if uint64(at) == d.bad {
		return 0, errStop
	}
	return bytes.NewReader(d.content).ReadAt(p, at)
}

func TestReadHeaders_Newest(t *testing.T) {
	content, header := validFile()
	older := (header.TxID + 1) % 2 // the page of the header before
	for name, test := range map[string]struct {
		damage func(content []byte)
		both   bool
		want   uint64 // transaction, or 0
		err    error
	}{
		"sound":             {func([]byte) {}, true, header.TxID, nil},
		"older damaged":     {func(content []byte) { content[older*pageSize+30] ^= 1 }, false, header.TxID, nil},
		"newer damaged":     {func(content []byte) { content[(1-older)*pageSize+30] ^= 1 }, false, header.TxID - 1, nil},
		"both damaged":      {func(content []byte) { content[60] ^= 1; content[pageSize+60] ^= 1 }, false, 0, pages.ErrDamaged},
		"not a database":    {func(content []byte) { clear(content) }, false, 0, pages.ErrNoHeader},
		"other page number": {func(content []byte) { content[0] ^= 1 }, true, header.TxID, nil}, // the engine ignores it too
	} {
		t.Run(name, func(t *testing.T) {
			content := slices.Clone(content)
			test.damage(content)
			got, both, err := pages.ReadHeaders(bytes.NewReader(content))
			if got.TxID != test.want || both != test.both || !errors.Is(err, test.err) || err != nil && test.err == nil {
				t.Errorf("transaction %d, both %v, error %v; want %d, %v, %v", got.TxID, both, err, test.want, test.both, test.err)
			}
			if errors.Is(err, pages.ErrDamaged) && !strings.Contains(err.Error(), "neither header is valid") {
				t.Errorf("error %q does not say what is damaged", err)
			}
		})
	}
	for size := range 200 {
		if _, _, err := pages.ReadHeaders(bytes.NewReader(content[:size])); err != nil && !errors.Is(err, pages.ErrNoHeader) && !errors.Is(err, pages.ErrDamaged) {
			t.Errorf("%d bytes: error is %v", size, err)
		}
	}
}

// A header with a valid checksum is refused if no page has its page size, or if the end of
// its pages is not a valid offset.
func TestReadHeaders_Limits(t *testing.T) {
	content, _ := validFile()
	for _, test := range []struct {
		pageSize uint32
		pages    uint64
		want     error
	}{
		{1 << 10, 4, nil},
		{1<<10 - 1, 4, pages.ErrDamaged},
		{1 << 24, 4, nil},
		{1<<24 + 1, 4, pages.ErrDamaged},
		{1 << 10, 1<<53 - 1, nil},
		{1 << 10, 1 << 53, pages.ErrDamaged}, // 1<<63 bytes
		{1 << 24, 1<<39 - 1, nil},
		{1 << 24, 1 << 39, pages.ErrDamaged},
	} {
		header := slices.Clone(content[:80])
		put(header, 0, 16+8, test.pageSize)
		put(header, 0, 16+40, test.pages)
		sum := fnv.New64a()
		_, _ = sum.Write(header[16:][:56])
		put(header, 0, 16+56, sum.Sum64())
		if got, _, err := pages.ReadHeaders(bytes.NewReader(header)); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || got.Size() < 0 {
			t.Errorf("%d pages of %d bytes: error %v, want %v", test.pages, test.pageSize, err, test.want)
		}
	}
}

// Verify finds damage of the pages on the path and, for a delete, of their neighbors, and
// of no other page.
func TestVerify_Damage(t *testing.T) {
	content, header := validFile()
	list := contentOf["levels"]
	leafOf := func(i int) uint64 {
		at := bytes.LastIndex(content, []byte(list[i].key+list[i].value))
		for id := uint64(at / pageSize); ; id-- {
			if binary.NativeEndian.Uint64(content[id*pageSize:]) == id {
				return id
			}
		}
	}
	// The leaves around that of entry 200.
	leaves := []uint64{leafOf(200)}
	before, after := 200, 200
	for range 2 {
		for leafOf(before) == leaves[0] {
			before--
		}
		for leafOf(after) == leaves[len(leaves)-1] {
			after++
		}
		leaves = append(append([]uint64{leafOf(before)}, leaves...), leafOf(after))
	}
	for i, leaf := range leaves {
		for siblings := range 3 {
			damaged := slices.Clone(content)
			put(damaged, leaf, 12, uint32(1)) // its overflow
			file := pages.NewFile(bytes.NewReader(damaged), header)
			distance := max(i-2, 2-i)
			for range 2 {
				_, err := file.Verify("levels", []byte(list[200].key), siblings)
				isRead := distance <= siblings
				if errors.Is(err, pages.ErrDamaged) != isRead || err != nil && !isRead {
					t.Errorf("a leaf %d pages away with %d siblings: error is %v", distance, siblings, err)
				}
			}
		}
	}
	for name := range contentOf {
		file := pages.NewFile(bytes.NewReader(content), header)
		if _, err := file.Verify(name, []byte("key-0002"), 1); err != nil {
			t.Errorf("bucket %s of a sound file: %v", name, err)
		}
	}
}

// A File that reads another state has nothing of the earlier state.
func TestReset(t *testing.T) {
	content, header := validFile()
	damaged := slices.Clone(content)
	list := contentOf["levels"]
	for at := range len(damaged) / pageSize {
		if bytes.Contains(damaged[at*pageSize:(at+1)*pageSize], []byte(list[200].key+list[200].value)) {
			put(damaged, uint64(at), 12, uint32(1)) // its overflow
		}
	}
	file := new(pages.File)
	for i, want := range []error{nil, pages.ErrDamaged, nil} {
		state := [][]byte{content, damaged}[i%2]
		file.Reset(bytes.NewReader(state), header)
		found, err := file.Verify("levels", []byte(list[200].key), 0)
		if !errors.Is(err, want) || found != (want == nil) {
			t.Errorf("state %d: found %t, error %v, want %v", i, found, err, want)
		}
	}
}

func TestVerify_Found(t *testing.T) {
	content, header := validFile()
	file := pages.NewFile(bytes.NewReader(content), header)
	for _, e := range contentOf["levels"] {
		for key, want := range map[string]bool{e.key: true, e.key + "x": false, "a": false, "z": false} {
			if found, err := file.Verify("levels", []byte(key), 1); found != want || err != nil {
				t.Errorf("%s: found %t, error %v", key, found, err)
			}
		}
	}
}

// The children of a branch are the branch itself, a header, or outside of the file.
func TestVerify_WrongChild(t *testing.T) {
	content, header := validFile()
	branch := pageOf(t, 1)
	children := int(count(content, branch))
	for _, child := range []uint64{branch, 0, 1, header.Pages} {
		damaged := slices.Clone(content)
		for i := range children {
			put(damaged, branch, 16+16*i+8, child)
		}
		file, failures := pages.NewFile(bytes.NewReader(damaged), header), 0
		for _, e := range contentOf["levels"] {
			_, err := file.Verify("levels", []byte(e.key), 0)
			if err != nil && !errors.Is(err, pages.ErrDamaged) {
				t.Errorf("child %d: error is %v, want %v", child, err, pages.ErrDamaged)
			}
			if err != nil {
				failures++
			}
		}
		if failures < children {
			t.Errorf("child %d: only %d paths through the branch were refused", child, failures)
		}
	}
}

// Two elements of a branch have one child, whose keys are those of the first element.
func TestVerify_SharedChild(t *testing.T) {
	content, header := validFile()
	branch := pageOf(t, 1)
	damaged := slices.Clone(content)
	copy(damaged[branch*pageSize+40:][:8], content[branch*pageSize+24:])
	file, failures := pages.NewFile(bytes.NewReader(damaged), header), 0
	for _, e := range contentOf["levels"] {
		if _, err := file.Verify("levels", []byte(e.key), 0); errors.Is(err, pages.ErrDamaged) {
			failures++
		}
	}
	if failures == 0 {
		t.Error("no path was refused")
	}
}

// A freelist has room for its page IDs, and for the IDs of the pages that hold it, which the
// engine counts when it allocates them. It has at most one page more than they need.
func TestVerifyFreelist_TooManyPages(t *testing.T) {
	for _, test := range []struct {
		count, overflow int
		want            error
	}{
		{0, 0, nil},
		{0, 1, pages.ErrDamaged},
		{122, 0, nil},
		{123, 1, pages.ErrDamaged}, // with 2 more IDs it needs 1016 bytes
		{124, 1, nil},
		{124, 2, pages.ErrDamaged},
		{250, 2, pages.ErrDamaged},
		{251, 2, nil},
	} {
		header := pages.Header{PageSize: pageSize, Freelist: 2, Pages: 8}
		content := make([]byte, header.Size())
		put(content, 2, 0, header.Freelist)
		put(content, 2, 8, uint16(0x10))
		put(content, 2, 10, uint16(test.count))
		put(content, 2, 12, uint32(test.overflow))
		file := pages.NewFile(bytes.NewReader(content), header)
		if err := file.VerifyFreelist(); !errors.Is(err, test.want) {
			t.Errorf("%d IDs and %d overflow pages: error is %v, want %v", test.count, test.overflow, err, test.want)
		}
	}
}

// FuzzWalk reads a file with random damage: each 4 bytes of it are a page, an offset in it
// and a byte. Most offsets are at the front, where the header of the page and its elements
// are. Nothing panics, no entry is visited twice, and if the walk finds no damage, no path
// does.
func FuzzWalk(f *testing.F) {
	content, header := validFile()
	root, freelist := byte(header.Root), byte(header.Freelist)
	f.Add([]byte{})
	f.Add([]byte{root, 0, 10, 0xFF, root, 0, 11, 0xFF})
	f.Add([]byte{freelist, 0, 10, 0xFF, freelist, 0, 11, 0xFF})
	f.Add([]byte{root, 0, 8, 1})
	inRoot := bytes.Index(content[header.Root*pageSize:], []byte("levels"))
	f.Add([]byte{root, 0x80 | byte(inRoot>>8), byte(inRoot), 'k'}) // another name for the bucket
	f.Fuzz(func(t *testing.T, damage []byte) {
		damaged := slices.Clone(content)
		for ; len(damage) >= 4; damage = damage[4:] {
			page := int(damage[0]) % (len(damaged) / pageSize)
			offset := (int(damage[1])&3<<8 | int(damage[2])) % pageSize
			if damage[1]&0x80 == 0 {
				offset %= 128
			}
			damaged[page*pageSize+offset] = damage[3]
		}
		header := header
		if found, _, err := pages.ReadHeaders(bytes.NewReader(damaged)); err == nil {
			header = found
		}
		seen := make(map[[2]string]bool)
		err := readAll(damaged, header, func(bucket, key, _ string) {
			if seen[[2]string{bucket, key}] {
				t.Fatalf("bucket %q has %q twice", bucket, key)
			}
			seen[[2]string{bucket, key}] = true
		})
		if err != nil && !errors.Is(err, pages.ErrDamaged) {
			t.Fatalf("error is %v", err)
		}
		file := pages.NewFile(bytes.NewReader(damaged), header)
		for _, e := range contentOf["levels"] {
			if _, pathErr := file.Verify("levels", []byte(e.key), 1); pathErr != nil && err == nil {
				t.Errorf("the path of %s is damaged in a sound file: %v", e.key, pathErr)
			}
		}
	})
}
