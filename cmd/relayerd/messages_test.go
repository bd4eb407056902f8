package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExport_SelectorWithoutMatch(t *testing.T) {
	t.Parallel()
	url := emptyServer(t)
	expect(t, 0, "apply", "--yes", "--server", url, "-f", writeFile(t, publicConfig))
	if done := expect(t, 0, "export", "--server", url, "--selector", "network=none"); done.stderr != "no relayer matches --selector network=none\n" {
		t.Errorf("stderr %q", done.stderr)
	}
	if done := expect(t, 0, "export", "--server", url); done.stderr != "" {
		t.Errorf("stderr %q", done.stderr)
	}
}

// An unreadable file needs another user than root.
func TestInputError_Permission(t *testing.T) {
	err := inputError("--keys", "relayer.keys", "", os.ErrPermission)
	if want := "--keys: this user cannot read relayer.keys: change its owner or mode"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestRPCHosts_Flags(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags []string
		host  string
		want  int
	}{
		{nil, "127.0.0.1", http.StatusCreated},
		{[]string{"--rpc-public-only"}, "127.0.0.1", http.StatusBadRequest},
		{[]string{"--rpc-public-only"}, "rpc.example.com", http.StatusCreated},
		{[]string{"--rpc-hosts", "rpc.example.com, *.example.org,10.0.0.0/8"}, "rpc.example.com", http.StatusCreated},
		{[]string{"--rpc-hosts", "rpc.example.com, *.example.org,10.0.0.0/8"}, "a.example.org", http.StatusCreated},
		{[]string{"--rpc-hosts", "rpc.example.com, *.example.org,10.0.0.0/8"}, "10.1.2.3", http.StatusCreated},
		{[]string{"--rpc-hosts", "10.0.0.0/8"}, "rpc.example.com", http.StatusBadRequest},
		{[]string{"--rpc-public-only", "--rpc-hosts", "10.0.0.0/8"}, "10.1.2.3", http.StatusCreated},
	} {
		server := start(t, token, append(c.flags, "--db", "memory")...)
		body := strings.Replace(definition, "{", `{"custom_rpc_urls":[{"url":"https://`+c.host+`"}],`, 1)
		if status, response := server.do("POST", collection, body); status != c.want {
			t.Errorf("%q: %s returned %d, want %d: %s", c.flags, c.host, status, c.want, response)
		}
		server.stop()
	}
}

func TestWarning_SharedBackupDirectory(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	for _, c := range []struct {
		mode os.FileMode
		want bool
	}{{0o700, false}, {0o755, true}} {
		if err := os.Chmod(directory, c.mode); err != nil {
			t.Fatal(err)
		}
		server := start(t, token, "--db", filepath.Join(t.TempDir(), "relayers.db"), "--backup", directory)
		server.stop()
		warned := strings.Contains(server.output.String(), `msg="other users can read the backup directory: run chmod o-rwx" path=`+directory)
		if warned != c.want {
			t.Errorf("mode %o: %s", c.mode, server.output)
		}
	}
}
