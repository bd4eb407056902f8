//go:build unix && !linux

package pgserver

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// processes lists the processes of the machine.
func processes() ([]process, error) {
	output, err := exec.Command("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "state=", "-o", "lstart=").Output()
	if err != nil {
		return nil, fmt.Errorf("pgserver: ps: %w", err)
	}
	var all []process
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			return nil, fmt.Errorf("pgserver: ps: unexpected line %q", line)
		}
		pid, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("pgserver: ps: %w", err)
		}
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("pgserver: ps: %w", err)
		}
		all = append(all, process{pid: pid, parent: parent, state: fields[2], started: strings.Join(fields[3:], " ")})
	}
	return all, nil
}
