//go:build unix

package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer/tests/internal/child"
)

// TestMount_Coherent: a child uses the mount as bbolt does. It maps a file,
// writes to it, and sees every write in the mapping.
func TestMount_Coherent(t *testing.T) {
	d := emptyDisk()
	m := mountOrSkip(t, d)
	p := child.Start(t, task{Work: probes, location: location{Path: m.directory}})
	_, err := child.Follow(p, func(event) {})
	wantNoError(t, err, m.unmount())
	if names := d.list(); !slices.Equal(names, []string{"linked", "renamed"}) {
		t.Errorf("the directory holds %v", names)
	}
	left := d.afterCut(&powerCut{random: rand.New(rand.NewPCG(1, 1))})
	if len(left) != 2 || !bytes.Equal(left["linked"], probeContent(probeWrites)) || !bytes.Equal(left["renamed"], left["linked"]) {
		t.Error("what was synced is not there after a power cut")
	}
}

const (
	probeWrites = 50
	probeSize   = 64 << 10
)

// probeContent is the content after some writes.
func probeContent(writes int) []byte {
	return bytes.Repeat([]byte{byte(writes)}, probeSize)
}

func probe(directory string) error {
	name := filepath.Join(directory, "file")
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	err = errors.Join(
		file.Truncate(probeSize),
		writeMapped(file),
		file.Sync(),
		os.Link(name, filepath.Join(directory, "linked")),
		os.Rename(name, filepath.Join(directory, "renamed")),
		os.WriteFile(filepath.Join(directory, "removed"), nil, 0o600),
		os.Remove(filepath.Join(directory, "removed")),
		syncDirectory(directory),
	)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 2 {
		return fmt.Errorf("the directory holds %v, error %w", entries, err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("error of a file that is renamed: %w", err)
	}
	return nil
}

// writeMapped writes through the file and compares through a mapping.
func writeMapped(file *os.File) error {
	mapped, err := syscall.Mmap(int(file.Fd()), 0, probeSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Munmap(mapped) }()
	for i := 1; i <= probeWrites; i++ {
		if _, err := file.WriteAt(probeContent(i), 0); err != nil {
			return err
		}
		if !bytes.Equal(mapped, probeContent(i)) {
			return fmt.Errorf("the mapping does not show write %d", i)
		}
	}
	return nil
}

func syncDirectory(name string) error {
	directory, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
