//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Pause makes the server hang: it keeps its connections, takes new ones, and
// answers none until [Server.Continue]. It fails on a server that is not
// running. A process that is killed while its server is paused leaves it behind.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postmaster.running() {
		return errNotRunning
	}
	children, err := s.hold()
	if err != nil {
		return err
	}
	if err := signalAll(children, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return awaitStopped(children)
}

// Continue lets a paused server go on. It fails on a server that is not running.
func (s *Server) Continue() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.postmaster.running() {
		return errNotRunning
	}
	children, err := childrenOf(s.postmaster.process.Pid)
	if err != nil {
		return err
	}
	err = errors.Join(signalAll(children, syscall.SIGCONT), s.postmaster.process.Signal(syscall.SIGCONT))
	if err != nil {
		return fmt.Errorf("pgserver: %w", err)
	}
	return nil
}

// hold stops the postmaster, so that it starts no more children, and returns
// those that it has.
func (s *Server) hold() ([]process, error) {
	pid := s.postmaster.process.Pid
	if err := s.postmaster.process.Signal(syscall.SIGSTOP); err != nil {
		return nil, fmt.Errorf("pgserver: stop the postmaster: %w", err)
	}
	all, err := processes()
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.pid == pid {
			if err := awaitStopped([]process{p}); err != nil {
				return nil, err
			}
		}
	}
	return childrenOf(pid)
}

// awaitStopped waits until every process that has been told to stop has done so:
// the signal alone does not wait for it.
func awaitStopped(some []process) error {
	const patience = 10 * time.Second
	deadline := time.Now().Add(patience)
	for {
		left, err := survivors(some)
		if err != nil || allStopped(left) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pgserver: %d processes do not stop within %v", len(left), patience)
		}
		time.Sleep(pollEvery)
	}
}

func allStopped(some []process) bool {
	for _, p := range some {
		if !p.stopped() {
			return false
		}
	}
	return true
}
