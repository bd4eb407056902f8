package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mistakes are command lines with a mistake, and a part of the message: what is wrong and what to
// do. In a line, {name} is a file of that name, and {secret} is the password. Serve has a free port
// and memory as its database unless the line says otherwise.
var mistakes = []struct{ line, want string }{
	// Commands, flags and arguments.
	{"serv", "unknown command or argument (relayerd --help lists the commands and flags)"},
	{"keys use", "unknown command or argument (relayerd keys --help lists the commands and flags)"},
	{"postgres://u:{secret}@h/d", "unknown command or argument"},
	{"serve {vacant}", "unknown command or argument (relayerd serve --help lists the commands and flags)"},
	{"serve --port 1", "unknown flag --port (relayerd serve --help lists the flags)"},
	{"serve -db x", "unknown flag: flags begin with two dashes (relayerd serve --help lists the flags)"},
	{"serve --postgres://u:{secret}@h/d", "unknown flag (relayerd serve --help lists the flags)"},
	{"serve --rate", "--rate needs a value of the type int (relayerd serve --help lists the flags)"},
	{"serve --rate postgres://u:{secret}@h/d", "--rate needs a value of the type int (relayerd serve --help lists the flags)"},
	{"serve --rate 2147483648", "--rate must be from 0 to 2147483647"},
	{"serve --backup-every 3", "--backup-every needs a value of the type duration"},
	{"serve --rate -1", "--rate must be from 0 to 2147483647"},
	{"serve --drain-delay -1s", "--drain-delay must be 0 or more"},
	{"serve --log-format xml", "--log-format must be text or json"},
	{"serve --log-level all", "--log-level must be info or debug"},
	{"serve --history 1ns", "--history must be 0 or at least 1s"},
	{"serve --db memory --history 0", "--history must not be set for memory: it retains 1,024 changes"},
	// Addresses.
	{"serve --addr localhost", "--addr must be host:port"},
	{"serve --addr u:{secret}@h/d", "--addr must be host:port"},
	{"serve --addr 127.0.0.1:99999", "(choose another address with --addr)"},
	{"serve --addr {address}", "address already in use (choose another address with --addr)"},
	{"serve --metrics-addr {address}", "address already in use (choose another address with --metrics-addr)"},
	{"healthcheck --addr 127.0.0.1:1", "127.0.0.1:1 is not ready: dial tcp 127.0.0.1:1: connect: connection refused"},
	// Databases.
	{"serve --db=", "--db is empty (relayerd serve --help lists the flags)"},
	{"serve --db {locked}", "stop the server that has it open"},
	{"serve --db {text}", "{text}"},
	{"serve --db {missing}/x.db", "no such file or directory: name an existing file, and for a new one an existing directory"},
	{"serve --db postgres://u:%zz{secret}@h/d", "invalid connection string"},
	{"check --db {missing}", "{missing}: no such file or directory: name an existing file"},
	{"check --db memory", "--db must be a file or a postgres:// URL: memory stores nothing"},
	{"check --db {locked}", "stop the server that has it open"},
	{"backup --db {file}", `required flag(s) "to" not set`},
	{"backup --db postgres://h/d --to {vacant}", "--db must be a file: use pg_dump for PostgreSQL"},
	{"backup --db {file} --to postgres://h/d", "--to must be a file: use pg_dump for PostgreSQL"},
	{"backup --db {missing} --to {vacant}", "{missing}: no such file or directory: name an existing file"},
	{"backup --db {file} --to {missing}/x.db", "no such file or directory: name an existing file, and for a new one an existing directory"},
	{"backup --db {file} --to {text}", "exists: move it to another name first"},
	{"restore --from {file} --db {locked}", "exists: move it to another name first"},
	{"restore --db {vacant}", `required flag(s) "from" not set`},
	{"restore --from {file} --db postgresql://h/d", "--db must be a file: use pg_restore for PostgreSQL"},
	{"compact --db postgres://h/d", "--db must be a file: use VACUUM FULL for PostgreSQL"},
	{"compact --db {missing}", "{missing}: no such file or directory: name an existing file"},
	{"copy", `required flag(s) "from", "to" not set`},
	{"copy --from {file} --to {file}", "stop the server that has it open"},
	{"copy --from {file} --to memory", "--to must be a file or a postgres:// URL"},
	// Files of the server.
	{"serve --tokens-file {missing}", `{missing}: no such file or directory: create it with a line "name token role" for each client`},
	{"serve --tokens-file {directory}", "--tokens-file: read {directory}: is a directory"},
	{"serve --tokens-file postgres://u:{secret}@h/d", "--tokens-file must be a file"},
	{"serve --keys {missing}", "{missing}: no such file or directory: create it with relayerd keys add"},
	{"serve --keys {text}", "line 1 must be"},
	{"serve --unseal", "--unseal requires --keys: the keys open what is sealed"},
	{"serve --require-sealed", "--require-sealed requires --keys: create the file with relayerd keys add"},
	{"serve --keys {keys} --unseal --require-sealed", "[require-sealed unseal] were all set"},
	{"serve --signers {missing}", `{missing}: no such file or directory: create it as a JSON object, such as {"treasury":{"evm":"0x…"}}`},
	{"serve --signers {text}", `{text}: must be a JSON object, such as {"treasury":{"evm":"0x…"}}: invalid character`},
	{"serve --signers {null}", `{null}: must be a JSON object, such as`},
	{"serve --signers {fictional}", `{fictional}: signer "a": 1 is not an address of the network type "fictional"`},
	{"serve --signers {checksum}", `{checksum}: signer "a": 0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045 is not an address of the network type "evm"`},
	{"serve --tls-cert {missing} --tls-key {missing}", "no such file or directory: name PEM files of a certificate and its key"},
	{"serve --tls-cert {cert}", "missing [tls-key]"},
	{"serve --tls-cert {cert} --tls-key {other}", "private key does not match public key: name PEM files of a certificate and its key"},
	{"serve --rpc-hosts https://u:{secret}@h", "--rpc-hosts must be a comma-separated list of host names and networks"},
	{"serve --rpc-hosts a..b", "must be a name such as rpc.example.com"},
	{"serve --trusted-proxies localhost", "--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1"},
	{"serve --db {vacant} --backup-every 2h", "--backup-every and --backup-keep require --backup"},
	{"serve --backup {directory}", "--backup requires a file in --db: use pg_dump for PostgreSQL"},
	{"serve --db {vacant} --backup {missing}", "--backup: open {missing}: no such file or directory"},
	{"serve --db {vacant} --backup {text}", "not a directory"},
	{"serve --db {vacant} --backup u:{secret}@h", "--backup must be a directory"},
	{"serve --db {vacant} --backup {directory} --backup-every 10ms", "--backup-every must be at least 1s"},
	{"serve --db {vacant} --backup {directory} --backup-keep 0", "--backup-keep must be at least 1"},
	// Keys.
	{"keys add --keys {keys}", `required flag(s) "id" not set`},
	{"keys add --keys {keys} --id k2", "key k2 exists"},
	{"keys list --keys {missing}", "{missing}: no such file or directory: create it with relayerd keys add"},
	{"keys remove --keys {keys} --id k2", "at least one of the flags in the group [db server] is required"},
	{"keys remove --keys {keys} --id k2 --db {file}", "key k2 is the primary key: make another one primary first"},
	{"keys remove --keys {keys} --id k9 --db {file}", "(relayerd keys list shows the keys)"},
	{"keys remove --keys {keys} --id k1 --db {locked}", "stop the server that has it open"},
	// Commands that use a server.
	{"plan --server https://127.0.0.1:1", `required flag(s) "file" not set`},
	{"plan -f {empty}", `required flag(s) "server" not set`},
	{"plan --server https://127.0.0.1:1 -f {missing}", "{missing}: no such file or directory: write one with relayerd export"},
	{"apply --yes --server https://127.0.0.1:1 -f {invalid}", "--file: relayers[0].name is required; "},
	{"apply --server https://127.0.0.1:1 -f {empty}", "the standard input is not a terminal: use --yes to apply without confirmation"},
	{"apply --server https://127.0.0.1:1 -f -", "the standard input is not a terminal: use --yes to apply without confirmation"},
	{"plan --server https://127.0.0.1:1 -f {empty} --max-deletes 3", "--max-deletes must be 1 or more, and requires --prune"},
	{"plan --prune --selector search= --server https://127.0.0.1:1 -f {empty}", "--selector: search must not be empty: it would select all relayers"},
	{"export --selector owner=ci --server https://127.0.0.1:1", "--selector: owner is not a known key of a selector"},
	{"export --server https://127.0.0.1:1 --ca-file {missing}", "{missing}: no such file or directory: name an existing PEM file"},
	{"export --server https://127.0.0.1:1 --ca-file {empty}", "--ca-file: {empty} contains no certificate in PEM format"},
	{"export --server postgres://u:{secret}@h", "--server: the base URL must"},
	{"export --server http://registry.internal", "use --insecure-http to permit http"},
	{"pause --server https://127.0.0.1:1", "--selector is required: name the relayers, such as with network=sepolia, or use --all"},
	{"pause --all --server https://127.0.0.1:1 --reason {long}", "--reason must be at most 256 characters"},
	{"history --db {file} --server https://127.0.0.1:1", "[db server] were all set"},
	{"history --db {file} --since yesterday", "must be a time such as 14:00, 2026-01-02 or 2026-01-02T14:00:00Z, or a duration such as 2h or 2h ago"},
	{"history postgres://u:{secret}@h/d", "RELAYER_ID must be 1 to 64 characters of A-Z a-z 0-9 _ and -"},
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	directory, checksum := t.TempDir(), `{"a":{"evm":"0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045"}}`
	cert, _ := newCertificate(t, "first", time.Now().Add(time.Hour))
	_, other := newCertificate(t, "second", time.Now().Add(time.Hour))
	names := []string{"{secret}", password, "{directory}", directory, "{missing}", directory + "/missing", "{long}", strings.Repeat("a", 257), "{vacant}", directory + "/vacant"}
	for name, content := range map[string]string{
		"text": strings.Repeat("this is a text\n", 1000), "null": "null", "fictional": `{"a":{"fictional":"1"}}`, "checksum": checksum,
		"cert": cert, "other": other, "empty": noRelayers, "invalid": `{"relayers":[{"id":"a"}]}`,
	} {
		names = append(names, "{"+name+"}", writeFile(t, filepath.Join(directory, name), content))
	}
	keys, locked := keysFileIn(t, directory), filepath.Join(directory, "locked")
	runCommand(t, "keys", "add", "--keys", keys, "--id", "k2")
	running := start(t, token, "--db", locked)
	defer running.stop()
	names = append(names, "{keys}", keys, "{locked}", locked, "{file}", makeFile(t, 1), "{address}", running.address())
	fill := strings.NewReplacer(names...).Replace
	for _, c := range mistakes {
		args, apiKey := strings.Fields(fill(c.line)), token
		if args[0] == "serve" {
			args = append([]string{"serve", "--addr", "127.0.0.1:0", "--db", "memory"}, args[1:]...)
		}
		if strings.Contains(c.line, "--tokens-file") {
			apiKey = ""
		}
		expectFailureWith(t, fill(c.want), apiKey, args...)
	}
	// A mistake creates no file, and changes none.
	expectFiles(t, directory, "cert", "checksum", "empty", "fictional", "invalid", "locked", "null", "other", "relayer.keys", "text")
	if text := fileContent(t, filepath.Join(directory, "text")); len(text) != 15_000 {
		t.Errorf("the text has %d bytes", len(text))
	}
	for _, c := range []struct{ apiKey, command, want string }{
		{"", "export", "API_KEY is not set: --server needs the token of the server"},
		{"two " + password, "export", "the token in API_KEY must not be empty or have spaces, control or non-ASCII characters"},
		{"wrong-" + token, "export", "status 401"},
		{"", "serve", "there is no token: set API_KEY, for example to the output of openssl rand -hex 16, or use --tokens-file"},
		{"only-15-letters", "serve", "API_KEY: the token has fewer than 16 bytes: generate one with openssl rand -hex 16"},
		{"two " + password, "serve", "API_KEY: the token is empty or contains spaces, control or non-ASCII characters"},
		{token, "both", "--tokens-file and API_KEY are both set: unset API_KEY"},
	} {
		args := map[string][]string{
			"export": {"export", "--server", running.url}, "serve": {"serve", "--addr", "127.0.0.1:0", "--db", "memory"}, "both": {"serve", "--db", "memory", "--tokens-file", locked},
		}[c.command]
		expectFailureWith(t, c.want, c.apiKey, args...)
	}
}
