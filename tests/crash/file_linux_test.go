package crash

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
)

// A sync that stores nothing marks the changes clean. It fails with errMarkedClean, and reports
// success with errDropped.
var (
	errMarkedClean = errors.New("sync failed")
	errDropped     = errors.New("sync dropped")
)

// sectorSize is the unit in which the disk stores data.
const sectorSize = 512

// file is the content of one inode: as readers see it, as it was synced, and
// every unsynced version of every sector in between.
type file struct {
	visible []byte
	synced  []byte

	// Unsynced changes, oldest first. The disk may have stored any of them.
	sectors map[int64][][]byte
	sizes   []int64
}

func newFile(content []byte) *file {
	return &file{
		visible: slices.Clone(content),
		synced:  slices.Clone(content),
		sectors: make(map[int64][][]byte),
	}
}

func (f *file) write(offset int64, data []byte) {
	if end := offset + int64(len(data)); end > int64(len(f.visible)) {
		f.grow(end)
	}
	copy(f.visible[offset:], data)
	for sector := offset / sectorSize; sector*sectorSize < offset+int64(len(data)); sector++ {
		f.sectors[sector] = append(f.sectors[sector], sectorOf(f.visible, sector))
	}
}

func (f *file) grow(size int64) {
	f.visible = append(f.visible, make([]byte, size-int64(len(f.visible)))...)
	f.sizes = append(f.sizes, size)
}

// shrink drops the unsynced versions of the sectors that it removes.
func (f *file) shrink(size int64) {
	f.visible = f.visible[:size:size]
	f.sizes = append(f.sizes, size)
	maps.DeleteFunc(f.sectors, func(sector int64, _ [][]byte) bool { return sector*sectorSize >= size })
}

// sectorOf copies a sector. A part past the end of the content is zero.
func sectorOf(content []byte, sector int64) []byte {
	whole := make([]byte, sectorSize)
	if start := sector * sectorSize; start < int64(len(content)) {
		copy(whole, content[start:])
	}
	return whole
}

// sync stores every unsynced change.
func (f *file) sync() {
	if len(f.sizes) > 0 {
		f.synced = resized(f.synced, f.sizes[len(f.sizes)-1])
	}
	for sector, versions := range f.sectors {
		copy(f.synced[sector*sectorSize:], versions[len(versions)-1])
	}
	f.markClean()
}

// markClean marks all changes as synced. Readers see them, and no later sync stores
// them. Linux does this to pages whose write-back failed.
func (f *file) markClean() {
	clear(f.sectors)
	f.sizes = nil
}

func resized(content []byte, size int64) []byte {
	if size <= int64(len(content)) {
		return content[:size]
	}
	return append(content, make([]byte, size-int64(len(content)))...)
}

// isHeaderOnly reports whether the unsynced changes are all within the first
// bytes of the file.
func (f *file) isHeaderOnly(header int64) bool {
	if len(f.sectors) == 0 || len(f.sizes) > 0 {
		return false
	}
	for sector := range f.sectors {
		if sector*sectorSize >= header {
			return false
		}
	}
	return true
}

// afterCut returns the content of the file after the cut.
func (f *file) afterCut(cut *powerCut) []byte {
	content := slices.Clone(f.synced)
	if len(f.sizes) > 0 && cut.keeps() {
		content = resized(content, f.sizes[cut.random.IntN(len(f.sizes))])
	}
	for _, sector := range slices.Sorted(maps.Keys(f.sectors)) {
		if !cut.keeps() || sector*sectorSize >= int64(len(content)) {
			cut.dropped++
			continue
		}
		cut.kept++
		before := sectorOf(content, sector)
		versions := f.sectors[sector]
		written := versions[cut.random.IntN(len(versions))]
		stored := written
		if cut.random.IntN(10) == 0 {
			stored = joined(cut.random, before, written)
		}
		if !bytes.Equal(stored, before) && !bytes.Equal(stored, written) {
			cut.torn++
			cut.tornHeader = cut.tornHeader || sector*sectorSize < headerSize
		}
		copy(content[sector*sectorSize:], stored)
	}
	return content
}

// joined joins the beginning of one version of a sector and the end of the other.
func joined(random *rand.Rand, a, b []byte) []byte {
	if random.IntN(2) == 0 {
		a, b = b, a
	}
	at := 1 + random.IntN(sectorSize-1)
	return append(slices.Clone(a[:at]), b[at:]...)
}
