//go:build linux

package patroni

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-relayer/relayer/store/postgres/internal/process"
)

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
