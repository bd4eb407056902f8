package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/bolt"
)

// runCommand runs a command that must succeed.
func runCommand(t *testing.T, args ...string) (output string) {
	t.Helper()
	done := finishHere(t, "", args...)
	for isLate(done.stderr) {
		done = finishHere(t, "", args...)
	}
	if done.status != 0 {
		t.Fatalf("%q: exit status %d: %s%s", args, done.status, done.stdout, done.stderr)
	}
	return done.stdout + done.stderr
}

// expectFailure runs a command that must end with status 1 and one line.
func expectFailure(t *testing.T, want string, args ...string) {
	t.Helper()
	expectFailureWith(t, want, "", args...)
}

func expectFailureWith(t *testing.T, want, apiKey string, args ...string) {
	t.Helper()
	done := finishHere(t, apiKey, args...)
	if done.status != 1 || strings.Count(done.stderr, "\n") != 1 || !strings.Contains(done.stderr, want) || done.stdout != "" {
		t.Errorf("%q: exit status %d, stdout %q, stderr %q, want one line with %q", args, done.status, done.stdout, done.stderr, want)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// expectFiles checks which files the directory of a path contains.
func expectFiles(t *testing.T, directory string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
}

// damage changes a stored byte of one relayer in a file of makeFile.
func damage(t *testing.T, path string) {
	t.Helper()
	damaged := bytes.ReplaceAll(readFile(t, path), []byte("https://rpc.example/7\""), []byte("https://rpc.example/8\""))
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
}

// commandsOn returns each command that opens a file, with other files next to it.
func commandsOn(t *testing.T, path string) map[string][]string {
	other, vacant := makeFile(t, 1), filepath.Join(t.TempDir(), "vacant.db")
	return map[string][]string{
		"check":        {"check", "--db", path},
		"backup":       {"backup", "--db", path, "--to", vacant},
		"restore":      {"restore", "--from", path, "--db", vacant},
		"compact":      {"compact", "--db", path},
		"copy from it": {"copy", "--from", path, "--to", vacant},
		"copy to it":   {"copy", "--from", other, "--to", path},
		"history":      {"history", "--db", path},
	}
}

func TestCommands_FileInUse(t *testing.T) {
	path := makeFile(t, 3)
	server := start(t, token, "--db", path)
	for name, args := range commandsOn(t, path) {
		// A command that waits for the lock never takes less than a second. One that
		// does not wait takes longer only sometimes, on a busy machine.
		returnsAtOnce := func() bool {
			began := time.Now()
			if _, err := runToEnd(t, args...); !errors.Is(err, bolt.ErrLocked) {
				t.Fatalf("%s: error %v, want ErrLocked", name, err)
			}
			return time.Since(began) < time.Second
		}
		if !await(returnsAtOnce) {
			t.Errorf("%s waits for the lock", name)
		}
	}
	for _, args := range commandsOn(t, path) {
		expectFailure(t, "file is in use: stop the server that has it open", args...)
	}
	server.stop()
	expectFiles(t, filepath.Dir(path), filepath.Base(path))
}

func TestCheck_File(t *testing.T) {
	t.Parallel()
	path := makeFile(t, 30)
	if output := runCommand(t, "check", "--db", path); output != "no damage found in 30 relayers\n" {
		t.Errorf("output %q", output)
	}
	damage(t, path)
	before := readFile(t, path)
	expectFailure(t, "relayerd: --db: bolt: check "+path+": ", "check", "--db", path)
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the check changed the file")
	}
}

func TestCheck_Postgres(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	database := location(t, server, "postgres")
	start(t, token, "--db", database).stop()
	if output := runCommand(t, "check", "--db", database); output != "no damage found in 0 relayers\n" {
		t.Errorf("output %q", output)
	}
	expectFailure(t, "--db: postgres: schema relayer: no relayer schema", "check", "--db", createDatabase(t, server, "empty"))
}

func TestBackup_Restore(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "relayers.db")
	backup := filepath.Join(t.TempDir(), "backup.db")
	server := start(t, token, "--db", database)
	documents := createAll(t, server, realRelayers(t))
	before := readAll(t, server, documents)
	server.stop()

	if output := runCommand(t, "backup", "--db", database, "--to", backup); output != "copied 28 relayers\n" {
		t.Errorf("output %q", output)
	}
	expectFiles(t, filepath.Dir(backup), "backup.db")
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	if output := runCommand(t, "restore", "--from", backup, "--db", database); output != "copied 28 relayers\n" {
		t.Errorf("output %q", output)
	}
	expectFiles(t, filepath.Dir(database), "relayers.db")

	server = start(t, token, "--db", database)
	if after := readAll(t, server, documents); !reflect.DeepEqual(after, before) {
		t.Errorf("restored %v, want %v", after, before)
	}
	server.stop()
}

func TestBackup_DamagedFile(t *testing.T) {
	t.Parallel()
	path, vacant := makeFile(t, 30), filepath.Join(t.TempDir(), "vacant.db")
	damage(t, path)
	expectFailure(t, "--db: bolt: check "+path, "backup", "--db", path, "--to", vacant)
	expectFailure(t, "--from: bolt: check "+path, "restore", "--from", path, "--db", vacant)
	expectFiles(t, filepath.Dir(vacant))
}

// makeSparseFile creates a file in which most relayers were deleted, the last one
// included.
func makeSparseFile(t *testing.T) (path string, last relayer.Record) {
	t.Helper()
	path = makeFile(t, 3000)
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := store.List(t.Context(), relayer.StoreQuery{Limit: 3000})
	if err != nil {
		t.Fatal(err)
	}
	var deletes sync.WaitGroup
	for i, record := range all.Records {
		if i%10 == 0 {
			continue
		}
		// Concurrent deletes share a sync of the file.
		deletes.Go(func() {
			if err := store.Delete(t.Context(), record.ID, record.Revision, nil); err != nil {
				t.Error(err)
			}
		})
	}
	deletes.Wait()
	return path, all.Records[len(all.Records)-1]
}

func TestCompact_KeepsRelayersAndRevisions(t *testing.T) {
	t.Parallel()
	path, last := makeSparseFile(t)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before, sizeBefore := contentOf(t, path), len(readFile(t, path))

	output := runCommand(t, "compact", "--db", path)
	if !strings.HasPrefix(output, "compacted from ") {
		t.Errorf("output %q", output)
	}
	if sizeAfter := len(readFile(t, path)); sizeAfter*3 > 2*sizeBefore { // the history stays
		t.Errorf("the file has %d bytes, and had %d", sizeAfter, sizeBefore)
	}
	if after := contentOf(t, path); !reflect.DeepEqual(after, before) {
		t.Errorf("%d relayers differ from %d before", len(after), len(before))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	expectFiles(t, filepath.Dir(path), filepath.Base(path))

	// The revision of a deleted relayer is not used again.
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	created, err := store.Create(t.Context(), relayer.Record{ID: last.ID, Document: []byte(`{}`), Private: []byte(`{}`)})
	if err != nil || created.Revision <= last.Revision {
		t.Errorf("revision %d, error %v, want more than %d", created.Revision, err, last.Revision)
	}
}

func TestCompact_Symlink(t *testing.T) {
	t.Parallel()
	path, _ := makeSparseFile(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	sizeBefore := len(readFile(t, path))
	runCommand(t, "compact", "--db", link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, error %v", info, err)
	}
	if sizeAfter := len(readFile(t, path)); sizeAfter >= sizeBefore {
		t.Errorf("the file has %d bytes, and had %d", sizeAfter, sizeBefore)
	}
	loop := filepath.Join(t.TempDir(), "loop.db")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, loop, "compact", "--db", loop)
}
