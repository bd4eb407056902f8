//go:build unix

package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const asExample = "RELAYER_TEST_AS_EXAMPLE"

// TestMain runs the example in place of the tests if a test starts it.
func TestMain(m *testing.M) {
	if os.Getenv(asExample) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// SIGTERM, which service managers send, ends the example as SIGINT does.
func TestMain_Signals(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), asExample+"=1")
		stderr, err := command.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = command.Process.Kill() })
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "address already in use") {
				t.Skip(lines.Text())
			}
			if strings.Contains(lines.Text(), "relaying for treasury") {
				_ = command.Process.Signal(signal)
			}
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%v: %v", signal, err)
		}
	}
}
