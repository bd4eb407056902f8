package crash

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// mount is a disk that is mounted at a directory.
//
// The process that serves a mount must not map a file of it: a page fault blocks
// the thread that the Go runtime may need to serve it.
type mount struct {
	directory string
	isDirect  bool
	server    *fuse.Server // nil after unmount, which frees the disk
}

// mountDisk mounts the disk. The superuser needs no helper program; others need
// fusermount3.
func mountDisk(d *disk, directory string) (*mount, error) {
	m := &mount{directory: directory, isDirect: os.Geteuid() == 0}
	at := directory
	if m.isDirect {
		device, err := mountDirectly(directory)
		if err != nil {
			return nil, err
		}
		at = fmt.Sprintf("/dev/fd/%d", device)
	}
	server, err := fuse.NewServer(&fileSystem{fuse.NewDefaultRawFileSystem(), d}, at, &fuse.MountOptions{
		Name:                     "powerloss",
		DisableXAttrs:            true,
		DisableReadDirPlus:       true,
		ExplicitDataCacheControl: true,
	})
	if err != nil {
		return nil, err
	}
	m.server = server
	go server.Serve()
	return m, server.WaitMount()
}

// mountDirectly mounts without fusermount3. No child inherits the device: a child
// that has the device of the mount it uses can block forever, even if it is killed.
func mountDirectly(directory string) (device int, err error) {
	device, err = syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=%d,group_id=%d", device, syscall.S_IFDIR, os.Geteuid(), os.Getegid())
	if err := syscall.Mount("powerloss", directory, "fuse.powerloss", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		_ = syscall.Close(device)
		return 0, fmt.Errorf("mount a FUSE file system: %w", err)
	}
	return device, nil
}

// unmount fails if a process has a file open. Repeating it does nothing.
func (m *mount) unmount() error {
	if m.server == nil {
		return nil
	}
	unmount := m.server.Unmount
	if m.isDirect {
		unmount = func() error { return syscall.Unmount(m.directory, 0) }
	}
	if err := unmount(); err != nil {
		return err
	}
	m.server.Wait()
	m.server = nil
	return nil
}

// fileSystem translates the requests of the kernel. Data is written through the
// page cache, so that mappings of a file see what is written to it.
type fileSystem struct {
	fuse.RawFileSystem
	disk *disk
}

// forever is the lifetime of cached attributes and entries: only requests of the
// kernel change them.
const forever = 24 * time.Hour

func (s *fileSystem) attributes(number inode) fuse.Attr {
	owner := fuse.Owner{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	if number == root {
		return fuse.Attr{Ino: uint64(root), Mode: syscall.S_IFDIR | 0o700, Nlink: 2, Owner: owner}
	}
	size, links := s.disk.stat(number)
	return fuse.Attr{
		Ino:    uint64(number),
		Size:   uint64(size),
		Blocks: uint64(size+sectorSize-1) / sectorSize,
		Mode:   syscall.S_IFREG | 0o600,
		Nlink:  uint32(links),
		Owner:  owner,
	}
}

func (s *fileSystem) entry(number inode, out *fuse.EntryOut) {
	out.NodeId = uint64(number)
	out.Attr = s.attributes(number)
	out.SetEntryTimeout(forever)
	out.SetAttrTimeout(forever)
}

func (s *fileSystem) Lookup(_ <-chan struct{}, _ *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	number, ok := s.disk.lookup(name)
	if !ok {
		return fuse.ENOENT
	}
	s.entry(number, out)
	return fuse.OK
}

func (s *fileSystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.Attr = s.attributes(inode(in.NodeId))
	out.SetTimeout(forever)
	return fuse.OK
}

// SetAttr changes sizes. Modes, owners and times are of no interest here.
func (s *fileSystem) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	number := inode(in.NodeId)
	if size, ok := in.GetSize(); ok {
		if err := s.disk.resize(number, int64(size)); err != nil {
			return fuse.ToStatus(err)
		}
	}
	out.Attr = s.attributes(number)
	out.SetTimeout(forever)
	return fuse.OK
}

func (s *fileSystem) Create(_ <-chan struct{}, _ *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	number, err := s.disk.create(name)
	if err != nil {
		return fuse.ToStatus(err)
	}
	s.entry(number, &out.EntryOut)
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

func (s *fileSystem) Open(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

func (s *fileSystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buffer []byte) (fuse.ReadResult, fuse.Status) {
	content, err := s.disk.read(inode(in.NodeId), int64(in.Offset), buffer)
	if err != nil {
		return nil, fuse.ToStatus(err)
	}
	return fuse.ReadResultData(content), fuse.OK
}

func (s *fileSystem) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if err := s.disk.write(inode(in.NodeId), int64(in.Offset), data); err != nil {
		return 0, fuse.ToStatus(err)
	}
	return uint32(len(data)), fuse.OK
}

func (s *fileSystem) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return fuse.ToStatus(s.disk.sync(inode(in.NodeId)))
}

func (s *fileSystem) Link(_ <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	number := inode(in.Oldnodeid)
	if err := s.disk.link(number, name); err != nil {
		return fuse.ToStatus(err)
	}
	s.entry(number, out)
	return fuse.OK
}

func (s *fileSystem) Unlink(_ <-chan struct{}, _ *fuse.InHeader, name string) fuse.Status {
	return fuse.ToStatus(s.disk.unlink(name))
}

func (s *fileSystem) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if in.Flags != 0 {
		return fuse.EINVAL
	}
	return fuse.ToStatus(s.disk.move(from, to))
}

func (s *fileSystem) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	return fuse.OK
}

func (s *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	names := s.disk.list()
	for i := in.Offset; i < uint64(len(names)); i++ {
		number, _ := s.disk.lookup(names[i])
		if !out.AddDirEntry(fuse.DirEntry{Name: names[i], Ino: uint64(number), Mode: syscall.S_IFREG, Off: i + 1}) {
			break
		}
	}
	return fuse.OK
}

func (s *fileSystem) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	return fuse.ToStatus(s.disk.syncNames())
}

func (s *fileSystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	*out = fuse.StatfsOut{Bsize: 4096, Blocks: 1 << 30, Bfree: 1 << 30, Bavail: 1 << 30, NameLen: 255}
	return fuse.OK
}

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
