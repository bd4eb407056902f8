package rpcguard

import (
	"net/netip"
	"slices"
	"strings"
)

// specialBlocks count as not public, though a few of their addresses are (IANA special-purpose
// address registries, RFC 6890).
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

// publicIPv6Blocks contain all public IPv6 addresses. They include the well-known
// prefix of NAT64, by which networks without IPv4 reach the IPv4 internet: such an
// address is public if the IPv4 address in it is.
var publicIPv6Blocks = []netip.Prefix{
	netip.MustParsePrefix("2000::/3"),
	netip.MustParsePrefix("64:ff9b::/96"),
}

// isPublic reports whether an address, which must not be IPv4 mapped to IPv6, is
// part of the public internet.
func isPublic(address netip.Addr) bool {
	isOf := func(block netip.Prefix) bool { return block.Contains(address) }
	if slices.ContainsFunc(specialBlocks, isOf) {
		return false
	}
	if address.Is4() {
		return true
	}
	return slices.ContainsFunc(publicIPv6Blocks, isOf) && !slices.ContainsFunc(innerIPv4(address), isNotPublic)
}

func isNotPublic(address netip.Addr) bool { return !isPublic(address) }

// privateSuffixes are the domains of names that are private by convention: names of
// loopback (RFC 6761), of link-local resolution (RFC 6762), of home networks (RFC 8375), and
// of services in a cluster.
var privateSuffixes = []string{
	".localhost", ".localdomain", ".localdomain4", ".localdomain6", ".local", ".internal", ".lan", ".home.arpa", ".svc",
}

// isPrivateName reports whether a folded name is private by convention.
func isPrivateName(name string) bool {
	isBelow := func(suffix string) bool { return strings.HasSuffix("."+name, suffix) }
	return !strings.Contains(name, ".") || slices.ContainsFunc(privateSuffixes, isBelow)
}
