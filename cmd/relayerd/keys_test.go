package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/keyring"
	"github.com/go-relayer/relayer/store/bolt"
	"github.com/go-relayer/relayer/store/sealed"
)

const (
	urlSecret = "Secret-of-a-URL-3b81"
	fullURL   = "https://rpc.example/" + urlSecret

	allSealed = `"all RPC URLs are under the primary key" `
	allClear  = `"all RPC URLs are in clear" `
)

// sealedURL is the definition of a relayer with an RPC URL.
func sealedURL(id string) string {
	return strings.Replace(definitionOf(id), "{", `{"custom_rpc_urls":[{"url":"`+fullURL+`"}],`, 1)
}

// keysFileIn creates a key file with one key.
func keysFileIn(t *testing.T, directory string) string {
	t.Helper()
	path := filepath.Join(directory, "relayer.keys")
	runCommand(t, "keys", "add", "--keys", path, "--id", "k1")
	return path
}

// sealedFile creates a database with sealed relayers, and its key file.
func sealedFile(t *testing.T, ids ...string) (database, keys string) {
	t.Helper()
	database, keys = filepath.Join(t.TempDir(), "relayers.db"), keysFileIn(t, t.TempDir())
	server := start(t, token, "--db", database, "--keys", keys)
	for _, id := range ids {
		server.expect("POST", collection, token, sealedURL(id), http.StatusCreated)
	}
	server.stop()
	return database, keys
}

// expectNoSecretIn checks that no file of a directory has a URL in clear.
func expectNoSecretIn(t *testing.T, directory string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) == 0 {
		t.Errorf("%d files, error %v", len(entries), err)
	}
	for _, entry := range entries {
		if bytes.Contains(fileContent(t, filepath.Join(directory, entry.Name())), []byte(urlSecret)) {
			t.Errorf("%s contains a URL in clear", entry.Name())
		}
	}
}

// keyNamed returns the name and the fingerprint of a key, as messages have them.
func keyNamed(t *testing.T, path, id string) string {
	t.Helper()
	ring := mustGet(keyring.Load(path))(t)
	for _, key := range ring.Keys() {
		if key.ID == id {
			return key.String()
		}
	}
	t.Fatalf("%s has no key %s", path, id)
	return ""
}

// secretOf returns the RPC URL of a relayer in a database, in clear.
func secretOf(t *testing.T, database, keys, id string) string {
	t.Helper()
	used := mustGet(readKeys(keys))(t)
	db := mustGet(bolt.Open(t.Context(), database))(t)
	defer func() { _ = db.Close() }()
	store := mustGet(sealed.New(db, used))(t)
	manager := mustGet(relayer.New(store))(t)
	urls, err := manager.RPCURLs(t.Context(), id)
	if err != nil || len(urls) != 1 {
		t.Fatalf("%s has the RPC URLs %v, error %v", id, urls, err)
	}
	return urls[0].URL.Unmasked()
}

func TestKeys_AddAndList(t *testing.T) {
	t.Parallel()
	path := keysFileIn(t, t.TempDir())
	must(t, os.Chmod(path, 0o640))
	expectList := func(first, second string) {
		t.Helper()
		want := keyNamed(t, path, first) + " primary\n" + keyNamed(t, path, second) + "\n"
		expectOutput(t, want, "keys", "list", "--keys", path)
	}
	runCommand(t, "keys", "add", "--keys", path, "--id", "k2")
	expectList("k2", "k1")
	// A rotation of several servers, and an add that was interrupted, make an existing key primary.
	runCommand(t, "keys", "add", "--keys", path, "--id", "k1")
	expectList("k1", "k2")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v with error %v, want 0640 as before", info.Mode(), err)
	}
	must(t, os.Chmod(path, 0o644))
	expectFailure(t, "chmod 600", "keys", "list", "--keys", path)
	fifo := filepath.Join(t.TempDir(), "fifo") // an open without a writer waits
	must(t, syscall.Mkfifo(fifo, 0o600))
	expectFailure(t, "must be a regular file", "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--keys", fifo)
	expectFailure(t, "must be a regular file", "keys", "add", "--keys", fifo, "--id", "k2")
}

// No command writes a URL in clear, and check counts the URLs by key.
func TestServe_Keys(t *testing.T) {
	t.Parallel()
	database, keys := sealedFile(t, "a")
	directory := filepath.Dir(database)
	runCommand(t, "backup", "--db", database, "--to", filepath.Join(directory, "backup.db"))
	runCommand(t, "copy", "--from", database, "--to", filepath.Join(directory, "copy.db"))
	runCommand(t, "compact", "--db", database)
	expectNoSecretIn(t, directory)
	want := "no damage found in 1 relayer\nRPC URLs of 0 relayers are in clear\nRPC URLs of 1 relayer are under key " + keyNamed(t, keys, "k1") + "\n"
	for _, name := range []string{"relayers.db", "backup.db", "copy.db"} {
		path := filepath.Join(directory, name)
		expectOutput(t, want, "check", "--db", path)
		if url := secretOf(t, path, keys, "a"); url != fullURL {
			t.Errorf("%s: the URL is %s", name, url)
		}
	}
}

// Without --keys, a server of sealed relayers does all that needs no full URL, also if a relayer is
// damaged.
func TestServe_WithoutKeys(t *testing.T) {
	t.Parallel()
	database, _ := sealedFile(t, "a", "damaged")
	damage(t, database, "damaged")
	server := start(t, token, "--db", database)
	server.output.awaitText(t, "--keys is not set", 1)
	server.expect("GET", collection+"/a", token, "", http.StatusOK)
	server.expect("PATCH", collection+"/a", token, `{"paused":true,"name":"m"}`, http.StatusOK)
	server.expect("PATCH", collection+"/a", token, `{"custom_rpc_urls":[{"url":"`+fullURL+`"}]}`, http.StatusServiceUnavailable)
	server.expect("POST", collection, token, sealedURL("b"), http.StatusServiceUnavailable)
	server.expect("POST", collection, token, definition, http.StatusCreated)
	server.expect("DELETE", collection+"/a", token, "", http.StatusOK)
	server.stop()
	expectNoSecretIn(t, filepath.Dir(database))
}

// A part that somebody without the keys has written in clear is neither served nor sealed.
func TestServe_RequireSealed(t *testing.T) {
	t.Parallel()
	database, keys := sealedFile(t, "a")
	server := start(t, token, "--db", database, "--keys", keys, "--unseal")
	server.expect("POST", collection, token, sealedURL("forged"), http.StatusCreated)
	server.output.awaitText(t, allClear+"stored=1", 1)
	server.expect("PATCH", collection+"/a", token, `{"custom_rpc_urls":null}`, http.StatusOK)
	server.stop()

	tokens := newTokens(t, "operator "+oldToken+" write", "engine "+token+" engine")
	server = start(t, "", "--db", database, "--keys", keys, "--tokens-file", tokens, "--require-sealed")
	server.output.awaitText(t, "--require-sealed names a relayer\" relayers=1", 1)
	server.expect("POST", collection, oldToken, sealedURL("b"), http.StatusCreated)
	if body := server.expect("GET", collection+"?rpc_urls=full", token, "", http.StatusOK); strings.Count(body, urlSecret) != 1 || !strings.Contains(body, `"sealed":["forged"]`) {
		t.Errorf("the engine gets %s", body)
	}
	server.output.awaitText(t, "not all RPC URLs are under the primary key", 1)
	server.stop()
	if output := runCommand(t, "check", "--db", database); !strings.Contains(output, "RPC URLs of 1 relayer are in clear\n") {
		t.Errorf("check prints %q", output)
	}
	expectFailure(t, "--db: relayer: the private part of forged is in clear and must be sealed", "check", "--db", database, "--require-sealed")
}

// Only the keys show that a sealed part is that of another relayer.
func TestCheck_SwappedPart(t *testing.T) {
	t.Parallel()
	database, keys := sealedFile(t, "a", "b", "c")
	runCommand(t, "check", "--db", database, "--keys", keys)
	store := mustGet(bolt.Open(t.Context(), database))(t)
	defer store.Close()
	a, errA := store.Get(t.Context(), "a")
	b, errB := store.Get(t.Context(), "b")
	a.Private, b.Private = b.Private, a.Private
	_, errOfA := store.Update(t.Context(), a)
	_, errOfB := store.Update(t.Context(), b)
	must(t, errors.Join(errA, errB, errOfA, errOfB, store.Close()))
	runCommand(t, "check", "--db", database)
	expectFailure(t, "--db: relayer: opening the RPC URLs of a: ", "check", "--db", database, "--keys", keys)
	expectFailure(t, " (the first of 2 relayers)", "check", "--db", database, "--keys", keys)
}

// A key file with the right name and the wrong value is noticed before anything is sealed
// under it, at the start and by a reload.
func TestKeys_OtherKeyOfTheSameName(t *testing.T) {
	t.Parallel()
	database, keys := sealedFile(t, "a")
	other := keysFileIn(t, t.TempDir())
	right := string(fileContent(t, keys))
	server := start(t, token, "--db", database, "--keys", keys)
	writeFile(t, keys, string(fileContent(t, other)))
	server.reload(`stays in use" flag=--keys`)
	server.expect("POST", collection, token, sealedURL("b"), http.StatusCreated)
	server.stop()
	writeFile(t, keys, right)
	for _, path := range []string{keys, other} {
		name := keyNamed(t, path, "k1")
		fingerprint := strings.Trim(name[strings.LastIndexAny(name, " (")+1:], ")")
		if !strings.Contains(server.output.String(), fingerprint) {
			t.Errorf("the log does not have the fingerprint %s: %s", fingerprint, server.output)
		}
		expectFailure(t, fingerprint, "serve", "--addr", "127.0.0.1:0", "--db", database, "--keys", other)
		expectFailure(t, fingerprint, "check", "--db", database, "--keys", other)
	}
	runCommand(t, "check", "--db", database, "--keys", keys, "--require-sealed")
}

// A reload keeps a key that seals RPC URLs, of which the server may have the only copy, and drops an
// unused key.
func TestKeys_ReloadWithoutUsedKey(t *testing.T) {
	t.Parallel()
	database, keys := sealedFile(t, "a")
	lost := keyNamed(t, keys, "k1")
	server := start(t, "", "--db", database, "--keys", keys, "--tokens-file", newTokens(t, "operator "+token+" write+engine"))
	must(t, os.Remove(keys))
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.reload(`stays in use" flag=--keys error="--keys: the file lacks key ` + lost + ", which seals RPC URLs of 1 relayer: put it back")
	if body := server.expect("GET", collection+"/a?rpc_urls=full", token, "", http.StatusOK); !strings.Contains(body, urlSecret) {
		t.Errorf("the RPC URL is lost: %s", body)
	}
	server.expect("DELETE", collection+"/a", token, "", http.StatusOK)
	server.reload(`file reloaded" flag=--keys`)
	server.expect("POST", collection, token, sealedURL("b"), http.StatusCreated)
	server.stop()
	if url := secretOf(t, database, keys, "b"); url != fullURL {
		t.Errorf("the URL is %s", url)
	}
}

// A server seals in the background at the start and after a reload of the keys, and unseals. A key
// in use is not removed.
func TestServe_RotateKeys(t *testing.T) {
	t.Parallel()
	const relayers = 20
	keys, database := keysFileIn(t, t.TempDir()), filepath.Join(t.TempDir(), "relayers.db")
	tokens := newTokens(t, "ops "+token+" write+backup")
	run := func(flags ...string) *process {
		return start(t, "", append(flags, "--db", database, "--tokens-file", tokens)...)
	}
	server := run()
	for i := range relayers {
		server.expect("POST", collection, token, sealedURL(fmt.Sprint("r", i)), http.StatusCreated)
	}
	server.stop()

	server = run("--keys", keys)
	server.output.awaitText(t, allSealed+"stored=20 primary=k1", 1)
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.reload(allSealed + "stored=20 primary=k2")
	good := string(fileContent(t, keys))
	writeFile(t, keys, "x")
	server.reload(`stays in use" flag=--keys`)
	server.expect("POST", collection, token, sealedURL("last"), http.StatusCreated)
	writeFile(t, keys, good)
	expectFailure(t, "key k2 is in use by 21 relayers", "keys", "remove", "--keys", keys, "--id", "k2", "--server", server.url)
	expectFailure(t, "key k9", "keys", "remove", "--keys", keys, "--id", "k9", "--server", server.url)
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k1")
	server.output.awaitText(t, allSealed+"stored=21 primary=k1", 1)
	runCommand(t, "keys", "remove", "--keys", keys, "--id", "k2", "--server", server.url)
	server.stop()
	expectFiles(t, filepath.Dir(keys), "relayer.keys")

	runCommand(t, "keys", "add", "--keys", keys, "--id", "k3")
	expectFailure(t, "key k1 is in use by 21 relayers", "keys", "remove", "--keys", keys, "--id", "k1", "--db", database)
	runCommand(t, "compact", "--db", database)
	expectNoSecretIn(t, filepath.Dir(database))
	if url := secretOf(t, database, keys, "r7"); url != fullURL {
		t.Errorf("after the rotation the URL is %s", url)
	}
	server = run("--keys", keys, "--unseal")
	server.output.awaitText(t, allClear+"stored=21", 1)
	server.stop()
	if url := secretOf(t, database, "", "r7"); url != fullURL {
		t.Errorf("after --unseal the URL is %s", url)
	}
}

// A server tries again what it could not seal, without a restart or a signal.
func TestServe_RetriesResealing(t *testing.T) {
	t.Parallel()
	database, _ := sealedFile(t, "a")
	lost := filepath.Join(t.TempDir(), "other.keys")
	runCommand(t, "keys", "add", "--keys", lost, "--id", "k2")
	server := start(t, token, "--db", database, "--keys", lost)
	server.output.awaitText(t, `"not all RPC URLs are under the primary key" stored=0 failed=1`, 1)
	server.expect("PATCH", collection+"/a", token, `{"custom_rpc_urls":[{"url":"`+fullURL+`"}]}`, http.StatusOK)
	server.output.awaitText(t, allSealed, 1)
	server.stop()
}

// Sealing is turned on without a server that cannot open what another one has sealed.
func TestPostgres_TurnSealingOn(t *testing.T) {
	t.Parallel()
	flags := []string{"--db", newDatabase(t), "--tokens-file", newTokens(t, "operator "+token+" write+engine"), "--keys", keysFileIn(t, t.TempDir())}
	first, second := start(t, "", append(flags, "--unseal")...), start(t, "", append(flags, "--unseal")...)
	first.expect("POST", collection, token, sealedURL("a"), http.StatusCreated)
	first.stop()
	first = start(t, "", flags...)
	first.output.awaitText(t, allSealed+"stored=1", 1)
	if body := second.expect("GET", collection+"/a?rpc_urls=full", token, "", http.StatusOK); !strings.Contains(body, urlSecret) {
		t.Errorf("the server with --unseal does not open a sealed URL: %s", body)
	}
	second.expect("POST", collection, token, sealedURL("b"), http.StatusCreated)
	second.stop()
	second = start(t, "", flags...)
	second.output.awaitText(t, allSealed+"stored=1", 1)
	first.stop()
	second.stop()
}
