//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 2 * time.Minute // recovery included
	endPatience   = time.Minute     // of the postmaster
	orphanGrace   = 5 * time.Second // for its children to see that it is gone
	pollEvery     = 5 * time.Millisecond
)

var (
	errRunning    = errors.New("pgserver: the server is running")
	errNotRunning = errors.New("pgserver: the server is not running")
)

// Restart starts the server again after [Server.Kill] or [Server.Stop], on the
// same files, and returns when it accepts connections, recovery included. It
// fails on a server that runs or is closed.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("pgserver: the server is closed")
	}
	if s.postmaster.running() {
		return errRunning
	}
	return s.start()
}

func (s *Server) start() error {
	log, err := os.OpenFile(s.log(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	defer log.Close()
	command := s.command("postgres", "-D", s.data())
	command.Stdout, command.Stderr = log, log
	endWithParent(command.SysProcAttr)
	if s.postmaster, err = startPostmaster(command); err != nil {
		return fmt.Errorf("pgserver: start postgres: %w", err)
	}
	return s.awaitReady()
}

// awaitReady follows the file in which the postmaster tells how far it is. What
// a killed one has left there goes by its own pid.
func (s *Server) awaitReady() error {
	deadline := time.Now().Add(startPatience)
	for s.postmaster.running() {
		lines := s.lockFile()
		if len(lines) >= 8 && lines[0] == strconv.Itoa(s.postmaster.process.Pid) {
			// A standby that accepts reads has the status standby.
			if status := strings.TrimSpace(lines[7]); status == "ready" || status == "standby" {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("pgserver: the server is not ready after %v:\n%s", startPatience, s.logTail()), s.end(syscall.SIGKILL))
		}
		time.Sleep(pollEvery)
	}
	return fmt.Errorf("pgserver: the server ended at its start:\n%s", s.logTail())
}

// Kill ends the postmaster with SIGKILL, as a crash would, and returns when no
// process of the server is left. It fails on a server that is not running.
func (s *Server) Kill() error { return s.endRunning(syscall.SIGKILL) }

// Stop shuts the server down in an orderly way without waiting for its clients:
// open transactions are rolled back. It returns when no process of the server is
// left, and fails on a server that is not running.
func (s *Server) Stop() error { return s.endRunning(syscall.SIGINT) }

func (s *Server) endRunning(signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postmaster.running() {
		return errNotRunning
	}
	return s.end(signal)
}

// end signals the postmaster and waits for all processes to go. The children are
// listed first, since each is in a session of its own and nothing tells whose an
// orphan was.
func (s *Server) end(signal syscall.Signal) error {
	children, err := s.hold()
	if err != nil {
		_ = s.postmaster.process.Kill()
		<-s.postmaster.exited
		return err
	}
	_ = s.postmaster.process.Signal(signal)
	_ = s.postmaster.process.Signal(syscall.SIGCONT)
	if err := signalAll(children, syscall.SIGCONT); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return errors.Join(s.awaitExit(), awaitOrphans(children))
}

func (s *Server) awaitExit() error {
	select {
	case <-s.postmaster.exited:
		return nil
	case <-time.After(endPatience):
		_ = s.postmaster.process.Kill()
		<-s.postmaster.exited
		return fmt.Errorf("pgserver: the server did not end within %v and was killed:\n%s", endPatience, s.logTail())
	}
}

// awaitOrphans waits for processes whose postmaster is gone. They see it soon,
// unless they are deep in a computation: those are killed, as long ones would
// keep the next postmaster from starting.
func awaitOrphans(orphans []process) error {
	left, err := awaitEnd(orphans, orphanGrace)
	if err != nil || len(left) == 0 {
		return err
	}
	if err := signalAll(left, syscall.SIGKILL); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	if left, err = awaitEnd(left, orphanGrace); err == nil && len(left) > 0 {
		return fmt.Errorf("pgserver: %d processes of the server do not end", len(left))
	}
	return err
}

// awaitEnd returns those of some processes that still run after a time.
func awaitEnd(some []process, patience time.Duration) ([]process, error) {
	deadline := time.Now().Add(patience)
	for {
		left, err := survivors(some)
		if err != nil || len(left) == 0 || time.Now().After(deadline) {
			return left, err
		}
		time.Sleep(pollEvery)
	}
}

func (s *Server) log() string { return filepath.Join(s.directory, "log") }

// logTail returns the last lines that the server wrote.
func (s *Server) logTail() string {
	const enough = 4 << 10
	file, err := os.Open(s.log())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > enough {
		_, _ = file.Seek(-enough, io.SeekEnd)
	}
	tail, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(tail)
}

// lockFile returns the lines of postmaster.pid, none where there is none: among
// them the pid first, the ids of the shared memory seventh, the status eighth.
func (s *Server) lockFile() []string {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// removeSharedMemory removes the few bytes of system shared memory that a killed
// server leaves until its next start, where there is to be none. Failing that
// they stay until the machine is started again, which hurts nobody.
func (s *Server) removeSharedMemory() {
	lines := s.lockFile()
	if len(lines) < 7 {
		return
	}
	if ids := strings.Fields(lines[6]); len(ids) == 2 {
		_ = exec.Command("ipcrm", "-m", ids[1]).Run()
	}
}
