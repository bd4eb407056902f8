//go:build linux

package patroni

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

//go:embed node.py
var script string

// Node is Patroni, its agent, and the PostgreSQL that it manages.
type Node struct {
	Name string

	cluster   *Cluster
	settings  Settings
	directory string
	port      int // of PostgreSQL
	apiPort   int
	api       string
	reapers   []*process.Process // one for each start of Patroni
}

func (c *Cluster) newNode(t *testing.T, name string, settings Settings) *Node {
	t.Helper()
	n := &Node{Name: name, cluster: c, settings: settings, directory: filepath.Join(c.directory, name), port: freePort(t), apiPort: freePort(t)}
	n.api = fmt.Sprintf("http://127.0.0.1:%d", n.apiPort)
	must(t, os.Mkdir(n.directory, 0o700))
	if c.account != nil {
		must(t, os.Chown(n.directory, int(c.account.Uid), int(c.account.Gid)))
	}
	binaries, err := pgserver.Binaries()
	must(t, err)
	config, err := json.Marshal(n.config(binaries)) // which is also YAML
	must(t, err)
	must(t, os.WriteFile(n.file("patroni.yml"), config, 0o644))
	must(t, os.WriteFile(n.file("node.py"), []byte(script), 0o644))
	return n
}

type object = map[string]any

func (n *Node) config(binaries string) object {
	user := object{"username": "postgres", "password": "postgres"}
	return object{
		"scope": "relayer",
		"name":  n.Name,
		"restapi": object{
			"listen": fmt.Sprintf("127.0.0.1:%d", n.apiPort), "connect_address": fmt.Sprintf("127.0.0.1:%d", n.apiPort),
		},
		"etcd": object{"host": fmt.Sprintf("127.0.0.1:%d", n.cluster.etcdPort)},
		"bootstrap": object{
			"dcs": object{
				"ttl": ttl, "loop_wait": loopWait, "retry_timeout": retryTimeout,
				"synchronous_mode": !n.settings.Asynchronous, "synchronous_mode_strict": n.settings.Strict,
				"maximum_lag_on_failover": 1 << 30,
				"primary_start_timeout":   0, // a crashed primary is not restarted, but replaced
				"postgresql":              object{"use_pg_rewind": true},
			},
			"initdb": []any{object{"encoding": "UTF8"}, object{"locale": "C"}, "data-checksums"},
		},
		"postgresql": object{
			"listen": fmt.Sprintf("127.0.0.1:%d", n.port), "connect_address": fmt.Sprintf("127.0.0.1:%d", n.port),
			"data_dir": n.data(), "bin_dir": binaries, "pgpass": n.file("pgpass"),
			"authentication": object{"superuser": user, "replication": user, "rewind": user},
			"pg_hba":         []string{"local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
			"remove_data_directory_on_rewind_failure":     true,
			"remove_data_directory_on_diverged_timelines": true,
			"parameters": object{
				"unix_socket_directories":     n.directory,
				"dynamic_shared_memory_type":  "mmap",
				"wal_retrieve_retry_interval": "100ms",
				"max_connections":             200,
			},
		},
	}
}

func (n *Node) file(name string) string { return filepath.Join(n.directory, name) }

func (n *Node) data() string { return n.file("data") }

// StartAgent starts Patroni, which starts PostgreSQL if that does not run, or adopts it.
func (n *Node) StartAgent(t *testing.T) {
	t.Helper()
	_ = os.Remove(n.file("agent.pid"))
	// As the program of Debian's package does: python3 on PATH may be another one.
	const python = "/usr/bin/python3"
	agent, err := exec.LookPath("patroni")
	must(t, err)
	reaper, err := process.Start(process.Command(n.cluster.account, n.directory, python, "node.py", "agent.pid", agent, "patroni.yml"), n.file("patroni.log"))
	must(t, err)
	n.reapers = append(n.reapers, reaper)
	must(t, process.Await("Patroni started", func() (bool, error) { return n.pidIn("agent.pid") > 0, nil }))
}

// KillAgent kills Patroni. PostgreSQL continues without fencing.
func (n *Node) KillAgent(t *testing.T) {
	t.Helper()
	must(t, syscall.Kill(n.pidIn("agent.pid"), syscall.SIGKILL))
}

// KillPostgres kills all processes of PostgreSQL, as a crash of its machine would.
func (n *Node) KillPostgres(t *testing.T) {
	t.Helper()
	postmaster := n.postmaster(t)
	must(t, process.SignalChildren(postmaster, syscall.SIGKILL, process.Ended))
	must(t, syscall.Kill(postmaster, syscall.SIGKILL))
}

// Pause stops PostgreSQL and Patroni with SIGSTOP, as a machine that hangs.
func (n *Node) Pause(t *testing.T) {
	t.Helper()
	must(t, syscall.Kill(n.pidIn("agent.pid"), syscall.SIGSTOP))
	must(t, process.SignalChildren(n.postmaster(t), syscall.SIGSTOP, process.Stopped))
}

// Continue ends a [Node.Pause].
func (n *Node) Continue(t *testing.T) {
	t.Helper()
	must(t, process.Resume(n.postmaster(t)))
	must(t, syscall.Kill(n.pidIn("agent.pid"), syscall.SIGCONT))
}

func (n *Node) postmaster(t *testing.T) int {
	t.Helper()
	pid := n.pidIn("data/postmaster.pid")
	if pid == 0 {
		t.Fatalf("patroni: PostgreSQL of %s does not run", n.Name)
	}
	return pid
}

// pidIn returns the number in the first line of a file, or 0.
func (n *Node) pidIn(name string) int {
	text, _ := os.ReadFile(n.file(name))
	line, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	return pid
}

func (n *Node) close() {
	for _, reaper := range n.reapers {
		_ = syscall.Kill(reaper.PID, syscall.SIGTERM)
		<-reaper.Exited
	}
}
