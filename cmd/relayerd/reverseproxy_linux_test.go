package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// reverseProxies start a proxy with its configuration in deploy, which
// differs only in addresses and files.
var reverseProxies = map[string]func(t *testing.T, p *reverseProxy, config string) *exec.Cmd{
	"nginx": func(t *testing.T, p *reverseProxy, config string) *exec.Cmd {
		config = substitute(t, config, "listen 443 ssl", "listen "+p.address+" ssl")
		// gzip is what Debian has in the same place.
		temporary := ""
		for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			temporary += fmt.Sprintf("%s_temp_path %s/%[1]s;\n", name, p.directory)
		}
		config = "daemon off; master_process off; pid " + p.directory + "/pid; events {}\n" +
			"http { access_log off; gzip on; gzip_types *; gzip_min_length 0; gzip_proxied any;\n" + temporary + config + "}\n"
		path := filepath.Join(p.directory, "nginx.conf")
		writeFile(t, path, config)
		return exec.Command("nginx", "-c", path, "-p", p.directory, "-e", "stderr")
	},
	"caddy": func(t *testing.T, p *reverseProxy, config string) *exec.Cmd {
		config = substitute(t, config, "registry.example.com {", "https://"+p.address+" {")
		path := filepath.Join(p.directory, "Caddyfile")
		host, _, _ := strings.Cut(p.address, ":")
		// Caddy would listen on the port of every IP address, which others may use.
		writeFile(t, path, "{\n\tadmin off\n\tauto_https off\n\tdefault_bind "+host+"\n}\n"+config)
		command := exec.Command("caddy", "run", "--adapter", "caddyfile", "--config", path)
		command.Env = append(os.Environ(), "HOME="+p.directory, "XDG_DATA_HOME="+p.directory, "XDG_CONFIG_HOME="+p.directory)
		return command
	},
}

// eachReverseProxy runs a test behind each proxy.
func eachReverseProxy(t *testing.T, test func(t *testing.T, behind func(upstreams ...string) *reverseProxy)) {
	for name := range reverseProxies {
		t.Run(name, func(t *testing.T) {
			requireProgram(t, name)
			test(t, func(upstreams ...string) *reverseProxy { return startReverseProxy(t, name, upstreams) })
		})
	}
}

// nextUpstream separates the addresses of several servers in the configuration of a proxy.
var nextUpstream = map[string]string{"nginx": " fail_timeout=1s;\nserver ", "caddy": " "}

// reverseProxy is a running proxy.
type reverseProxy struct {
	t         *testing.T
	address   string
	directory string
	roots     *x509.CertPool
}

func startReverseProxy(t *testing.T, name string, upstreams []string) *reverseProxy {
	t.Helper()
	address := vacantAddress(t)
	p := &reverseProxy{t: t, address: address.String(), directory: t.TempDir(), roots: x509.NewCertPool()}
	cert, key := newCertificate(t, "proxy", time.Now().Add(time.Hour), address.IP)
	p.roots.AppendCertsFromPEM([]byte(cert))
	certFile, keyFile := writeFile(t, filepath.Join(p.directory, "cert.pem"), cert), writeFile(t, filepath.Join(p.directory, "key.pem"), key)

	file := map[string]string{"nginx": "nginx.conf", "caddy": "Caddyfile"}[name]
	config := substitute(t, deployed(t, file), "127.0.0.1:8080", strings.ReplaceAll(strings.Join(upstreams, nextUpstream[name]), "http://", ""))
	config = substitute(t, config, "/etc/ssl/certs/registry.pem", certFile)
	config = substitute(t, config, "/etc/ssl/private/registry.key", keyFile)
	command, log := reverseProxies[name](t, p, config), new(output)
	command.Stdout, command.Stderr = log, log
	must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("log of the proxy: %s", log)
		}
	})
	listens := func() bool {
		connection, err := net.Dial("tcp", p.address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	}
	if !await(listens) {
		t.Fatalf("the proxy does not listen: %s", log)
	}
	return p
}

var vacantAddresses atomic.Int32

// vacantAddress returns an address that no process listens on. No other test listens on its
// IP address, so that none takes it before the proxy does.
func vacantAddress(t *testing.T) *net.TCPAddr {
	t.Helper()
	n := vacantAddresses.Add(1)
	listener := mustGet(net.Listen("tcp", fmt.Sprintf("127.0.%d.%d:0", 1+n/250, 1+n%250)))(t)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr)
}

// substitute replaces a text that must occur once.
func substitute(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q occurs %d times in %s", old, strings.Count(text, old), text)
	}
	return strings.Replace(text, old, replacement, 1)
}

// client returns the proxy as a server, and a client with an address in 127.0.0.0/8.
func (p *reverseProxy) client(address string) proxyClient {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: p.roots}, ForceAttemptHTTP2: true,
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return proxyClient{&process{t: p.t, url: "https://" + p.address}, &http.Client{Transport: transport}}
}

// proxyClient sends requests from one client address.
type proxyClient struct {
	proxy *process
	http  *http.Client
}

// send sends a request with pairs of header names and values.
func (c proxyClient) send(method, path, body string, headers ...string) (*http.Response, string) {
	c.proxy.t.Helper()
	response, content, err := c.proxy.try(c.http, method, path, token, body, headers...)
	must(c.proxy.t, err)
	return response, content
}

// The log has the address of the client, which the client cannot choose.
func TestReverseProxy_ClientAddress(t *testing.T) {
	t.Parallel()
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		server := startMemory(t, "--trusted-proxies", "127.0.0.1,::1")
		proxy := behind(server.url)
		one, other := proxy.client("127.0.0.2"), proxy.client("127.0.0.3")
		one.send("POST", collection, definitionOf("of-one"))
		one.send("DELETE", collection+"/of-one", "", "X-Forwarded-For", "198.51.100.1")
		other.send("DELETE", collection+"/of-other", "", "X-Forwarded-For", "127.0.0.2")
		server.stop()
		log := server.output.String()
		for want, count := range map[string]int{
			`address=127\.0\.0\.2 .* relayer_id=of-one `: 2, `address=127\.0\.0\.3 .* relayer_id=of-other `: 1, ` msg=audit `: 3,
		} {
			if found := regexp.MustCompile(want).FindAllString(log, -1); len(found) != count {
				t.Errorf("%q is %d times in the log, want %d: %s", want, len(found), count, log)
			}
		}
	})
}

// Conditional requests, request IDs and errors pass unchanged.
func TestReverseProxy_Requests(t *testing.T) {
	t.Parallel()
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		server := startMemory(t, "--trusted-proxies", "127.0.0.1,::1", "--log-level", "debug")
		client := behind(server.url).client("127.0.0.2")
		one := collection + "/r-1"
		expect := func(want int, method, path, body string, headers ...string) *http.Response {
			t.Helper()
			response, content := client.send(method, path, body, append(headers, "X-Request-Id", "request-7")...)
			if response.StatusCode != want || response.Header.Get("X-Request-Id") != "request-7" {
				t.Errorf("%s %s returned %d, want %d, headers %v: %s", method, path, response.StatusCode, want, response.Header, content)
			}
			return response
		}
		created := expect(http.StatusCreated, "POST", collection, definition)
		etag := created.Header.Get("ETag")
		if !strings.HasPrefix(etag, `"`) || created.Header.Get("Location") != one {
			t.Errorf("ETag %s, Location %s", etag, created.Header.Get("Location"))
		}
		read := expect(http.StatusOK, "GET", one, "", "Accept-Encoding", "gzip")
		if read.Header.Get("ETag") != etag || read.Header.Get("Content-Encoding") != "" {
			t.Errorf("headers %v, want ETag %s", read.Header, etag)
		}
		expect(http.StatusNotModified, "GET", one, "", "If-None-Match", etag)
		expect(http.StatusOK, "HEAD", one, "")
		patched := expect(http.StatusOK, "PATCH", one, `{"paused":true}`, "If-Match", etag)
		expect(http.StatusPreconditionFailed, "PATCH", one, `{"paused":false}`, "If-Match", etag)
		expect(http.StatusPreconditionFailed, "DELETE", one, "", "If-Match", etag)
		expect(http.StatusOK, "DELETE", one, "", "If-Match", patched.Header.Get("ETag"))
		expect(http.StatusNotFound, "GET", one, "")
		expect(http.StatusMethodNotAllowed, "PUT", one, definition)

		// A path is not decoded or cleaned on the way.
		for _, path := range []string{collection + "/a%2Fb", collection + "/a%20b", collection + "//r-1", "/api/v1/../v1/relayers"} {
			status, body := server.do("GET", path, "")
			if response, passed := client.send("GET", path, ""); response.StatusCode != status || passed != body {
				t.Errorf("%s returned %d %s, and directly %d %s", path, response.StatusCode, passed, status, body)
			}
		}
		server.stop()
		if !strings.Contains(server.output.String(), "request_id=request-7") {
			t.Errorf("the log lacks the request ID: %s", server.output)
		}
	})
}

// The limit on bodies is that of relayerd.
func TestReverseProxy_BodyLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		server := startMemory(t)
		client := behind(server.url).client("127.0.0.2")
		for i, c := range []struct{ size, want int }{
			{limit, http.StatusCreated},
			{limit + 1, http.StatusRequestEntityTooLarge},
			{2*limit - 1, http.StatusRequestEntityTooLarge},
		} {
			body := definitionOf(fmt.Sprintf("body-%d", i))
			body += strings.Repeat(" ", c.size-len(body))
			// A client that expects 100-continue sends the body only after it; a proxy may not wait.
			for _, headers := range [][]string{{"Expect", "100-continue"}, nil} {
				response, content := client.send("POST", collection, body, headers...)
				if response.StatusCode != c.want || !strings.HasPrefix(content, `{"success":`) {
					t.Errorf("a body of %d bytes, headers %q, returned %d %s, want %d", c.size, headers, response.StatusCode, content, c.want)
				}
				body = strings.Replace(body, "body-", "BODY-", 1)
			}
		}
		server.stop()
	})
}

// newUpstream starts a server that is ready, and handles the other requests.
func newUpstream(t *testing.T, handle http.HandlerFunc) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc(readinessPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", handle)
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	return server
}

// The change stream of relayerd reports a write at once, and ends when the server stops.
func TestReverseProxy_Watch(t *testing.T) {
	t.Parallel()
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		server := startMemory(t)
		proxy := behind(server.url)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client := proxy.client("127.0.0.2")
		response := mustGet(client.proxy.send(ctx, client.http, "GET", collection+":watch", token, ""))(t)
		defer response.Body.Close()
		server.expect("POST", collection, token, definition, http.StatusCreated)
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), `"id":"r-1"`) {
		}
		if err := lines.Err(); err != nil || !strings.HasPrefix(lines.Text(), "data:") {
			t.Errorf("line %q, error %v", lines.Text(), err)
		}
		server.stop()
		if _, err := io.Copy(io.Discard, response.Body); ctx.Err() != nil {
			t.Errorf("the stream does not end: %v", err)
		}
	})
}

// A client that does not read holds up the server, which then drops changes. The proxy
// stores neither them nor a backup.
func TestReverseProxy_StreamBackpressure(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	contentTypes := map[string]string{collection + ":watch": "text/event-stream", backupPath: "application/octet-stream"}
	eachReverseProxy(t, func(t *testing.T, behind func(...string) *reverseProxy) {
		sent := make(chan int, 1)
		upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentTypes[r.URL.Path])
			event := []byte("data: " + strings.Repeat("x", 64<<10) + "\n\n")
			total := 0
			for total < most {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
				n, err := w.Write(event)
				total += n
				if err != nil {
					break
				}
			}
			sent <- total
		})
		proxy := behind(upstream.URL)
		for path := range contentTypes {
			response := mustGet(proxy.client("127.0.0.2").http.Get("https://" + proxy.address + path))(t)
			defer response.Body.Close()
			if total := <-sent; total >= most {
				t.Errorf("the proxy stored %d bytes of %s", total, path)
			}
		}
	})
}
