package crash

import (
	"fmt"
	"os"
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
