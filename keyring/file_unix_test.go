//go:build unix

package keyring_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer/keyring"
)

// A FIFO has no writer, so that an open that waits for one would never return.
func TestKeyFile_NotRegular(t *testing.T) {
	directory := t.TempDir()
	fifo, link := filepath.Join(directory, "fifo"), filepath.Join(directory, "link")
	mustSucceed(t, syscall.Mkfifo(fifo, 0o600))
	mustSucceed(t, os.Symlink(fifo, link))
	private := filepath.Join(directory, "directory")
	mustSucceed(t, os.Mkdir(private, 0o700))
	returned := make(chan error)
	for _, path := range []string{fifo, link, private, os.DevNull} {
		for name, use := range map[string]func() error{
			"Load":      func() error { _, err := keyring.Load(path); return err },
			"AddKey":    func() error { return keyring.AddKey(path, "a") },
			"RemoveKey": func() error { return keyring.RemoveKey(path, "a") },
		} {
			if path == os.DevNull && name != "Load" {
				continue // it would create a file next to the device
			}
			go func() { returned <- use() }()
			select {
			case err := <-returned:
				if err == nil || !strings.Contains(err.Error(), "must be a regular file") {
					t.Errorf("%s of %s returned %v", name, path, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s of %s does not return", name, path)
			}
		}
	}
}
