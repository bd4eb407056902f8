package rpcguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-relayer/relayer/rpcguard"
)

// problem returns the message with which a policy rejects a URL, or "". It fails if the
// message quotes the URL.
func problem(t testing.TB, policy rpcguard.Policy, text string) string {
	t.Helper()
	err := policy.Check(text)
	if err == nil {
		return ""
	}
	if strings.Contains(err.Error(), "SECRET") {
		t.Errorf("message %q repeats the URL", err)
	}
	return err.Error()
}

var publicOnly = rpcguard.Policy{PublicOnly: true}

// teredo returns the Teredo address of a client with an IPv4 address.
func teredo(a, b, c, d uint32) string {
	return fmt.Sprintf("[2001:0:808:808::%x:%x]", 0xffff^(a<<8|b), 0xffff^(c<<8|d))
}

// These are the first and last addresses of the blocks that are not public.
var notPublicIPv4 = [][4]uint32{
	{0, 0, 0, 1}, {0, 255, 255, 255}, {10, 0, 0, 0}, {10, 255, 255, 255}, {100, 64, 0, 0}, {100, 127, 255, 255}, {127, 0, 0, 1}, {127, 255, 255, 255},
	{169, 254, 0, 1}, {169, 254, 255, 255}, {172, 16, 0, 0}, {172, 31, 255, 255}, {192, 0, 0, 0}, {192, 0, 0, 255}, {192, 0, 2, 0}, {192, 0, 2, 255},
	{192, 88, 99, 1}, {192, 168, 0, 0}, {192, 168, 255, 255}, {198, 18, 0, 0}, {198, 19, 255, 255}, {198, 51, 100, 1}, {203, 0, 113, 1}, {224, 0, 0, 1}, {239, 255, 255, 255}, {240, 0, 0, 0}, {255, 255, 255, 255},
}

var notPublicHosts = []string{
	"[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::1%25lo]", "[::2]", "[::8.8.8.8]", "[fc00::1]", "[fd12:3456:789a::1]", "[fdff:ffff::]", "[fe80::1]", "[fe80::1%25eth0]", "[febf::1]", "[fec0::1]",
	"[ff02::1]", "[ff0e::1]", "[100::1]", "[2001::1]", "[2001:2::1]", "[2001:10::1]", "[2001:1ff::1]", "[2001:db8::1]", "[3fff::1]", "[3fff:fff::1]", "[5f00::1]", "[4000::1]", "[1fff:ffff::]",
	"[64:ff9b:1::8.8.8.8]", "[64:ff9b::1:808:808]", "[64:ff9c::1]", "[2002:a00:1::808:808]",
	"127.1", "127.0.1", "0x7f.1", "0177.1", "017700000001", "2130706433", "0x7f000001", "0x7F.0x0.0x0.0x1", "127.0.0.1.", "127.0.0.1..", "127.0.0.01", "0127.0.0.1",
	"１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏", "127.0.0\u00ad.1", "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1", "127.0.0.1%25eth0",
	"010.8.8.8", // 8.8.8.8 to some, 10.8.8.8 to others
	"localhost", "LOCALHOST", "localhost.", "LocalHost..", "node.localhost", "a.b.localhost.", "ｌocalhost", "ⓛocalhost", "local\u00adhost", "localhost。", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6", "ip6-localhost", "ip6-loopback",
	"a..example", ".example",
	"a", "geth", "GETH", "geth.", "eth-node", "ｇeth", "metadata.internal", "Node.Internal.", "node。internal", "node.local", "NODE.LOCAL", "a.b.local..", "node.lan", "node.home.arpa", "home.arpa.", "a.home.Arpa",
	"foo.svc", "foo.bar.svc.", "foo.svc.cluster.local", "foo.SVC.Cluster.Local.", "foo.bar.svc.cluster.local", "node.localdomain",
}

// PublicOnly rejects addresses that are not public, in every notation.
func TestCheck_NotPublic(t *testing.T) {
	hosts := notPublicHosts
	for _, ip := range notPublicIPv4 {
		hosts = append(append(hosts, spellings(ip[0], ip[1], ip[2], ip[3])...), teredo(ip[0], ip[1], ip[2], ip[3]))
	}
	for _, host := range hosts {
		for _, form := range []string{"http://%s/SECRET", "wss://user:SECRET@%s:8546"} {
			text := fmt.Sprintf(form, host)
			if message := problem(t, publicOnly, text); message != "must point at a public address" {
				t.Errorf("%s: message %q", text, message)
			}
		}
	}
}

// These hosts only resemble hosts that are not public.
func TestCheck_Public(t *testing.T) {
	hosts := []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
		"203.0.112.255", "203.0.114.0", "223.255.255.255", "192.31.196.1", "134744072", "0x08080808", "8.8.2056", "８.8.8.8",
		"[2000::1]", "[2001:200::1]", "[2001:db7:ffff::]", "[2001:db9::1]", "[2606:4700:4700::1111]", "[2A00::1]", "[3fff:1000::1]", "[3ffe::1]", "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2002:808:808::1]", "[2606:4700::1%25eth0]",
		"rpc.example", "rpc.example.", "RPC.Example", "r_p-c.example", "bücher.example", "xn--bcher-kva.example", "例え.テスト", "हिन्दी.example",
		"localhost.example", "a.mylocalhost", "a.localhosts", "xlocalhost.example", "local.host", "10.0.0.1.example", "127.0.0.1.nip.io", "fd00.example", "0x7f.0.0.1.example", "10-0-0-1.example", "internal.example", "local.example", "svc.example", "mylocal.example", "node.xlocal", "node.svcs", "arpa.home", "home.arpa.example", "xhome.arpa", "a.lans",
	}
	for _, host := range hosts {
		for _, form := range []string{"https://%s/v2/KEY", "ws://user:pass@%s:8546#f"} {
			text := fmt.Sprintf(form, host)
			if message := problem(t, publicOnly, text); message != "" {
				t.Errorf("%s is rejected: %s", text, message)
			}
		}
	}
}

// expectAllowed checks a URL with each host.
func expectAllowed(t *testing.T, policy rpcguard.Policy, message string, hosts map[string]bool) {
	t.Helper()
	for host, isAllowed := range hosts {
		want := map[bool]string{true: "", false: message}[isAllowed]
		if got := problem(t, policy, "https://"+host+"/SECRET"); got != want {
			t.Errorf("%+v, %q: message %q, want %q", policy, host, got, want)
		}
	}
}

func TestCheck_AllowedHosts(t *testing.T) {
	const refused = "must have a host that is allowed here"
	policy := rpcguard.Policy{AllowedHosts: []string{"RPC.example.", "*.Alchemy.com", "bücher.example", "localhost", "ÉTÉ.example"}}
	expectAllowed(t, policy, refused, map[string]bool{
		"rpc.example": true, "RPC.EXAMPLE": true, "rpc.example.": true, "rpc.example..": true, "ｒpc.example": true, "rpc。example": true, "rpc.exam\u00adple": true,
		"alchemy.com": false, "eth.alchemy.com": true, "a.b.ALCHEMY.com.": true, "eth.alchemy.com:443": true, ".alchemy.com": false, "..alchemy.com": false, "evilalchemy.com": false, "alchemy.com.evil.example": false,
		"bücher.example": true, "BÜCHER.example": true, "bu\u0308cher.example": true, "xn--bcher-kva.example": false, "été.example": true, "e\u0301te\u0301.example": true,
		"localhost": true, "127.0.0.1": false, "8.8.8.8": false, "[::1]": false, "134744072": false,
		"x.rpc.example": false, "rpc.example.evil.example": false, "rpc": false, "example": false, "rpc-example": false, "rpc.examples": false, "rpc.exampl": false, "xrpc.example": false, "rpc.ехample": false,
		"a..alchemy.com": false,
	})
	// An empty list is different from nil.
	expectAllowed(t, rpcguard.Policy{AllowedHosts: []string{}, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}, refused, map[string]bool{
		"rpc.example": false, "8.8.8.8": false, "10.1.2.3:8545": true, "10.1.2.4": false,
	})
	// The zero policy permits what is permitted without a policy.
	expectAllowed(t, rpcguard.Policy{}, "", map[string]bool{"localhost:8545": true, "10.0.0.1": true, "[::1]": true, "user:pass@a.example": true, "255.255.255.255": true})
	// An invisible joiner makes a different name in some scripts, which may have another owner.
	const plain, joined = "क्ष.example", "क्\u200dष.example"
	expectAllowed(t, rpcguard.Policy{AllowedHosts: []string{plain, "*.example.com"}}, refused, map[string]bool{
		plain: true, joined: false, "\u200c" + plain: false, "rpc.example.com": true, "rp\u00adc.example.com": true, "rp\u200dc.example.com": false,
	})
}

// Listed addresses are permitted in every notation, and no others.
func TestCheck_AllowedAddresses(t *testing.T) {
	listed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32"), netip.MustParsePrefix("127.0.0.0/8")}
	hosts := map[string]bool{
		"10.1.2.3": true, "10.1.0.0.": true, "0x0a010203": true, "10.66051": true, "[::ffff:10.1.2.3]": true, "[::ffff:a01:203]": true, "１０.1.2.3": true, "10.2.0.0": false, "10.0.255.255": false,
		"012.1.2.3":   false, // 10.1.2.3 to some, 12.1.2.3 to others, of whom it is the latter that a list of names forbids
		"[fd00:1::1]": true,
		"[fd00:2::1]": false,
		"127.0.0.1":   true,
		"[::1]":       false,
		"192.168.0.1": false, "[64:ff9b::a01:203]": false, "[2002:a01:203::]": false, "[::10.1.2.3]": false,
	}
	for host, isAllowed := range hosts {
		policy := rpcguard.Policy{AllowedHosts: []string{}, PublicOnly: true, AllowedAddresses: listed}
		if message := problem(t, policy, "http://"+host); (message == "") != isAllowed {
			t.Errorf("%s with allowed hosts: message %q", host, message)
		}
		policy.AllowedHosts = nil
		if message := problem(t, policy, "http://"+host); (message == "") != (isAllowed || host == "012.1.2.3") {
			t.Errorf("%s in spite of public only: message %q", host, message)
		}
	}
}

// A name that is private by convention is permitted if it is listed, and its addresses only if
// they are too.
func TestCheck_PrivateNameAllowed(t *testing.T) {
	policy := rpcguard.Policy{PublicOnly: true, AllowedHosts: []string{"geth", "LocalHost", "*.svc.cluster.local", "rpc.internal."}}
	for host, isAllowed := range map[string]bool{
		"geth": true, "GETH.": true, "localhost": true, "node.localhost": false, "foo.svc.cluster.local": true, "a.foo.SVC.cluster.local.": true, "foo.cluster.local": false,
		"rpc.internal": true, "other.internal": false, "metadata": false, "127.0.0.1": false,
	} {
		if message := problem(t, policy, "http://"+host+":8545"); (message == "") != isAllowed {
			t.Errorf("%s: message %q", host, message)
		}
	}
	if err := policy.DialControl("tcp", "127.0.0.1:8545", nil); !errors.Is(err, rpcguard.ErrRefused) {
		t.Errorf("an address that is not listed: error %v", err)
	}
}

// No policy permits what is rejected without one.
func TestCheck_NeverAllowed(t *testing.T) {
	policy := rpcguard.Policy{
		AllowedHosts:     []string{"metadata.google.internal", "*.goog", "*.google.internal"},
		AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	}
	for _, host := range []string{
		"metadata.google.internal", "metadata.goog", "169.254.169.254", "169.254.169.254%25eth0", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "0.0.0.0", "[::]",
		teredo(169, 254, 169, 254), "[2001:0:a9fe:a9fe::]", "[2001::ffff:ffff]",
	} {
		if message := problem(t, policy, "http://"+host); !strings.Contains(message, "metadata") && !strings.Contains(message, "unspecified") {
			t.Errorf("%s: message %q", host, message)
		}
	}
}

func TestCheck_UserInfo(t *testing.T) {
	for text, isAllowed := range map[string]bool{
		"user:SECRET@a.example": false, "SECRET@a.example": false, ":SECRET@a.example": false, "@a.example": false,
		"a.example/@b": true, "a.example?u=a@b": true, "a.example/#u@b": true,
	} {
		expectAllowed(t, rpcguard.Policy{RefuseUserInfo: true}, "must not contain user information", map[string]bool{text: isAllowed})
	}
}

// An invalid entry permits nothing.
func TestValidate(t *testing.T) {
	for _, host := range []string{
		"", ".", "*", "*.", "*.*", "*.*.example", "a.*.example", "a*.example", ".example.com", "a..example", "https://a.example", "a.example:443", "a.example/", "a.example/v2", "u@a.example", "a example", "a.example#", "a.example?", "[::1]", "a%",
		"10.0.0.1", "::1", "fe80::1%eth0", "0x7f000001", "127.1", "10.0.0.0/8", "１０.0.0.1", "7147006462", "256.256.256.256", "0178.0.0.1", "*.1", "rpc.example.0x1",
	} {
		policy := rpcguard.Policy{AllowedHosts: []string{host}}
		if policy.Validate() == nil {
			t.Errorf("allowed host %q accepted", host)
		}
		for _, name := range []string{"a", "a.example", "a.b.example", "rpc.example.com", "10.0.0.1"} {
			if problem(t, policy, "http://"+name) == "" {
				t.Errorf("allowed host %q permits %s", host, name)
			}
		}
	}
	const hostKey = "b33d000011112222333344445555aaaa"
	for _, host := range []string{hostKey + ".eth.rpc.example:443", "https://" + hostKey + ".eth.rpc.example"} {
		err := rpcguard.Policy{AllowedHosts: []string{host}}.Validate()
		if err == nil || strings.Contains(err.Error(), hostKey) || !strings.Contains(err.Error(), "***.eth.rpc.example") {
			t.Errorf("error %v of %s", err, host)
		}
	}
	for _, prefix := range []netip.Prefix{{}, netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33), netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
		if (rpcguard.Policy{AllowedAddresses: []netip.Prefix{prefix}}).Validate() == nil {
			t.Errorf("allowed address %v accepted", prefix)
		}
	}
}

// These addresses have the form that a Dialer passes.
func TestDialControl_Addresses(t *testing.T) {
	zero, everything := rpcguard.Policy{}, rpcguard.Policy{AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	listed := rpcguard.Policy{PublicOnly: true, AllowedHosts: []string{"a.example"}, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/10")}}
	for _, c := range []struct {
		addresses []string
		permit    []rpcguard.Policy
		refuse    []rpcguard.Policy
	}{
		{[]string{"8.8.8.8:443", "[2606:4700:4700::1111]:443", "[64:ff9b::8.8.8.8]:443"}, []rpcguard.Policy{zero, publicOnly, listed, everything}, nil},
		{[]string{
			"127.0.0.1:8545", "[::1]:8545", "[::ffff:127.0.0.1]:8545", "[64:ff9b::127.0.0.1]:8545", "[2002:7f00:1::]:8545", "192.168.0.1:80", "[fd00::1]:80",
			"100.64.0.1:80", "255.255.255.255:80",
		}, []rpcguard.Policy{zero, everything}, []rpcguard.Policy{publicOnly, listed}},
		{[]string{"10.1.2.3:80", "[::ffff:10.1.2.3]:80", "[fe80::1%eth0]:80"}, []rpcguard.Policy{zero, listed, everything}, []rpcguard.Policy{publicOnly}},
		{[]string{
			"169.254.169.254:80", "[::ffff:169.254.169.254]:80", "[fd00:ec2::254]:80", "[fe80::a9fe:a9fe%eth0]:80", "0.0.0.0:80", "[::]:80", "[::%eth0]:80", ":80",
			"", "8.8.8.8", "/run/node.sock", "a.example:443",
		}, nil, []rpcguard.Policy{zero, publicOnly, listed, everything}},
	} {
		for _, address := range c.addresses {
			for _, policy := range c.permit {
				if err := policy.DialControl("tcp", address, nil); err != nil {
					t.Errorf("%+v of %q: error %v", policy, address, err)
				}
			}
			for _, policy := range c.refuse {
				if err := policy.DialControl("tcp", address, nil); !errors.Is(err, rpcguard.ErrRefused) {
					t.Errorf("%+v of %q: error %v", policy, address, err)
				}
			}
		}
	}
}

// rebindingDNS is a name server on loopback that returns its answers in turn to queries for
// an IPv4 address, and the last one to all later queries (RFC 1035 section 4).
func rebindingDNS(t *testing.T, answers ...string) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 1500)
		for ; ; answers = answers[min(1, len(answers)-1):] {
			_, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			const headerLength = 12
			end := headerLength + bytes.IndexByte(query[headerLength:], 0) + 5
			reply := append(query[:2:2], 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0) // an authoritative response to one question
			reply = append(reply, query[headerLength:end]...)
			// One answer, of the same name, not to be kept, of four bytes.
			reply = append(reply, 0xc0, headerLength, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			reply = append(reply, netip.MustParseAddr(answers[0]).AsSlice()...)
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

var errNotSent = errors.New("the test sends nothing beyond loopback")

// onLoopback rejects connections that control permits and that would leave the machine.
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

// clientOf returns a client that resolves the name to an IPv4 address for each request, and calls
// control for each connection.
func clientOf(t *testing.T, resolver *net.Resolver, control func(network, address string, c syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Resolver: resolver, Control: onLoopback(control), Timeout: 10 * time.Second}
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp4", address)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A name resolves to a public address when its URL is checked and at the first call,
// and to an internal one at the next call.
func TestDialControl_Rebinding(t *testing.T) {
	var served atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		_, _ = io.WriteString(w, "internal")
	}))
	defer node.Close()
	url := fmt.Sprintf("http://rebinds.example.:%d/SECRET", netip.MustParseAddrPort(node.Listener.Addr().String()).Port())
	if message := problem(t, publicOnly, url); message != "" {
		t.Fatalf("the URL is rejected already: %s", message)
	}
	tests := []struct {
		name, rebound string
		control       func(network, address string, c syscall.RawConn) error
		want          error
		served        int64
	}{
		{"loopback", "127.0.0.1", publicOnly.DialControl, rpcguard.ErrRefused, 0},
		{"loopback without control", "127.0.0.1", anyAddress, nil, 1},
		{"loopback under the zero policy", "127.0.0.1", rpcguard.Policy{}.DialControl, nil, 1},
		{"metadata", "169.254.169.254", publicOnly.DialControl, rpcguard.ErrRefused, 0},
		{"metadata without control", "169.254.169.254", anyAddress, errNotSent, 0},
		{"metadata under the zero policy", "169.254.169.254", rpcguard.Policy{}.DialControl, rpcguard.ErrRefused, 0},
		{"unspecified", "0.0.0.0", rpcguard.Policy{}.DialControl, rpcguard.ErrRefused, 0},
		{"a listed name", "127.0.0.1", rpcguard.Policy{PublicOnly: true, AllowedHosts: []string{"rebinds.example"}}.DialControl, rpcguard.ErrRefused, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			served.Store(0)
			client := clientOf(t, rebindingDNS(t, "93.184.215.14", test.rebound), test.control)
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

// A permitted endpoint cannot redirect its client to an internal address.
func TestDialControl_Redirect(t *testing.T) {
	var inside atomic.Int64
	node := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer node.Close()
	endpoint := httptest.NewServer(http.RedirectHandler(strings.Replace(node.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusTemporaryRedirect))
	defer endpoint.Close()
	policy := rpcguard.Policy{PublicOnly: true, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if _, err := clientOf(t, nil, policy.DialControl).Get(endpoint.URL); !errors.Is(err, rpcguard.ErrRefused) || !strings.Contains(err.Error(), "127.0.0.2") {
		t.Errorf("error %v", err)
	}
	if inside.Load() != 0 {
		t.Error("the node was called")
	}
}

// spellings returns the notations of inet_aton for an IPv4 address, and the IPv6
// addresses that lead to it.
func spellings(a, b, c, d uint32) []string {
	return []string{
		fmt.Sprintf("%d.%d.%d.%d", a, b, c, d), fmt.Sprintf("%d.%d.%d.%d.", a, b, c, d),
		fmt.Sprintf("%d.%d.%d", a, b, c<<8|d), fmt.Sprintf("%d.%d", a, b<<16|c<<8|d), fmt.Sprintf("%d", a<<24|b<<16|c<<8|d), fmt.Sprintf("%d.", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("%#x.%#x.%#x.%#x", a, b, c, d), fmt.Sprintf("%#X.%d.%#x.%d", a, b, c, d), fmt.Sprintf("%#x", a<<24|b<<16|c<<8|d), fmt.Sprintf("%#X", a<<24|b<<16|c<<8|d), fmt.Sprintf("0x000000%x", a<<24|b<<16|c<<8|d),
		fmt.Sprintf("0%o.0%o.0%o.0%o", a, b, c, d), fmt.Sprintf("000%o.%d.0%o.%#x", a, b, c, d), fmt.Sprintf("0%o", a<<24|b<<16|c<<8|d), fmt.Sprintf("0%o.%#x", a, b<<16|c<<8|d),
		fmt.Sprintf("[::ffff:%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[::FFFF:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[0:0:0:0:0:ffff:%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:%x:%x%%25eth0]", a<<8|b, c<<8|d),
		fmt.Sprintf("[64:ff9b::%x:%x]", a<<8|b, c<<8|d), fmt.Sprintf("[64:ff9b::%d.%d.%d.%d]", a, b, c, d), fmt.Sprintf("[64:ff9b:1::%x:%x]", a<<8|b, c<<8|d),
		fmt.Sprintf("[2002:%x:%x::]", a<<8|b, c<<8|d), fmt.Sprintf("[2002:%x:%x::1]", a<<8|b, c<<8|d), fmt.Sprintf("[::ffff:0:%x:%x]", a<<8|b, c<<8|d),
	}
}

// Cloud metadata services and the unspecified address are rejected in every notation.
func TestCheck_DangerousHosts(t *testing.T) {
	hosts := map[string][]string{
		"cloud metadata": {
			"metadata", "METADATA", "metadata.", "metadata.google.internal", "Metadata.Google.Internal", "metadata.google.internal.", "metadata.google.internal..", "metadata.goog", "instance-data", "instance-data.ec2.internal",
			"[fd00:ec2::254]", "[FD00:EC2::254]", "[fd00:0ec2:0:0:0:0:0:0254]", "[fd00:ec2::254%25eth0]", "[fd00:ec2::0.0.2.84]", "[fd00:ec2::23]", "[fd20:ce::254]", "[fe80::a9fe:a9fe]", "[fe80::a9fe:a9fe%25eth0]",
			"[::169.254.169.254]", "[::a9fe:a9fe]", "168.63.129.16", "192.0.0.192", "169.254.170.2", "169.254.170.23", "169.254.0.23",
			"１６９.254.169.254", "169。254。169。254", "169．254．169．254", "169｡254.169.254", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "169.254.169.2\u00ad54", "169.254.169.25\u200d4", "169.254.169.254\ufe0f",
			"%EF%BC%91%EF%BC%96%EF%BC%99.254.169.254", "metadata.google。internal", "ｍetadata.google.internal", "ＭＥＴＡＤＡＴＡ", "𝟏𝟔𝟗.254.169.254", "meta\u00addata",
			"169\u034f.254.169.254", "m\u034fetadata.google.internal", "169.254.42.42", "[fd00:42::42]", "100.96.0.96", "metadata.tencentyun.com",
			"169.254.169.0254", "[64:ff9b:1:a9fe:a9:fe00::]", "[64:ff9b:1:12a9:fe:a9fe::]", "[64:ff9b:1:1234:a9:fea9:fe00::]",
		},
		"unspecified": {
			"0", "00", "0x0", "0X0", "0x", "0.0", "0x0.0", "000000000000", "[::]", "[0:0:0:0:0:0:0:0]", "[::0.0.0.0]", "[::%25eth0]", "０.0.0.0", "0。0", "⓪",
		},
	}
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(169, 254, 169, 254)...)
	hosts["cloud metadata"] = append(hosts["cloud metadata"], spellings(100, 100, 100, 200)...)
	hosts["unspecified"] = append(hosts["unspecified"], spellings(0, 0, 0, 0)...)
	for danger, hosts := range hosts {
		for _, host := range hosts {
			for _, form := range []string{"http://%s", "https://%s/latest/", "ws://user:pass@%s:80/x", "wss://%s:443?q"} {
				if message := problem(t, rpcguard.Policy{}, fmt.Sprintf(form, host)); !strings.Contains(message, danger) {
					t.Errorf("%s: message %q, want one of %s", fmt.Sprintf(form, host), message, danger)
				}
			}
		}
	}
}

// numericHosts look like IPv4 addresses and are not. A resolver that keeps the low 32
// bits of a number reads the first four as 169.254.169.254.
var numericHosts = []string{
	"7147006462", "0x1a9fea9fe", "425.254.169.254", "169.254.169.510", "4294967296", "0x100000000", "99999999999999999999", "0xfffffffffffffffff",
	"256.256.256.256", "256.254.169.254", "1.2.3.256", "1.2.65536", "1.16777216", "1.2.0x1000000", "256.1", "400.0", "1.2.3.4.5", "169.254.169.254.1", "0.0.0.0.0",
	"0178.0.0.1", "0169.0254.0169.0254", "169.254.0000169.254", "08", "1.09", "1.2.3.08", "0400.1", "a.1", "rpc.example.1", "rpc.0x", "rpc.0xff", "rpc.0", "eth_1.2", "-1.1", "1_0.1", "1..2", ".1", "1.-.2", "0xg.1", "a169.254.169.254", "127.0.0.1,8.8.8.8", "8.8.8.8&127.0.0.1",
	"7147006462.", "0X1A9FEA9FE", "256.256.256.256..", "７147006462", "２56。256。256。256", "①0000000000", "rpc.１", "42\u00ad94967296",
}

// A host whose last label is a number is an IPv4 address or invalid, as in the WHATWG
// URL standard. Clients disagree about the end of ambiguousHosts.
func TestCheck_InvalidHost(t *testing.T) {
	ambiguousHosts := []string{"169.254.169.254:80:80", "fd00:ec2::254", "127.0.0.1／.example", "169.254.169.254？.example", "169.254.169.254＃.example", "a＠169.254.169.254", "169.254.169.254：80", "a＼.example", "℀.example",
		"127.0.0.1;x.example", "a!.example", "evil.example,.alchemy.com", "rpc.example.com&api-key=KEY", "rpc.example.com=KEY", "a~b.example", "a'b.example"}
	for i, host := range append(slices.Clone(numericHosts), ambiguousHosts...) {
		for _, form := range []string{"ws://%s/SECRET", "wss://user:SECRET@%s:8546/SECRET"} {
			if strings.HasPrefix(form, "wss") && i >= len(numericHosts) {
				continue // the port and the user would change what is ambiguous
			}
			if message := problem(t, rpcguard.Policy{}, fmt.Sprintf(form, host)); message != "must have a host that is a name or an address" {
				t.Errorf("%s: message %q", fmt.Sprintf(form, host), message)
			}
		}
	}
}
