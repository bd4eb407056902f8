package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

// misplaced are connection strings where none belongs, or of a kind that is not
// taken, and what must be said of them.
var misplaced = map[string]struct {
	args []string
	says string
}{
	"one slash":                   {[]string{"-db", "postgres:/u:" + password + "@h/d"}, "-db must be a file, or a URL"},
	"no slash":                    {[]string{"-db", "postgres:u:" + password + "@h/d"}, "-db must be a file, or a URL"},
	"no slash and no host":        {[]string{"-db", "postgresql:u:" + password}, "-db must be a file, or a URL"},
	"no scheme":                   {[]string{"-db", "u:" + password + "@h/d"}, "must have no @"},
	"capitals":                    {[]string{"-db", "POSTGRES://u:" + password + "@h/d"}, "-db must be a file, or a URL"},
	"a space before":              {[]string{"-db", " postgres:u:" + password}, "-db must be a file, or a URL"},
	"keywords":                    {[]string{"-db", "Password=" + password + " Host=127.0.0.1"}, "-db must be a file, or a URL"},
	"keyword in capitals":         {[]string{"-db", "PASSWORD=" + password}, "-db must be a file, or a URL"},
	"keyword of TLS":              {[]string{"-db", "sslpassword=" + password}, "-db must be a file, or a URL"},
	"keyword and spaces":          {[]string{"-db", "passfile = /" + password}, "-db must be a file, or a URL"},
	"keyword of OAuth":            {[]string{"-db", "oauth_client_secret=" + password}, "-db must be a file, or a URL"},
	"source of one slash":         {[]string{"-db", "memory", "-copy-from", "postgres:/u:" + password + "@h/d"}, "-copy-from must be a file, or a URL"},
	"source of no slash":          {[]string{"-db", "memory", "-copy-from", "postgres:u:" + password + "@h/d"}, "-copy-from must be a file, or a URL"},
	"source of no scheme":         {[]string{"-db", "memory", "-copy-from", "u:" + password + "@h/d"}, "-copy-from must be a file, or a URL"},
	"source of keywords":          {[]string{"-db", "memory", "-copy-from", "Password=" + password}, "-copy-from must be a file, or a URL"},
	"no flag":                     {[]string{"postgres://u:" + password + "@h/d"}, `unexpected argument "…"`},
	"no flag and one slash":       {[]string{"postgres:/u:" + password + "@h/d"}, `unexpected argument "…"`},
	"no flag and no slash":        {[]string{"postgres:u:" + password}, `unexpected argument "…"`},
	"no flag and no scheme":       {[]string{"u:" + password + "@h/d"}, `unexpected argument "…"`},
	"no flag and keywords":        {[]string{"host=h sslpassword=" + password}, `unexpected argument "…"`},
	"no flag and a quoted letter": {[]string{"postgres://u:\"\n" + password + "@h/d"}, `unexpected argument "…"`},
	"address":                     {[]string{"-addr", "postgres://u:" + password + "@h/d"}, "-addr must be host:port"},
	"address of no scheme":        {[]string{"-addr", "u:" + password + "@h/d"}, "-addr must be host:port"},
	"address of keywords":         {[]string{"-addr", "password=" + password}, "-addr must be host:port"},
	"address after =":             {[]string{"-addr=postgres://u:" + password + "@h:5432/d"}, "-addr must be host:port"},
	"signers":                     {[]string{"-db", "memory", "-signers", "postgres://u:" + password + "@h/d"}, "signers: open …: no such file"},
	"signers of no scheme":        {[]string{"-db", "memory", "-signers", "u:" + password + "@h"}, "signers: open …: no such file"},
	"rate":                        {[]string{"-rate", "postgres://u:" + password + "@h/d"}, `invalid value "…" for flag -rate`},
	"rate after =":                {[]string{"-rate=postgres://u:\t" + password + "@h/d?a=b"}, `invalid value "…" for flag -rate`},
	"rate of keywords":            {[]string{"-rate", "password='" + password + "'"}, `invalid value "…" for flag -rate`},
	"switch":                      {[]string{"-log-requests=postgres://u:" + password + "@h/d"}, `invalid boolean value "…" for -log-requests`},
	"switch of keywords":          {[]string{"-log-requests=password=" + password}, `invalid boolean value "…" for -log-requests`},
	"dash":                        {[]string{"-postgres://u:" + password + "@h/d"}, "flag provided but not defined: -…"},
	"dashes":                      {[]string{"--postgres://u:" + password + "@h/d?sslmode=require"}, "flag provided but not defined: -…"},
	"more dashes":                 {[]string{"---postgres://u:" + password + "@h/d"}, "bad flag syntax: ---…"},
	"dash and no name":            {[]string{"-=postgres://u:" + password + "@h/d"}, "bad flag syntax: -…"},
	"dash and an = in the middle": {[]string{"-u:" + password + "=x@h/d"}, "flag provided but not defined: -…"},
	"unknown flag":                {[]string{"-dbb=postgres://u:" + password + "@h/d"}, "flag provided but not defined: -dbb"},
	"two, one in the other":       {[]string{"-signers", "@", "-rate", "u:" + password + "@h"}, `invalid value "…" for flag -rate`},
	"help asked for as well":      {[]string{"-db", "postgres://u:" + password + "@h/d", "-copy-from=u:" + password + "@h", "-h"}, flag.ErrHelp.Error()},
}

// Wherever a connection string ends up on the command line, nobody finds the
// password in what the server says, nor a file of that name.
func TestMisplacedConnectionStrings(t *testing.T) {
	for name, c := range misplaced {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			shown, err := runShortly(t, c.args...)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error is %v, want one with %s", err, c.says)
			}
			expectNoPassword(t, shown+err.Error())
			if made, err := os.ReadDir("."); err != nil || len(made) > 0 {
				t.Errorf("made %v, error %v", made, err)
			}
		})
	}
}

// runShortly runs a server that should end by itself, and returns what it shows.
func runShortly(t *testing.T, args ...string) (shown string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	err = run(ctx, args, token, &stdout, &stderr)
	return stdout.String() + stderr.String(), err
}

// An error that shows less is still the error that it was.
func TestConcealedErrorsMatch(t *testing.T) {
	err := conceal(&os.PathError{Op: "open", Path: "u:" + password + "@h", Err: os.ErrNotExist}, []string{"u:" + password + "@h"})
	if _, ok := errors.AsType[*os.PathError](err); !ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v is no PathError", err)
	}
	if conceal(nil, []string{"@"}) != nil {
		t.Error("no error has become one")
	}
}

// What only resembles a connection string is the name of a file.
func TestOddFileNames(t *testing.T) {
	for _, name := range []string{"my relayers.db", "-relayers.db", "a=b.db", "re-layers 1:2.db", "postgres", "my_host=1.db", "Ä.db"} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			start(t, token, "-db="+name).stop()
			start(t, token, "-db", "memory", "-copy-from="+name).stop()
			if made, err := os.ReadDir("."); err != nil || len(made) != 1 || made[0].Name() != name {
				t.Errorf("made %v, error %v", made, err)
			}
		})
	}
}
