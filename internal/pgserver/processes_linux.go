package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes lists the processes of the machine.
func processes() ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var all []process
	for _, file := range files {
		line, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("pgserver: %w", err)
		}
		one, err := parseStat(string(line))
		if err != nil {
			return nil, fmt.Errorf("pgserver: %s: %w", file, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// parseStat reads a line of /proc/PID/stat: the name in its second field may
// hold anything, blanks and parentheses included.
func parseStat(line string) (process, error) {
	opening, closing := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if opening < 0 || closing < opening {
		return process{}, fmt.Errorf("unexpected line %q", line)
	}
	fields := strings.Fields(line[closing+1:])
	if len(fields) < 20 {
		return process{}, fmt.Errorf("unexpected line %q", line)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line[:opening]))
	if err != nil {
		return process{}, err
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, err
	}
	return process{pid: pid, parent: parent, state: fields[0], started: fields[19]}, nil
}
