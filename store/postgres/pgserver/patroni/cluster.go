//go:build linux

// Package patroni runs a PostgreSQL cluster with unattended failover for tests: etcd, and
// three nodes of Patroni and PostgreSQL, all of them the programs of the machine. A test
// can kill the parts of a node one by one, or pause a node.
//
//	cluster := patroni.Start(t, patroni.Settings{})
//	store, err := postgres.Open(ctx, cluster.HostList(0))
//	leader := cluster.Leader(t)
//	leader.KillAgent(t)
//
// The programs listen on random ports of 127.0.0.1, do not run as root, and end with the
// test process. Patroni is tested with version 3.0.2 of Debian 12 and the v2 API of etcd:
// with the v3 API that version loses acknowledged writes if a leader hangs and resumes.
package patroni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
	"github.com/go-relayer/relayer/store/postgres/pgserver"
)

// The timing of Patroni, in seconds. A leader that does not renew its key loses it after
// the TTL.
const (
	ttl          = 8
	loopWait     = 1
	retryTimeout = 3
)

// Cluster is etcd and its nodes.
type Cluster struct {
	Nodes []*Node

	account   *syscall.Credential
	directory string
	etcdPort  int
	etcd      *process.Process
}

// Settings are the dynamic configuration of Patroni that differs between tests.
type Settings struct {
	Asynchronous bool // acknowledged writes may be lost
	Strict       bool // writes wait if no standby is synchronous
}

// Available returns an error if a program is missing or -short is set.
func Available() error {
	for _, program := range []string{"etcd", "patroni", "/usr/bin/python3"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("patroni: no %s on this machine: install it (Debian: etcd-server patroni)", program)
		}
	}
	return pgserver.Available()
}

// Start runs a cluster until the test ends, and returns when it has a leader and two
// standbys, one synchronous unless Asynchronous. It skips the test if a program is missing,
// and fails it instead if CI is set.
func Start(t *testing.T, settings Settings) *Cluster {
	t.Helper()
	missing := Available()
	if missing != nil && (testing.Short() || os.Getenv("CI") == "") {
		t.Skip(missing)
	}
	must(t, missing)
	account, err := process.Account()
	must(t, err)
	directory, err := process.MakeDirectory(account)
	must(t, err)
	c := &Cluster{account: account, directory: directory, etcdPort: freePort(t)}
	t.Cleanup(func() { c.close(t) })
	c.StartEtcd(t)
	for i := range 3 {
		c.Nodes = append(c.Nodes, c.newNode(t, fmt.Sprintf("n%d", i+1), settings))
	}
	for _, node := range c.Nodes {
		node.StartAgent(t)
	}
	c.AwaitHealthy(t)
	return c
}

func (c *Cluster) close(t *testing.T) {
	for _, node := range c.Nodes {
		node.close()
	}
	if c.etcd.Running() {
		c.StopEtcd()
	}
	if t.Failed() {
		for _, node := range c.Nodes {
			t.Logf("log of %s:\n%s", node.Name, process.Tail(node.file("patroni.log")))
		}
	}
	must(t, os.RemoveAll(c.directory))
}

// StartEtcd starts etcd with the data that it has.
func (c *Cluster) StartEtcd(t *testing.T) {
	t.Helper()
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", c.etcdPort), fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	if data, err := os.ReadFile(filepath.Join(c.directory, "peer")); err == nil {
		peer = string(data) // which etcd has stored
	}
	must(t, os.WriteFile(filepath.Join(c.directory, "peer"), []byte(peer), 0o644))
	command := process.Command(c.account, c.directory, "etcd", "--enable-v2", "--data-dir", "etcd", "--name", "e",
		"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "e="+peer, "--log-level", "error")
	path, err := exec.LookPath("etcd")
	must(t, err)
	command.Path = path
	c.etcd, err = process.Start(command, filepath.Join(c.directory, "etcd.log"))
	must(t, err)
	must(t, process.Await("etcd ready", func() (bool, error) {
		if !c.etcd.Running() {
			return false, errors.New("patroni: etcd has ended:\n" + process.Tail(filepath.Join(c.directory, "etcd.log")))
		}
		status, _ := get(client+"/health", nil)
		return status == http.StatusOK, nil
	}))
}

// StopEtcd kills etcd. Leaders demote themselves within the TTL.
func (c *Cluster) StopEtcd() {
	_ = syscall.Kill(c.etcd.PID, syscall.SIGKILL)
	<-c.etcd.Exited
}

// HostList returns the connection string of the database postgres on all nodes, beginning
// with the node of an index.
func (c *Cluster) HostList(first int) string {
	var hosts []string
	for i := range c.Nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", c.Nodes[(first+i)%len(c.Nodes)].port))
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?sslmode=disable&target_session_attrs=primary"
}

// StartHAProxy runs HAProxy with the configuration that docs/postgres.md recommends, until
// the test ends. It returns the address at which it leads to the primary.
func (c *Cluster) StartHAProxy(t *testing.T) (address string) {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	must(t, err)
	address = fmt.Sprintf("127.0.0.1:%d", freePort(t))
	lines := []string{
		"defaults", "mode tcp", "timeout connect 2s", "timeout client 1h", "timeout server 1h",
		"listen primary", "bind " + address, "option httpchk GET /primary", "http-check expect status 200",
		"default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions",
	}
	for _, n := range c.Nodes {
		lines = append(lines, fmt.Sprintf("server %s 127.0.0.1:%d check port %d", n.Name, n.port, n.apiPort))
	}
	config := filepath.Join(c.directory, "haproxy.cfg")
	must(t, os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	proxy, err := process.Start(process.Command(c.account, c.directory, path, "-db", "-f", config), filepath.Join(c.directory, "haproxy.log"))
	must(t, err)
	t.Cleanup(func() {
		_ = syscall.Kill(proxy.PID, syscall.SIGKILL)
		<-proxy.Exited
	})
	c.await(t, "HAProxy ready", func() bool {
		conn, err := net.Dial("tcp", address)
		return err == nil && conn.Close() == nil
	})
	return address
}

// Leader waits for a node that is the primary and holds the key of the leader, and returns
// it. Nodes in except do not count.
func (c *Cluster) Leader(t *testing.T, except ...*Node) *Node {
	t.Helper()
	return c.awaitNode(t, "a leader", "/primary", except...)
}

// SyncStandby waits for a synchronous standby and returns it.
func (c *Cluster) SyncStandby(t *testing.T) *Node {
	t.Helper()
	return c.awaitNode(t, "a synchronous standby", "/sync")
}

// awaitNode waits for a node whose Patroni responds to the path with 200, and returns it.
func (c *Cluster) awaitNode(t *testing.T, what, path string, except ...*Node) (found *Node) {
	t.Helper()
	c.await(t, what, func() bool {
		for _, node := range c.Nodes {
			if slices.Contains(except, node) {
				continue
			}
			if status, _ := get(node.api+path, nil); status == http.StatusOK {
				found = node
				return true
			}
		}
		return false
	})
	return found
}

// AwaitHealthy waits until all nodes run on the timeline of the leader, and one standby is
// synchronous if the cluster is.
func (c *Cluster) AwaitHealthy(t *testing.T) {
	t.Helper()
	c.await(t, "healthy", func() bool {
		var view struct {
			Members []struct {
				Role, State string
				Timeline    int
			}
		}
		// A node that was killed does not respond.
		leader := c.Leader(t)
		if status, _ := get(leader.api+"/cluster", &view); status != http.StatusOK || len(view.Members) != len(c.Nodes) {
			return false
		}
		roles := make(map[string]int)
		for _, m := range view.Members {
			if m.Timeline != view.Members[0].Timeline || m.State != "running" && m.State != "streaming" {
				return false
			}
			roles[m.Role]++
		}
		return roles["leader"] == 1 && (roles["sync_standby"] > 0 || c.Nodes[0].settings.Asynchronous)
	})
}

// SwitchOver asks the leader to hand over to the synchronous standby. It does not wait for
// that; wait returns when the response has arrived.
func (c *Cluster) SwitchOver(t *testing.T, leader *Node) (wait func()) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"leader": leader.Name, "candidate": c.SyncStandby(t).Name})
	must(t, err)
	var asking sync.WaitGroup
	asking.Go(func() {
		slowClient := &http.Client{Timeout: process.WaitLimit, Transport: client.Transport}
		if response, err := slowClient.Post(leader.api+"/switchover", "application/json", bytes.NewReader(body)); err == nil {
			response.Body.Close()
		}
	})
	return asking.Wait
}

// await fails the test with the state of the cluster if the condition does not hold in
// time.
func (c *Cluster) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := process.Await(what, func() (bool, error) { return condition(), nil }); err != nil {
		t.Fatalf("patroni: %v\n%s", err, c.state())
	}
}

func (c *Cluster) state() string {
	var all strings.Builder
	for _, node := range c.Nodes {
		var view json.RawMessage
		status, err := get(node.api+"/cluster", &view)
		fmt.Fprintf(&all, "%s: %d %s %v\n", node.Name, status, view, err)
	}
	return all.String()
}

var client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// get returns the status of a response, and decodes its body into a value unless that is
// nil.
func get(url string, into any) (status int, err error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(body, into)
	}
	return response.StatusCode, err
}

// freePort returns a port below those that the system gives to clients.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20_000 + rand.N(10_000)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			must(t, listener.Close())
			return port
		}
	}
	t.Fatal("patroni: no free port")
	return 0
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
