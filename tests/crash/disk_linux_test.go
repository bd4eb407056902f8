package crash

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// disk is a file system of one directory in memory. Readers see every change at
// once. A power cut keeps what was synced and a random part of the rest.
type disk struct {
	random *rand.Rand

	// lies are the kinds of syncs that report success and store nothing.
	lies []kind

	// kill kills the process that uses the disk.
	kill func()

	mu          sync.Mutex
	isOff       bool
	plan        plan
	files       map[inode]*file
	names       map[string]inode // as readers see them
	syncedNames map[string]inode
	nameChanges []nameChange // unsynced, oldest first
}

type inode uint64

// root is the inode of the directory.
const root inode = 1

// nameChange is one atomic change of the directory. It maps a name to its new
// inode, or to 0 if the name is removed.
type nameChange map[string]inode

// headerSize is the size of the two header pages at the start of a bbolt file.
var headerSize = 2 * int64(os.Getpagesize())

func newDisk(stored image, random *rand.Rand) *disk {
	d := &disk{random: random, files: make(map[inode]*file), names: make(map[string]inode)}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		d.names[name] = d.add(stored[name])
	}
	d.syncedNames = maps.Clone(d.names)
	return d
}

func (d *disk) add(content []byte) inode {
	number := root + inode(len(d.files)) + 1
	d.files[number] = newFile(content)
	return number
}

// arm plans the next faults.
func (d *disk) arm(p plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.plan = p
}

// change carries out a change, or the fault that is planned for it. The caller
// holds the lock.
func (d *disk) change(k kind, apply func()) error {
	if d.isOff {
		return syscall.EIO
	}
	switch d.plan.next(k) {
	case none:
		apply()
		return nil
	case failSync:
		return errMarkedClean
	case dropSync:
		return errDropped
	case cutPower:
		// The cut can come before the change or after it.
		if d.random.IntN(2) == 0 {
			apply()
		}
		d.isOff = true
	}
	// The process is killed before it sees the error, which would be another fault.
	d.kill()
	return syscall.EIO
}

func (d *disk) create(name string) (inode, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; ok {
		return 0, syscall.EEXIST
	}
	number := d.add(nil)
	return number, d.rename(nameChange{name: number})
}

func (d *disk) link(number inode, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; ok {
		return syscall.EEXIST
	}
	return d.rename(nameChange{name: number})
}

func (d *disk) unlink(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.names[name]; !ok {
		return syscall.ENOENT
	}
	return d.rename(nameChange{name: 0})
}

func (d *disk) move(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, ok := d.names[from]
	if !ok {
		return syscall.ENOENT
	}
	return d.rename(nameChange{from: 0, to: number})
}

func (d *disk) rename(c nameChange) error {
	return d.change(naming, func() {
		c.apply(d.names)
		d.nameChanges = append(d.nameChanges, c)
	})
}

func (c nameChange) apply(names map[string]inode) {
	for name, number := range c {
		if number == 0 {
			delete(names, name)
		} else {
			names[name] = number
		}
	}
}

func (d *disk) syncNames() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change(syncingNames, func() {
		if slices.Contains(d.lies, syncingNames) {
			return
		}
		d.syncedNames = maps.Clone(d.names)
		d.nameChanges = nil
	})
}

func (d *disk) write(number inode, offset int64, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.change(writing, func() { d.files[number].write(offset, data) })
}

func (d *disk) resize(number inode, size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[number]
	switch have := int64(len(f.visible)); {
	case size < have:
		return d.change(writing, func() { f.shrink(size) })
	case size == have:
		return nil
	}
	return d.change(writing, func() { f.grow(size) })
}

func (d *disk) sync(number inode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[number]
	k := syncing
	if f.isHeaderOnly(headerSize) {
		k = syncingHeader
	}
	err := d.change(k, func() {
		if !slices.Contains(d.lies, k) {
			f.sync()
		}
	})
	switch err {
	case errMarkedClean:
		f.markClean()
		return syscall.EIO
	case errDropped:
		f.markClean()
		return nil
	}
	return err
}

// read returns a copy of the content that readers see at an offset.
func (d *disk) read(number inode, offset int64, buffer []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isOff {
		return nil, syscall.EIO
	}
	content := d.files[number].visible
	n := copy(buffer, content[min(offset, int64(len(content))):])
	return buffer[:n], nil
}

// stat returns the size of a file and the number of its names.
func (d *disk) stat(number inode) (size int64, links int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, named := range d.names {
		if named == number {
			links++
		}
	}
	return int64(len(d.files[number].visible)), links
}

func (d *disk) lookup(name string) (number inode, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number, ok = d.names[name]
	return number, ok
}

func (d *disk) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.names))
}

// image is the content of a disk that is off: the content of each file by name.
type image map[string][]byte

func (i image) save(directory string) error {
	for name, content := range i {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func loadImage(directory string) (image, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	loaded := make(image)
	for _, entry := range entries {
		loaded[entry.Name()], err = os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// powerCut decides which unsynced changes a power cut leaves on the disk.
type powerCut struct {
	random *rand.Rand
	share  float64 // of the unsynced changes that are kept

	// Counted for the log, in sectors.
	kept, dropped, torn int

	// tornHeader reports that a header page of the database is torn.
	tornHeader bool
}

// newPowerCut varies the share from cut to cut. Some cuts keep nothing or all.
func newPowerCut(random *rand.Rand) *powerCut {
	c := &powerCut{random: random}
	switch random.IntN(10) {
	case 0:
		c.share = 0
	case 1:
		c.share = 1
	default:
		c.share = random.Float64()
	}
	return c
}

func (c *powerCut) keeps() bool { return c.random.Float64() < c.share }

// afterCut returns the content of the disk after the cut.
func (d *disk) afterCut(cut *powerCut) image {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isOff = true
	names := maps.Clone(d.syncedNames)
	for _, c := range d.nameChanges {
		if cut.keeps() {
			c.apply(names)
		}
	}
	left := make(image)
	contents := make(map[inode][]byte) // two names of a file show the same content
	for _, name := range slices.Sorted(maps.Keys(names)) {
		number := names[name]
		if contents[number] == nil {
			contents[number] = d.files[number].afterCut(cut)
		}
		left[name] = contents[number]
	}
	return left
}
