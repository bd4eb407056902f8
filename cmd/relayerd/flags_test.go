package main

import (
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/pflag"
)

func TestServe_HelpFitsOnScreen(t *testing.T) {
	t.Parallel()
	output, err := runToEnd(t, "serve", "--help")
	if lines := strings.Count(output, "\n"); err != nil || lines > 40 || lines < 20 {
		t.Errorf("the help has %d lines, error %v", lines, err)
	}
	for line := range strings.Lines(output) {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("a line is too long for a screen: %s", line)
		}
	}
}

// Each flag of serve is set by an environment variable, unless it is given.
func TestServe_Environment(t *testing.T) {
	values := map[string]string{"bool": "true", "duration": "7m0s", "float64": "7", "int": "7", "string": "value"}
	flagOf := func(args ...string) func(name string) *pflag.Flag {
		command, _, err := newRootCommand("").Find([]string{"serve"})
		if err != nil {
			t.Fatal(err)
		}
		if err := command.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if err := setFromEnvironment(command); err != nil {
			t.Fatal(err)
		}
		return command.Flag
	}
	command, _, _ := newRootCommand("").Find([]string{"serve"})
	var names []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" {
			names = append(names, flag.Name)
			t.Setenv("RELAYERD_"+strings.ReplaceAll(strings.ToUpper(flag.Name), "-", "_"), values[flag.Value.Type()])
		}
	})
	set := flagOf("--rate", "3", "--db=given")
	for _, name := range names {
		want := values[set(name).Value.Type()]
		if name == "rate" {
			want = "3"
		}
		if name == "db" {
			want = "given"
		}
		if flag := set(name); flag.Value.String() != want || !flag.Changed {
			t.Errorf("--%s is %q, want %q", name, flag.Value, want)
		}
	}
	if len(names) < 20 {
		t.Errorf("serve has the flags %q", names)
	}
}

// A server runs without arguments, as a container does. A bad value is not printed: it may be a
// connection string.
func TestServe_EnvironmentOfProcess(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "alice "+oldToken+" write")
	server := &process{t: t, command: program("", "serve"), output: new(output)}
	server.command.Env = append(server.command.Env, "RELAYERD_ADDR=127.0.0.1:0", "RELAYERD_DB=memory", "RELAYERD_TOKENS_FILE="+tokens, "RELAYERD_DRAIN_DELAY=0", "RELAYERD_LOG_LEVEL=debug")
	server.run()
	server.expectStatus("GET", collection, oldToken, "", http.StatusOK)
	server.stop()
	if !strings.Contains(server.output.String(), "msg=request ") {
		t.Errorf("the request was not logged: %s", server.output)
	}
	for variable, want := range map[string]string{
		"RELAYERD_RATE=postgres://u:" + password + "@h/d": "relayerd: RELAYERD_RATE must be a number, as --rate\n",
		"RELAYERD_DB=":        "relayerd: --db is empty (relayerd serve --help lists the flags)\n",
		"RELAYERD_TLS_CERT=x": "missing [tls-key]",
		"RELAYERD_DB=mysql://u:" + password + "@h/d": "--db must be a file, or a URL that begins with postgres://",
		"RELAYERD_LOG_LEVEL=" + password:             "--log-level must be info or debug\n",
		"RELAYERD_BACKUP_EVERY=" + password:          "RELAYERD_BACKUP_EVERY must be a duration, such as 90s or 1h, as --backup-every\n",
	} {
		command := program(token, "serve")
		command.Env = append(command.Env, variable)
		if done := finish(t, "", command); done.status != 1 || !strings.Contains(done.stderr, want) {
			t.Errorf("%s: %+v, want %s", variable, done, want)
		}
	}
}

// The variables of the manifests for Kubernetes are those of flags.
func TestKubernetes_Variables(t *testing.T) {
	t.Parallel()
	serve, _, err := newRootCommand("").Find([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one.yaml", "several.yaml"} {
		found := regexp.MustCompile(`name: RELAYERD_(\w+)`).FindAllStringSubmatch(deployed(t, "kubernetes/"+name), -1)
		for _, variable := range found {
			if serve.Flag(strings.ToLower(strings.ReplaceAll(variable[1], "_", "-"))) == nil {
				t.Errorf("%s has the variable RELAYERD_%s, which is no flag", name, variable[1])
			}
		}
		if len(found) < 5 {
			t.Errorf("%s has %d variables", name, len(found))
		}
	}
}
