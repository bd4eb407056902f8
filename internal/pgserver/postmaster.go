//go:build unix

package pgserver

import (
	"os"
	"os/exec"
	"runtime"
)

// postmaster is the first process of a server, which starts all its others.
type postmaster struct {
	process *os.Process
	exited  chan struct{}
}

// startPostmaster starts the command, and waits for its end on the thread that
// started it: the system takes the end of that thread for the end of the parent.
func startPostmaster(command *exec.Cmd) (*postmaster, error) {
	started := make(chan error)
	exited := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err != nil {
			return
		}
		_ = command.Wait()
		close(exited)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &postmaster{process: command.Process, exited: exited}, nil
}

func (p *postmaster) running() bool {
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
