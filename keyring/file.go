package keyring

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/go-relayer/relayer/internal/osfile"
)

const fileHeader = "relayer-keyring 1"

// Parse reads the content of a key file:
//
//	relayer-keyring 1
//	primary 2026-07
//	key 2026-01 <32 bytes in base64>
//	key 2026-07 <32 bytes in base64>
//
// Errors contain no part of a line except a valid key ID.
func Parse(data []byte) (Keyring, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != fileHeader {
		return Keyring{}, fmt.Errorf("keyring: line 1 must be %q", fileHeader)
	}
	keys, primary, err := []key(nil), "", error(nil)
	for i, line := range lines[1:] {
		fields := strings.Split(line, " ")
		switch {
		case len(fields) == 2 && fields[0] == "primary" && primary != "":
			err = errors.New("an earlier line names the primary key")
		case len(fields) == 2 && fields[0] == "primary":
			primary, err = fields[1], checkKeyID(fields[1])
		case len(fields) == 3 && fields[0] == "key":
			keys, err = appendKey(keys, fields[1], fields[2])
		default:
			err = errors.New(`must be "primary ID" or "key ID VALUE"`)
		}
		if err != nil {
			return Keyring{}, fmt.Errorf("keyring: line %d: %w", i+2, err)
		}
	}
	if primary == "" {
		return Keyring{}, errors.New("keyring: the file does not name a primary key")
	}
	if keys, err = withPrimary(keys, primary); err != nil {
		return Keyring{}, fmt.Errorf("keyring: %w", err)
	}
	return Keyring{func() []key { return keys }}, nil
}

func appendKey(keys []key, id, text string) ([]key, error) {
	if err := checkKeyID(id); err != nil {
		return nil, err
	}
	// The decoder ignores line breaks.
	value, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(value) != chacha20poly1305.KeySize || strings.ContainsAny(text, "\r\n") {
		return nil, fmt.Errorf("key %s must have a value of %d bytes in base64", id, chacha20poly1305.KeySize)
	}
	if indexOf(keys, id) >= 0 {
		return nil, fmt.Errorf("an earlier line has the key %s", id)
	}
	if i := slices.IndexFunc(keys, func(other key) bool { return bytes.Equal(other.value, value) }); i >= 0 {
		return nil, fmt.Errorf("key %s has the same value as key %s", id, keys[i].ID)
	}
	added, err := newKey(id, value)
	return append(keys, added), err
}

// withPrimary moves a key to the front.
func withPrimary(keys []key, id string) ([]key, error) {
	i := indexOf(keys, id)
	if i < 0 {
		return nil, noKey(id)
	}
	primary := keys[i]
	return slices.Insert(slices.Delete(keys, i, i+1), 0, primary), nil
}

func noKey(id string) error { return fmt.Errorf("key %s: %w", id, ErrUnknownKey) }

func checkKeyID(id string) error {
	if !keyID.MatchString(id) {
		return errors.New("a key ID must have 1 to 64 letters, digits, dots, hyphens or underscores")
	}
	return nil
}

// Load reads a key file. It returns an error if it is not a regular file, if users other than the
// owner and the group may read it, or if anyone but the owner may write it.
func Load(path string) (Keyring, error) {
	data, err := readFile(path)
	if err != nil {
		return Keyring{}, fmt.Errorf("keyring: %w", err)
	}
	ring, err := Parse(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return ring, err
}

func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|osfile.NonBlocking, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s must be a regular file", path)
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has the mode %v: run chmod 600", path, mode)
	}
	return io.ReadAll(file)
}

// AddKey adds a new random key to a key file. It creates a missing file with mode 0600, and its
// first key is the primary key. It returns an error if the ID is taken, or is not 1 to 64 of A–Z
// a–z 0–9 . _ and -.
//
// AddKey, [UseKey] and [RemoveKey] replace the file atomically, sync it, and keep its mode and
// its owner. While one of them runs, another call returns an error. If a call was interrupted,
// delete the file that the error names.
func AddKey(path, id string) error {
	return change(path, func(keys []key) ([]key, error) {
		if indexOf(keys, id) >= 0 {
			return nil, fmt.Errorf("key %s exists", id)
		}
		value := make([]byte, chacha20poly1305.KeySize)
		rand.Read(value) // never fails
		return appendKey(keys, id, base64.StdEncoding.EncodeToString(value))
	})
}

// UseKey makes a key of a file the primary key. It returns an error that matches
// [ErrUnknownKey] if the file does not have it.
func UseKey(path, id string) error {
	return change(path, func(keys []key) ([]key, error) { return withPrimary(keys, id) })
}

// RemoveKey removes a key from a file. What is sealed under it cannot be opened after
// that. It returns an error if the key is the primary key, and one that matches
// [ErrUnknownKey] if the file does not have it.
func RemoveKey(path, id string) error {
	return change(path, func(keys []key) ([]key, error) {
		switch i := indexOf(keys, id); i {
		case -1:
			return nil, noKey(id)
		case 0:
			return nil, fmt.Errorf("key %s is the primary key: make another one primary first", id)
		default:
			return slices.Delete(keys, i, i+1), nil
		}
	})
}

// change replaces a key file, or the file that a symbolic link names, atomically. It writes the new
// content to a second file, whose name only one process can create: it is also the lock.
func change(path string, modify func([]key) ([]key, error)) error {
	_, notFound := os.Lstat(path)
	target, err := filepath.EvalSymlinks(path)
	if err != nil && notFound == nil { // a new file would replace the link
		return fmt.Errorf("keyring: %s is a link that cannot be followed: mount or create its target: %w", path, err)
	}
	path = cmp.Or(target, path)
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keyring: %s exists: another process changes the keys, or was interrupted: in that case, delete the file", next)
	}
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	ring, err := Load(path)
	keys := ring.keys()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		if keys, err = modify(keys); err != nil {
			err = fmt.Errorf("keyring: %s: %w", path, err)
		}
	}
	if err == nil {
		text := fmt.Sprintf("%s\nprimary %s\n", fileHeader, keys[0].ID)
		for _, k := range keys {
			text += fmt.Sprintf("key %s %s\n", k.ID, base64.StdEncoding.EncodeToString(k.value))
		}
		_, err = file.WriteString(text)
		err = cmp.Or(err, file.Sync())
	}
	err = errors.Join(err, file.Close())
	if info, statErr := os.Stat(path); err == nil && statErr == nil { // the file exists
		err = osfile.CopyOwner(next, info)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return osfile.SyncDirectory(filepath.Dir(path))
}
