package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/bolt"
)

// A damaged relayer does not take the others down, and a DELETE removes it.
func TestServe_DamagedRelayer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "relayers.db")
	server := start(t, token, "--db", path)
	var ids []string
	for _, document := range createAll(t, server, realRelayers(t)[:3]) {
		var created struct{ ID string }
		if err := json.Unmarshal([]byte(document), &created); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, created.ID)
	}
	server.stop()
	other, damaged := ids[0], ids[1]
	damageRelayer(t, path, damaged)

	server = start(t, token, "--db", path)
	for request, want := range map[string]int{
		"GET " + collection + "/" + other:   http.StatusOK,
		"GET " + collection + "/" + damaged: http.StatusServiceUnavailable,
		"GET " + collection:                 http.StatusServiceUnavailable,
		"GET " + collection + "?per_page=1": http.StatusOK,
		"GET " + readinessPath:              http.StatusOK,
	} {
		method, target, _ := strings.Cut(request, " ")
		if status := statusOf(server, method, target); status != want {
			t.Errorf("%s: status %d, want %d", request, status, want)
		}
	}
	total := 0.0
	for _, networkType := range []string{"evm", "solana", "stellar"} {
		for _, isPaused := range []string{"true", "false"} {
			for _, isDisabled := range []string{"true", "false"} {
				total += server.metric(`relayerd_relayers{network_type="` + networkType + `",paused="` + isPaused + `",system_disabled="` + isDisabled + `"}`)
			}
		}
	}
	if total != 2 {
		t.Errorf("%v relayers are counted, want the 2 that are not damaged", total)
	}
	if status := statusOf(server, http.MethodDelete, collection+"/"+damaged); status/100 != 2 {
		t.Errorf("DELETE: status %d", status)
	}
	if status := statusOf(server, http.MethodGet, collection); status != http.StatusOK {
		t.Errorf("list after the delete: status %d", status)
	}
	server.stop()
	store, err := bolt.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// damageRelayer changes a byte of a relayer in a database file, and of its older copies in
// pages that were freed.
func damageRelayer(t *testing.T, path, id string) {
	t.Helper()
	name := []byte(`"id":"` + id + `","name":"`)
	content := bytes.ReplaceAll(readFile(t, path), name, append(name[:len(name)-1:len(name)-1], '\''))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func statusOf(server *process, method, target string) int {
	status, _ := server.do(method, target, "")
	return status
}
