//go:build unix

// Package process runs the programs of servers for tests, as a user other than root. On
// Linux, killing the test process ends them too, unless they are paused.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Limits of [Await].
const (
	WaitLimit    = 2 * time.Minute // for any state to be reached, recovery included
	pollInterval = 5 * time.Millisecond
)

// Process is a program that runs until it is ended.
type Process struct {
	PID    int
	Exited chan struct{} // closed at the end
}

// Start starts the command with its output appended to the log file.
func Start(command *exec.Cmd, log string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	defer file.Close()
	command.Stdout, command.Stderr = file, file
	endWithParent(command.SysProcAttr)
	started := make(chan error)
	p := &Process{Exited: make(chan struct{})}
	go func() {
		// Linux treats the end of the starting thread as the end of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(p.Exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	p.PID = command.Process.Pid
	return p, nil
}

// Running reports whether the program runs. A nil Process does not.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Command returns a command for a user (nil for the current one) that starts in the
// directory, without the PG… variables of the environment.
func Command(account *syscall.Credential, directory, path string, arguments ...string) *exec.Cmd {
	command := exec.Command(path, arguments...)
	command.Dir = directory
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			command.Env = append(command.Env, variable)
		}
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: account, Setsid: true}
	return command
}

// State is one process as the system lists it.
type State struct {
	PID, Parent int
	letter      string
}

// Stopped reports whether a signal has stopped the process.
func Stopped(p State) bool { return strings.HasPrefix(p.letter, "T") }

// Ended includes zombies.
func Ended(p State) bool {
	return strings.HasPrefix(p.letter, "Z") || strings.HasPrefix(p.letter, "X")
}

// SignalChildren stops a process, so that it starts no children, signals those that it has
// and returns when all of them have the state.
func SignalChildren(pid int, signal syscall.Signal, state func(State) bool) error {
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	return Await("signaled", func() (bool, error) {
		processes, err := List()
		isStopped := false
		var children []int
		for _, p := range processes {
			switch {
			case p.PID == pid:
				isStopped = Stopped(p)
			case p.Parent == pid && !Ended(p) && !state(p):
				children = append(children, p.PID)
			}
		}
		if !isStopped {
			return false, err
		}
		for _, child := range children {
			_ = syscall.Kill(child, signal)
		}
		return len(children) == 0, err
	})
}

// Resume continues a process and its children after [SignalChildren] with SIGSTOP.
func Resume(pid int) error {
	processes, err := List()
	for _, p := range processes {
		if p.Parent == pid {
			_ = syscall.Kill(p.PID, syscall.SIGCONT)
		}
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return err
}

// Await polls until the condition is true.
func Await(what string, condition func() (bool, error)) error {
	for deadline := time.Now().Add(WaitLimit); ; time.Sleep(pollInterval) {
		done, err := condition()
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("process: not " + what + " within " + WaitLimit.String())
		}
	}
}

// Tail returns the last lines of a log file.
func Tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4096):])
}
