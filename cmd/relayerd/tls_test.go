package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// newCertificate returns a self-signed certificate for 127.0.0.1 and more addresses, and its
// key. It is valid for an hour.
func newCertificate(t *testing.T, name string, more ...net.IP) (cert, key []byte) {
	t.Helper()
	return newCertificateUntil(t, name, time.Now().Add(time.Hour), more...)
}

func newCertificateUntil(t *testing.T, name string, expiry time.Time, more ...net.IP) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: expiry.Add(-48 * time.Hour), NotAfter: expiry,
		IPAddresses: append(more, net.IPv4(127, 0, 0, 1)), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// writeCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func writeCertificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	directory := t.TempDir()
	certFile, keyFile = filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	cert, key := newCertificate(t, "relayerd")
	writeFiles(t, map[string][]byte{certFile: cert, keyFile: key})
	return certFile, keyFile
}

func writeFiles(t *testing.T, contents map[string][]byte) {
	t.Helper()
	for path, content := range contents {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// servedName returns the common name of the certificate that a server presents.
func servedName(t *testing.T, server *process, cert []byte) (name string, err error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	client := &http.Client{Transport: transport}
	response, err := client.Get(strings.Replace(server.url, "http://", "https://", 1) + "/healthz/ready")
	if err != nil {
		return "", err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 2 {
		t.Errorf("status %d over %s, want 200 over HTTP/2", response.StatusCode, response.Proto)
	}
	return response.TLS.PeerCertificates[0].Subject.CommonName, nil
}

func TestTLS_ReloadsCertificate(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	firstCert, firstKey := newCertificate(t, "first")
	writeFiles(t, map[string][]byte{certFile: firstCert, keyFile: firstKey})
	server := start(t, token, "--db", "memory", "--tls-cert", certFile, "--tls-key", keyFile)
	if name, err := servedName(t, server, firstCert); err != nil || name != "first" {
		t.Errorf("certificate %q, error %v", name, err)
	}

	// A certificate without its key is not used.
	secondCert, secondKey := newCertificate(t, "second")
	writeFiles(t, map[string][]byte{certFile: secondCert})
	awaitHandshakes := func(logged string) {
		t.Helper()
		isLogged := func() bool {
			_, _ = servedName(t, server, append(firstCert, secondCert...))
			return strings.Contains(server.output.String(), logged)
		}
		if !await(isLogged) {
			t.Fatalf("the log does not contain %q: %s", logged, server.output)
		}
	}
	awaitHandshakes(`stays in use" flag=--tls-cert`)
	if name, err := servedName(t, server, firstCert); err != nil || name != "first" {
		t.Errorf("certificate %q, error %v", name, err)
	}

	writeFiles(t, map[string][]byte{keyFile: secondKey})
	awaitHandshakes(`"file reloaded" flag=--tls-cert`)
	if name, err := servedName(t, server, secondCert); err != nil || name != "second" {
		t.Errorf("certificate %q, error %v", name, err)
	}
	if _, err := servedName(t, server, firstCert); !isUnknownAuthority(err) {
		t.Errorf("error %v, want an unknown authority", err)
	}
	server.stop()
}

// TestTLS_ExpiredCertificate checks that each way to look at a server shows that its
// certificate has expired, at the start and after a reload.
func TestTLS_ExpiredCertificate(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	expiry := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	expired, expiredKey := newCertificateUntil(t, "expired", expiry)
	valid, validKey := newCertificate(t, "valid")
	const warning = "the certificate has expired: clients refuse to connect"

	writeFiles(t, map[string][]byte{certFile: expired, keyFile: expiredKey})
	server := start(t, token, "--db", "memory", "--tls-cert", certFile, "--tls-key", keyFile)
	address := strings.TrimPrefix(server.url, "http://")
	server.output.awaitText(t, warning, 1)
	expectFailure(t, "its certificate expired on "+expiry.Format(time.RFC3339), "healthcheck", "--addr", address, "--tls")
	if got := servedExpiry(t, server); got != expiry.Unix() {
		t.Errorf("the metric of the expiry is %d, want %d", got, expiry.Unix())
	}

	writeFiles(t, map[string][]byte{certFile: valid, keyFile: validKey})
	if !await(func() bool { return servedExpiry(t, server) > time.Now().Unix() }) {
		t.Errorf("the metric of the expiry is still %d", servedExpiry(t, server))
	}
	if output := runCommand(t, "healthcheck", "--addr", address, "--tls"); output != "ready\n" {
		t.Errorf("output %q", output)
	}
	writeFiles(t, map[string][]byte{certFile: expired, keyFile: expiredKey})
	if !await(func() bool { return servedExpiry(t, server) == expiry.Unix() }) {
		t.Errorf("the expired certificate was not loaded: %s", server.output)
	}
	server.output.awaitText(t, warning, 2)
	server.stop()
}

// scrapeTLS returns the metrics of a server with a certificate.
func scrapeTLS(t *testing.T, server *process) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	request, err := http.NewRequest("GET", strings.Replace(server.url, "http://", "https://", 1)+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// servedExpiry returns the metric of the expiry.
func servedExpiry(t *testing.T, server *process) int64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^relayerd_tls_certificate_expiry_timestamp_seconds (\S+)$`).FindStringSubmatch(scrapeTLS(t, server))
	if found == nil {
		t.Fatal("there is no metric of the expiry")
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int64(value)
}

func isUnknownAuthority(err error) bool {
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok
}
