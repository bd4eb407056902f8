package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// endWithParent ends the command when this process ends.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

func listProcesses() ([]processState, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	var all []processState
	for _, file := range files {
		text, gone := os.ReadFile(file)
		if gone != nil {
			continue
		}
		// The name in parentheses may contain blanks and parentheses.
		var p processState
		line := string(text)
		_, _ = fmt.Sscan(line, &p.pid)
		_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ')')+1:], &p.state, &p.parent)
		all = append(all, p)
	}
	return all, err
}
