package relayer

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// RPCURL is the address of an RPC endpoint. Providers put API keys into it, so
// it gives itself away only on purpose: printed, logged or encoded it is masked
// (see [RPCURL.String]); string(u) is the whole of it.
type RPCURL string

// maskedRest stands for whatever of a URL is not shown.
const maskedRest = "/***"

// String returns the masked form: scheme, host and port stay, user information
// goes, and any path, query or fragment beyond a bare / becomes /***. What is
// no URL with a host is masked whole.
func (u RPCURL) String() string {
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Host == "" || parsed.Scheme == "" {
		return "***"
	}
	shown := url.URL{Scheme: parsed.Scheme, Host: parsed.Host}
	switch u.rest() {
	case "":
		return shown.String()
	case "/":
		return shown.String() + "/"
	default:
		return shown.String() + maskedRest
	}
}

// rest returns what follows the host and port.
func (u RPCURL) rest() string {
	_, afterScheme, _ := strings.Cut(string(u), "://")
	end := strings.IndexAny(afterScheme, "/?#")
	if end < 0 {
		return ""
	}
	return afterScheme[end:]
}

// Format prints the masked form whatever the verb, %#v and wrong verbs
// included.
func (u RPCURL) Format(state fmt.State, verb rune) {
	fmt.Fprintf(state, fmt.FormatString(state, verb), u.String())
}

// MarshalText returns the masked form, so that no encoder lets the whole out.
func (u RPCURL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// rpcURLProblem says what is wrong with an RPC URL, without repeating any of
// it, or returns "".
func rpcURLProblem(text string) string {
	const message = "must be an absolute http, https, ws or wss URL with a host"
	if text == "" {
		return "must not be empty"
	}
	if strings.ContainsFunc(text, isControlOrSpace) {
		return "must not contain spaces or control characters"
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Opaque != "" || parsed.Hostname() == "" {
		return message
	}
	switch parsed.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return message
	}
	if port := parsed.Port(); port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "must have a port from 1 to 65535"
		}
	}
	return rpcHostProblem(parsed.Hostname())
}

func isControlOrSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// Hosts that answer with the credentials of the machine that asks.
var metadataHosts = map[string]bool{
	"metadata":                   true,
	"metadata.google.internal":   true,
	"metadata.goog":              true,
	"instance-data":              true,
	"instance-data.ec2.internal": true,
}

// Addresses of cloud metadata and credential services. What is written here as
// IPv4 is met as IPv6 too: mapped, translated (NAT64) or tunnelled (6to4).
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"):    true, // EC2, GCE, Azure and most others
	netip.MustParseAddr("169.254.170.2"):      true, // ECS task credentials
	netip.MustParseAddr("169.254.170.23"):     true, // EKS pod identity
	netip.MustParseAddr("169.254.0.23"):       true, // Tencent
	netip.MustParseAddr("100.100.100.200"):    true, // Alibaba
	netip.MustParseAddr("168.63.129.16"):      true, // Azure wire server
	netip.MustParseAddr("192.0.0.192"):        true, // Oracle
	netip.MustParseAddr("fd00:ec2::254"):      true, // EC2
	netip.MustParseAddr("fd00:ec2::23"):       true, // EKS pod identity
	netip.MustParseAddr("fd20:ce::254"):       true, // GCE
	netip.MustParseAddr("fe80::a9fe:a9fe"):    true, // OpenStack
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"): true, // Oracle
}

// rpcHostProblem refuses the hosts that are never an RPC endpoint and always a
// danger: cloud metadata services and the unspecified address, however they are
// spelled.
func rpcHostProblem(host string) string {
	name := strings.ToLower(strings.TrimRight(host, "."))
	if metadataHosts[name] {
		return "must not point at a cloud metadata service"
	}
	address, ok := parseLooseAddress(name)
	if !ok {
		return ""
	}
	if metadataAddresses[address] {
		return "must not point at a cloud metadata service"
	}
	if address.IsUnspecified() {
		return "must not point at the unspecified address"
	}
	return ""
}

// parseLooseAddress reads an address in any spelling that a resolver somewhere
// takes, and brings the IPv4 address inside an IPv6 one to light.
func parseLooseAddress(host string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return parseLegacyIPv4(host)
	}
	return innerIPv4(address.WithZone("").Unmap()), true
}

// parseLegacyIPv4 reads what inet_aton reads: one to four parts, each decimal,
// octal (leading 0) or hexadecimal (leading 0x), the last filling what is left.
func parseLegacyIPv4(host string) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		number, ok := parseLegacyPart(part, bits)
		if !ok {
			return netip.Addr{}, false
		}
		value = value<<bits | number
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func parseLegacyPart(part string, bits int) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(part, "0x"):
		part, base = part[2:], 16
		if part == "" {
			return 0, true
		}
	case len(part) > 1 && part[0] == '0':
		base = 8
	}
	number, err := strconv.ParseUint(part, base, 64)
	if err != nil || number >= 1<<bits {
		return 0, false
	}
	return number, true
}

// The IPv6 prefixes that carry an IPv4 address, and where in them it stands.
var ipv4Carriers = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64, local
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // SIIT
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

func innerIPv4(address netip.Addr) netip.Addr {
	if !address.Is6() || address.IsUnspecified() || address.IsLoopback() {
		return address
	}
	for _, carrier := range ipv4Carriers {
		if carrier.prefix.Contains(address) {
			bytes := address.As16()
			return netip.AddrFrom4([4]byte(bytes[carrier.offset : carrier.offset+4]))
		}
	}
	return address
}
