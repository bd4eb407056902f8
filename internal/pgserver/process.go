//go:build unix

package pgserver

import (
	"errors"
	"slices"
	"strings"
	"syscall"
)

// process is one process as the system lists it.
type process struct {
	pid, parent int
	state       string
	started     string // tells a process from a later one with the same pid
}

func (p process) stopped() bool { return strings.HasPrefix(p.state, "T") }

// ended holds for one that only waits for its parent to ask how it ended, which
// not every first process of a container ever does.
func (p process) ended() bool {
	return strings.HasPrefix(p.state, "Z") || strings.HasPrefix(p.state, "X")
}

func childrenOf(parent int) ([]process, error) {
	all, err := processes()
	return slices.DeleteFunc(all, func(p process) bool { return p.parent != parent || p.ended() }), err
}

// survivors returns those of some processes that still run, as they are now.
func survivors(some []process) ([]process, error) {
	all, err := processes()
	return slices.DeleteFunc(all, func(p process) bool {
		return p.ended() || !slices.ContainsFunc(some, func(q process) bool { return p.pid == q.pid && p.started == q.started })
	}), err
}

// signalAll signals every process that still runs.
func signalAll(some []process, signal syscall.Signal) error {
	var failed error
	for _, p := range some {
		if err := syscall.Kill(p.pid, signal); !errors.Is(err, syscall.ESRCH) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
