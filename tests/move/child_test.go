package move

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/store/transfer"
)

// task is what a child is to copy.
type task struct{ From, To place }

func child(text string) int {
	if err := copyAndTell(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// copyAndTell tells its progress line by line.
func copyAndTell(text string) error {
	var given task
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return err
	}
	ctx := context.Background()
	src, err := given.From.open(ctx)
	if err != nil {
		return err
	}
	dst, err := given.To.open(ctx)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(os.Stdout)
	return transfer.Copy(ctx, dst, src, transfer.WithProgress(func(p transfer.Progress) {
		_ = lines.Encode(p)
	}))
}

// copyKilled starts a child that copies, and kills it when it has come so far.
func copyKilled(t *testing.T, from, to place, isEnough func(transfer.Progress) bool) {
	t.Helper()
	text, err := json.Marshal(task{from, to})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childTask+"="+string(text))
	var complaints bytes.Buffer
	command.Stderr = &complaints
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		var progress transfer.Progress
		if err := json.Unmarshal(lines.Bytes(), &progress); err != nil {
			t.Errorf("line %q: %v", lines.Text(), err)
		}
		if isEnough(progress) {
			_ = command.Process.Kill()
		}
	}
	if err := command.Wait(); err == nil || !strings.Contains(err.Error(), "killed") || complaints.Len() > 0 {
		t.Fatalf("the child ended by itself: %v\n%s", err, complaints.String())
	}
}
