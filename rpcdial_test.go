package relayer_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer"
)

// TestDialControl covers addresses as a Dialer gives them.
func TestDialControl(t *testing.T) {
	listed := relayer.RPCPolicy{PublicOnly: true, AllowedHosts: []string{"a.example"}, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/10")}}
	everything := relayer.RPCPolicy{AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	tests := []struct {
		address                              string
		zero, publicOnly, listed, everything bool
	}{
		{"8.8.8.8:443", true, true, true, true},
		{"[2606:4700:4700::1111]:443", true, true, true, true},
		{"[64:ff9b::8.8.8.8]:443", true, true, true, true},
		{"127.0.0.1:8545", true, false, false, true},
		{"[::1]:8545", true, false, false, true},
		{"[::ffff:127.0.0.1]:8545", true, false, false, true},
		{"[64:ff9b::127.0.0.1]:8545", true, false, false, true},
		{"[2002:7f00:1::]:8545", true, false, false, true},
		{"192.168.0.1:80", true, false, false, true},
		{"10.1.2.3:80", true, false, true, true},
		{"[::ffff:10.1.2.3]:80", true, false, true, true},
		{"[fe80::1%eth0]:80", true, false, true, true},
		{"[fd00::1]:80", true, false, false, true},
		{"100.64.0.1:80", true, false, false, true},
		{"255.255.255.255:80", true, false, false, true},
		{"169.254.169.254:80", false, false, false, false},
		{"[::ffff:169.254.169.254]:80", false, false, false, false},
		{"[fd00:ec2::254]:80", false, false, false, false},
		{"[fe80::a9fe:a9fe%eth0]:80", false, false, false, false},
		{"0.0.0.0:80", false, false, false, false},
		{"[::]:80", false, false, false, false},
		{"[::%eth0]:80", false, false, false, false},
		{":80", false, false, false, false},
		{"", false, false, false, false},
		{"8.8.8.8", false, false, false, false},
		{"/run/node.sock", false, false, false, false},
		{"a.example:443", false, false, false, false},
	}
	for _, test := range tests {
		for name, is := range map[string]struct {
			policy  relayer.RPCPolicy
			allowed bool
		}{
			"zero": {relayer.RPCPolicy{}, test.zero}, "public only": {publicOnly, test.publicOnly}, "listed": {listed, test.listed}, "everything": {everything, test.everything},
		} {
			err := is.policy.DialControl("tcp", test.address, nil)
			if (err == nil) != is.allowed || err != nil && !errors.Is(err, relayer.ErrAddressRefused) {
				t.Errorf("%s of %q: error %v", name, test.address, err)
			}
		}
	}
}

// lyingDNS is a name server on loopback that gives each of its answers to one
// question for an IPv4 address, and the last to all that follow.
func lyingDNS(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		message := make([]byte, 1500)
		for asked := 0; ; {
			n, from, err := server.ReadFrom(message)
			if err != nil {
				return
			}
			reply, isForIPv4 := dnsReply(message[:n], netip.MustParseAddr(answers[min(asked, len(answers)-1)]))
			if isForIPv4 {
				asked++
			}
			_, _ = server.WriteTo(reply, from)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// dnsReply answers a question for an IPv4 address, and any other with no answer
// (RFC 1035 section 4).
func dnsReply(query []byte, answer netip.Addr) (reply []byte, isForIPv4 bool) {
	const headerLength, typeA = 12, 1
	end := headerLength
	for query[end] != 0 {
		end += 1 + int(query[end])
	}
	end++
	isForIPv4 = binary.BigEndian.Uint16(query[end:]) == typeA
	end += 4
	reply = append(reply, query[0], query[1], 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0) // an authoritative response to one question
	reply = append(reply, query[headerLength:end]...)
	if isForIPv4 {
		reply[7] = 1                                                            // one answer,
		reply = append(reply, 0xc0, headerLength, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4) // of the same name, not to be kept, of four bytes
		reply = append(reply, answer.AsSlice()...)
	}
	return reply, isForIPv4
}

var errNotSent = errors.New("the test sends nothing beyond loopback")

// onLoopback stops what control lets through before it leaves the machine.
func onLoopback(control func(network, address string, c syscall.RawConn) error) func(network, address string, c syscall.RawConn) error {
	return func(network, address string, c syscall.RawConn) error {
		if err := control(network, address, c); err != nil {
			return err
		}
		if !netip.MustParseAddrPort(address).Addr().IsLoopback() {
			return errNotSent
		}
		return nil
	}
}

func anyAddress(string, string, syscall.RawConn) error { return nil }

// clientOf asks the resolver at each request, and control at each connection.
func clientOf(t *testing.T, resolver *net.Resolver, control func(network, address string, c syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Resolver: resolver, Control: onLoopback(control), Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestRebinding: a name that meant a public address when its URL was checked,
// and at the first call, means an internal one at the next.
func TestRebinding(t *testing.T) {
	var served atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "internal")
	}))
	defer node.Close()
	url := fmt.Sprintf("http://rebinds.example.:%d/SECRET", netip.MustParseAddrPort(node.Listener.Addr().String()).Port())
	if message := policyProblem(t, publicOnly, url); message != "" {
		t.Fatalf("the URL is refused already: %s", message)
	}
	tests := []struct {
		name, rebound string
		control       func(network, address string, c syscall.RawConn) error
		want          error
		served        int64
	}{
		{"loopback", "127.0.0.1", publicOnly.DialControl, relayer.ErrAddressRefused, 0},
		{"loopback without control", "127.0.0.1", anyAddress, nil, 1},
		{"loopback under the zero policy", "127.0.0.1", relayer.RPCPolicy{}.DialControl, nil, 1},
		{"metadata", "169.254.169.254", publicOnly.DialControl, relayer.ErrAddressRefused, 0},
		{"metadata without control", "169.254.169.254", anyAddress, errNotSent, 0},
		{"metadata under the zero policy", "169.254.169.254", relayer.RPCPolicy{}.DialControl, relayer.ErrAddressRefused, 0},
		{"unspecified", "0.0.0.0", relayer.RPCPolicy{}.DialControl, relayer.ErrAddressRefused, 0},
		{"a listed name", "127.0.0.1", relayer.RPCPolicy{PublicOnly: true, AllowedHosts: []string{"rebinds.example"}}.DialControl, relayer.ErrAddressRefused, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			served.Store(0)
			client := clientOf(t, lyingDNS(t, "93.184.215.14", test.rebound), test.control)
			if _, err := client.Get(url); !errors.Is(err, errNotSent) {
				t.Fatalf("the first call: error %v, want it to be let through", err)
			}
			response, err := client.Get(url)
			if !errors.Is(err, test.want) {
				t.Errorf("the second call: error %v, want %v", err, test.want)
			}
			if err == nil {
				_ = response.Body.Close()
			}
			if served.Load() != test.served {
				t.Errorf("the node was called %d times, want %d", served.Load(), test.served)
			}
			if dialErr := errors.Unwrap(err); dialErr != nil && strings.Contains(dialErr.Error(), "SECRET") {
				t.Errorf("error %v repeats the URL", dialErr)
			}
		})
	}
}

// TestRedirect: an endpoint that is allowed cannot send its caller inside.
func TestRedirect(t *testing.T) {
	var inside atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer node.Close()
	endpoint := httptest.NewServer(http.RedirectHandler(strings.Replace(node.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusTemporaryRedirect))
	defer endpoint.Close()
	policy := relayer.RPCPolicy{PublicOnly: true, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if _, err := clientOf(t, nil, policy.DialControl).Get(endpoint.URL); !errors.Is(err, relayer.ErrAddressRefused) || !strings.Contains(err.Error(), "127.0.0.2") {
		t.Errorf("error %v", err)
	}
	if inside.Load() != 0 {
		t.Error("the node was called")
	}
}
