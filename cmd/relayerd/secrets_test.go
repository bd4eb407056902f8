package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// malformedDatabases are connection strings that are not URLs of PostgreSQL.
var malformedDatabases = map[string]string{
	"one slash":             "postgres:/u:" + password + "@h/d",
	"no slash":              "postgres:u:" + password + "@h/d",
	"no slash and no host":  "postgresql:u:" + password,
	"no scheme":             "u:" + password + "@h/d",
	"capitals":              "POSTGRES://u:" + password + "@h/d",
	"leading space":         " postgres:u:" + password,
	"another scheme":        "mysql://u:" + password + "@h/d",
	"keywords":              "Password=" + password + " Host=127.0.0.1",
	"keyword in capitals":   "PASSWORD=" + password,
	"keyword of TLS":        "sslpassword=" + password,
	"keyword and spaces":    "passfile = /" + password,
	"keyword of OAuth":      "oauth_client_secret=" + password,
	"query of a URL":        "?password=" + password,
	"password and host":     password + "@h/d",
	"user and its password": "u:" + password,
}

// misplaced are command lines with a connection string in the wrong argument.
var misplaced = map[string]struct {
	args []string
	want string
}{
	"argument of one slash":    {[]string{"serve", "postgres:/u:" + password + "@h/d"}, "unexpected argument"},
	"argument with quotes":     {[]string{"serve", "postgres://u:\"\n" + password + "@h/d"}, "unexpected argument"},
	"command after a flag":     {[]string{"--db", "postgres://u:" + password + "@h/d"}, "unknown flag --db"},
	"argument of help":         {[]string{"help", "postgres://u:" + password + "@h/d"}, "unknown command"},
	"shell of completion":      {[]string{"completion", "postgres://u:" + password + "@h/d"}, "unknown command"},
	"argument of completion":   {[]string{"completion", "bash", "postgres://u:" + password + "@h/d"}, "unexpected argument"},
	"arguments of history":     {[]string{"history", "a", "postgres://u:" + password + "@h/d"}, "accepts at most 1 arg"},
	"address of keywords":      {[]string{"serve", "--addr", "password=" + password}, "--addr must be host:port"},
	"signers without a scheme": {[]string{"serve", "--signers", "u:" + password + "@h"}, "--signers must be a file"},
	"rate with an equals sign": {[]string{"serve", "--rate=postgres://u:\t" + password + "@h/d?a=b"}, "invalid value for --rate"},
	"switch":                   {[]string{"serve", "--network-rules=postgres://u:" + password + "@h/d"}, "invalid value for --network-rules"},
	"one dash and a name":      {[]string{"serve", "-db=postgres://u:" + password + "@h/d"}, "unknown flag"},
	"three dashes":             {[]string{"serve", "---postgres://u:" + password + "@h/d"}, "malformed flag"},
	"no name":                  {[]string{"serve", "--=postgres://u:" + password + "@h/d"}, "malformed flag"},
	"equals sign in the URL":   {[]string{"serve", "--u:" + password + "=x@h/d"}, "unknown flag"},
	"unknown flag":             {[]string{"serve", "--dbb=postgres://u:" + password + "@h/d"}, "unknown flag --dbb"},
}

func TestSecrets_MalformedDatabase(t *testing.T) {
	for name, value := range malformedDatabases {
		for flag, args := range map[string][]string{
			"--db":   {"serve", "--db", value},
			"--from": {"copy", "--from", value, "--to", "x.db"},
			"--to":   {"copy", "--from", "x.db", "--to", value},
		} {
			t.Run(name+" "+flag, func(t *testing.T) {
				expectSafeError(t, flag+" must be a file, or a URL that begins with postgres://", args...)
			})
		}
	}
}

func TestSecrets_MisplacedConnectionString(t *testing.T) {
	for name, c := range misplaced {
		t.Run(name, func(t *testing.T) { expectSafeError(t, c.want, c.args...) })
	}
}

func TestSecrets_Help(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--network-rules": {"serve", "--db", "postgres://u:" + password + "@h/d", "--addr=u:" + password + "@h", "--help"},
		"bash":            {"completion"},
	} {
		output, err := runToEnd(t, args...)
		if err != nil || !strings.Contains(output, want) {
			t.Errorf("%q: output %q, error %v", args, output, err)
		}
		expectNoPassword(t, output)
	}
}

// expectSafeError runs a command that must fail, without the password in its output
// and without creating a file.
func expectSafeError(t *testing.T, want string, args ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	output, err := runToEnd(t, args...)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %s", err, want)
	}
	expectNoPassword(t, output+err.Error())
	if created, err := os.ReadDir("."); err != nil || len(created) > 0 {
		t.Errorf("created %v, error %v", created, err)
	}
}

// runToEnd runs a command in this process. The timeout ends a server that serves although
// it must not.
func runToEnd(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	err = run(ctx, args, token, strings.NewReader(""), &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

func TestDatabase_UnusualFileName(t *testing.T) {
	for _, name := range []string{"my relayers.db", "-relayers.db", "re-layers 1.2.db", "Ä.db", "a%b?c&d.db"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			start(t, token, "--db="+name).stop()
			runCommand(t, "check", "--db="+name)
			if created, err := os.ReadDir("."); err != nil || len(created) != 1 || created[0].Name() != name {
				t.Errorf("created %v, error %v", created, err)
			}
		})
	}
}
