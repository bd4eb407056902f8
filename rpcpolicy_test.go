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
	"github.com/go-relayer/relayer/store/memory"
)

// policyProblem returns the message with which a policy rejects a URL, or "". It fails
// unless every way to write the URL has the same result, with the index of the URL and
// without quoting it.
func policyProblem(t testing.TB, policy relayer.RPCPolicy, text string) string {
	t.Helper()
	ctx := context.Background()
	m := newManager(t, relayer.WithRPCPolicy(policy))
	mustCreate(t, m, minimal("a"))
	endpoints := []relayer.RPCConfig{{URL: relayer.RPCURL(text)}}
	members := `"custom_rpc_urls":[{"url":` + treeText(t, text) + `}]`
	req := minimal("b")
	req.CustomRPCURLs = endpoints
	_, createErr := m.Create(ctx, req)
	_, wireErr := m.Documents().Create(ctx, []byte(evmBody(members)))
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.CustomRPCURLs = endpoints; return nil })
	_, patchErr := m.Documents().Patch(ctx, "a", []byte("{"+members+"}"))
	message := ""
	for i, err := range []error{createErr, wireErr, updateErr, patchErr} {
		got := ""
		if err != nil {
			problems := fieldErrors(t, err)
			wantFields(t, problems, "custom_rpc_urls[0].url")
			got = problems[0].Message
		}
		if i > 0 && got != message {
			t.Errorf("%s: one way in says %q, another %q", text, message, got)
		}
		message = got
	}
	if strings.Contains(message, "SECRET") {
		t.Errorf("message %q repeats the URL", message)
	}
	return message
}

var publicOnly = relayer.RPCPolicy{PublicOnly: true}

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
	"127.0.0.1;x.example", "a!.example", "a..example", ".example",
}

// PublicOnly rejects addresses that are not public, in every notation.
func TestRPCPolicy_NotPublic(t *testing.T) {
	hosts := notPublicHosts
	for _, ip := range notPublicIPv4 {
		hosts = append(append(hosts, spellings(ip[0], ip[1], ip[2], ip[3])...), teredo(ip[0], ip[1], ip[2], ip[3]))
	}
	for _, host := range hosts {
		for _, form := range []string{"http://%s/SECRET", "wss://user:SECRET@%s:8546"} {
			text := fmt.Sprintf(form, host)
			if message := policyProblem(t, publicOnly, text); message != "must point at a public address" {
				t.Errorf("%s: message %q", text, message)
			}
		}
	}
}

// These hosts only resemble hosts that are not public.
func TestRPCPolicy_Public(t *testing.T) {
	hosts := []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
		"191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
		"203.0.112.255", "203.0.114.0", "223.255.255.255", "192.31.196.1", "134744072", "0x08080808", "8.8.2056", "８.8.8.8",
		"[2000::1]", "[2001:200::1]", "[2001:db7:ffff::]", "[2001:db9::1]", "[2606:4700:4700::1111]", "[2A00::1]", "[3fff:1000::1]", "[3ffe::1]", "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2002:808:808::1]", "[2606:4700::1%25eth0]",
		"a", "rpc.example", "rpc.example.", "RPC.Example", "r_p-c.example", "bücher.example", "xn--bcher-kva.example", "例え.テスト", "हिन्दी.example",
		"localhost.example", "mylocalhost", "localhosts", "xlocalhost.example", "local.host", "10.0.0.1.example", "127.0.0.1.nip.io", "fd00.example", "0x7f.0.0.1.example", "10-0-0-1.example", "eth-node", "node.internal",
	}
	for _, host := range hosts {
		for _, form := range []string{"https://%s/v2/KEY", "ws://user:pass@%s:8546#f"} {
			text := fmt.Sprintf(form, host)
			if message := policyProblem(t, publicOnly, text); message != "" {
				t.Errorf("%s is rejected: %s", text, message)
			}
		}
	}
}

// The zero policy permits what is permitted without a policy.
func TestRPCPolicy_None(t *testing.T) {
	for _, text := range []string{"http://localhost:8545", "http://10.0.0.1", "http://[::1]", "https://user:pass@a.example#f", "http://255.255.255.255"} {
		if message := policyProblem(t, relayer.RPCPolicy{}, text); message != "" {
			t.Errorf("%s is rejected: %s", text, message)
		}
	}
}

func TestRPCPolicy_AllowedHosts(t *testing.T) {
	policy := relayer.RPCPolicy{AllowedHosts: []string{"RPC.example.", "*.Alchemy.com", "bücher.example", "localhost", "ÉTÉ.example"}}
	for host, isAllowed := range map[string]bool{
		"rpc.example": true, "RPC.EXAMPLE": true, "rpc.example.": true, "rpc.example..": true, "ｒpc.example": true, "rpc。example": true, "rpc.exam\u00adple": true,
		"alchemy.com": false, "eth.alchemy.com": true, "a.b.ALCHEMY.com.": true, "eth.alchemy.com:443": true, ".alchemy.com": false, "..alchemy.com": false, "evilalchemy.com": false, "alchemy.com.evil.example": false,
		"bücher.example": true, "BÜCHER.example": true, "bu\u0308cher.example": true, "xn--bcher-kva.example": false, "été.example": true, "e\u0301te\u0301.example": true,
		"localhost": true, "127.0.0.1": false, "8.8.8.8": false, "[::1]": false, "134744072": false,
		"x.rpc.example": false, "rpc.example.evil.example": false, "rpc": false, "example": false, "rpc-example": false, "rpc.examples": false, "rpc.exampl": false, "xrpc.example": false, "rpc.ехample": false,
		"evil.example;.alchemy.com": false, "evil.example,.alchemy.com": false, "evil.example&a.alchemy.com": false, "evil!.alchemy.com": false, "a..alchemy.com": false,
	} {
		message := policyProblem(t, policy, "https://"+host+"/SECRET")
		if want := map[bool]string{true: "", false: "must have a host that is allowed here"}[isAllowed]; message != want {
			t.Errorf("%s: message %q, want %q", host, message, want)
		}
	}
}

// An empty list is different from nil.
func TestRPCPolicy_NoAllowedHosts(t *testing.T) {
	policy := relayer.RPCPolicy{AllowedHosts: []string{}, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}
	for text, isAllowed := range map[string]bool{"https://rpc.example": false, "http://8.8.8.8": false, "http://10.1.2.3:8545": true, "http://10.1.2.4": false} {
		if message := policyProblem(t, policy, text); (message == "") != isAllowed {
			t.Errorf("%s: message %q", text, message)
		}
	}
}

// Listed addresses are permitted in every notation, and no others.
func TestRPCPolicy_AllowedAddresses(t *testing.T) {
	listed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/32"), netip.MustParsePrefix("127.0.0.0/8")}
	hosts := map[string]bool{
		"10.1.2.3": true, "10.1.0.0.": true, "0x0a010203": true, "10.66051": true, "[::ffff:10.1.2.3]": true, "[::ffff:a01:203]": true, "１０.1.2.3": true, "10.2.0.0": false, "10.0.255.255": false,
		"012.1.2.3":      false, // 10.1.2.3 to some, 12.1.2.3 to others, of whom it is the latter that a list of names forbids
		"[fd00:1::1]":    true,
		"[fd00:2::1]":    false,
		"127.0.0.1":      true,
		"localhost":      true,
		"node.localhost": true,
		"[::1]":          false,
		"192.168.0.1":    false, "[64:ff9b::a01:203]": false, "[2002:a01:203::]": false, "[::10.1.2.3]": false,
	}
	for host, isAllowed := range hosts {
		policy := relayer.RPCPolicy{AllowedHosts: []string{"localhost", "*.localhost"}, PublicOnly: true, AllowedAddresses: listed}
		if message := policyProblem(t, policy, "http://"+host); (message == "") != isAllowed {
			t.Errorf("%s with allowed hosts: message %q", host, message)
		}
		policy.AllowedHosts = nil
		if message := policyProblem(t, policy, "http://"+host); (message == "") != (isAllowed || host == "012.1.2.3") {
			t.Errorf("%s in spite of public only: message %q", host, message)
		}
	}
	held := relayer.RPCPolicy{AllowedHosts: []string{"localhost"}, PublicOnly: true}
	if message := policyProblem(t, held, "http://localhost"); message != "must point at a public address" {
		t.Errorf("a listed name of loopback: message %q", message)
	}
}

// No policy permits what is rejected without one.
func TestRPCPolicy_NeverAllowed(t *testing.T) {
	policy := relayer.RPCPolicy{
		AllowedHosts:     []string{"metadata.google.internal", "*.goog", "*.google.internal"},
		AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
	}
	for _, host := range []string{
		"metadata.google.internal", "metadata.goog", "169.254.169.254", "169.254.169.254%25eth0", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "0.0.0.0", "[::]",
		teredo(169, 254, 169, 254), "[2001:0:a9fe:a9fe::]", "[2001::ffff:ffff]",
	} {
		if message := policyProblem(t, policy, "http://"+host); !strings.Contains(message, "metadata") && !strings.Contains(message, "unspecified") {
			t.Errorf("%s: message %q", host, message)
		}
	}
}

// Clients disagree about the end of these hosts, which are rejected even without a
// policy.
func TestRPCPolicy_AmbiguousHostEnd(t *testing.T) {
	for _, host := range []string{"169.254.169.254:80:80", "fd00:ec2::254", "127.0.0.1／.example", "169.254.169.254？.example", "169.254.169.254＃.example", "a＠169.254.169.254", "169.254.169.254：80", "a＼.example", "℀.example"} {
		if message := urlProblem(t, "ws://"+host+"/SECRET"); message != "must have a host that is a name or an address" {
			t.Errorf("%s: message %q", host, message)
		}
	}
}

func TestRPCPolicy_UserInfo(t *testing.T) {
	const refused = "must not contain user information"
	for text, want := range map[string]string{
		"https://user:SECRET@a.example": refused,
		"https://SECRET@a.example":      refused,
		"https://:SECRET@a.example":     refused,
		"https://@a.example":            refused,
		"https://a.example/@b":          "",
		"https://a.example?u=a@b":       "",
		"https://a.example/#u@b":        "",
	} {
		if got := policyProblem(t, relayer.RPCPolicy{RefuseUserInfo: true}, text); got != want {
			t.Errorf("%s: message %q, want %q", text, got, want)
		}
	}
}

// Each invalid URL has one problem, and the other problems are reported too.
func TestRPCPolicy_WithOtherProblems(t *testing.T) {
	urls := `"custom_rpc_urls":[{"url":"https://a.example"},{"url":"http://10.0.0.1"},{"url":"nothing"},{"url":"http://0"},{"weight":1},{"url":"http://127.1","weight":101}]`
	problems := problemsOf(t, evmBody(urls, `"id":"/"`), relayer.WithRPCPolicy(publicOnly))
	wantFields(t, problems, "id", "custom_rpc_urls[1].url", "custom_rpc_urls[2].url", "custom_rpc_urls[3].url", "custom_rpc_urls[4].url", "custom_rpc_urls[5].url", "custom_rpc_urls[5].weight")
}

// New rejects an invalid policy.
func TestRPCPolicy_Invalid(t *testing.T) {
	for _, host := range []string{
		"", ".", "*", "*.", "*.*", "*.*.example", "a.*.example", "a*.example", ".example.com", "a..example", "https://a.example", "a.example:443", "a.example/", "a.example/v2", "u@a.example", "a example", "a.example#", "a.example?", "[::1]", "a%",
		"10.0.0.1", "::1", "fe80::1%eth0", "0x7f000001", "127.1", "10.0.0.0/8", "１０.0.0.1", "7147006462", "256.256.256.256", "0178.0.0.1", "*.1", "rpc.example.0x1",
	} {
		if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{"a.example", host}})); err == nil {
			t.Errorf("allowed host %q accepted", host)
		}
	}
	for _, host := range []string{hostKey + ".eth.rpc.example:443", "https://" + hostKey + ".eth.rpc.example"} {
		_, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{host}}))
		if err == nil || strings.Contains(err.Error(), hostKey) || !strings.Contains(err.Error(), "***.eth.rpc.example") {
			t.Errorf("error %v of %s", err, host)
		}
	}
	for _, prefix := range []netip.Prefix{{}, netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33), netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
		if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedAddresses: []netip.Prefix{prefix}})); err == nil {
			t.Errorf("allowed address %v accepted", prefix)
		}
	}
}

// Changes of the slices after New have no effect.
func TestRPCPolicy_Copied(t *testing.T) {
	hosts, addresses := []string{"A.example"}, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	m := newManager(t, relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: hosts, AllowedAddresses: addresses}))
	if hosts[0] != "A.example" {
		t.Errorf("the host's list was changed to %q", hosts)
	}
	hosts[0], addresses[0] = "b.example", netip.MustParsePrefix("10.0.0.2/32")
	for text, isAllowed := range map[relayer.RPCURL]bool{"http://a.example": true, "http://10.0.0.1": true, "http://b.example": false, "http://10.0.0.2": false} {
		req := minimal("")
		req.CustomRPCURLs = []relayer.RPCConfig{{URL: text}}
		if _, err := m.Create(t.Context(), req); (err == nil) != isAllowed {
			t.Errorf("%s: error %v", string(text), err)
		}
	}
}

// hostKey is a label of a host that looks like a key.
const hostKey = "b33d000011112222333344445555aaaa"

// The policy is applied to the real host, and again only if the URL is given again: with a
// sealer, a change of another field does not have it.
func TestRPCPolicy_KeyInHost(t *testing.T) {
	const allowed, other = "https://" + hostKey + ".eth.rpc.example", "https://" + hostKey + "0.eth.rpc.example"
	policy := relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{hostKey + ".eth.rpc.example"}, PublicOnly: true})
	for name, options := range map[string][]relayer.Option{"clear": {policy}, "sealed": {policy, relayer.WithSealer(ringOf(t, "k1"))}} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, options...)
			mustCreate(t, m, withURLs("a", allowed))
			if r, err := m.Patch(t.Context(), "a", relayer.Patch{"name": "changed"}); err != nil || r.Name != "changed" {
				t.Errorf("a patch of the name returned %v, error %v", r, err)
			}
			for _, url := range []string{other, "https://eth.rpc.example"} {
				problems := fieldErrors(t, second(m.Patch(t.Context(), "a", relayer.Patch{"custom_rpc_urls": withURLs("", url).CustomRPCURLs})))
				if problems[0] != (relayer.FieldError{Field: "custom_rpc_urls[0].url", Message: "must have a host that is allowed here"}) {
					t.Errorf("%s: %+v", url, problems)
				}
			}
			expectURLs(t, m, "a", allowed)
			if document := storedDocument(t, m, "a"); !strings.Contains(document, `"https://***.eth.rpc.example"`) || strings.Contains(document, hostKey) {
				t.Errorf("stored %s", document)
			}
			for id, err := range m.Check(t.Context()) {
				t.Errorf("check of %s: %v", id, err)
			}
		})
	}
}

// A relayer stored before the policy can be paused, deleted, and changed to comply.
func TestRPCPolicy_EnabledLater(t *testing.T) {
	ctx := t.Context()
	store := memory.New()
	before, err := relayer.New(store)
	if err != nil {
		t.Fatal(err)
	}
	req := minimal("a")
	req.CustomRPCURLs = []relayer.RPCConfig{{URL: "https://a.example"}, {URL: "http://127.0.0.1:8545"}}
	mustCreate(t, before, req)
	m, err := relayer.New(store, relayer.WithRPCPolicy(publicOnly))
	if err != nil {
		t.Fatal(err)
	}
	_, pauseErr := m.Pause(ctx, "a")
	_, resumeErr := m.Resume(ctx, "a")
	_, disableErr := m.Disable(ctx, "a", relayer.DisabledReason{Type: relayer.RPCValidationFailed})
	_, enableErr := m.Enable(ctx, "a")
	if err := errors.Join(pauseErr, resumeErr, disableErr, enableErr); err != nil {
		t.Error(err)
	}
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.Name = "x"; return nil })
	_, patchErr := m.Documents().Patch(ctx, "a", []byte(`{"name":"x"}`))
	for _, err := range []error{updateErr, patchErr} {
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[1].url")
	}
	if _, err := m.Documents().Patch(ctx, "a", []byte(`{"name":"x","custom_rpc_urls":[{"url":"https://a.example"}]}`)); err != nil {
		t.Error(err)
	}
	if err := m.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
}

// An invisible joiner makes a different name in some scripts, which may have another
// owner.
func TestRPCPolicy_Joiners(t *testing.T) {
	const plain, joined = "क्ष.example", "क्\u200dष.example"
	m, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{plain, "*.example.com"}}))
	if err != nil {
		t.Fatal(err)
	}
	for host, isAllowed := range map[string]bool{
		plain: true, joined: false, "\u200c" + plain: false, "rpc.example.com": true, "rp\u00adc.example.com": true, "rp\u200dc.example.com": false,
	} {
		_, err := m.Create(t.Context(), relayer.CreateRequest{Name: "n", Network: "x", NetworkType: relayer.EVM, SignerID: "s",
			CustomRPCURLs: []relayer.RPCConfig{{URL: relayer.RPCURL("https://" + host + "/")}}})
		if isAllowed && err != nil || !isAllowed && !errors.Is(err, relayer.ErrInvalid) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// These addresses have the form that a Dialer passes.
func TestDialControl_Addresses(t *testing.T) {
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

// rebindingDNS is a name server on loopback that returns its answers in turn to queries for
// an IPv4 address, and the last one to all later queries.
func rebindingDNS(t *testing.T, answers ...string) *net.Resolver {
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

// dnsReply returns the reply to a query for an IPv4 address, and an empty reply to
// other queries (RFC 1035 section 4).
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

// clientOf returns a client that resolves the name for each request, and calls control
// for each connection.
func clientOf(t *testing.T, resolver *net.Resolver, control func(network, address string, c syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Resolver: resolver, Control: onLoopback(control), Timeout: 10 * time.Second}
	transport := &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}
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
	if message := policyProblem(t, publicOnly, url); message != "" {
		t.Fatalf("the URL is rejected already: %s", message)
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
	policy := relayer.RPCPolicy{PublicOnly: true, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	if _, err := clientOf(t, nil, policy.DialControl).Get(endpoint.URL); !errors.Is(err, relayer.ErrAddressRefused) || !strings.Contains(err.Error(), "127.0.0.2") {
		t.Errorf("error %v", err)
	}
	if inside.Load() != 0 {
		t.Error("the node was called")
	}
}
