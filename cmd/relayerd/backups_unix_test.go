//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

const (
	written = `msg="backup written"`
	failed  = `msg="backup failed"`
)

var backupName = regexp.MustCompile(`^source\.db\.\d{8}T\d{6}\.\d{3}Z$`)

// backupFiles returns the paths of the backups in a directory, oldest first, and the
// names of its other files.
func backupFiles(t *testing.T, directory string) (backups, others []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case backupName.MatchString(name):
			backups = append(backups, filepath.Join(directory, name))
		default:
			others = append(others, name)
		}
	}
	return backups, others
}

// backupsIn is backupFiles for a directory without other files.
func backupsIn(t *testing.T, directory string) []string {
	t.Helper()
	backups, others := backupFiles(t, directory)
	if len(others) > 0 {
		t.Errorf("the directory contains %q", others)
	}
	return backups
}

func (p *process) expectMetric(pattern string) {
	p.t.Helper()
	_, body := p.do("GET", "/metrics", "")
	if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(body) {
		p.t.Errorf("no line of the metrics matches %q:\n%s", pattern, body)
	}
}

// writeUntil creates relayers concurrently until done is closed, and returns how
// many were acknowledged so far.
func writeUntil(server *process, done <-chan struct{}) (acknowledged func() int, wait func()) {
	var mu sync.Mutex
	count := 0
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for i := 0; !isClosed(done); i++ {
				body := strings.Replace(definition, "r-1", fmt.Sprintf("w-%d-%d-%d", server.command.Process.Pid, writer, i), 1)
				if status, err := server.status("POST", collection, token, body); err != nil || status != http.StatusCreated {
					if !isClosed(done) {
						server.t.Errorf("create returned %d, error %v", status, err)
					}
					return
				}
				mu.Lock()
				count++
				mu.Unlock()
			}
		})
	}
	acknowledged = func() int { mu.Lock(); defer mu.Unlock(); return count }
	return acknowledged, writers.Wait
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Each backup contains every relayer that was acknowledged before it, and is a
// prefix of the final list.
func TestBackups_UnderWriters(t *testing.T) {
	t.Parallel()
	database, directory := makeFile(t, 200), t.TempDir()
	server := start(t, token, "--db", database, "--backup", directory, "--backup-every", "1s", "--backup-keep", "3")
	done := make(chan struct{})
	acknowledged, wait := writeUntil(server, done)
	before := 0
	for range 3 {
		before = acknowledged()
		// The one after the next began after the writes.
		server.output.awaitText(t, written, strings.Count(server.output.String(), written)+2)
	}
	close(done)
	wait()
	server.expectMetric(`relayerd_backups_total{outcome="success"} [1-9]\d*`)
	server.expectMetric(`relayerd_backups_total{outcome="failure"} 0`)
	server.expectMetric(`relayerd_backup_duration_seconds [0-9.e-]+`)
	server.expectMetric(`relayerd_backup_size_bytes [1-9][0-9.e+]+`)
	server.expectMetric(`relayerd_backup_last_success_timestamp_seconds 1\.\d+e\+09`)
	server.stop()

	final := contentOf(t, database)
	paths := backupsIn(t, directory)
	if len(paths) != 3 {
		t.Errorf("backups %q, want 3", paths)
	}
	length := 0
	for _, path := range paths {
		content := contentOf(t, path)
		if len(content) < length || len(content) > len(final) || !reflect.DeepEqual(content, final[:len(content)]) {
			t.Errorf("%s has %d relayers, which are not the first of %d", path, len(content), len(final))
		}
		length = len(content)
	}
	if length < 200+before {
		t.Errorf("the last backup has %d relayers, want at least %d", length, 200+before)
	}
	restored := filepath.Join(t.TempDir(), "restored.db")
	runCommand(t, "restore", "--from", paths[len(paths)-1], "--db", restored)
	expectCopied(t, restored, paths[len(paths)-1])
}

// killDuringBackup kills a server while it writes a backup and clients write, and
// reports whether the backup was incomplete.
func killDuringBackup(t *testing.T, database, directory string) bool {
	t.Helper()
	before, _ := backupFiles(t, directory)
	server := start(t, token, "--db", database, "--backup", directory, "--backup-every", "1s", "--backup-keep", "1000")
	killed := make(chan struct{})
	acknowledged, wait := writeUntil(server, killed)
	defer wait()
	if !await(func() bool { return acknowledged() > 20 }) {
		t.Fatalf("the clients do not write: %s", server.output)
	}
	isWriting := func() bool {
		backups, temporary := backupFiles(t, directory)
		return len(backups)+len(temporary) > len(before)+strings.Count(server.output.String(), written)
	}
	await(isWriting)
	close(killed)
	_ = server.command.Process.Kill()
	_ = server.command.Wait()
	return isWriting()
}

// expectWhole restores each backup and compares it with the database: relayers are
// only created, so that a backup is the start of the list.
func expectWhole(t *testing.T, directory, database string) {
	t.Helper()
	all := contentOf(t, database)
	backups, _ := backupFiles(t, directory) // a killed server leaves an incomplete one for a minute
	if len(backups) == 0 {
		t.Error("there is no backup")
	}
	for _, path := range backups {
		restored := filepath.Join(t.TempDir(), "restored.db")
		if text, err := program("", "restore", "--from", path, "--db", restored).CombinedOutput(); err != nil {
			t.Errorf("%s cannot be restored: %s", path, text)
			continue
		}
		content := contentOf(t, restored)
		if len(content) < 10_000 || len(content) > len(all) || !reflect.DeepEqual(content, all[:len(content)]) {
			t.Errorf("%s has %d relayers, which are not the first of %d", path, len(content), len(all))
		}
	}
}

// A backup with its final name is whole, also if the server is killed.
func TestBackups_KilledServer(t *testing.T) {
	t.Parallel()
	database, directory := makeFile(t, 10_000), t.TempDir()
	interrupted := 0
	for attempt := 0; interrupted < 3 && attempt < 30; attempt++ {
		if killDuringBackup(t, database, directory) {
			interrupted++
		}
	}
	if interrupted < 3 {
		t.Fatalf("%d backups were interrupted", interrupted)
	}
	server := start(t, token, "--db", database, "--backup", directory, "--backup-every", "1s", "--backup-keep", "1000")
	server.output.awaitText(t, written, 1)
	server.stop()
	expectWhole(t, directory, database)
}

func TestBackups_FailureKeepsServing(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "backups")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	server := start(t, token, "--db", makeFile(t, 3), "--backup", directory, "--backup-every", "1s", "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	if err := os.Rename(directory, directory+".unmounted"); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, failed, 1)
	server.expectMetric(`relayerd_backups_total{outcome="failure"} [1-9]\d*`)
	server.expectMetric(`relayerd_backups_total{outcome="success"} [1-9]\d*`)
	server.expectStatus("POST", collection, token, strings.Replace(definition, "r-1", "new", 1), http.StatusCreated)

	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, written, strings.Count(server.output.String(), written)+1)
	server.stop()
	if paths := backupsIn(t, directory); len(paths) != 1 || len(contentOf(t, paths[0])) != 4 {
		t.Errorf("backups %q, want one with 4 relayers", paths)
	}
}

// The interval continues across a restart.
func TestBackups_Restart(t *testing.T) {
	t.Parallel()
	database, directory := makeFile(t, 3), t.TempDir()
	server := start(t, token, "--db", database, "--backup", directory)
	server.output.awaitText(t, written, 1)
	server.stop()

	again := start(t, token, "--db", database, "--backup", directory)
	again.expectMetric(`relayerd_backup_last_success_timestamp_seconds 1\.\d+e\+09`)
	again.stop()
	paths := backupsIn(t, directory)
	if len(paths) != 1 || strings.Contains(again.output.String(), written) {
		t.Fatalf("backups %q, want 1: the next is due in an hour: %s", paths, again.output)
	}

	// An old backup is followed at once.
	if err := os.Rename(paths[0], filepath.Join(directory, "source.db.20200101T000000.000Z")); err != nil {
		t.Fatal(err)
	}
	last := start(t, token, "--db", database, "--backup", directory)
	last.output.awaitText(t, written, 1)
	last.stop()
}

// Files that are not backups of this database are not removed. A backup of a clock that was
// ahead takes the place of no other one, and delays none.
func TestBackups_PruneKeepsOtherFiles(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	future, others := "source.db.29990101T000000.000Z", []string{"other.db.20200101T000000.000Z", "source.db", "source.db.20200101", "source.db.tmp1"}
	for _, name := range append(others, future, "source.db.20200101T000000.000Z") {
		if err := os.WriteFile(filepath.Join(directory, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := start(t, token, "--db", makeFile(t, 3), "--backup", directory, "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	server.stop()
	path := regexp.MustCompile(`msg="backup written" path=(\S+)`).FindStringSubmatch(server.output.String())[1]
	expectFiles(t, directory, others[0], others[1], others[2], filepath.Base(path), future, others[3])
}

// A link in the directory leads to no other file: a tokens file was read, logged and overwritten
// through one with the name of a lock file.
func TestBackups_Links(t *testing.T) {
	t.Parallel()
	directory, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	const content = "alice " + password + " write\n"
	if err := os.WriteFile(tokens, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"source.db.lock", "source.db.20200101T000000.000Z", "source.db.tmp1", "source.db.29990101T000000.000Z"} {
		if err := os.Symlink(tokens, filepath.Join(directory, name)); err != nil {
			t.Fatal(err)
		}
	}
	server := start(t, token, "--db", makeFile(t, 3), "--backup", directory, "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	server.stop()
	expectNoPassword(t, server.output.String())
	if after := string(readFile(t, tokens)); after != content {
		t.Errorf("the linked file was changed to %q", after)
	}
}

// Everybody who can write the directory could replace the backups, before the start and later.
func TestBackups_WritableByOthers(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	database := makeFile(t, 3)
	for _, mode := range []os.FileMode{0o777, 0o703, os.ModeSticky | 0o777} {
		if err := os.Chmod(directory, mode); err != nil {
			t.Fatal(err)
		}
		expectFailedStart(t, "--backup: other users can write "+directory+", which has the mode", "--db", database, "--backup", directory)
	}
	if err := os.Chmod(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	server := start(t, token, "--db", database, "--backup", directory, "--backup-every", "1s")
	server.output.awaitText(t, written, 1)
	if err := os.Chmod(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, `msg="backup failed" error="other users can write `, 1)
	server.stop()
}

// A signal whose flag is not set does not end the server.
func TestSignals_WithoutFlag(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	if err := server.command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	server.expectStatus("GET", collection, token, "", http.StatusOK)
	server.stop()
}
