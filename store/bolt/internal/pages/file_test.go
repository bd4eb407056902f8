package pages_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// valid is a file that the engine wrote.
type valid struct {
	bytes  []byte
	header pages.Header
	free   map[int]bool
}

// validFile returns the content, the newest header and the free pages of the file.
var validFile = sync.OnceValue(func() valid {
	dir, err := os.MkdirTemp("", "pages")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	v, err := engineFile(filepath.Join(dir, "valid.db"))
	if err != nil {
		panic(err)
	}
	return v
})

func engineFile(path string) (valid, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSize, NoSync: true, FreelistType: bbolt.FreelistArrayType})
	if err != nil {
		return valid{}, err
	}
	v, err := fill(db)
	if err := errors.Join(err, db.Close()); err != nil {
		return valid{}, err
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		return valid{}, err
	}
	v.bytes = whole[:v.header.Pages*pageSize]
	file, err := pages.NewFile(v.bytes, pageSize)
	if err != nil {
		return valid{}, err
	}
	v.header, err = file.Newest()
	return v, err
}

// fill writes the content in two transactions, so that the first leaves free pages.
func fill(db *bbolt.DB) (valid, error) {
	for range 2 {
		err := db.Update(func(tx *bbolt.Tx) error {
			for name, list := range contentOf {
				if err := putAll(tx, name, list); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return valid{}, err
		}
	}
	tx, err := db.Begin(true)
	if err != nil {
		return valid{}, err
	}
	defer func() { _ = tx.Rollback() }()
	v := valid{free: make(map[int]bool)}
	v.header.Pages = uint64(tx.Size() / pageSize)
	for id := range int(v.header.Pages) {
		info, err := tx.Page(id)
		if err != nil {
			return valid{}, err
		}
		v.free[id] = info.Type == "free"
	}
	return v, nil
}

func putAll(tx *bbolt.Tx, name string, list []entry) error {
	bucket, err := tx.CreateBucketIfNotExists([]byte(name))
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := bucket.Put([]byte(e.key), []byte(e.value)); err != nil {
			return err
		}
	}
	return nil
}

func (v valid) isFree(id int) (bool, error) { return v.free[id], nil }

// file returns the pages of bytes.
func file(t testing.TB, bytes []byte) pages.File {
	t.Helper()
	f, err := pages.NewFile(bytes, pageSize)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// bucket opens a bucket of the valid file.
func bucket(t testing.TB, name string) pages.Tree {
	t.Helper()
	tree, err := openBucket(file(t, validFile().bytes), name)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func openBucket(f pages.File, name string) (pages.Tree, error) {
	root, err := f.Tree(validFile().header.Root)
	if err != nil {
		return pages.Tree{}, err
	}
	return root.Bucket([]byte(name))
}

func TestNewFile_NoRoomForHeaders(t *testing.T) {
	tests := map[string]struct{ size, pageSize int }{
		"empty":          {0, pageSize},
		"one page":       {2*pageSize - 1, pageSize},
		"no page size":   {2 * pageSize, 0},
		"tiny page size": {2 * pageSize, 79},
		"negative":       {2 * pageSize, -pageSize},
	}
	for name, test := range tests {
		if _, err := pages.NewFile(make([]byte, test.size), test.pageSize); !errors.Is(err, pages.ErrNoHeader) {
			t.Errorf("%s: error is %v, want %v", name, err, pages.ErrNoHeader)
		}
	}
}

func TestFile_Header_Damage(t *testing.T) {
	v := validFile()
	newest := int(v.header.TxID % 2)
	damaged := func(numbers ...int) pages.File {
		bytes := []byte(string(v.bytes))
		for _, number := range numbers {
			bytes[number*pageSize+20] ^= 1
		}
		return file(t, bytes)
	}
	whole := damaged()
	if h, err := whole.Header(v.header.TxID); err != nil || h != v.header {
		t.Errorf("Header is %+v, want %+v; error %v", h, v.header, err)
	}
	if h, err := whole.Header(v.header.TxID - 1); err != nil || h.TxID != v.header.TxID-1 {
		t.Errorf("Header of the transaction before is %+v, error %v", h, err)
	}
	if _, err := whole.Header(v.header.TxID + 1); !errors.Is(err, pages.ErrNoHeader) {
		t.Errorf("Header of a later transaction: error is %v", err)
	}
	one := damaged(newest)
	if _, ok := one.HeaderPage(newest); ok {
		t.Error("a header with a wrong checksum is valid")
	}
	if h, err := one.Newest(); err != nil || h.TxID != v.header.TxID-1 {
		t.Errorf("Newest is %+v without the newer header, error %v", h, err)
	}
	if h, err := damaged(1 - newest).Newest(); err != nil || h != v.header {
		t.Errorf("Newest is %+v without the older header, error %v", h, err)
	}
	if _, err := damaged(0, 1).Newest(); !errors.Is(err, pages.ErrNoHeader) {
		t.Errorf("Newest without a header: error is %v", err)
	}
}

func TestFile_IsFreelist_OtherPages(t *testing.T) {
	v := validFile()
	f := file(t, v.bytes)
	for id, want := range map[uint64]bool{v.header.Freelist: true, v.header.Root: false, 0: false, v.header.Pages: false, 1 << 63: false} {
		if got := f.IsFreelist(id); got != want {
			t.Errorf("IsFreelist(%d) is %v", id, got)
		}
	}
}

// put writes numbers at a position of a page: of 2, 4 or 8 bytes.
func put(bytes []byte, id uint64, at int, number any) {
	part := bytes[int(id)*pageSize+at:]
	switch n := number.(type) {
	case uint16:
		binary.NativeEndian.PutUint16(part, n)
	case uint32:
		binary.NativeEndian.PutUint32(part, n)
	case uint64:
		binary.NativeEndian.PutUint64(part, n)
	}
}
