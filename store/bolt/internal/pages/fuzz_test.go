package pages_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// damaged applies the fuzzed damage to the valid file: each 4 bytes are a page, an
// offset in it and a byte. Most offsets are at the front, where the header of the
// page and its elements are.
func damaged(damage []byte) []byte {
	content := slices.Clone(validFile().bytes)
	for ; len(damage) >= 4; damage = damage[4:] {
		page := int(damage[0]) % (len(content) / pageSize)
		offset := (int(damage[1])&3<<8 | int(damage[2])) % pageSize
		if damage[1]&0x80 == 0 {
			offset %= 128
		}
		content[page*pageSize+offset] = damage[3]
	}
	return content
}

// FuzzFile reads and checks a file with random damage. Nothing panics, no read
// visits more entries than fit in the file, and if a check finds no problem, reads
// agree with each other.
func FuzzFile(f *testing.F) {
	v := validFile()
	root, freelist := byte(v.header.Root), byte(v.header.Freelist)
	f.Add([]byte{})
	f.Add([]byte{root, 0, 10, 0xFF, root, 0, 11, 0xFF})
	f.Add([]byte{freelist, 0, 10, 0xFF, freelist, 0, 11, 0xFF})
	f.Add([]byte{root, 0, 8, 1})
	f.Fuzz(func(t *testing.T, damage []byte) {
		content := damaged(damage)
		file := file(t, content)
		header, err := file.Newest()
		if err != nil {
			header = v.header
		}
		var problems []error
		sound, err := file.Check(t.Context(), header, v.isFree, func(problem error) { problems = append(problems, problem) })
		if err != nil || sound != (len(problems) == 0) {
			t.Errorf("sound is %v, problems %v, error %v", sound, problems, err)
		}
		err = file.CheckBuckets(header, []byte("levels"), []byte("inline"))
		if sound && err != nil {
			t.Errorf("CheckBuckets of a sound file: %v", err)
		}
		for name := range contentOf {
			readAll(t, file, header, name, len(content)/16, sound)
		}
	})
}

// readAll reads a bucket in all ways.
func readAll(t *testing.T, file pages.File, header pages.Header, name string, limit int, sound bool) {
	t.Helper()
	root, err := file.Tree(header.Root)
	if err != nil {
		if sound {
			t.Errorf("root of a sound file: %v", err)
		}
		return
	}
	tree, err := root.Bucket([]byte(name))
	if err != nil {
		return // in a sound file, damage can have changed its name
	}
	visited := 0
	err = tree.Each(t.Context(), func(key, value []byte) {
		if visited++; visited > limit {
			t.Fatalf("%s: more than %d entries", name, limit)
		}
		got, err := tree.Get(key)
		if sound && (err != nil || !bytes.Equal(got, value)) {
			t.Errorf("%s: Get(%q) is %q, want %q; error %v", name, key, got, value, err)
		}
	})
	if sound && err != nil {
		t.Errorf("%s: Each of a sound file: %v", name, err)
	}
	for i := 0; i < len(contentOf[name]); i += 10 {
		e := contentOf[name][i]
		_, _ = tree.Get([]byte(e.key))
		err := tree.VerifyPath([]byte(e.key), 1, make(map[uint64]bool))
		if sound && err != nil {
			t.Errorf("%s: VerifyPath(%s) of a sound file: %v", name, e.key, err)
		}
	}
}
