//go:build unix

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
)

// sealedURL is the definition of a relayer with an RPC URL.
func sealedURL(id string) string {
	return `{"id":"` + id + `","name":"n","network":"x","network_type":"evm","paused":false,"signer_id":"s",` +
		`"custom_rpc_urls":[{"url":"` + fullURL + `"}]}`
}

// keysFileIn creates a key file with one key.
func keysFileIn(t *testing.T, directory string) string {
	t.Helper()
	path := filepath.Join(directory, "relayer.keys")
	runCommand(t, "keys", "add", "--keys", path, "--id", "k1")
	return path
}

// expectNoSecretIn checks that no file of a directory has a URL in clear.
func expectNoSecretIn(t *testing.T, directory string) {
	t.Helper()
	count := 0
	err := filepath.Walk(directory, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		count++
		if data := readFile(t, path); bytes.Contains(data, []byte(urlSecret)) {
			t.Errorf("%s contains a URL in clear", path)
		}
		return nil
	})
	if err != nil || count == 0 {
		t.Errorf("%d files were read; error %v", count, err)
	}
}

// keyNamed returns the name and the fingerprint of a key, as messages have them.
func keyNamed(t *testing.T, path, id string) string {
	t.Helper()
	for _, key := range loadKeys(t, path) {
		if key.ID == id {
			return key.String()
		}
	}
	t.Fatalf("%s has no key %s", path, id)
	return ""
}

func loadKeys(t *testing.T, path string) []sealed.Key {
	t.Helper()
	ring, err := keyring.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return ring.Keys()
}

func expectNoURL(t *testing.T, log string) {
	t.Helper()
	if strings.Contains(log, urlSecret) {
		t.Errorf("the log has a URL:\n%s", log)
	}
}

// secretOf returns the RPC URL of a relayer in a database, in clear.
func secretOf(t *testing.T, database, keys, id string) string {
	t.Helper()
	used, err := (&sealing{keysFile: keys}).keys()
	if err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := sealed.New(db, used)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	urls, err := manager.RPCURLs(t.Context(), id)
	if err != nil || len(urls) != 1 {
		t.Fatalf("%s has the RPC URLs %v, error %v", id, urls, err)
	}
	return urls[0].URL.Unmasked()
}

func TestKeys_Commands(t *testing.T) {
	directory := t.TempDir()
	path := keysFileIn(t, directory)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "keys", "add", "--keys", path, "--id", "k2")
	want := keyNamed(t, path, "k2") + " primary\n" + keyNamed(t, path, "k1") + "\n"
	if output := runCommand(t, "keys", "list", "--keys", path); output != want {
		t.Errorf("the list is %q, want %q", output, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v with error %v, want 0640 as before", info.Mode(), err)
	}
	expectFailure(t, "key k2 exists", "keys", "add", "--keys", path, "--id", "k2")
	// An add that was interrupted, and a rotation of several servers, need an older key as primary.
	if output := runCommand(t, "keys", "add", "--keys", path, "--id", "k1"); output != "made primary the key k1\n" {
		t.Errorf("the output is %q", output)
	}
	if output := runCommand(t, "keys", "list", "--keys", path); !strings.HasPrefix(output, keyNamed(t, path, "k1")+" primary\n") {
		t.Errorf("the list is %q", output)
	}
	expectFailure(t, `required flag(s) "id" not set`, "keys", "add", "--keys", path)
	expectFailure(t, "--keys: there is no file "+path+"-missing: create it with relayerd keys add", "keys", "list", "--keys", path+"-missing")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, "chmod 600", "keys", "list", "--keys", path)
	for line := range strings.Lines(string(readFile(t, path))) {
		if fields := strings.Fields(line); fields[0] == "key" && strings.Contains(runKeysList(path), fields[2]) {
			t.Error("the output has a key")
		}
	}
}

func runKeysList(path string) string {
	output, _ := program("", "keys", "list", "--keys", path).CombinedOutput()
	return string(output)
}

func TestServe_Keys(t *testing.T) {
	directory := t.TempDir()
	keys := keysFileIn(t, t.TempDir())
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.expectStatus("POST", collection, token, sealedURL("b"), http.StatusCreated)
	server.expectStatus("PATCH", collection+"/a", token, `{"paused":true}`, http.StatusOK)
	server.expectStatus("DELETE", collection+"/b", token, "", http.StatusOK)
	server.stop()
	runCommand(t, "backup", "--db", database, "--to", filepath.Join(directory, "backup.db"))
	runCommand(t, "copy", "--from", database, "--to", filepath.Join(directory, "copy.db"))
	runCommand(t, "compact", "--db", database)
	expectNoSecretIn(t, directory)
	want := "no damage found in 1 relayer\nRPC URLs of 0 relayers are in clear\nRPC URLs of 1 relayer are under key " + keyNamed(t, keys, "k1") + "\n"
	for _, name := range []string{"relayers.db", "backup.db", "copy.db"} {
		path := filepath.Join(directory, name)
		if output := runCommand(t, "check", "--db", path); output != want {
			t.Errorf("%s: %q", name, output)
		}
		if url := secretOf(t, path, keys, "a"); url != fullURL {
			t.Errorf("%s: the URL is %s", name, url)
		}
	}
}

// Without --keys, a server of sealed relayers does all that needs no full URL.
func TestServe_WithoutKeys(t *testing.T) {
	keys := keysFileIn(t, t.TempDir())
	directory := t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()

	server = start(t, token, "--db", database)
	server.output.awaitText(t, "--keys is not set", 1)
	server.expectStatus("GET", collection, token, "", http.StatusOK)
	server.expectStatus("GET", collection+"/a", token, "", http.StatusOK)
	server.expectStatus("PATCH", collection+"/a", token, `{"paused":true,"name":"m"}`, http.StatusOK)
	server.expectStatus("PATCH", collection+"/a", token, `{"custom_rpc_urls":[{"url":"`+fullURL+`"}]}`, http.StatusServiceUnavailable)
	server.expectStatus("POST", collection, token, sealedURL("b"), http.StatusServiceUnavailable)
	server.expectStatus("POST", collection, token, definition, http.StatusCreated)
	server.expectStatus("DELETE", collection+"/a", token, "", http.StatusOK)
	server.stop()
	expectNoURL(t, server.output.String())
	expectNoSecretIn(t, directory)
}

// A damaged relayer does not hide that the others are sealed.
func TestServe_WithoutKeysDamagedRelayer(t *testing.T) {
	keys := keysFileIn(t, t.TempDir())
	directory := t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.expectStatus("POST", collection, token, sealedURL("b"), http.StatusCreated)
	server.stop()
	damageRelayer(t, database, "a")

	server = start(t, token, "--db", database)
	server.expectStatus("POST", collection, token, sealedURL("c"), http.StatusServiceUnavailable)
	server.stop()
	expectNoSecretIn(t, directory)
}

// A part that somebody without the keys has written in clear is neither served nor sealed.
func TestServe_RequireSealed(t *testing.T) {
	keys, directory := keysFileIn(t, t.TempDir()), t.TempDir()
	database, tokens := filepath.Join(directory, "relayers.db"), filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "operator "+oldToken+" write", "engine "+token+" engine")
	server := start(t, "", "--db", database, "--keys", keys, "--tokens-file", tokens)
	server.expectStatus("POST", collection, oldToken, sealedURL("a"), http.StatusCreated)
	server.stop()
	server = start(t, "", "--db", database, "--keys", keys, "--tokens-file", tokens)
	server.output.awaitText(t, "all RPC URLs are sealed: --require-sealed refuses", 1)
	server.stop()

	server = start(t, "", "--db", database, "--tokens-file", tokens, "--unseal", "--keys", keys)
	server.expectStatus("POST", collection, oldToken, sealedURL("forged"), http.StatusCreated)
	server.output.awaitText(t, `"all RPC URLs are in clear" stored=1`, 1)
	server.expectStatus("PATCH", collection+"/a", oldToken, `{"custom_rpc_urls":null}`, http.StatusOK)
	server.stop()

	flags := []string{"--db", database, "--keys", keys, "--tokens-file", tokens, "--require-sealed"}
	server = start(t, "", flags...)
	server.output.awaitText(t, `"a relayer is damaged" relayer_id=forged `, 1)
	server.output.awaitText(t, "sealed=0 clear=1", 1)
	server.expectStatus("POST", collection, oldToken, sealedURL("b"), http.StatusCreated)
	if status, body := server.do("GET", collection+"?rpc_urls=full", ""); status != http.StatusOK || strings.Count(body, urlSecret) != 1 || !strings.Contains(body, `"sealed":["forged"]`) {
		t.Errorf("the engine gets status %d and %s", status, body)
	}
	server.expectStatus("PATCH", collection+"/forged", oldToken, `{"paused":true}`, http.StatusOK)
	server.output.awaitText(t, "not all RPC URLs are under the primary key", 1)
	server.expectStatus("GET", collection+"?rpc_urls=full", oldToken, "", http.StatusForbidden)
	server.output.awaitText(t, "full RPC URLs requested", 1)
	server.output.awaitText(t, `msg="request forbidden" `, 1)
	server.stop()
	expectNoURL(t, server.output.String())
	if output := runCommand(t, "check", "--db", database); !strings.Contains(output, "RPC URLs of 1 relayer are in clear\n") {
		t.Errorf("check prints %q", output)
	}
	expectFailure(t, "--db: relayer: the private part of forged is in clear and must be sealed", "check", "--db", database, "--require-sealed")
	expectFailure(t, "[unseal require-sealed] are set none of the others", "serve", "--db", database, "--keys", keys, "--require-sealed", "--unseal")
}

// Only the keys show that a sealed part is that of another relayer.
func TestCheck_SwappedPart(t *testing.T) {
	keys, database := keysFileIn(t, t.TempDir()), filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	for _, id := range []string{"a", "b", "c"} {
		server.expectStatus("POST", collection, token, sealedURL(id), http.StatusCreated)
	}
	server.stop()
	runCommand(t, "check", "--db", database, "--keys", keys)
	store, err := bolt.Open(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	a, errA := store.Get(t.Context(), "a")
	b, errB := store.Get(t.Context(), "b")
	a.Private, b.Private = b.Private, a.Private
	_, errOfA := store.Update(t.Context(), a)
	_, errOfB := store.Update(t.Context(), b)
	if err := errors.Join(errA, errB, errOfA, errOfB, store.Close()); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "check", "--db", database)
	expectFailure(t, "--db: relayer: opening the RPC URLs of a: ", "check", "--db", database, "--keys", keys)
	expectFailure(t, " (the first of 2 relayers)", "check", "--db", database, "--keys", keys)
}

// A key file with the right name and the wrong value is noticed before anything is sealed
// under it.
func TestKeys_OtherKeyOfTheSameName(t *testing.T) {
	keys, other, directory := keysFileIn(t, t.TempDir()), keysFileIn(t, t.TempDir()), t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	right := readFile(t, keys)
	if err := os.WriteFile(keys, readFile(t, other), 0o600); err != nil {
		t.Fatal(err)
	}
	server.reload("stays in use\" flag=--keys")
	if err := os.WriteFile(keys, right, 0o600); err != nil {
		t.Fatal(err)
	}
	server.expectStatus("POST", collection, token, sealedURL("b"), http.StatusCreated)
	server.stop()
	fingerprints := []string{loadKeys(t, keys)[0].Fingerprint, loadKeys(t, other)[0].Fingerprint}
	for _, fingerprint := range fingerprints {
		if !strings.Contains(server.output.String(), fingerprint) {
			t.Errorf("the log does not have the fingerprint %s", fingerprint)
		}
		expectFailedStart(t, fingerprint, "--db", database, "--keys", other)
		expectFailure(t, fingerprint, "check", "--db", database, "--keys", other)
	}
	expectFailure(t, "--db: relayer: opening the RPC URLs of a: ", "check", "--db", database, "--keys", other)
	runCommand(t, "check", "--db", database, "--keys", keys, "--require-sealed")
}

// An open of a FIFO without a writer waits.
func TestKeys_NotRegular(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, "must be a regular file", "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--keys", fifo)
	expectFailure(t, "must be a regular file", "keys", "add", "--keys", fifo, "--id", "k2")

	keys := keysFileIn(t, t.TempDir())
	server := start(t, token, "--db", "memory", "--keys", keys)
	if err := os.Rename(fifo, keys); err != nil {
		t.Fatal(err)
	}
	server.reload("stays in use\" flag=--keys")
	server.stop()
}

// A server seals in the background at the start and after a reload of the keys.
func TestServe_RotateKeys(t *testing.T) {
	const relayers = 20
	keys, directory := keysFileIn(t, t.TempDir()), t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database)
	for i := range relayers {
		server.expectStatus("POST", collection, token, sealedURL(fmt.Sprint("r", i)), http.StatusCreated)
	}
	server.stop()

	server = start(t, token, "--db", database, "--keys", keys)
	server.output.awaitText(t, "stored=20 primary=k1", 1)

	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.reload("stored=20 primary=k2")

	if err := os.WriteFile(keys+".bad", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := readFile(t, keys)
	if err := os.Rename(keys+".bad", keys); err != nil {
		t.Fatal(err)
	}
	server.reload("stays in use\" flag=--keys")
	server.expectStatus("POST", collection, token, sealedURL("last"), http.StatusCreated)
	if err := os.WriteFile(keys, good, 0o600); err != nil {
		t.Fatal(err)
	}
	server.stop()
	expectNoURL(t, server.output.String())

	if output := runCommand(t, "check", "--db", database); !strings.HasSuffix(output, "RPC URLs of 0 relayers are in clear\nRPC URLs of 21 relayers are under key "+keyNamed(t, keys, "k2")+"\n") {
		t.Errorf("check prints %q", output)
	}
	runCommand(t, "keys", "remove", "--keys", keys, "--id", "k1", "--db", database)
	if url := secretOf(t, database, keys, "r7"); url != fullURL {
		t.Errorf("after the rotation the URL is %s", url)
	}
	runCommand(t, "compact", "--db", database)
	expectNoSecretIn(t, directory)
}

// A reload of the keys while the database is away is repeated until it is back.
func TestServe_KeysWhileDatabaseAway(t *testing.T) {
	t.Parallel()
	postgres, keys := startPostgres(t), keysFileIn(t, t.TempDir())
	server := start(t, token, "--db", location(t, postgres, "postgres"), "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("one"), http.StatusCreated)
	if err := postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	server.reload(`stays in use" flag=--keys`)
	if err := postgres.Restart(); err != nil {
		t.Fatal(err)
	}
	server.output.awaitText(t, "stored=1 primary=k2", 1)
	server.stop()
	if count := strings.Count(server.output.String(), `stays in use" flag=--keys`); count > 2 { // the change of the file, and SIGHUP
		t.Errorf("the log has the failure %d times", count)
	}
}

// An operator who rotates by restarts waits for this line too.
func TestServe_KeysNothingToSeal(t *testing.T) {
	server := start(t, token, "--db", "memory", "--keys", keysFileIn(t, t.TempDir()))
	server.output.awaitText(t, `"all RPC URLs are under the primary key" stored=0 primary=k1`, 1)
	server.stop()
}

// A server tries again what it could not seal, without a restart or a signal.
func TestServe_RetriesResealing(t *testing.T) {
	keys, directory := keysFileIn(t, t.TempDir()), t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()

	lost := filepath.Join(directory, "other.keys")
	runCommand(t, "keys", "add", "--keys", lost, "--id", "k2")
	server = start(t, token, "--db", database, "--keys", lost)
	server.output.awaitText(t, "retry_in=1s", 1)
	server.expectStatus("PATCH", collection+"/a", token, `{"custom_rpc_urls":[{"url":"`+fullURL+`"}]}`, http.StatusOK)
	server.output.awaitText(t, "all RPC URLs are under the primary key", 1)
	server.stop()
	expectNoURL(t, server.output.String())
}

func TestSealingPage_CommandsExist(t *testing.T) {
	count := 0
	for line := range strings.Lines(string(readFile(t, "../../docs/security.md"))) {
		if args, ok := strings.CutPrefix(line, "relayerd "); ok {
			command, _, _ := strings.Cut(args, "#")
			expectCommandExists(t, strings.Fields(command))
			count++
		}
	}
	if count < 4 {
		t.Errorf("the page has %d commands of relayerd", count)
	}
}

func TestKeysRemove_KeyInUse(t *testing.T) {
	keys, directory := keysFileIn(t, t.TempDir()), t.TempDir()
	database := filepath.Join(directory, "relayers.db")
	server := start(t, token, "--db", database, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "saver "+token+" backup")
	expectFailure(t, "key k1 is in use by 1 relayer", "keys", "remove", "--keys", keys, "--id", "k1", "--db", database)
	server = start(t, "", "--db", database, "--tokens-file", tokens)
	expectFailureWith(t, "key k1 is in use by 1 relayer", token, "keys", "remove", "--keys", keys, "--id", "k1", "--server", server.url)
	server.stop()
	server = start(t, "", "--db", database, "--keys", keys, "--tokens-file", tokens)
	server.output.awaitText(t, "stored=1 primary=k2", 1)
	expectFailure(t, "stop the server that has it open", "keys", "remove", "--keys", keys, "--id", "k1", "--db", database)
	expectFailureWith(t, "key k9", token, "keys", "remove", "--keys", keys, "--id", "k9", "--server", server.url)
	expectFailureWith(t, "key k2 is in use by 1 relayer", token, "keys", "remove", "--keys", keys, "--id", "k2", "--server", server.url)
	t.Chdir(t.TempDir())
	expect(t, 0, "keys", "remove", "--keys", keys, "--id", "k1", "--server", server.url)
	expectFiles(t, ".")
	server.stop()
	if url := secretOf(t, database, keys, "a"); url != fullURL {
		t.Errorf("the URL is %s", url)
	}
}

// A server seals and unseals what is stored. Unused pages keep the earlier form until compact.
func TestServe_SealAndUnseal(t *testing.T) {
	keys, database := keysFileIn(t, t.TempDir()), filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", database)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()
	for _, c := range []struct {
		flag, logged string
		isClear      bool
	}{{"--network-rules", "all RPC URLs are under the primary key", false}, {"--unseal", "all RPC URLs are in clear", true}} {
		server := start(t, token, "--db", database, "--keys", keys, c.flag)
		server.output.awaitText(t, c.logged, 1)
		server.stop()
		runCommand(t, "compact", "--db", database)
		if file := readFile(t, database); bytes.Contains(file, []byte(urlSecret)) != c.isClear || !bytes.Contains(file, []byte("https://rpc.example/***")) {
			t.Errorf("after %s the file has no masked URL, or not the right URL in clear", c.flag)
		}
	}
	if url := secretOf(t, database, "", "a"); url != fullURL {
		t.Errorf("after --unseal the URL is %s", url)
	}
}

// Sealing is turned on without a server that cannot open what another one has sealed.
func TestPostgres_TurnSealingOn(t *testing.T) {
	t.Parallel()
	database, keys, tokens := location(t, startPostgres(t), "postgres"), keysFileIn(t, t.TempDir()), filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "operator "+token+" write+engine")
	flags := []string{"--db", database, "--tokens-file", tokens, "--keys", keys}
	first, second := start(t, "", append(flags, "--unseal")...), start(t, "", append(flags, "--unseal")...)
	first.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	first.stop()

	first = start(t, "", flags...)
	first.output.awaitText(t, `"all RPC URLs are under the primary key" stored=1`, 1)
	if _, body := second.do("GET", collection+"/a?rpc_urls=full", ""); !strings.Contains(body, urlSecret) {
		t.Errorf("the server with --unseal does not open a sealed URL: %s", body)
	}
	second.expectStatus("POST", collection, token, sealedURL("b"), http.StatusCreated)
	second.stop()

	second = start(t, "", flags...)
	second.output.awaitText(t, `"all RPC URLs are under the primary key" stored=1`, 1)
	first.stop()
	second.stop()
	if output := runCommand(t, "check", "--db", database); !strings.Contains(output, "RPC URLs of 0 relayers are in clear\n") {
		t.Errorf("check prints %q", output)
	}
}
