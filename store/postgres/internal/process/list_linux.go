package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// endWithParent sends SIGINT when this process ends.
func endWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// parent returns the directory in which the directories of servers are created.
func parent() string {
	const memory, room = "/dev/shm", 8 << 30
	var of syscall.Statfs_t
	if err := syscall.Statfs(memory, &of); err == nil && of.Bavail*uint64(of.Bsize) >= room {
		return memory
	}
	return "/tmp"
}

// List returns the processes of the machine.
func List() ([]State, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	var all []State
	for _, file := range files {
		text, gone := os.ReadFile(file)
		if gone != nil {
			continue
		}
		// The name in parentheses may contain blanks and parentheses.
		var p State
		line := string(text)
		_, _ = fmt.Sscan(line, &p.PID)
		_, _ = fmt.Sscan(line[strings.LastIndexByte(line, ')')+1:], &p.letter, &p.Parent)
		all = append(all, p)
	}
	return all, err
}
