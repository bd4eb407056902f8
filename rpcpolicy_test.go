package relayer_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-relayer/relayer"
	"github.com/go-relayer/relayer/store/memory"
)

// policyProblem returns the message that a URL is refused with under a policy,
// or "". It makes sure that the URL is judged alike by every way in, blamed by
// its index, and not repeated.
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
	_, wireErr := m.CreateDocument(ctx, []byte(evmBody(members)))
	_, updateErr := m.Update(ctx, "a", func(r *relayer.Relayer) error { r.CustomRPCURLs = endpoints; return nil })
	_, patchErr := m.PatchDocument(ctx, "a", []byte("{"+members+"}"))
	message := ""
	for i, err := range []error{createErr, wireErr, updateErr, patchErr} {
		told := ""
		if err != nil {
			problems := fieldErrors(t, err)
			wantFields(t, problems, "custom_rpc_urls[0].url")
			told = problems[0].Message
		}
		if i > 0 && told != message {
			t.Errorf("%s: one way in says %q, another %q", text, message, told)
		}
		message = told
	}
	if strings.Contains(message, "SECRET") {
		t.Errorf("message %q repeats the URL", message)
	}
	return message
}

var publicOnly = relayer.RPCPolicy{PublicOnly: true}

// teredo spells an IPv4 address as the client of a Teredo address.
func teredo(a, b, c, d uint32) string {
	return fmt.Sprintf("[2001:0:808:808::%x:%x]", 0xffff^(a<<8|b), 0xffff^(c<<8|d))
}

// The first and last addresses of the blocks that are not public.
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

// TestNotPublic: with PublicOnly what is not of the public internet is refused
// in every spelling.
func TestNotPublic(t *testing.T) {
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

// TestPublic: what only looks like it stays allowed.
func TestPublic(t *testing.T) {
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
				t.Errorf("%s refused: %s", text, message)
			}
		}
	}
}

// TestNoPolicy: the zero policy is none.
func TestNoPolicy(t *testing.T) {
	for _, text := range []string{"http://localhost:8545", "http://10.0.0.1", "http://[::1]", "https://user:pass@a.example#f", "http://255.255.255.255"} {
		if message := policyProblem(t, relayer.RPCPolicy{}, text); message != "" {
			t.Errorf("%s refused: %s", text, message)
		}
	}
}

// TestAllowedHosts covers how names are compared.
func TestAllowedHosts(t *testing.T) {
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

// TestNoAllowedHosts: an empty list is not the same as none.
func TestNoAllowedHosts(t *testing.T) {
	policy := relayer.RPCPolicy{AllowedHosts: []string{}, AllowedAddresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/32")}}
	for text, isAllowed := range map[string]bool{"https://rpc.example": false, "http://8.8.8.8": false, "http://10.1.2.3:8545": true, "http://10.1.2.4": false} {
		if message := policyProblem(t, policy, text); (message == "") != isAllowed {
			t.Errorf("%s: message %q", text, message)
		}
	}
}

// TestAllowedAddresses: what is listed is allowed in every spelling of that
// address, and nothing beside it.
func TestAllowedAddresses(t *testing.T) {
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
			t.Errorf("%s beside allowed hosts: message %q", host, message)
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

// TestNeverAllowed: no policy can allow what is refused without one.
func TestNeverAllowed(t *testing.T) {
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

// TestHostEndsEarly: a host in which another client finds its end is refused
// even without a policy.
func TestHostEndsEarly(t *testing.T) {
	for _, host := range []string{"169.254.169.254:80:80", "fd00:ec2::254", "127.0.0.1／.example", "169.254.169.254？.example", "169.254.169.254＃.example", "a＠169.254.169.254", "169.254.169.254：80", "a＼.example", "℀.example"} {
		if message := urlProblem(t, "ws://"+host+"/SECRET"); message != "must have a host that is a name or an address" {
			t.Errorf("%s: message %q", host, message)
		}
	}
}

// TestRefusedParts covers user information and fragments.
func TestRefusedParts(t *testing.T) {
	userInfo, fragment := "must not contain user information", "must not contain a fragment"
	for text, want := range map[string][2]string{
		"https://user:SECRET@a.example":  {userInfo, ""},
		"https://SECRET@a.example":       {userInfo, ""},
		"https://:SECRET@a.example":      {userInfo, ""},
		"https://@a.example":             {userInfo, ""},
		"https://a.example#SECRET":       {"", fragment},
		"https://a.example/k?q=1#SECRET": {"", fragment},
		"https://a.example/#":            {"", fragment},
		"https://u@a.example/#f":         {userInfo, fragment},
		"https://a.example/@b":           {"", ""},
		"https://a.example?u=a@b":        {"", ""},
		"https://a.example/%23f":         {"", ""},
	} {
		got := [2]string{policyProblem(t, relayer.RPCPolicy{RefuseUserInfo: true}, text), policyProblem(t, relayer.RPCPolicy{RefuseFragment: true}, text)}
		if got != want {
			t.Errorf("%s: messages %q, want %q", text, got, want)
		}
	}
}

// TestPolicyBesideRules: a URL is blamed once, the right ones are blamed, and
// all other problems are told.
func TestPolicyBesideRules(t *testing.T) {
	urls := `"custom_rpc_urls":[{"url":"https://a.example"},{"url":"http://10.0.0.1"},{"url":"nothing"},{"url":"http://0"},{"weight":1},{"url":"http://127.1","weight":101}]`
	problems := problemsOf(t, evmBody(urls, `"id":"/"`), relayer.WithRPCPolicy(publicOnly))
	wantFields(t, problems, "id", "custom_rpc_urls[1].url", "custom_rpc_urls[2].url", "custom_rpc_urls[3].url", "custom_rpc_urls[4].url", "custom_rpc_urls[5].url", "custom_rpc_urls[5].weight")
}

// TestWrongPolicy: a slip in a policy shows when the Manager is made.
func TestWrongPolicy(t *testing.T) {
	for _, host := range []string{
		"", ".", "*", "*.", "*.*", "*.*.example", "a.*.example", "a*.example", ".example.com", "a..example", "https://a.example", "a.example:443", "a.example/", "a.example/v2", "u@a.example", "a example", "a.example#", "a.example?", "[::1]", "a%",
		"10.0.0.1", "::1", "fe80::1%eth0", "0x7f000001", "127.1", "10.0.0.0/8", "１０.0.0.1", "7147006462", "256.256.256.256", "0178.0.0.1", "*.1", "rpc.example.0x1",
	} {
		if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedHosts: []string{"a.example", host}})); err == nil {
			t.Errorf("allowed host %q accepted", host)
		}
	}
	for _, prefix := range []netip.Prefix{{}, netip.PrefixFrom(netip.MustParseAddr("10.0.0.1"), 33), netip.MustParsePrefix("::ffff:10.0.0.0/104")} {
		if _, err := relayer.New(memory.New(), relayer.WithRPCPolicy(relayer.RPCPolicy{AllowedAddresses: []netip.Prefix{prefix}})); err == nil {
			t.Errorf("allowed address %v accepted", prefix)
		}
	}
}

// TestPolicyIsCopied: what the host does with its slices later is its own.
func TestPolicyIsCopied(t *testing.T) {
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

// TestPolicyTurnedOn: a relayer of before the policy can be switched, deleted,
// and brought in line.
func TestPolicyTurnedOn(t *testing.T) {
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
	_, patchErr := m.PatchDocument(ctx, "a", []byte(`{"name":"x"}`))
	for _, err := range []error{updateErr, patchErr} {
		wantFields(t, fieldErrors(t, err), "custom_rpc_urls[1].url")
	}
	if _, err := m.PatchDocument(ctx, "a", []byte(`{"name":"x","custom_rpc_urls":[{"url":"https://a.example"}]}`)); err != nil {
		t.Error(err)
	}
	if err := m.Delete(ctx, "a"); err != nil {
		t.Error(err)
	}
}
