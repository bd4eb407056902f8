// Package child starts the test binary again as a child process that a test can
// kill. The parent sends the child a task; the child sends back events.
package child

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// marker is the environment variable that makes the test binary a child.
const marker = "RELAYER_TEST_CHILD"

// Main runs work with the parent's task and exits, if this process is a child.
// Otherwise it returns. TestMain calls it first.
func Main[Task any](work func(Task) error) {
	if os.Getenv(marker) == "" {
		return
	}
	var task Task
	err := json.NewDecoder(os.Stdin).Decode(&task)
	if err == nil {
		err = work(task)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Send sends an event to the parent. The child exits if the parent is gone. A kill
// never leaves a part of an event of less than 4 KiB, because such a write to a
// pipe is atomic.
func Send(event any) {
	line, err := json.Marshal(event)
	if err == nil {
		_, err = os.Stdout.Write(append(line, '\n'))
	}
	if err != nil {
		os.Exit(1)
	}
}

// Process is a running child.
type Process struct {
	command *exec.Cmd
	events  io.Reader
	errors  bytes.Buffer
}

// Start starts a child that works on the task.
func Start(t testing.TB, task any) *Process {
	t.Helper()
	encoded, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), marker+"=1")
	p.command.Stdin = bytes.NewReader(encoded)
	p.command.Stderr = &p.errors
	p.events, err = p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Signal sends a signal to the child.
func (p *Process) Signal(signal os.Signal) error { return p.command.Process.Signal(signal) }

// Kill kills the child. No code of the child runs after Kill returns.
func (p *Process) Kill() { _ = p.command.Process.Kill() }

// maxEvent is the size of the largest event.
const maxEvent = 1 << 20

// Follow calls handle with every event until the child has ended, and reports
// whether Kill ended it. It returns an error if the child failed.
func Follow[Event any](p *Process, handle func(Event)) (killed bool, err error) {
	lines := bufio.NewScanner(p.events)
	lines.Buffer(nil, maxEvent)
	for err == nil && lines.Scan() {
		var event Event
		if err = json.Unmarshal(lines.Bytes(), &event); err == nil {
			handle(event)
		}
	}
	if err == nil {
		err = lines.Err()
	}
	if err != nil {
		p.Kill()
		_ = p.command.Wait()
		return false, fmt.Errorf("event %q of the child: %w", lines.Text(), err)
	}
	err = p.command.Wait()
	if p.command.ProcessState.String() == "signal: killed" {
		killed, err = true, nil
	}
	if err != nil || p.errors.Len() > 0 {
		return killed, fmt.Errorf("the child failed: %v\n%s", err, p.errors.String())
	}
	return killed, nil
}
