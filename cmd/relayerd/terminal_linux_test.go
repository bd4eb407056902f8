package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// On a terminal, the progress of each stage overwrites one line.
func TestCopy_ProgressOnTerminal(t *testing.T) {
	t.Parallel()
	source := makeFile(t, 1000)
	terminal, screen := openTerminal(t)
	command := serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory", "--copy-from", source)
	command.Stderr = terminal
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	t.Cleanup(func() { _ = command.Process.Kill() })
	var output bytes.Buffer
	for !strings.Contains(output.String(), "msg=serving") {
		part := make([]byte, 1000)
		n, err := screen.Read(part)
		if err != nil {
			t.Fatalf("%v: %s", err, &output)
		}
		output.Write(part[:n])
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	// The terminal ends lines with \r\n.
	want := regexp.MustCompile(`^\rchecked 0 of 1000\rchecked 1000 of 1000\r\n` +
		`\rcopied 0 of 1000(\rcopied \d+ of 1000)*\rcopied 1000 of 1000\r\n` +
		`\rverified 0 of 1000(\rverified \d+ of 1000)*\rverified 1000 of 1000\r\ntime=\S+ level=INFO msg=copied relayers=1000\r\n`)
	if !want.MatchString(output.String()) {
		t.Errorf("output %q", &output)
	}
}

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
