package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// newCertificate returns a self-signed certificate for 127.0.0.1 and more addresses, and its key.
func newCertificate(t *testing.T, name string, expiry time.Time, more ...net.IP) (cert, key string) {
	t.Helper()
	private := mustGet(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: expiry.Add(-48 * time.Hour), NotAfter: expiry,
		IPAddresses: append(more, net.IPv4(127, 0, 0, 1)), IsCA: true, BasicConstraintsValid: true,
	}
	der := mustGet(x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private))(t)
	encoded := mustGet(x509.MarshalPKCS8PrivateKey(private))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// tlsFiles writes a certificate that is valid for an hour and its key, and returns the flags.
func tlsFiles(t *testing.T) (certFile, keyFile string, flags []string) {
	t.Helper()
	directory := t.TempDir()
	certFile, keyFile = filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	cert, key := newCertificate(t, "first", time.Now().Add(time.Hour))
	writeFile(t, certFile, cert)
	writeFile(t, keyFile, key)
	return certFile, keyFile, []string{"--tls-cert", certFile, "--tls-key", keyFile}
}

// getTLS requests a path of a server over HTTP/2, and returns the name of its certificate.
func getTLS(t *testing.T, server *process, path string) (name, body string) {
	t.Helper()
	secure := &process{t: t, url: strings.Replace(server.url, "http:", "https:", 1)}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
	response, body, err := secure.try(client, "GET", path, token, "")
	must(t, err)
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("status %d over %s, want 200 over HTTP/2", response.StatusCode, response.Proto)
	}
	return response.TLS.PeerCertificates[0].Subject.CommonName, body
}

// A certificate and its key are read again when both have changed. An expired one is a warning.
func TestTLS_Reload(t *testing.T) {
	t.Parallel()
	certFile, keyFile, flags := tlsFiles(t)
	server := startMemory(t, flags...)
	expectName := func(want string) {
		t.Helper()
		if name, _ := getTLS(t, server, readinessPath); name != want {
			t.Errorf("the certificate is that of %s, want %s", name, want)
		}
	}
	expectName("first")
	expiry := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	cert, key := newCertificate(t, "expired", expiry)
	writeFile(t, certFile, cert) // without its key it is not used
	server.output.awaitText(t, `stays in use" flag=--tls-cert`, 1)
	expectName("first")
	const warning = "the certificate has expired: clients refuse to connect"
	if strings.Contains(server.output.String(), warning) {
		t.Errorf("the log warns of a valid certificate: %s", server.output)
	}
	writeFile(t, keyFile, key)
	server.output.awaitText(t, `"file reloaded" flag=--tls-cert`, 1)
	expectName("expired")
	server.output.awaitText(t, warning, 1)
	if _, metrics := getTLS(t, server, "/metrics"); !strings.Contains(metrics, fmt.Sprintf("\nrelayerd_tls_certificate_expiry_timestamp_seconds %v\n", float64(expiry.Unix()))) {
		t.Errorf("the metrics do not have the expiry %s: %s", expiry, metrics)
	}
	expectOutput(t, "ready\n", "healthcheck", "--addr", server.address(), "--tls")
	expectFailure(t, "status 400 Bad Request: "+useHTTPS, "healthcheck", "--addr", server.address())
	server.stop()
}

// A stop waits for a request over HTTP/2 whose client is gone too: it may still write.
func TestShutdown_ClientGone(t *testing.T) {
	for took, want := range map[time.Duration]struct {
		stop   time.Duration
		isWarn bool
	}{
		10 * time.Second: {10 * time.Second, false},
		20 * time.Second: {drainTimeout, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := new(output)
			logger := slog.New(slog.NewTextHandler(log, nil))
			closed, closeListener := context.WithCancel(t.Context())
			listener := pipeListener{make(chan net.Conn), closed, closeListener}
			gone, ended := make(chan struct{}), make(chan struct{})
			server := newServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				close(gone)
				time.Sleep(took)
				close(ended)
			}), logger)
			server.Protocols = new(http.Protocols)
			server.Protocols.SetUnencryptedHTTP2(true)
			ctx, stop := context.WithCancel(t.Context())
			stopped := make(chan error, 1)
			go func() { stopped <- serveUntil(ctx, server, listener, 0, logger) }()
			transport := &http.Transport{Protocols: server.Protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
				client, accepted := net.Pipe()
				listener.connections <- accepted
				return client, nil
			}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: time.Second}
			if response, err := client.Get("http://relayer"); err == nil {
				t.Fatalf("status %d, want a timeout", response.StatusCode)
			}
			<-gone
			began := time.Now()
			stop()
			err := <-stopped
			if time.Since(began) != want.stop || err != nil || strings.Contains(log.String(), "level=WARN") != want.isWarn {
				t.Errorf("the stop took %v, want %v, error %v: %s", time.Since(began), want.stop, err, log)
			}
			<-ended
		})
	}
}

// Clients that fail to connect cannot fill the log: their errors have one line a second, with their
// number. A panic always has a line.
func TestErrorLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(output)
		errorLog := newServer(nil, slog.New(slog.NewTextHandler(log, nil))).ErrorLog
		for range 50 {
			errorLog.Printf("http: TLS handshake error from %s: EOF", "192.0.2.7:4000")
			time.Sleep(time.Second / 40)
		}
		errorLog.Printf("http2: server: error reading preface from client %s: bogus greeting %q", "192.0.2.7:4000", ": panic serving 12345678") // no panic
		errorLog.Printf("http: panic serving %s: fault\nstack", "192.0.2.7:4000")
		errorLog.Printf("http2: panic serving %s: fault\nstack", "192.0.2.7:4000")
		var got []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(line, "level=WARN msg=")
			got = append(got, line)
		}
		const handshake = `"http: TLS handshake error from 192.0.2.7:4000: EOF" count=`
		want := []string{handshake + "1\n", handshake + "40\n", `"http: panic serving 192.0.2.7:4000: fault\nstack" count=11` + "\n", `"http2: panic serving 192.0.2.7:4000: fault\nstack" count=1` + "\n"}
		if !slices.Equal(got, want) {
			t.Errorf("lines %q, want %q", got, want)
		}
	})
}

// A command trusts the authority of --ca-file, and no other private one.
func TestTarget_TLS(t *testing.T) {
	t.Parallel()
	certFile, _, flags := tlsFiles(t)
	server := startMemory(t, flags...)
	url := strings.Replace(server.url, "http:", "https:", 1)
	expectFailure(t, "certificate signed by unknown authority: name the authority of the server with --ca-file", "export", "--server", url)
	expectFailure(t, useHTTPS, "export", "--server", server.url)
	expectFailure(t, useHTTPS, "backup", "--server", server.url, "--to", filepath.Join(t.TempDir(), "backup.db"))
	expect(t, 0, "export", "--server", url, "--ca-file", certFile)
	expectFailure(t, "status 404", "backup", "--server", url, "--ca-file", certFile, "--to", filepath.Join(t.TempDir(), "backup.db"))
	server.stop()
}
