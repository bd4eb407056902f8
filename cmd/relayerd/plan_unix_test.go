//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// The first signal ends a command that waits for its input, and the error names it.
func TestPlan_SignalDuringRead(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	command := program(token, "plan", "--server", "https://127.0.0.1:1", "-f", pipe)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	timeout := time.AfterFunc(60*time.Second, func() { _ = command.Process.Kill() })
	defer timeout.Stop()
	var writer *os.File
	isOpened := await(func() bool {
		var err error
		writer, err = os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails until the command reads
		return err == nil
	})
	if !isOpened {
		t.Fatal("the command does not read the file")
	}
	defer writer.Close()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	const want = "relayerd: terminated signal received: context canceled\n"
	if status := command.ProcessState.ExitCode(); status != 1 || stderr.String() != want {
		t.Errorf("exit status %d, error %q, want %q", status, &stderr, want)
	}
}
