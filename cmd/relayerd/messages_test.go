package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each mistake of a person at the command line has a message with the next step.
func TestMessages_NextStep(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	in := func(name string) string { return filepath.Join(directory, name) }
	missing := in("missing")
	keys := keysFileIn(t, directory)
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	sealed, live := in("sealed.db"), in("live.db")
	server := start(t, token, "--db", sealed, "--keys", keys)
	server.expectStatus("POST", collection, token, sealedURL("a"), http.StatusCreated)
	server.stop()
	running := start(t, token, "--db", live)
	defer running.stop()

	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"remove the primary key":    {[]string{"keys", "remove", "--keys", keys, "--id", "k2", "--db", sealed}, "key k2 is in use by 1 relayer: start a server with another primary key"},
		"remove with a live file":   {[]string{"keys", "remove", "--keys", keys, "--id", "k2", "--db", live}, "stop the server that has it open, or name it with --server"},
		"remove an unknown key":     {[]string{"keys", "remove", "--keys", keys, "--id", "k9", "--db", sealed}, "(relayerd keys list shows the keys)"},
		"backup of PostgreSQL":      {[]string{"backup", "--db", "postgres://h/d", "--to", missing}, "--db must be a file: use pg_dump for PostgreSQL"},
		"backup to PostgreSQL":      {[]string{"backup", "--db", live, "--to", "postgres://h/d"}, "--to must be a file: use pg_dump for PostgreSQL"},
		"restore to PostgreSQL":     {[]string{"restore", "--from", sealed, "--db", "postgresql://h/d"}, "--db must be a file: use pg_restore for PostgreSQL"},
		"compact of PostgreSQL":     {[]string{"compact", "--db", "postgres://h/d"}, "--db must be a file: use VACUUM FULL for PostgreSQL"},
		"compact of a missing file": {[]string{"compact", "--db", missing}, "--db: there is no file " + missing},
		"postgresql":                {[]string{"serve", "--db", "postgresql"}, "--db needs the URL of a PostgreSQL database, such as postgres://user@host/database (for a file of this name, write ./postgresql)"},
		"postgres":                  {[]string{"copy", "--from", sealed, "--to", "postgres"}, "--to needs the URL of a PostgreSQL database"},
		"missing keys":              {[]string{"serve", "--keys", missing}, "--keys: there is no file " + missing + ": create it with relayerd keys add"},
		"missing tokens":            {[]string{"serve", "--tokens-file", missing}, "--tokens-file: there is no file " + missing + `: create it with a line "name token role" for each client`},
		"directory of tokens":       {[]string{"serve", "--tokens-file", directory}, "--tokens-file: " + directory + " is a directory: name a file"},
		"missing signers":           {[]string{"serve", "--signers", missing}, "--signers: there is no file " + missing + `: create it as a JSON object, such as {"treasury":{"evm":"0x…"}}`},
		"missing certificate":       {[]string{"serve", "--db", "memory", "--tls-cert", missing, "--tls-key", missing}, "no such file or directory: name PEM files of a certificate and its key"},
		"missing configuration":     {[]string{"plan", "--server", "https://x", "-f", missing}, "--file: there is no file " + missing + ": write one with relayerd export"},
		"arguments of backup":       {[]string{"backup", "a", "b"}, "unexpected argument: relayerd backup takes only flags (relayerd backup --help lists them)"},
		"argument of plan":          {[]string{"plan", "f.json"}, "relayerd plan takes only flags (relayerd plan --help"},
		"source of copy":            {[]string{"copy", "--db", "x"}, "unknown flag --db (relayerd copy --help lists the flags)"},
		"source of backup":          {[]string{"backup", "--from", "x", "--to", "y"}, "unknown flag --from (relayerd backup --help lists the flags)"},
		"apply without a terminal":  {[]string{"apply", "-f", "x", "--server", "https://x"}, "use --yes to apply without confirmation"},
		"bad RPC host":              {[]string{"serve", "--db", "memory", "--rpc-hosts", "https://u:" + password + "@h"}, "--rpc-hosts must be a comma-separated list of host names and networks"},
		"negative drain delay":      {[]string{"serve", "--db", "memory", "--drain-delay", "-1s"}, "--drain-delay must be 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			command, output := program("", c.args...), new(output)
			command.Stdout, command.Stderr = output, output
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() }).Stop()
			if err := command.Wait(); err == nil || !strings.Contains(output.String(), c.want) || strings.Count(output.String(), "\n") != 1 {
				t.Errorf("error %v: %swant one line with %s", err, output, c.want)
			}
			expectNoPassword(t, output.String())
		})
	}
}

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

// A narrowed token learns that an ID outside of its selector is taken.
func TestPlan_IDOutsideOfToken(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "ops "+oldToken+" write", "payments "+newToken+" write network=mainnet")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens)
	defer server.stop()
	server.expectStatus("POST", collection, oldToken, definition, http.StatusCreated)
	file := writeFile(t, `{"relayers":[{"id":"r-1","name":"n","network":"mainnet","network_type":"evm","paused":false,"signer_id":"s"}]}`)
	done := finish(t, "", program(newToken, "plan", "--server", server.url, "-f", file))
	if done.status != 1 || !strings.Contains(done.stdout, "the ID is taken by a relayer that this token or selector may not use") || strings.Contains(done.stdout, "already exists") {
		t.Errorf("%+v", done)
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
