package netguard_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/go-relayer/relayer/internal/netguard"
)

func TestHostProblem(t *testing.T) {
	const (
		metadata    = "must not point at a cloud metadata service"
		unspecified = "must not point at the unspecified address"
		neither     = "must have a host that is a name or an address"
	)
	for host, want := range map[string]string{
		"rpc.example.com": "", "10.0.0.1": "", "localhost": "", "fe80::1%eth0": "",
		"169.254.169.254": metadata, "0xa9fea9fe": metadata, "0251.0376.0251.0376": metadata, "169.254.43518": metadata, "①⑥⑨.254.169.254": metadata,
		"::ffff:169.254.169.254": metadata, "64:ff9b::a9fe:a9fe": metadata, "2002:a9fe:a9fe::1": metadata, "fd00:ec2::254": metadata,
		"Metadata.Google.Internal.": metadata, "metadata。google。internal": metadata,
		"0": unspecified, "0.0.0.0": unspecified, "::": unspecified, "64:ff9b::": unspecified,
		"1.2.3.256": neither, "7147006462": neither, "a/b": neither, "a@b": neither,
	} {
		if got := netguard.HostProblem(host); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestReadAddresses(t *testing.T) {
	for host, want := range map[string][]string{
		"1.2.3.4": {"1.2.3.4"}, "0x7f.1": {"127.0.0.1", "127.0.0.1"}, "010.1.1.1": {"8.1.1.1", "10.1.1.1"}, "::ffff:1.2.3.4": {"1.2.3.4"},
		"fe80::1%eth0": {"fe80::1"}, "a.example": nil, "": nil, "1.2.3.4.5": nil,
	} {
		var got []string
		for _, address := range netguard.ReadAddresses(host) {
			got = append(got, address.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestIsPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "100.63.255.255": true, "100.128.0.0": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::": true,
		"10.0.0.1": false, "100.64.0.0": false, "127.255.255.255": false, "172.31.255.255": false, "192.168.0.1": false, "224.0.0.1": false,
		"255.255.255.255": false, "::1": false, "fc00::1": false, "fe80::1": false, "ff02::1": false, "2001:db8::1": false, "64:ff9b::a00:1": false,
		"2002:a00:1::": false, "4000::1": false,
	} {
		if got := netguard.IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is public: %t, want %t", text, got, want)
		}
	}
}

func TestIsLoopbackName(t *testing.T) {
	for name, want := range map[string]bool{
		"localhost": true, "node.localhost": true, "ip6-loopback": true, "localhost.example.com": false, "mylocalhost": false, "": false,
	} {
		if got := netguard.IsLoopbackName(name); got != want {
			t.Errorf("%q is loopback: %t, want %t", name, got, want)
		}
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "rpc_1.example-2.com": true, "bücher.example": true, "क्ष.example": true,
		"": false, "a..b": false, ".a": false, "a.": false, "a b": false, "a:b": false, "*.a": false, "1.2.3.4": false, "a.1": false, "a.0x1f": false,
	} {
		if got := netguard.IsName(name); got != want {
			t.Errorf("%q is a name: %t, want %t", name, got, want)
		}
	}
}
