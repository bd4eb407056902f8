package crash

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// many is how many power cuts show everything that a cut can leave.
const many = 500

// cuts returns what power cuts leave of the disk, each of another random choice.
func cuts(d *disk) []image {
	left := make([]image, many)
	for i := range left {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		left[i] = d.afterCut(&powerCut{random: random, share: 0.5})
	}
	d.isOff = false // the test continues
	return left
}

// storedFile returns a disk with one file, all of it synced.
func storedFile(t *testing.T, content []byte) (*disk, inode) {
	t.Helper()
	d := newDisk(nil, rand.New(rand.NewPCG(1, 1)))
	number, err := d.create("file")
	must(t, err, d.write(number, 0, content), d.sync(number), d.syncNames())
	return d, number
}

// pages is content of which every sector is filled with the letter.
func pages(letter string, count int) []byte {
	return bytes.Repeat([]byte(letter), count*8*sectorSize)
}

// TestDisk_Torn: a page can be stored in part, and a sector as well.
func TestDisk_Torn(t *testing.T) {
	d, number := storedFile(t, pages("a", 1))
	must(t, d.write(number, 0, pages("b", 1)))
	tornPages, tornSectors := 0, 0
	for _, left := range cuts(d) {
		isKept, isLost := false, false // a whole sector
		for sector := range slices.Chunk(left["file"], sectorSize) {
			switch bytes.Count(sector, []byte("a")) {
			case 0:
				isKept = true
			case sectorSize:
				isLost = true
			default:
				tornSectors++
			}
		}
		if isKept && isLost {
			tornPages++
		}
	}
	if tornPages == 0 || tornSectors == 0 {
		t.Errorf("%d torn pages and %d torn sectors after %d cuts", tornPages, tornSectors, many)
	}
}

func TestDisk_EarlierVersion(t *testing.T) {
	d, number := storedFile(t, []byte("a"))
	must(t, d.write(number, 0, []byte("b")), d.write(number, 0, []byte("c")))
	wantContents(t, d, "a", "b", "c")
	must(t, d.sync(number))
	wantContents(t, d, "c")
}

func TestDisk_UnsyncedSize(t *testing.T) {
	d, number := storedFile(t, []byte("a"))
	must(t, d.resize(number, 3))
	wantContents(t, d, "a", "a\x00\x00")
	must(t, d.sync(number))
	wantContents(t, d, "a\x00\x00")
	must(t, d.resize(number, 1))
	wantContents(t, d, "a", "a\x00\x00")
	must(t, d.sync(number))
	wantContents(t, d, "a")
}

// wantContents checks which contents the file can have after a power cut.
func wantContents(t *testing.T, d *disk, want ...string) {
	t.Helper()
	wantLeft(t, d, func(left image) string { return string(left["file"]) }, want)
}

func wantLeft(t *testing.T, d *disk, describe func(image) string, want []string) {
	t.Helper()
	found := make(map[string]bool)
	for _, left := range cuts(d) {
		found[describe(left)] = true
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("a power cut leaves one of %q, want %q", got, want)
	}
}

func TestDisk_UnsyncedNames(t *testing.T) {
	tests := map[string]struct {
		change func(*disk, inode) error
		want   []string // the names that a power cut can leave
	}{
		"create": {func(d *disk, _ inode) error { _, err := d.create("new"); return err }, []string{"file", "file new"}},
		"link":   {func(d *disk, n inode) error { return d.link(n, "new") }, []string{"file", "file new"}},
		"rename": {func(d *disk, _ inode) error { return d.move("file", "new") }, []string{"file", "new"}},
		"unlink": {func(d *disk, _ inode) error { return d.unlink("file") }, []string{"", "file"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, number := storedFile(t, []byte("a"))
			must(t, test.change(d, number))
			wantNames(t, d, test.want...)
			visible := strings.Join(d.list(), " ")
			must(t, d.syncNames())
			wantNames(t, d, visible)
		})
	}
}

// wantNames checks which names can be there after a power cut.
func wantNames(t *testing.T, d *disk, want ...string) {
	t.Helper()
	wantLeft(t, d, func(left image) string { return strings.Join(slices.Sorted(maps.Keys(left)), " ") }, want)
}

// TestMount_Names: the disk has the names that another process links, renames and removes on the mount.
// A process that enters a mount of its own, also between fork and exec, can block itself.
func TestMount_Names(t *testing.T) {
	d := newDisk(nil, rand.New(rand.NewPCG(1, 1)))
	m := mountOrSkip(t, d)
	const script = `cd "$0"; echo a > file; ln file linked; mv file renamed; echo > removed; rm removed`
	output, err := exec.Command("sh", "-ec", script, m.directory).CombinedOutput()
	if err = errors.Join(err, m.unmount()); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if names := d.list(); !slices.Equal(names, []string{"linked", "renamed"}) {
		t.Errorf("the disk has the names %q", names)
	}
}

// TestDisk_MarkedClean: after a sync that failed or was dropped, readers see the change, and no later
// sync stores it.
func TestDisk_MarkedClean(t *testing.T) {
	for fault, want := range map[fault]error{failSync: syscall.EIO, dropSync: nil} {
		d, number := storedFile(t, []byte("a"))
		d.arm(plan{{syncingHeader, 1, fault}})
		must(t, d.write(number, 0, []byte("b")))
		if err := d.sync(number); err != want {
			t.Fatalf("the error of the sync is %v, want %v", err, want)
		}
		if visible, err := d.read(number, 0, make([]byte, 1)); err != nil || string(visible) != "b" {
			t.Errorf("readers see %q, error %v", visible, err)
		}
		must(t, d.sync(number))
		wantContents(t, d, "a")
		must(t, d.write(number, 0, []byte("b")), d.sync(number))
		wantContents(t, d, "b")
	}
}

// TestDisk_PowerCut: the change at which the power is cut kills the process, and the disk stays off.
func TestDisk_PowerCut(t *testing.T) {
	d, number := storedFile(t, []byte("a"))
	kills := 0
	d.kill = func() { kills++ }
	d.arm(plan{{anyKind, 2, cutPower}})
	must(t, d.write(number, 0, []byte("b")))
	for range 2 {
		if err := d.write(number, 0, []byte("c")); err != syscall.EIO {
			t.Errorf("the error of a write is %v", err)
		}
	}
	if _, err := d.read(number, 0, make([]byte, 1)); err != syscall.EIO || kills != 1 {
		t.Errorf("the error of a read is %v, after %d kills", err, kills)
	}
}
