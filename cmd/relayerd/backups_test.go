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
	"sync/atomic"
	"testing"
)

const (
	written = `msg="backup written"`
	failed  = `msg="backup failed"`
)

// backupsIn returns the paths of the backups in a directory without other files, oldest first.
func backupsIn(t *testing.T, directory string) (backups []string) {
	t.Helper()
	entries := mustGet(os.ReadDir(directory))(t)
	for _, entry := range entries {
		if !regexp.MustCompile(`^source\.db\.\d{8}T\d{6}\.\d{3}Z$`).MatchString(entry.Name()) {
			t.Errorf("the directory contains %q", entry.Name())
		}
		backups = append(backups, filepath.Join(directory, entry.Name()))
	}
	return backups
}

// writeUntil creates relayers concurrently until done is closed, and returns how
// many were acknowledged so far.
func writeUntil(server *process, done <-chan struct{}) (acknowledged func() int, wait func()) {
	var count atomic.Int64
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
					server.expect("POST", collection, token, definitionOf(fmt.Sprintf("w-%d-%d", writer, i)), http.StatusCreated)
					count.Add(1)
				}
			}
		})
	}
	return func() int { return int(count.Load()) }, writers.Wait
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
	server.expectMetrics(map[string]float64{`relayerd_backups_total{outcome="failure"}`: 0})
	for _, series := range []string{`relayerd_backups_total{outcome="success"}`, "relayerd_backup_last_success_timestamp_seconds"} {
		if server.metric(series) <= 0 {
			t.Errorf("%s is %v", series, server.metric(series))
		}
	}
	server.stop()

	final, paths, length := contentOf(t, database), backupsIn(t, directory), 0
	if len(paths) != 3 {
		t.Errorf("backups %q, want 3", paths)
	}
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
}

// Without its directory, or with one that everybody can write and so replace backups, the server serves,
// and the next backup is written when that is corrected.
func TestBackups_FailureKeepsServing(t *testing.T) {
	t.Parallel()
	database, directory := makeFile(t, 3), filepath.Join(t.TempDir(), "backups")
	must(t, os.Mkdir(directory, 0o700))
	must(t, os.Chmod(directory, 0o703))
	expectFailure(t, "--backup: other users can write "+directory+", which has the mode", "serve", "--addr", "127.0.0.1:0", "--db", database, "--backup", directory)
	must(t, os.Chmod(directory, 0o700))
	server := start(t, token, "--db", database, "--backup", directory, "--backup-every", "1s", "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	must(t, os.Rename(directory, directory+".unmounted"))
	server.output.awaitText(t, failed, 1)
	must(t, os.Mkdir(directory, 0o700))
	must(t, os.Chmod(directory, 0o777))
	server.output.awaitText(t, failed+` error="other users can write `, 1)
	if server.metric(`relayerd_backups_total{outcome="failure"}`) < 2 {
		t.Error("the failures are not counted")
	}
	server.expect("POST", collection, token, definitionOf("new"), http.StatusCreated)
	must(t, os.Chmod(directory, 0o700))
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

	server = start(t, token, "--db", database, "--backup", directory)
	if server.metric("relayerd_backup_last_success_timestamp_seconds") < 1e9 {
		t.Error("the time of the last backup is unknown")
	}
	server.stop()
	paths := backupsIn(t, directory)
	if len(paths) != 1 || strings.Contains(server.output.String(), written) {
		t.Fatalf("backups %q, want 1: the next is due in an hour: %s", paths, server.output)
	}

	// An old backup is followed at once. One that cannot be removed hinders neither the start nor the next.
	must(t, os.Rename(paths[0], filepath.Join(directory, "source.db.20200102T000000.000Z")))
	must(t, os.MkdirAll(filepath.Join(directory, "source.db.20200101T000000.000Z", "kept"), 0o700))
	server = start(t, token, "--db", database, "--backup", directory, "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	server.output.awaitText(t, `msg="old backups not removed"`, 1)
	server.stop()
}

// Files that are not backups of this database are not removed. A backup of a clock that was
// ahead takes the place of no other one, and delays none. A link leads to no other file.
func TestBackups_OtherFiles(t *testing.T) {
	t.Parallel()
	directory, tokens := t.TempDir(), newFile(t, password)
	const old, future = "source.db.20200101T000000.000Z", "source.db.29990101T000000.000Z"
	others := []string{"other.db.20200101T000000.000Z", "source.db", "source.db.20200101", "source.db.unfinished-1"}
	for _, name := range append(others, future, old) {
		must(t, os.Symlink(tokens, filepath.Join(directory, name)))
	}
	server := start(t, token, "--db", makeFile(t, 3), "--backup", directory, "--backup-keep", "1")
	server.output.awaitText(t, written, 1)
	server.stop()
	path := regexp.MustCompile(`msg="backup written" path=(\S+)`).FindStringSubmatch(server.output.String())[1]
	expectFiles(t, directory, others[0], others[1], others[2], filepath.Base(path), future, others[3])
	if after := string(fileContent(t, tokens)); after != password {
		t.Errorf("the linked file was changed to %q", after)
	}
}
