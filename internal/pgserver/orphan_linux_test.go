package pgserver_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestKilledOwner kills a process that runs a server: the server goes with it.
func TestKilledOwner(t *testing.T) {
	needServer(t)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+shortDirectory(t))
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimSpace(line)
	c, err := dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pids := pidsOf(t, c)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	for deadline := time.Now().Add(10 * time.Second); anyRunning(pids) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	wantGone(t, pids)
	if _, err := dial(socket); err == nil {
		t.Error("the server takes connections")
	}
}

func anyRunning(pids []int) bool {
	for _, pid := range pids {
		if running(pid) {
			return true
		}
	}
	return false
}
