package pgserver

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

// TestServer_OwnerKilled kills the process that started a server: the server ends
// too.
func TestServer_OwnerKilled(t *testing.T) {
	require(t, Available())
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"=1")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	directories := strings.Fields(line)
	t.Cleanup(func() { must(t, errors.Join(os.RemoveAll(directories[0]), os.RemoveAll(directories[1]))) })
	lockFile, err := os.ReadFile(filepath.Join(directories[0], "data", "postmaster.pid"))
	must(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(lockFile))[0])
	must(t, err)
	pids := []int{pid}
	all, err := process.List()
	must(t, err)
	for _, p := range all {
		if p.Parent == pid {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) < 4 {
		t.Fatalf("processes %v of a whole server", pids)
	}
	must(t, command.Process.Kill())
	_ = command.Wait()
	for deadline := time.Now().Add(2 * time.Minute); slices.ContainsFunc(pids, isRunning) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	wantGone(t, pids)
}
