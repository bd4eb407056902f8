package keyring_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-relayer/relayer/keyring"
)

func TestParse_Errors(t *testing.T) {
	const header = "relayer-keyring 1\n"
	for name, test := range map[string]struct{ text, want string }{
		"empty":               {"", `line 1 must be "relayer-keyring 1"`},
		"newer version":       {"relayer-keyring 2\n", `line 1 must be "relayer-keyring 1"`},
		"no lines":            {header, "does not name a primary key"},
		"no primary":          {header + "key a " + keyValue('k') + "\n", "does not name a primary key"},
		"primary missing":     {header + "primary b\nkey a " + keyValue('k') + "\n", "key b: no such key"},
		"two primaries":       {keyFile("k", "k") + "primary k\n", "line 4: an earlier line names the primary key"},
		"duplicate ID":        {keyFile("k", "k", "k"), "line 4: an earlier line has the key k"},
		"duplicate value":     {keyFile("k", "k", "k2"), "line 4: key k2 has the same value as key k"},
		"short key":           {header + "primary a\nkey a " + keyValue('k')[4:] + "\n", "line 3: key a must have a value of 32 bytes"},
		"long key":            {header + "primary a\nkey a aaaa" + keyValue('k') + "\n", "line 3: key a must have a value of 32 bytes"},
		"not base64":          {header + "primary a\nkey a !" + keyValue('k')[1:] + "\n", "line 3: key a must have a value of 32 bytes"},
		"line break":          {header + "primary a\r\nkey a " + keyValue('k') + "\r\n", "line 2: a key ID must have"},
		"carriage return":     {header + "primary a\nkey a " + keyValue('k') + "\r\n", "line 3: key a must have a value of 32 bytes"},
		"empty line":          {header + "\n" + keyFile("k", "k")[len(header):], `line 2: must be "primary ID" or "key ID VALUE"`},
		"two spaces":          {header + "primary a\nkey  a " + keyValue('k') + "\n", "line 3: must be"},
		"key in place of ID":  {header + "primary a\nkey " + keyValue('k') + " a\n", "line 3: a key ID must have"},
		"key as primary":      {header + "primary " + keyValue('k') + "\n", "line 2: a key ID must have"},
		"unknown directive":   {header + "secret a " + keyValue('k') + "\n", "line 2: must be"},
		"text after key":      {header + "primary a\nkey a " + keyValue('k') + " x\n", "line 3: must be"},
		"key without value":   {header + "primary a\nkey a\n", "line 3: must be"},
		"ID that is too long": {header + "primary " + strings.Repeat("a", 65) + "\n", "line 2: a key ID must have 1 to 64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keyring.Parse([]byte(test.text))
			if err == nil {
				t.Fatal("parsed")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want %q", err, test.want)
			}
			expectNoKey(t, err.Error(), 'k')
		})
	}
}

func keyPath(t *testing.T) string { return filepath.Join(t.TempDir(), "relayer.keys") }

func idsOf(ring keyring.Keyring) (ids []string) {
	for _, key := range ring.Keys() {
		ids = append(ids, key.ID)
	}
	return ids
}

// expectKeys checks the keys of a file, with the primary key first.
func expectKeys(t *testing.T, path string, want ...string) {
	t.Helper()
	if got := idsOf(must(keyring.Load(path))(t)); !slices.Equal(got, want) {
		t.Errorf("the file has the keys %q, want %q with the primary key first", got, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, want only the key file; error %v", entries, err)
	}
}

func TestKeyFile_Rotation(t *testing.T) {
	path := keyPath(t)
	mustSucceed(t, keyring.AddKey(path, "2026-01"))
	expectKeys(t, path, "2026-01")
	sealed := seal(t, must(keyring.Load(path))(t))

	mustSucceed(t, keyring.AddKey(path, "2026-07"))
	expectKeys(t, path, "2026-01", "2026-07")

	mustSucceed(t, keyring.UseKey(path, "2026-07"))
	expectKeys(t, path, "2026-07", "2026-01")
	rotated := must(keyring.Load(path))(t)
	if opened, err := rotated.Open(t.Context(), sealed, boundTo); err != nil || string(opened) != secret {
		t.Errorf("Open under the old key returned %q and %v", opened, err)
	}

	mustSucceed(t, keyring.RemoveKey(path, "2026-01"))
	expectKeys(t, path, "2026-07")
	expectRefused(t, must(keyring.Load(path))(t), sealed, boundTo, keyring.ErrUnknownKey)
}

func TestKeyFile_Mode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	path := keyPath(t)
	mustSucceed(t, keyring.AddKey(path, "a"))
	mustSucceed(t, keyring.AddKey(path, "b"))
	info := must(os.Stat(path))(t)
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the mode is %v, want 0600", mode)
	}
	for mode, accepted := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o440: true, 0o660: false, 0o644: false, 0o604: false, 0o602: false} {
		mustSucceed(t, os.Chmod(path, mode))
		if _, err := keyring.Load(path); (err == nil) != accepted {
			t.Errorf("with mode %v Load returned %v", mode, err)
		}
	}
}

func TestKeyFile_RefusedChanges(t *testing.T) {
	path := keyPath(t)
	mustSucceed(t, keyring.AddKey(path, "a"))
	mustSucceed(t, keyring.AddKey(path, "b"))
	before := must(os.ReadFile(path))(t)
	for name, err := range map[string]error{
		"add a key that exists":  keyring.AddKey(path, "a"),
		"add an invalid ID":      keyring.AddKey(path, "a b"),
		"add an empty ID":        keyring.AddKey(path, ""),
		"remove the primary key": keyring.RemoveKey(path, "a"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, err := range map[string]error{
		"use an unknown key":    keyring.UseKey(path, "c"),
		"remove an unknown key": keyring.RemoveKey(path, "c"),
		"use without a file":    keyring.UseKey(path+"-missing", "c"),
		"remove without a file": keyring.RemoveKey(path+"-missing", "c"),
	} {
		if !errors.Is(err, keyring.ErrUnknownKey) || !strings.Contains(err.Error(), "key c") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("a refused change changed the file; error %v", err)
	}
	expectKeys(t, path, "a", "b")
}

// A damaged file is never replaced: it may contain keys that can be recovered. A change that was
// interrupted has left a file, which must be deleted first.
func TestKeyFile_DamagedOrInterrupted(t *testing.T) {
	path := keyPath(t)
	damaged := keyFile("a", "a") + "key b\n"
	mustSucceed(t, os.WriteFile(path, []byte(damaged), 0o600))
	if _, err := keyring.Load(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
		t.Errorf("the error is %v, want one with the path", err)
	}
	if err := keyring.AddKey(path, "c"); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("the error is %v, want one of line 4", err)
	}
	if content := must(os.ReadFile(path))(t); string(content) != damaged {
		t.Errorf("the file was changed to %s", content)
	}
	whole := strings.TrimSuffix(keyFile("a", "a"), "\n") // without the last line break
	mustSucceed(t, os.WriteFile(path, []byte(whole), 0o600))
	mustSucceed(t, os.WriteFile(path+".new", []byte("relayer-key"), 0o600))
	if err := keyring.AddKey(path, "b"); err == nil || !strings.Contains(err.Error(), "delete the file") {
		t.Errorf("the error is %v, want one that says to delete the file", err)
	}
	mustSucceed(t, os.Remove(path+".new"))
	mustSucceed(t, keyring.AddKey(path, "b"))
	expectKeys(t, path, "a", "b")
}

// A change either has its effect or returns an error: no key is lost.
func TestKeyFile_ConcurrentChanges(t *testing.T) {
	path := keyPath(t)
	mustSucceed(t, keyring.AddKey(path, "first"))
	added := []string{"first"}
	var mutex sync.Mutex
	var group sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		group.Go(func() {
			if keyring.AddKey(path, id) == nil {
				mutex.Lock()
				defer mutex.Unlock()
				added = append(added, id)
			}
		})
	}
	group.Wait()
	ids := idsOf(must(keyring.Load(path))(t))
	slices.Sort(ids)
	slices.Sort(added)
	if !slices.Equal(ids, added) {
		t.Errorf("the file has the keys %q, want %q", ids, added)
	}
}

// A changed file keeps its mode, and a symbolic link to it stays one. A link to a missing file, such as
// one on a volume that is not mounted, is an error.
func TestAddKey_ModeAndSymlink(t *testing.T) {
	directory := t.TempDir()
	path, link := filepath.Join(directory, "file"), filepath.Join(directory, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if err := keyring.AddKey(link, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was added through a link to a missing file; error %v", err)
	}
	mustSucceed(t, keyring.AddKey(path, "a"))
	mustSucceed(t, os.Chmod(path, 0o640))
	mustSucceed(t, keyring.AddKey(link, "b"))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced; error %v", err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v with error %v, want 0640", info.Mode(), err)
	}
	if ring, err := keyring.Load(path); err != nil || len(ring.Keys()) != 2 {
		t.Errorf("the keys are %q; error %v", idsOf(ring), err)
	}
}
