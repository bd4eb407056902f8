//go:build unix && !linux

package pgserver

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

func endWithParent(*syscall.SysProcAttr) {}

func listProcesses() ([]processState, error) {
	output, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "state=", "-o", "ppid=").Output()
	var all []processState
	for line := range strings.Lines(string(output)) {
		var p processState
		_, _ = fmt.Sscan(line, &p.pid, &p.state, &p.parent)
		all = append(all, p)
	}
	return all, err
}
