package keyring

import (
	"bytes"
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

	"github.com/go-relayer/relayer/internal/osfile"
)

const fileHeader = "relayer-keyring 1"

// fileMode permits the owner of a key file alone to read it.
const fileMode = 0o600

// Parse reads the content of a key file:
//
//	relayer-keyring 1
//	primary 2026-07
//	key 2026-01 <32 bytes in base64>
//	key 2026-07 <32 bytes in base64>
//
// Errors name the line, and contain no part of it but a valid key ID.
func Parse(data []byte) (Keyring, error) {
	parsed, err := parse(data)
	if err != nil {
		return Keyring{}, fmt.Errorf("keyring: %w", err)
	}
	return newKeyring(parsed), nil
}

func parse(data []byte) (*ring, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != fileHeader {
		return nil, fmt.Errorf("line 1 must be %q", fileHeader)
	}
	parsed := new(ring)
	for i, line := range lines[1:] {
		if err := parsed.parseLine(strings.Split(line, " ")); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	if parsed.primary == "" {
		return nil, errors.New("the file does not name a primary key")
	}
	if parsed.named(parsed.primary) == nil {
		return nil, noKey(parsed.primary)
	}
	return parsed, nil
}

func noKey(id string) error { return fmt.Errorf("key %s: %w", id, ErrUnknownKey) }

func (r *ring) parseLine(fields []string) error {
	const message = `must be "primary ID" or "key ID VALUE"`
	if len(fields) < 2 {
		return errors.New(message)
	}
	id := fields[1]
	if !isKeyID(id) {
		return errKeyID
	}
	switch {
	case fields[0] == "primary" && len(fields) == 2:
		if r.primary != "" {
			return errors.New("an earlier line names the primary key")
		}
		r.primary = id
		return nil
	case fields[0] == "key" && len(fields) == 3:
		return r.parseKey(id, fields[2])
	}
	return errors.New(message)
}

func (r *ring) parseKey(id, text string) error {
	// The decoder ignores line breaks.
	value, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(value) != keyLength || strings.ContainsAny(text, "\r\n") {
		return fmt.Errorf("key %s must have a value of %d bytes in base64", id, keyLength)
	}
	if r.named(id) != nil {
		return fmt.Errorf("an earlier line has the key %s", id)
	}
	for _, other := range r.keys {
		if bytes.Equal(other.value, value) {
			return fmt.Errorf("key %s has the same value as key %s", id, other.ID)
		}
	}
	return r.add(id, value)
}

var errKeyID = errors.New("a key ID must have 1 to 64 letters, digits, dots, hyphens or underscores")

func (r *ring) add(id string, value []byte) error {
	added, err := newKey(id, value)
	r.keys = append(r.keys, added)
	return err
}

func (r *ring) encode() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\nprimary %s\n", fileHeader, r.primary)
	for _, k := range r.keys {
		fmt.Fprintf(&text, "key %s %s\n", k.ID, base64.StdEncoding.EncodeToString(k.value))
	}
	return text.Bytes()
}

// Load reads a key file. It returns an error if it is not a regular file, if users other
// than the owner and the group may read it, or if others than the owner may write it.
func Load(path string) (Keyring, error) {
	loaded, err := load(path)
	if err != nil {
		return Keyring{}, fmt.Errorf("keyring: %w", err)
	}
	return newKeyring(loaded), nil
}

func load(path string) (*ring, error) {
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
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	loaded, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return loaded, nil
}

// AddKey adds a new random key to a key file. It creates a missing file with mode 0600,
// and its first key is the primary key. It returns an error if the ID is taken or
// invalid: 1 to 64 of A–Z a–z 0–9 . _ and -.
//
// AddKey, [UseKey] and [RemoveKey] replace the file atomically, and sync it. Only one of
// them at a time can change a file, which keeps its mode and its owner.
func AddKey(path, id string) error {
	if !isKeyID(id) {
		return fmt.Errorf("keyring: %w", errKeyID)
	}
	return change(path, func(r *ring) error {
		if r.named(id) != nil {
			return fmt.Errorf("key %s exists", id)
		}
		value := make([]byte, keyLength)
		rand.Read(value) // never fails
		if r.primary == "" {
			r.primary = id
		}
		return r.add(id, value)
	})
}

// UseKey makes a key of a file the primary key. It returns an error that matches
// [ErrUnknownKey] if the file does not have it.
func UseKey(path, id string) error {
	return change(path, func(r *ring) error {
		if r.named(id) == nil {
			return noKey(id)
		}
		r.primary = id
		return nil
	})
}

// RemoveKey removes a key from a file. What is sealed under it cannot be opened after
// that. It returns an error if the key is the primary key, and one that matches
// [ErrUnknownKey] if the file does not have it.
func RemoveKey(path, id string) error {
	return change(path, func(r *ring) error {
		if r.named(id) == nil {
			return noKey(id)
		}
		if r.primary == id {
			return fmt.Errorf("key %s is the primary key: make another one primary first", id)
		}
		r.keys = slices.DeleteFunc(r.keys, func(other key) bool { return other.ID == id })
		return nil
	})
}

// change replaces a key file, or the file that a symbolic link names.
func change(path string, modify func(*ring) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	err := replace(path, func() ([]byte, error) { return changed(path, modify) })
	if err != nil {
		return fmt.Errorf("keyring: %w", err)
	}
	return nil
}

// replace replaces a file atomically. It writes the new content to a second file, whose
// name only one process can create: it is also the lock.
func replace(path string, content func() ([]byte, error)) error {
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another process changes the keys, or was interrupted: in that case, delete the file", next)
	}
	if err != nil {
		return err
	}
	data, err := content()
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = copyOwner(next, path)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return osfile.SyncDirectory(filepath.Dir(path))
}

// copyOwner gives a file the mode and the owner of another one, if that exists.
func copyOwner(path, of string) error {
	info, err := os.Stat(of)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return osfile.CopyOwner(path, info)
}

func changed(path string, modify func(*ring) error) ([]byte, error) {
	r, err := load(path)
	if errors.Is(err, fs.ErrNotExist) {
		r, err = new(ring), nil
	}
	if err != nil {
		return nil, err
	}
	if err := modify(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.encode(), nil
}
