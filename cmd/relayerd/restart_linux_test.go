package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var restarts = flag.Int("restarts", 3, "restarts behind each proxy")

// No request fails while two servers of a database restart in turn behind a proxy that checks
// whether they are ready.
func TestRestart_TwoServers(t *testing.T) {
	t.Parallel()
	requireProgram(t, "caddy")
	database := newDatabase(t)
	servers := []*process{startAt(t, vacantAddress(t).String(), database), startAt(t, vacantAddress(t).String(), database)}
	clients := sendRequests(t, startReverseProxy(t, "caddy", []string{servers[0].url, servers[1].url}))
	awaitRequest(t, servers[1])
	for i := range *restarts {
		servers[i%2].stop()
		servers[i%2] = startAt(t, servers[i%2].address(), database)
		awaitRequest(t, servers[i%2])
	}
	clients.end(t)
	for _, server := range servers {
		server.stop()
	}
}

// No request fails while the only server of a file restarts, because systemd keeps its socket
// open: connections wait for the next process.
func TestRestart_Socket(t *testing.T) {
	t.Parallel()
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		t.Parallel()
		database := filepath.Join(t.TempDir(), "relayers.db")
		listener := mustGet(net.ListenTCP("tcp", vacantAddress(t)))(t)
		defer listener.Close()
		socket := mustGet(listener.File())(t)
		defer socket.Close()
		server := startActivated(t, socket, database)
		clients := sendRequests(t, behind(server.url))
		awaitRequest(t, server)
		for range *restarts {
			server.stop()
			server = startActivated(t, socket, database)
			awaitRequest(t, server)
		}
		clients.end(t)
		server.stop()
	})
}

// startActivated starts a server as systemd does, with a listening socket.
func startActivated(t *testing.T, socket *os.File, database string) *process {
	t.Helper()
	const asSystemd = `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`
	served := program(token, "serve", "--db", database, "--rate", "0")
	command := exec.Command("sh", append([]string{"-c", asSystemd}, served.Args...)...)
	command.Env, command.ExtraFiles = served.Env, []*os.File{socket}
	p := &process{t: t, command: command, output: new(output)}
	if !p.run() {
		t.Fatalf("the server does not start: %s", p.output)
	}
	return p
}

// A server uses only the socket of a unit for it, and refuses several. On a Unix socket no client has
// an address, which --trusted-proxies could contain.
func TestServe_RefusedSockets(t *testing.T) {
	t.Parallel()
	listener := mustGet(net.ListenUnix("unix", &net.UnixAddr{Net: "unix"}))(t) // the kernel chooses a name
	defer listener.Close()
	socket := mustGet(listener.File())(t)
	defer socket.Close()
	for count, want := range map[string]string{
		"1": "--trusted-proxies requires a ListenStream of host:port: clients of a Unix socket have no address\n",
		"2": "the unit of the socket must have one ListenStream, and nothing else that listens\n",
	} {
		served := program(token, "serve", "--db", "memory", "--trusted-proxies", "::1")
		command := exec.Command("timeout", append([]string{"60", "sh", "-c", "LISTEN_PID=$$ LISTEN_FDS=" + count + ` exec "$0" "$@"`}, served.Args...)...)
		command.Env, command.ExtraFiles = served.Env, []*os.File{socket}
		if output, err := command.CombinedOutput(); err == nil || string(output) != "relayerd: "+want {
			t.Errorf("%s sockets: error %v: %s", count, err, output)
		}
	}
	other := serverCommand(token, "--addr", "127.0.0.1:0", "--db", "memory")
	other.Env = append(other.Env, "LISTEN_PID=1", "LISTEN_FDS=1") // of another process
	server := &process{t: t, command: other, output: new(output)}
	server.run()
	server.stop()
}

// systemd is notified when the server serves, after everything that can fail.
func TestServe_NotifySocket(t *testing.T) {
	t.Parallel()
	socket := mustGet(net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"}))(t) // the kernel chooses a name
	defer socket.Close()
	notifying := func(socket, database string) *exec.Cmd {
		command := serverCommand(token, "--db", database)
		command.Env = append(command.Env, "NOTIFY_SOCKET="+socket)
		return command
	}
	for database, want := range map[string]string{"memory": "unset NOTIFY_SOCKET", filepath.Join(t.TempDir(), "absent", "r.db"): newFileHint} {
		if failed := finish(t, "", notifying(socket.LocalAddr().String()+"-absent", database)); !strings.Contains(failed.stderr, want) {
			t.Errorf("--db %s: %v, want %s", database, failed, want)
		}
	}
	server := &process{t: t, command: notifying(socket.LocalAddr().String(), "memory"), output: new(output)}
	server.run()
	message := make([]byte, 100)
	must(t, socket.SetReadDeadline(time.Now().Add(2*time.Minute)))
	if n, err := socket.Read(message); err != nil || string(message[:n]) != "READY=1" {
		t.Errorf("the message is %q with error %v", message[:n], err)
	}
	server.stop()
}

// startAt starts a server with an address, and the drain delay that is the default.
func startAt(t *testing.T, address, database string) *process {
	t.Helper()
	return start(t, token, "--addr", address, "--db", database, "--drain-delay", "3s", "--rate", "0")
}

// awaitRequest waits until the proxy sends requests to a server again.
func awaitRequest(t *testing.T, server *process) {
	t.Helper()
	received := func() bool {
		_, metrics := server.do("GET", "/metrics", "")
		return !strings.Contains(metrics, `relayerd_responses_total{code="200"} 0`)
	}
	if !await(received) {
		t.Fatal("the proxy sends no requests")
	}
}

// requests are clients that send requests until they end.
type requests struct {
	clients sync.WaitGroup
	ending  chan struct{}
	ended   sync.Once
	sent    atomic.Int64
	failed  atomic.Int64
}

// sendRequests starts clients that create, read, change and delete relayers.
func sendRequests(t *testing.T, proxy *reverseProxy) *requests {
	s := &requests{ending: make(chan struct{})}
	for n := range 4 {
		client := proxy.client(fmt.Sprintf("127.0.0.%d", 2+n))
		s.clients.Go(func() {
			for round := 0; ; round++ {
				s.send(t, client, fmt.Sprintf("r-%d-%d", n, round))
				select {
				case <-s.ending:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(s.stop)
	return s
}

func (s *requests) stop() {
	s.ended.Do(func() { close(s.ending) })
	s.clients.Wait()
}

// send sends the requests about one relayer. None has a condition.
func (s *requests) send(t *testing.T, client proxyClient, id string) {
	one := collection + "/" + id
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", collection, definitionOf(id), http.StatusCreated},
		{"GET", one, "", http.StatusOK},
		{"GET", collection, "", http.StatusOK},
		{"PATCH", one, `{"paused":true}`, http.StatusOK},
		{"DELETE", one, "", http.StatusOK},
	} {
		s.sent.Add(1)
		response, content, err := client.proxy.try(client.http, c.method, c.path, token, c.body)
		if err != nil || response.StatusCode != c.want {
			s.failed.Add(1)
			t.Errorf("%s %s returned %v %s, error %v, want %d", c.method, c.path, response, content, err, c.want)
		}
	}
}

func (s *requests) end(t *testing.T) {
	t.Helper()
	s.stop()
	t.Logf("%d of %d requests failed in %d restarts", s.failed.Load(), s.sent.Load(), *restarts)
}

// Nothing waits for a pipe that has replaced a file.
func TestReload_Pipe(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens)
	must(t, os.Remove(tokens))
	must(t, unix.Mkfifo(tokens, 0o600))
	server.output.awaitText(t, "no longer a regular file", 1)
	must(t, os.Remove(tokens))
	writeTokens(t, tokens, "alice "+newToken+" write")
	server.output.awaitText(t, `file reloaded" flag=--tokens-file`, 1)
	server.stop()
}

// A changed file is read as soon as the server has descriptors again.
func TestReload_TooManyOpenFiles(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	writeTokens(t, tokens, "alice "+oldToken+" write")
	server := start(t, "", "--db", "memory", "--tokens-file", tokens)
	pid := server.command.Process.Pid
	var before unix.Rlimit
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: before.Max}, nil))
	writeTokens(t, tokens, "alice "+newToken+" write")
	server.output.awaitText(t, "too many open files", 1)
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	server.output.awaitText(t, `file reloaded" flag=--tokens-file`, 1)
	server.expect("GET", collection, oldToken, "", http.StatusUnauthorized)
}
