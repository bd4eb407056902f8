package main

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serveFlags returns the command serve, with the flags of the arguments.
func serveFlags(t *testing.T, args ...string) *cobra.Command {
	t.Helper()
	command, _, err := newRootCommand("").Find([]string{"serve"})
	must(t, err)
	must(t, command.ParseFlags(args))
	return command
}

func variableOf(flag string) string {
	return "RELAYERD_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
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
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) { t.Setenv(variableOf(flag.Name), values[flag.Value.Type()]) })
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
