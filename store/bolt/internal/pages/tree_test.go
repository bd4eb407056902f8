package pages_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

func TestTree_Get_AllKeys(t *testing.T) {
	for name, list := range contentOf {
		tree := bucket(t, name)
		for _, e := range list {
			if got, err := tree.Get([]byte(e.key)); err != nil || string(got) != e.value {
				t.Errorf("%s: Get(%s) is %.20q, want %.20q; error %v", name, e.key, got, e.value, err)
			}
		}
		for _, key := range []string{"", "a", "key-0001x", "z"} {
			if got, err := tree.Get([]byte(key)); err != nil || got != nil {
				t.Errorf("%s: Get(%q) is %q, error %v", name, key, got, err)
			}
		}
	}
}

func TestTree_Each_KeyOrder(t *testing.T) {
	for name, list := range contentOf {
		visited := 0
		err := bucket(t, name).Each(t.Context(), func(key, value []byte) {
			if visited < len(list) && (string(key) != list[visited].key || string(value) != list[visited].value) {
				t.Errorf("%s: entry %d is %s, want %s", name, visited, key, list[visited].key)
			}
			visited++
		})
		if err != nil || visited != len(list) {
			t.Errorf("%s: %d entries, want %d; error %v", name, visited, len(list), err)
		}
	}
}

func TestTree_Each_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	visited := 0
	err := bucket(t, "levels").Each(ctx, func(_, _ []byte) {
		visited++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || visited != 1 {
		t.Errorf("%d entries, error is %v, want %v", visited, err, context.Canceled)
	}
}

func TestTree_Seek_NextKey(t *testing.T) {
	list := contentOf["levels"]
	tree := bucket(t, "levels")
	for i := range list {
		tests := map[string]int{list[i].key: i, list[i].key + "x": i + 1}
		for key, want := range tests {
			cursor, err := tree.Seek([]byte(key))
			if err != nil {
				t.Fatal(err)
			}
			for ; want < min(len(list), i+40); want++ {
				if got, _, err := cursor.Entry(); err != nil || string(got) != list[want].key {
					t.Fatalf("from %s: key is %s, want %s; error %v", key, got, list[want].key, err)
				}
				cursor.Next()
			}
		}
	}
	cursor, err := tree.Seek([]byte("z"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if key, _, err := cursor.Entry(); key != nil || err != nil {
			t.Errorf("after the last entry the key is %q, error %v", key, err)
		}
		cursor.Next()
	}
}

func TestTree_Bucket_Missing(t *testing.T) {
	f := file(t, validFile().bytes)
	for _, name := range []string{"", "a", "leve", "levelsx", "z"} {
		if _, err := openBucket(f, name); err == nil || errors.Is(err, pages.ErrDamaged) {
			t.Errorf("Bucket(%q): error is %v", name, err)
		}
	}
	// A key of a bucket is not a bucket.
	if _, err := bucket(t, "page").Bucket([]byte("key-0001")); err == nil {
		t.Error("an entry was opened as a bucket")
	}
	// A bucket is not an entry.
	root, err := f.Tree(validFile().header.Root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.Get([]byte("page")); !errors.Is(err, pages.ErrDamaged) {
		t.Errorf("Get of a bucket: error is %v, want %v", err, pages.ErrDamaged)
	}
}

func TestFile_Tree_OutsideFile(t *testing.T) {
	v := validFile()
	for _, root := range []uint64{0, 1, v.header.Pages, 1 << 60, 1<<64 - 1} {
		if _, err := file(t, v.bytes).Tree(root); !errors.Is(err, pages.ErrDamaged) {
			t.Errorf("Tree(%d): error is %v, want %v", root, err, pages.ErrDamaged)
		}
	}
}

// twoLevels returns a root page with the given children, which are leaves of one
// entry each.
func twoLevels() (bytes []byte, root uint64) {
	const children = 5
	bytes = make([]byte, (3+children)*pageSize)
	keys := make([]string, children)
	ids := make([]uint64, children)
	for i := range children {
		keys[i], ids[i] = fmt.Sprintf("k%d", i), uint64(3+i)
		putLeaf(bytes, ids[i], keys[i])
	}
	putBranch(bytes, 2, keys, ids)
	return bytes, 2
}

func putLeaf(bytes []byte, id uint64, keys ...string) {
	p := putPage(bytes, id, 2, len(keys))
	end := 16 + 16*len(keys)
	for i, key := range keys {
		at := 16 + 16*i
		binary.NativeEndian.PutUint32(p[at+4:], uint32(end-at))
		binary.NativeEndian.PutUint32(p[at+8:], uint32(len(key)))
		end += copy(p[end:], key)
	}
}

func putBranch(bytes []byte, id uint64, keys []string, children []uint64) {
	p := putPage(bytes, id, 1, len(keys))
	end := 16 + 16*len(keys)
	for i, key := range keys {
		at := 16 + 16*i
		binary.NativeEndian.PutUint32(p[at:], uint32(end-at))
		binary.NativeEndian.PutUint32(p[at+4:], uint32(len(key)))
		binary.NativeEndian.PutUint64(p[at+8:], children[i])
		end += copy(p[end:], key)
	}
}

func putPage(bytes []byte, id uint64, kind uint16, count int) []byte {
	p := bytes[id*pageSize:]
	binary.NativeEndian.PutUint64(p, id)
	binary.NativeEndian.PutUint16(p[8:], kind)
	binary.NativeEndian.PutUint16(p[10:], uint16(count))
	return p
}

func TestTree_VerifyPath_Damage(t *testing.T) {
	damageLeaf := func(id uint64) func([]byte) {
		return func(bytes []byte) { put(bytes, id, 16+8, uint32(pageSize)) } // the length of its key
	}
	tests := []struct {
		name     string
		damage   func(bytes []byte)
		siblings int
		verified map[uint64]bool
		want     error
	}{
		{"sound", func([]byte) {}, 9, nil, nil},
		{"damaged leaf on the path", damageLeaf(5), 0, nil, pages.ErrDamaged},
		{"damaged leaf that was verified", damageLeaf(5), 0, map[uint64]bool{5: true}, nil},
		{"damaged sibling before", damageLeaf(4), 1, nil, pages.ErrDamaged},
		{"damaged sibling after", damageLeaf(6), 1, nil, pages.ErrDamaged},
		{"damaged sibling that was verified", damageLeaf(6), 1, map[uint64]bool{6: true}, nil},
		{"damaged sibling that is not read", damageLeaf(6), 0, nil, nil},
		{"damaged leaf beyond the siblings", damageLeaf(3), 1, nil, nil},
		{"branch without elements", func(bytes []byte) { put(bytes, 2, 10, uint16(0)) }, 0, nil, pages.ErrDamaged},
		{"branch with too many elements", func(bytes []byte) { put(bytes, 2, 10, uint16(1000)) }, 0, nil, pages.ErrDamaged},
		{"child outside the file", func(bytes []byte) { put(bytes, 2, 16+2*16+8, uint64(99)) }, 0, nil, pages.ErrDamaged},
		{"sibling outside the file", func(bytes []byte) { put(bytes, 2, 16+3*16+8, uint64(99)) }, 1, nil, pages.ErrDamaged},
		{"child that is its parent", func(bytes []byte) { put(bytes, 2, 16+2*16+8, uint64(2)) }, 0, nil, pages.ErrDamaged},
		{"child with another ID", func(bytes []byte) { put(bytes, 5, 0, uint64(6)) }, 0, nil, pages.ErrDamaged},
		{"child of another kind", func(bytes []byte) { put(bytes, 5, 8, uint16(16)) }, 0, nil, pages.ErrDamaged},
		{"child with overflow beyond the file", func(bytes []byte) { put(bytes, 5, 12, uint32(1<<31)) }, 0, nil, pages.ErrDamaged},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bytes, root := twoLevels()
			test.damage(bytes)
			tree, err := file(t, bytes).Tree(root)
			if err != nil {
				t.Fatal(err)
			}
			verified := map[uint64]bool{}
			for id := range test.verified {
				verified[id] = true
			}
			if err := tree.VerifyPath([]byte("k2"), test.siblings, verified); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
}

// Ten levels of branches whose 50 elements all lead to the same page have 50^10
// paths to one leaf, which has no entry that would end a read.
func TestTree_SharedChildren(t *testing.T) {
	const levels, width = 10, 50
	bytes := make([]byte, (3+levels)*pageSize)
	keys := make([]string, width)
	for i := range keys {
		keys[i] = string(rune('A' + i))
	}
	for level := range uint64(levels) {
		children := make([]uint64, width)
		for i := range children {
			children[i] = 3 + level
		}
		putBranch(bytes, 2+level, keys, children)
	}
	putLeaf(bytes, 2+levels)
	tree, err := file(t, bytes).Tree(2)
	if err != nil {
		t.Fatal(err)
	}
	err = tree.Each(t.Context(), func(_, _ []byte) { t.Error("an entry of an empty leaf") })
	if !errors.Is(err, pages.ErrDamaged) {
		t.Errorf("Each: error is %v, want %v", err, pages.ErrDamaged)
	}
	cursor, err := tree.Seek([]byte("B"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := cursor.Entry(); !errors.Is(err, pages.ErrDamaged) {
		t.Errorf("Entry: error is %v, want %v", err, pages.ErrDamaged)
	}
	if value, err := tree.Get([]byte("B")); value != nil || err != nil {
		t.Errorf("Get is %q from an empty leaf, error %v", value, err)
	}
}
