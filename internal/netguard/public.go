package netguard

import (
	"net/netip"
	"slices"
	"strings"
)

// Blocks that are not of the public internet (the IANA special-purpose address
// registries, RFC 6890).
var specialBlocks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("10.0.0.0/8"),      // private (RFC 1918)
	netip.MustParsePrefix("100.64.0.0/10"),   // carrier-grade NAT (RFC 6598)
	netip.MustParsePrefix("127.0.0.0/8"),     // loopback
	netip.MustParsePrefix("169.254.0.0/16"),  // link-local
	netip.MustParsePrefix("172.16.0.0/12"),   // private
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4, deprecated
	netip.MustParsePrefix("192.168.0.0/16"),  // private
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("224.0.0.0/4"),     // multicast
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast

	netip.MustParsePrefix("2001::/23"),     // protocol assignments: Teredo, benchmarks, ORCHID
	netip.MustParsePrefix("2001:db8::/32"), // documentation
	netip.MustParsePrefix("3fff::/20"),     // documentation
}

// The IPv6 blocks outside which nothing is public. Networks without IPv4 reach
// all of it by NAT64, so that its well-known prefix is as public as what it
// carries.
var publicIPv6Blocks = []netip.Prefix{
	netip.MustParsePrefix("2000::/3"),
	netip.MustParsePrefix("64:ff9b::/96"),
}

// IsPublic tells whether an address that is not mapped is one of the public
// internet.
func IsPublic(address netip.Addr) bool {
	isOf := func(block netip.Prefix) bool { return block.Contains(address) }
	if slices.ContainsFunc(specialBlocks, isOf) {
		return false
	}
	if address.Is4() {
		return true
	}
	return slices.ContainsFunc(publicIPv6Blocks, isOf) && !slices.ContainsFunc(innerIPv4(address), isNotPublic)
}

func isNotPublic(address netip.Addr) bool { return !IsPublic(address) }

// Names that mean loopback wherever they are looked up, and those that hosts
// files give it.
var loopbackHosts = map[string]bool{
	"localhost":               true,
	"localhost.localdomain":   true,
	"localhost4":              true,
	"localhost4.localdomain4": true,
	"localhost6":              true,
	"localhost6.localdomain6": true,
	"ip6-localhost":           true,
	"ip6-loopback":            true,
}

// IsLoopbackName judges by the whole name, and by its end as RFC 6761 section
// 6.3 has it.
func IsLoopbackName(name string) bool {
	return loopbackHosts[name] || strings.HasSuffix(name, ".localhost")
}

// LoopbackAddresses returns the addresses that a loopback name resolves to.
func LoopbackAddresses() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}
