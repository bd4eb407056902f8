//go:build unix

package pgserver

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

// process is a program that runs until it is ended.
type process struct {
	pid    int
	exited chan struct{}
}

// startProcess starts the command with its output appended to the log file.
func startProcess(command *exec.Cmd, log string) (*process, error) {
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	defer file.Close()
	command.Stdout, command.Stderr = file, file
	endWithParent(command.SysProcAttr)
	started := make(chan error)
	p := &process{exited: make(chan struct{})}
	go func() {
		// Linux treats the end of the starting thread as the end of the parent.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	p.pid = command.Process.Pid
	return p, nil
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// commandAs returns a command for a user that starts in the directory, without
// the PG… variables of the environment.
func commandAs(account *syscall.Credential, directory, path string, arguments ...string) *exec.Cmd {
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

// processState is one process as the system lists it. The state is a letter.
type processState struct {
	pid, parent int
	state       string
}

func stopped(p processState) bool { return strings.HasPrefix(p.state, "T") }

// ended includes zombies.
func ended(p processState) bool {
	return strings.HasPrefix(p.state, "Z") || strings.HasPrefix(p.state, "X")
}

// await polls until the condition is true.
func await(what string, condition func() (bool, error)) error {
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(pollInterval) {
		done, err := condition()
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return errors.New("pgserver: not " + what + " within " + waitLimit.String())
		}
	}
}

// tail returns the last lines of a log file.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4096):])
}
