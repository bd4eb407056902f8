package pages_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/bolt/internal/pages"
)

// check returns the problems of a file with the header and the free pages of the
// valid one.
func check(t *testing.T, bytes []byte, header pages.Header) []string {
	t.Helper()
	var problems []string
	sound, err := file(t, bytes).Check(t.Context(), header, validFile().isFree, func(problem error) {
		problems = append(problems, problem.Error())
	})
	if err != nil {
		t.Fatal(err)
	}
	if sound != (len(problems) == 0) {
		t.Errorf("sound is %v with problems %q", sound, problems)
	}
	return problems
}

func TestFile_Check_Sound(t *testing.T) {
	v := validFile()
	if problems := check(t, v.bytes, v.header); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
	if err := file(t, v.bytes).CheckBuckets(v.header, []byte("levels"), []byte("inline"), []byte("missing")); err != nil {
		t.Errorf("CheckBuckets: %v", err)
	}
}

// pageOf returns the ID of the page of a kind that has the most elements.
func pageOf(t *testing.T, kind uint16) uint64 {
	t.Helper()
	v := validFile()
	found, most := uint64(0), -1
	for id := range v.header.Pages {
		at := id * pageSize
		count := int(binary.NativeEndian.Uint16(v.bytes[at+10:]))
		isPage := binary.NativeEndian.Uint64(v.bytes[at:]) == id && binary.NativeEndian.Uint16(v.bytes[at+8:]) == kind
		if isPage && !v.free[int(id)] && id != v.header.Root && count > most {
			found, most = id, count
		}
	}
	if most < 2 {
		t.Fatalf("no page of kind %d", kind)
	}
	return found
}

func TestFile_Check_Damage(t *testing.T) {
	v := validFile()
	branch, leaf, freelist := pageOf(t, 1), pageOf(t, 2), v.header.Freelist
	freed := uint64(2)
	for !v.free[int(freed)] {
		freed++
	}
	tests := []struct {
		name   string
		damage func(bytes []byte, h *pages.Header)
		want   string
	}{
		{"pages beyond the file", func(_ []byte, h *pages.Header) { h.Pages = 1<<52 + h.Pages }, "the header counts"},
		{"fewer pages than the file", func(_ []byte, h *pages.Header) { h.Pages-- }, "the header counts"},
		{"root outside the file", func(_ []byte, h *pages.Header) { h.Root = h.Pages }, "outside the file"},
		{"freelist outside the file", func(_ []byte, h *pages.Header) { h.Freelist = 1 << 40 }, "outside the file"},
		{"no freelist", func(_ []byte, h *pages.Header) { h.Freelist = pages.NoFreelist }, "outside the file"},
		{"freelist of another kind", func(bytes []byte, _ *pages.Header) { put(bytes, freelist, 8, uint16(2)) }, "not a freelist"},
		{"freelist longer than its page", func(bytes []byte, _ *pages.Header) { put(bytes, freelist, 10, uint16(v.header.Pages)) }, "is not a freelist"},
		{"freelist longer than the file", func(bytes []byte, _ *pages.Header) { put(bytes, freelist, 10, uint16(0xFFFE)) }, "not a freelist"},
		{"freelist of any length", func(bytes []byte, _ *pages.Header) {
			put(bytes, freelist, 10, uint16(0xFFFF))
			put(bytes, freelist, 16, uint64(1<<61+1))
		}, "not a freelist"},
		{"free page outside the file", func(bytes []byte, _ *pages.Header) { put(bytes, freelist, 16, uint64(1<<40)) }, "is free, and the file has"},
		{"free page in use", func(bytes []byte, _ *pages.Header) { put(bytes, freelist, 16, leaf) }, "used and free"},
		{"free page listed twice", func(bytes []byte, _ *pages.Header) {
			put(bytes, freelist, 16, binary.NativeEndian.Uint64(bytes[freelist*pageSize+24:]))
		}, "used twice"},
		{"free page not listed", func(bytes []byte, _ *pages.Header) {
			put(bytes, freelist, 10, binary.NativeEndian.Uint16(bytes[freelist*pageSize+10:])-1)
		}, "neither used nor free"},
		{"child with another ID", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 0, leaf+1) }, "outside the file or damaged"},
		{"child that is free", func(bytes []byte, _ *pages.Header) {
			put(bytes, freed, 0, freed)
			put(bytes, freed, 12, uint32(0))
			put(bytes, branch, 16+8, freed)
		}, "used and free"},
		{"two elements with one child", func(bytes []byte, _ *pages.Header) {
			put(bytes, branch, 16+8, binary.NativeEndian.Uint64(bytes[branch*pageSize+32+8:]))
		}, "used twice"},
		{"leaf of another kind", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 8, uint16(3)) }, "not part of a tree"},
		{"branch without elements", func(bytes []byte, _ *pages.Header) { put(bytes, branch, 10, uint16(0)) }, "not part of a tree"},
		{"overflow beyond the file", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 12, uint32(1<<31)) }, "outside the file or damaged"},
		{"overflow over other pages", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 12, uint32(v.header.Pages-leaf-1)) }, "used twice"},
		{"element outside the page", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 16+12, uint32(1<<31)) }, "not inside it"},
		{"key longer than any", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 16+8, uint32(1<<20)) }, "not inside it"},
		{"key in the table of elements", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 16+4, uint32(0)) }, "not inside it"},
		{"too many elements", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 10, uint16(0xFFFF)) }, "not inside it"},
		{"an overflow page too many", func(bytes []byte, _ *pages.Header) { put(bytes, v.header.Root, 12, uint32(1)) }, "used twice"},
		{"an element too few", func(bytes []byte, _ *pages.Header) {
			count := binary.NativeEndian.Uint16(bytes[leaf*pageSize+10:])
			put(bytes, leaf, 10, count-1)
		}, "another size or count"},
		{"keys out of order", func(bytes []byte, _ *pages.Header) {
			element := leaf*pageSize + 16
			bytes[element+uint64(binary.NativeEndian.Uint32(bytes[element+4:]))] = 'z'
		}, "out of order"},
		{"keys outside the range of the branch", func(bytes []byte, _ *pages.Header) {
			element := branch*pageSize + 16 + 16
			bytes[element+uint64(binary.NativeEndian.Uint32(bytes[element:]))+6]++ // key-0020 becomes key-0030, or alike
		}, "out of order"},
		{"a bucket inside a bucket", func(bytes []byte, _ *pages.Header) { put(bytes, leaf, 16, uint32(1)) }, "other than keys and values"},
		{"an entry among the buckets", func(bytes []byte, h *pages.Header) { put(bytes, h.Root, 16, uint32(0)) }, "other than buckets"},
		{"a bucket cut off", func(bytes []byte, h *pages.Header) { put(bytes, h.Root, 16+12, uint32(20)) }, "cut off"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bytes, header := slices.Clone(v.bytes), v.header
			test.damage(bytes, &header)
			problems := check(t, bytes, header)
			if !slices.ContainsFunc(problems, func(problem string) bool { return strings.Contains(problem, test.want) }) {
				t.Errorf("problems are %q, want one that says %q", problems, test.want)
			}
		})
	}
}

func TestFile_Check_EngineDisagrees(t *testing.T) {
	v := validFile()
	for id := range int(v.header.Pages) {
		var problems []error
		sound, err := file(t, v.bytes).Check(t.Context(), v.header, func(asked int) (bool, error) {
			return v.free[asked] != (asked == id), nil
		}, func(problem error) { problems = append(problems, problem) })
		if sound || err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "not in both") {
			t.Errorf("page %d: sound is %v, problems %v, error %v", id, sound, problems, err)
		}
	}
}

func TestFile_Check_Interrupted(t *testing.T) {
	v := validFile()
	report := func(problem error) { t.Errorf("problem: %v", problem) }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sound, err := file(t, v.bytes).Check(ctx, v.header, v.isFree, report); sound || !errors.Is(err, context.Canceled) {
		t.Errorf("sound is %v, error is %v, want %v", sound, err, context.Canceled)
	}
	engineErr := errors.New("in the engine")
	fails := func(int) (bool, error) { return false, engineErr }
	if _, err := file(t, v.bytes).Check(t.Context(), v.header, fails, report); !errors.Is(err, engineErr) {
		t.Errorf("error is %v, want %v", err, engineErr)
	}
}

// CheckBuckets reads the named buckets alone.
func TestFile_CheckBuckets_Damage(t *testing.T) {
	v := validFile()
	bytes := slices.Clone(v.bytes)
	put(bytes, pageOf(t, 1), 10, uint16(0)) // of the only bucket with branches
	if err := file(t, bytes).CheckBuckets(v.header, []byte("levels")); err == nil {
		t.Error("damage of a named bucket was not found")
	}
	if err := file(t, bytes).CheckBuckets(v.header, []byte("page"), []byte("long")); err != nil {
		t.Errorf("damage of another bucket was found: %v", err)
	}
	header := v.header
	header.Freelist = pages.NoFreelist
	if err := file(t, v.bytes).CheckBuckets(header); err != nil {
		t.Errorf("a file without a freelist: %v", err)
	}
	header.Pages++
	if err := file(t, v.bytes).CheckBuckets(header); err == nil {
		t.Error("a header with too many pages is not a problem")
	}
}
