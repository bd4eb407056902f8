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
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return terminal, screen
}

func TestApply_Confirmation(t *testing.T) {
	t.Parallel()
	url, file := emptyServer(t), writeFile(t, publicConfig)
	for _, c := range []struct {
		answer string
		status int
		output string
	}{
		{"\n", 1, "relayerd: not confirmed: nothing was changed"},
		{"y\n", 1, "relayerd: not confirmed: nothing was changed"},
		{"\x04", 1, "relayerd: not confirmed: nothing was changed"}, // end of input
		{"yes\n", 0, "2 created, 0 updated, 0 deleted"},
	} {
		terminal, screen := openTerminal(t)
		command := program(token, "apply", "--server", url, "-f", file)
		var output bytes.Buffer
		command.Stdin, command.Stdout, command.Stderr = terminal, &output, &output
		if _, err := screen.WriteString(c.answer); err != nil {
			t.Fatal(err)
		}
		_ = command.Run()
		if command.ProcessState.ExitCode() != c.status || !strings.Contains(output.String(), "Make these changes? Type yes: ") || !strings.Contains(output.String(), c.output) {
			t.Errorf("answer %q: exit status %d, output %s", c.answer, command.ProcessState.ExitCode(), &output)
		}
		expectNoPassword(t, output.String())
	}
}

// While apply asks, another writer changes one of two relayers. That one stays, and the
// other one is changed.
func TestApply_Conflict(t *testing.T) {
	t.Parallel()
	server := start(t, token, "--db", "memory")
	defer server.stop()
	file := writeFile(t, publicConfig)
	expect(t, 0, "apply", "--yes", "--server", server.url, "-f", file)
	renamed := writeFile(t, strings.ReplaceAll(publicConfig, `"name": "S`, `"name": "Renamed S`))

	terminal, screen := openTerminal(t)
	command, printed := program(token, "apply", "--server", server.url, "-f", renamed), new(output)
	command.Stdin, command.Stdout, command.Stderr = terminal, printed, printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	printed.awaitText(t, "Type yes: ", 1)
	if status, body := server.do("PATCH", collection+"/sepolia-example", `{"name":"theirs"}`); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	if _, err := screen.WriteString("yes\n"); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if text := printed.String(); command.ProcessState.ExitCode() != 1 || !strings.Contains(text, "0 created, 1 updated, 0 deleted") || !strings.Contains(text, "relayerd: sepolia-example: ") || !strings.HasSuffix(text, "; run apply again to resume\n") {
		t.Errorf("exit status %d: %s", command.ProcessState.ExitCode(), text)
	}
	exported := expect(t, 0, "export", "--server", server.url).stdout
	if !strings.Contains(exported, `"theirs"`) || !strings.Contains(exported, `"Renamed Solana Example"`) {
		t.Errorf("stored %s", exported)
	}
}

// A token is generated for a person at a terminal, and printed only there. Without a terminal, a
// server without a token does not start.
func TestServe_GeneratedToken(t *testing.T) {
	t.Parallel()
	terminal, screen := openTerminal(t)
	server := &process{t: t, command: serverCommand("", "--addr", "127.0.0.1:0", "--db", "memory"), output: new(output)}
	server.command.Stdout, server.command.Stderr = terminal, server.output
	if err := server.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.command.Process.Kill() })
	line, err := bufio.NewReader(screen).ReadString('\n')
	printed := regexp.MustCompile(`^API_KEY is not set. Open (http://\S+)/ with the token of this run: (\S+)\s+$`).FindStringSubmatch(line)
	if err != nil || printed == nil {
		t.Fatalf("printed %q, error %v: %s", line, err, server.output)
	}
	server.url = printed[1]
	server.output.awaitText(t, "msg=serving", 1)
	server.expectStatus("GET", collection, printed[2], "", http.StatusOK)
	server.expectStatus("GET", collection, "x", "", http.StatusUnauthorized)
	server.stop()
	if strings.Contains(server.output.String(), printed[2]) {
		t.Errorf("the token is in the log: %s", server.output)
	}
	expectFailure(t, "there is no token: set API_KEY, for example to the output of openssl rand -hex 16, or use --tokens-file", "serve", "--addr", "127.0.0.1:0", "--db", "memory")
}
