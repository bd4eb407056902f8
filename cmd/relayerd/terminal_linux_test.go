package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns a terminal and its other end, which reads the output.
func openTerminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal available: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	must(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number := mustGet(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	return terminal, screen
}

func TestApply_Confirmation(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), newFile(t, publicConfig)
	refused := "relayerd: not confirmed: nothing was changed"
	// The confirmed answer comes last: after it there is no difference to ask about.
	for _, test := range []struct{ answer, want string }{
		{"\n", refused},
		{"y\n", refused},
		{"\x04", refused}, // end of input
		{"yes\n", "2 created, 0 updated, 0 deleted"},
	} {
		terminal, screen := openTerminal(t)
		command := program(token, "apply", "--server", url, "-f", file)
		var output bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = terminal, &output, &output
		mustGet(screen.WriteString(test.answer))(t)
		isApplied := command.Run() == nil
		if isApplied != (test.answer == "yes\n") || !strings.Contains(output.String(), "Make these changes? Type yes: ") || !strings.Contains(output.String(), test.want) {
			t.Errorf("answer %q: exit status %d, output %s", test.answer, command.ProcessState.ExitCode(), &output)
		}
		expectNoSecret(t, output.String())
	}
}

// A token is generated for a person at a terminal, and printed only there. Without a terminal, a
// server without a token does not start.
func TestServe_GeneratedToken(t *testing.T) {
	t.Parallel()
	terminal, screen := openTerminal(t)
	server := &process{t: t, command: serverCommand("", "--addr", "127.0.0.1:0", "--db", "memory"), output: new(output)}
	server.command.Stdout, server.command.Stderr = terminal, server.output
	must(t, server.command.Start())
	t.Cleanup(func() { _ = server.command.Process.Kill() })
	line, err := bufio.NewReader(screen).ReadString('\n')
	printed := regexp.MustCompile(`^API_KEY is not set. Open (http://\S+)/ with the token of this run: (\S+)\s+$`).FindStringSubmatch(line)
	if err != nil || printed == nil {
		t.Fatalf("printed %q, error %v: %s", line, err, server.output)
	}
	server.url = printed[1]
	server.output.awaitText(t, "msg=serving", 1)
	server.expect("GET", collection, printed[2], "", http.StatusOK)
	server.expect("GET", collection, "x", "", http.StatusUnauthorized)
	server.stop()
	if strings.Contains(server.output.String(), printed[2]) {
		t.Errorf("the token is in the log: %s", server.output)
	}
	expectFailureWith(t, "there is no token: set API_KEY, for example to the output of openssl rand -hex 16, or use --tokens-file", "", "serve", "--addr", "127.0.0.1:0", "--db", "memory")
}
