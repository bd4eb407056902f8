package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
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
