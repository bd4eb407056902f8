package main

import (
	"strings"
	"testing"
)

// Connection strings that are no URLs of PostgreSQL.
var malformedDatabases = []string{
	"postgres:/u:{secret}@h/d", "postgres:u:{secret}@h/d", "postgresql:u:{secret}", "u:{secret}@h/d", "POSTGRES://u:{secret}@h/d", " postgres:u:{secret}",
	"mysql://u:{secret}@h/d", "Password={secret} Host=127.0.0.1", "PASSWORD={secret}", "sslpassword={secret}", "passfile = /{secret}",
	"oauth_client_secret={secret}", "?password={secret}", "{secret}@h/d", "u:{secret}",
}

// misplaced are command lines with a connection string in the wrong argument. A | separates arguments.
var misplaced = map[string]string{
	"serve|postgres:/u:{secret}@h/d":                       "unknown command or argument",
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
	"serve|--rate=postgres://u:\t{secret}@h/d?a=b":         "--rate needs a value of the type int",
	"serve|--network-rules=postgres://u:{secret}@h/d":      "--network-rules needs a value of the type bool",
	"serve|-db=postgres://u:{secret}@h/d":                  "unknown flag",
	"serve|---postgres://u:{secret}@h/d":                   "malformed flag",
	"serve|--=postgres://u:{secret}@h/d":                   "malformed flag",
	"serve|--u:{secret}=x@h/d":                             "unknown flag (",
	"serve|--dbb=postgres://u:{secret}@h/d":                "unknown flag --dbb",
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
