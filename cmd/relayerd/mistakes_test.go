package main

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	{"restore --from {file} --db postgresql://h/d", "--db must be a file: use psql for PostgreSQL"},
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
	{"serve --signers {null}", `{null}: must be a JSON object, such as {"treasury":{"evm":"0x…"}}: it is null`},
	{"serve --signers {fictional}", `{fictional}: signer "a": the address of the network type "fictional" is not valid: `},
	{"serve --signers {checksum}", `{checksum}: signer "a": the address of the network type "evm" is not valid: `},
	{"serve --tls-cert {missing} --tls-key {missing}", "no such file or directory: name PEM files of a certificate and its key"},
	{"serve --tls-cert {cert}", "missing [tls-key]"},
	{"serve --tls-cert {cert} --tls-key {other}", "private key does not match public key: name PEM files of a certificate and its key"},
	{"serve --rpc-hosts https://u:{secret}@h", "--rpc-hosts must be a comma-separated list of host names and networks"},
	{"serve --rpc-hosts a..b", "must be a name such as rpc.example.com"},
	{"serve --trusted-proxies localhost", "--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1"},
	{"serve --trusted-proxies ::ffff:10.0.0.0/104", "--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1"},
	{"history --db {file} --limit 0", "--limit must be 1 or more"},
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
	{"history --db {file} --since yesterday", "must be a time such as 14:00, 2026-01-02 or 2026-01-02T14:00:00Z, or a duration such as 2h"},
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

// Connection strings that are no URLs of PostgreSQL.
var malformedDatabases = []string{
	"postgres:/u:{secret}@h/d", "postgres:u:{secret}@h/d", "postgresql:u:{secret}", "u:{secret}@h/d", "POSTGRES://u:{secret}@h/d", " postgres:u:{secret}",
	"mysql://u:{secret}@h/d", "Password={secret} Host=127.0.0.1", "PASSWORD={secret}", "sslpassword={secret}", "passfile = /{secret}",
	"oauth_client_secret={secret}", "?password={secret}", "{secret}@h/d", "u:{secret}",
}

// misplaced are command lines with a connection string in the wrong argument. A | separates arguments.
var misplaced = map[string]string{
	"serve|postgres://u:\"\n{secret}@h/d":                  "unknown command or argument",
	"--db|postgres://u:{secret}@h/d":                       "unknown flag --db",
	"help|postgres://u:{secret}@h/d":                       "unknown command or argument",
	"completion|postgres://u:{secret}@h/d":                 "unknown command or argument",
	"completion|bash|postgres://u:{secret}@h/d":            "unknown command or argument",
	"history|a|postgres://u:{secret}@h/d":                  "accepts at most 1 arg",
	"serve|--signers|u:{secret}@h":                         "--signers must be a file",
	"serve|--settings-schema|u:{secret}@h":                 "--settings-schema must be a file",
	"serve|--tls-cert|u:{secret}@h|--tls-key|x":            "--tls-cert must be a file",
	"serve|--metrics-addr|u:{secret}@h/d":                  "--metrics-addr must be host:port",
	"serve|--network-rules=postgres://u:{secret}@h/d":      "--network-rules needs a value of the type bool",
	"serve|-db=postgres://u:{secret}@h/d":                  "unknown flag",
	"serve|---postgres://u:{secret}@h/d":                   "malformed flag",
	"serve|--=postgres://u:{secret}@h/d":                   "malformed flag",
	"healthcheck|--addr|postgres://u:{secret}@h/d":         "--addr must be host:port",
	"keys|list|--keys|postgres://u:{secret}@h/d":           "--keys must be a file",
	"keys|add|--id|k|--keys|postgres://u:{secret}@h/d":     "--keys must be a file",
	"export|--server|https://h|--ca-file|u:{secret}@h":     "--ca-file must be a file",
	"plan|--server|https://h|-f|postgres://u:{secret}@h/d": "--file must be a file",
}

// A misplaced secret is in no output, and creates no file.
func TestSecrets_Misplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, value := range malformedDatabases {
		for flag, line := range map[string]string{"--db": "serve|--db|", "--from": "copy|--to|x.db|--from|", "--to": "copy|--from|x.db|--to|"} {
			misplaced[line+value] = flag + " must be a file, or a URL that begins with postgres://"
		}
	}
	for line, want := range misplaced {
		expectFailure(t, want, strings.Split(strings.ReplaceAll(line, "{secret}", password), "|")...)
	}
	expectFiles(t, ".")
	for want, args := range map[string][]string{
		"--network-rules": {"serve", "--db", "postgres://u:" + password + "@h/d", "--addr=u:" + password + "@h", "--help"},
		"bash":            {"completion"},
	} {
		if output := runCommand(t, args...); !strings.Contains(output, want) {
			t.Errorf("%q: output %q", args, output)
		}
	}
}

func TestDatabase_UnusualFileName(t *testing.T) {
	for _, name := range []string{"my relayers.db", "-relayers.db", "Ä.db", "a%b?c&d.db"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			start(t, token, "--db="+name).stop()
			runCommand(t, "check", "--db="+name)
			expectFiles(t, ".", name)
		})
	}
}

// serveFlags returns the command serve, with the flags of the arguments.
func serveFlags(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	command, _, err := newRootCommand("").Find([]string{"serve"})
	must(t, err)
	must(t, command.ParseFlags(args))
	return command
}

func TestServe_HelpFitsOnScreen(t *testing.T) {
	t.Parallel()
	output := runCommand(t, "serve", "--help")
	if lines := strings.Count(output, "\n"); lines > 40 || lines < 20 {
		t.Errorf("the help has %d lines", lines)
	}
	for line := range strings.Lines(output) {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("a line is too long for a screen: %s", line)
		}
	}
}

// Each flag of serve is set by an environment variable, unless it is given.
func TestServe_Environment(t *testing.T) {
	values := map[string]string{"bool": "true", "duration": "7m0s", "int": "7", "string": "value"}
	command := serveFlags(t, "--rate", "3", "--db=given")
	count := 0
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		t.Setenv("RELAYERD_"+strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")), values[flag.Value.Type()])
	})
	must(t, setFromEnvironment(command))
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		want := values[flag.Value.Type()]
		switch count++; flag.Name {
		case "rate":
			want = "3"
		case "db":
			want = "given"
		}
		if flag.Value.String() != want || !flag.Changed {
			t.Errorf("--%s is %q, want %q", flag.Name, flag.Value, want)
		}
	})
	if count < 20 {
		t.Errorf("serve has %d flags", count)
	}
}

// A server runs without arguments, as a container does. A bad value is not printed: it may be a
// connection string.
func TestServe_EnvironmentOfProcess(t *testing.T) {
	t.Parallel()
	server := &process{t: t, command: program("", "serve"), output: new(output)}
	server.command.Env = append(server.command.Env, "RELAYERD_ADDR=127.0.0.1:0", "RELAYERD_DB=memory", "RELAYERD_TOKENS_FILE="+newTokens(t, "alice "+oldToken+" write"), "RELAYERD_DRAIN_DELAY=0",
		"RELAYERD_PORT=tcp://10.0.0.1:80", "RELAYERD_SERVICE_HOST=10.0.0.1", "RELAYERD_METRICS_PORT_9090_TCP=tcp://10.0.0.1:9090") // as Kubernetes sets them
	server.run()
	server.expect("GET", collection, oldToken, "", http.StatusOK)
	server.stop()
	for variable, want := range map[string]string{
		"RELAYERD_RATE=postgres://u:" + password + "@h/d": "relayerd: RELAYERD_RATE needs a value of the type int, as --rate\n",
		"RELAYERD_TOKEN_FILE=" + password:                 "relayerd: RELAYERD_TOKEN_FILE is no flag: correct the name of the variable, or unset it (relayerd serve --help lists the flags)\n",
		"RELAYERD_DB=":                                    "relayerd: --db is empty (relayerd serve --help lists the flags)\n",
		"RELAYERD_TLS_CERT=x":                             "missing [tls-key]",
		"RELAYERD_DB=mysql://u:" + password + "@h/d":      "--db must be a file, or a URL that begins with postgres://",
		"RELAYERD_LOG_LEVEL=" + password:                  "--log-level must be info or debug\n",
	} {
		command := program(token, "serve")
		command.Env = append(command.Env, variable)
		if done := finish(t, "", command); done.status != 1 || !strings.Contains(done.stderr, want) {
			t.Errorf("%s: %+v, want %s", variable, done, want)
		}
	}
}

const schemaText = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"properties": {
		"max_in_flight": {"type": "integer", "minimum": 1},
		"mode": {"enum": ["fast", "safe"]},
		"by_chain": {"type": "object", "additionalProperties": {"type": "integer"}},
		"contracts": {"type": "array", "items": {"$ref": "#/$defs/contract"}}
	},
	"additionalProperties": false,
	"$defs": {"contract": {"type": "object", "required": ["address"], "properties": {"address": {"type": "string", "pattern": "^0x"}}}}
}`

// The result of a command can be all that says what it did.
func TestOutput_CannotBeWritten(t *testing.T) {
	server := startMemory(t)
	defer server.stop()
	for _, args := range [][]string{
		{"check", "--db", makeFile(t, 1)},
		{"pause", "--server", server.url, "--all"},
	} {
		stderr := new(strings.Builder)
		status := execute(t.Context(), args, token, strings.NewReader(""), fullWriter{}, stderr)
		if status != 1 || stderr.String() != "relayerd: no space left\n" {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSettingsSchema(t *testing.T) {
	t.Parallel()
	server := startMemory(t, "--settings-schema", newFile(t, schemaText))
	defer server.stop()
	with := func(settings string) string { return strings.Replace(definition, "{", `{"settings":`+settings+`,`, 1) }
	const one = collection + "/r-1"
	server.expect("POST", collection, token, with(`{"max_in_flight":5,"mode":"safe","contracts":[{"address":"0x1"}]}`), http.StatusCreated)
	for settings, problems := range map[string][]string{
		`{"max_in_flight":0,"mode":"slow","unknown":1}`:       {`"settings.max_in_flight"`, `"settings.mode"`, `"settings.unknown"`},
		`{"contracts":[{"address":"0x"},{},{"address":"x"}]}`: {`"settings.contracts[1].address"`, `"settings.contracts[2].address"`},
		`{"by_chain":{"1":"x","a~b":"x"}}`:                    {`"settings.by_chain.1"`, `"settings.by_chain.a~b"`},
		`{"contracts":{},"max_in_flight":1.5}`:                {`"settings.contracts"`, `"settings.max_in_flight"`},
	} {
		for _, request := range [][3]string{
			{"POST", collection, strings.Replace(with(settings), `"id":"r-1",`, "", 1)},
			{"PATCH", one, `{"settings":` + settings + `}`},
			{"PATCH", one + "?dry_run=true", `{"settings":` + settings + `}`},
		} {
			body := server.expect(request[0], request[1], token, request[2], http.StatusBadRequest)
			for _, problem := range problems {
				if !strings.Contains(body, problem) {
					t.Errorf("%v: %s has no problem of %s", request, body, problem)
				}
			}
		}
	}
	// The problems of one request are limited, and so are their paths and messages.
	many := server.expect("POST", collection, token, with(`{"contracts":[{"address":"`+strings.Repeat("é", 500)+`"}`+strings.Repeat(`,{}`, 2000)+`],"`+strings.Repeat("é", 500)+`":1}`), http.StatusBadRequest)
	if !strings.Contains(many, `{"message":"only the first 1000 problems are listed"}]`) || strings.Count(many, `"message"`) != 1002 || strings.Contains(many, strings.Repeat("é", 130)) {
		t.Errorf("%d bytes with %d messages: %.1000s", len(many), strings.Count(many, `"message"`), many)
	}
	// A patch is checked with what it is merged into, and other changes are not.
	for _, patch := range []string{`{"settings":{"mode":null,"max_in_flight":7}}`, `{"paused":true}`, `{"settings":null}`} {
		server.expect("PATCH", one, token, patch, http.StatusOK)
	}
	for text, want := range map[string]string{
		`{"type":`:                        "must be a JSON Schema: ",
		`{"type":"strange"}`:              "relayerd: --settings-schema: ",
		`{"$ref":"file:///etc/hostname"}`: "the schema must not refer to other documents",
		`{"$ref":"http://127.0.0.1:1/a"}`: "the schema must not refer to other documents",
	} {
		t.Run(text, func(t *testing.T) {
			expectFailure(t, want, "serve", "--addr", "127.0.0.1:0", "--db", "memory", "--settings-schema", newFile(t, text))
		})
	}
}
