package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// newMemoryGroup creates a cgroup of version 1 or 2 with a limit, or skips the test if this
// user cannot create one.
func newMemoryGroup(t *testing.T, limit int64) (directory string) {
	t.Helper()
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(own)) {
		_, path, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(path, ":")
		if controllers == "memory" || controllers == "" && file == "memory.max" {
			root = filepath.Join(root, path)
		}
	}
	directory = filepath.Join(root, fmt.Sprintf("relayerd-%d", os.Getpid()))
	if err := os.Mkdir(directory, 0o755); err != nil {
		t.Skipf("no cgroup can be created: %v", err)
	}
	t.Cleanup(func() { await(func() bool { return os.Remove(directory) == nil }) })
	if err := os.WriteFile(filepath.Join(directory, file), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
		t.Skipf("a cgroup cannot be limited: %v", err)
	}
	return directory
}

// The garbage collector keeps to nine tenths of the limit of the container, unless the
// operator sets another one.
func TestMemory_LimitOfCgroup(t *testing.T) {
	const limit = 1_000_000 << 10 // whole pages, of which a tenth is exact
	group := newMemoryGroup(t, limit)
	for _, c := range []struct{ environment, want string }{
		{"IGNORED=1", fmt.Sprintf(`msg="memory limit of the garbage collector" bytes=%d`, limit/10*9)},
		{"GOMEMLIMIT=300MiB", `msg="memory limit of the garbage collector" bytes=314572800`},
	} {
		server := &process{t: t, output: new(output), command: serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory")}
		// The shell joins the group, and becomes the server.
		arguments := append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group}, server.command.Args...)
		server.command.Path, server.command.Args = requireProgram(t, "sh"), append([]string{"sh"}, arguments...)
		server.command.Env = append(server.command.Env, c.environment)
		server.run()
		server.stop()
		if text := server.output.String(); !strings.Contains(text, c.want+"\n") {
			t.Errorf("%s: the log is %s, want %s", c.environment, text, c.want)
		}
	}
}
