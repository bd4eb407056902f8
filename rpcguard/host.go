package rpcguard

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-relayer/relayer/internal/mask"
)

// metadataHosts are the names of services that return credentials of the machine that calls them.
var metadataHosts = map[string]bool{
	"metadata":                   true,
	"metadata.google.internal":   true,
	"metadata.goog":              true,
	"instance-data":              true,
	"instance-data.ec2.internal": true,
	"metadata.tencentyun.com":    true,
}

// metadataAddresses are the addresses of cloud metadata and credential services.
// An IPv4 address represents also the IPv6 addresses that lead to it: mapped,
// translated (NAT64) or tunneled (6to4, Teredo).
var metadataAddresses = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"):    true, // EC2, GCE, Azure and most others
	netip.MustParseAddr("169.254.170.2"):      true, // ECS task credentials
	netip.MustParseAddr("169.254.170.23"):     true, // EKS pod identity
	netip.MustParseAddr("169.254.0.23"):       true, // Tencent
	netip.MustParseAddr("169.254.42.42"):      true, // Scaleway
	netip.MustParseAddr("fd00:42::42"):        true, // Scaleway
	netip.MustParseAddr("100.96.0.96"):        true, // Volcengine
	netip.MustParseAddr("100.100.100.200"):    true, // Alibaba
	netip.MustParseAddr("168.63.129.16"):      true, // Azure wire server
	netip.MustParseAddr("192.0.0.192"):        true, // Oracle
	netip.MustParseAddr("fd00:ec2::254"):      true, // EC2
	netip.MustParseAddr("fd00:ec2::23"):       true, // EKS pod identity
	netip.MustParseAddr("fd20:ce::254"):       true, // GCE
	netip.MustParseAddr("fe80::a9fe:a9fe"):    true, // OpenStack
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"): true, // Oracle
}

const metadataMessage = "must not point at a cloud metadata service"

// hostProblem returns a message for hosts that are neither a name nor an address. It also does so
// for hosts that are never an RPC endpoint: cloud metadata services and the unspecified address,
// in any spelling. addresses are the addresses of the name, which is folded.
func hostProblem(name string, addresses []netip.Addr) string {
	if metadataHosts[name] {
		return metadataMessage
	}
	for _, address := range addresses {
		if problem := dangerProblem(address); problem != "" {
			return problem
		}
	}
	name = strings.ReplaceAll(name, mask.Hidden, "") // a masked URL has another problem
	if len(addresses) == 0 && (endsInNumber(name) || strings.ContainsFunc(name, endsHost)) {
		return "must have a host that is a name or an address"
	}
	return ""
}

// dangerProblem returns a message if address is, or leads to, a metadata service
// or the unspecified address, and "" otherwise.
func dangerProblem(address netip.Addr) string {
	reached := innerIPv4(address)
	if isMetadata(address) || slices.ContainsFunc(reached, isMetadata) {
		return metadataMessage
	}
	if address.IsUnspecified() || len(reached) > 0 && !slices.ContainsFunc(reached, isSpecified) {
		return "must not point at the unspecified address"
	}
	return ""
}

func isMetadata(address netip.Addr) bool  { return metadataAddresses[address] }
func isSpecified(address netip.Addr) bool { return !address.IsUnspecified() }

// isName reports whether a folded host consists of labels, and cannot be read as an IPv4 address.
func isName(name string) bool {
	hasEmptyLabel := strings.Contains("."+name+".", "..")
	return !hasEmptyLabel && !endsInNumber(name) && !strings.ContainsFunc(name, isNotOfName)
}

// endsHost reports whether a host ends at a character. If a host contains it, URL parsers
// disagree about which host the URL names, or a misspelled query follows, which can have a key.
func endsHost(r rune) bool { return r < utf8.RuneSelf && isNotOfName(r) }

// isNotOfName reports whether the character is not one of names.
func isNotOfName(r rune) bool {
	return !strings.ContainsRune(".-_", r) && !unicode.In(r, unicode.Letter, unicode.Digit, unicode.Mark)
}

// readAddresses parses an address in any notation that some resolver accepts, without its zone.
// It returns several addresses if resolvers differ, and none for a name. It also returns none for
// a host that ends in a number and is no address by the WHATWG URL standard. hostProblem rejects
// such a host: resolvers that keep only the low 32 bits of a number read 7147006462 as
// 169.254.169.254.
func readAddresses(host string) []netip.Addr {
	host, _, _ = strings.Cut(host, "%")
	if !endsInNumber(host) && !strings.Contains(host, ":") {
		return nil // most hosts are names
	}
	if address, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{address.Unmap()}
	}
	var read []netip.Addr
	for _, leadingZeroBase := range []int{8, 10} { // 8 is that of the standard
		address, isValid := parseLegacyIPv4(host, leadingZeroBase)
		if !isValid {
			break
		}
		read = append(read, address)
	}
	return read
}

// endsInNumber is the "ends in a number" check of the WHATWG URL standard, for a
// host without trailing dots.
func endsInNumber(host string) bool {
	host, _, _ = strings.Cut(host, "%")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, isHex := strings.CutPrefix(last, "0x"); isHex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// parseLegacyIPv4 parses the notations of inet_aton: one to four parts, each decimal, hexadecimal
// (leading 0x) or with a leading zero. The last part fills the remaining bytes.
func parseLegacyIPv4(host string, leadingZeroBase int) (netip.Addr, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, digits := range parts {
		base, bits := 10, 8
		if hex, isHex := strings.CutPrefix(digits, "0x"); isHex {
			digits, base = "0"+hex, 16 // 0x is zero
		} else if strings.HasPrefix(digits, "0") {
			base = leadingZeroBase
		}
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		number, err := strconv.ParseUint(digits, base, bits)
		if err != nil {
			return netip.Addr{}, false
		}
		value = value<<bits | number
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// ipv4Carriers are the IPv6 prefixes that contain an IPv4 address, the positions of
// its four bytes, and the mask that these are XORed with.
var ipv4Carriers = []struct {
	prefix netip.Prefix
	at     [4]int
	mask   byte
}{
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}, 0},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [4]int{12, 13, 14, 15}, 0}, // SIIT
	{netip.MustParsePrefix("64:ff9b::/96"), [4]int{12, 13, 14, 15}, 0},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}, 0},     // local NAT64 of 48 bits
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{7, 9, 10, 11}, 0},    // of 56
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{9, 10, 11, 12}, 0},   // of 64
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{12, 13, 14, 15}, 0},  // of 96
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}, 0},           // 6to4
	{netip.MustParsePrefix("2001::/32"), [4]int{4, 5, 6, 7}, 0},           // Teredo server
	{netip.MustParsePrefix("2001::/32"), [4]int{12, 13, 14, 15}, 0xff},    // Teredo client
}

// innerIPv4 returns the IPv4 addresses that an IPv6 address may lead to.
func innerIPv4(address netip.Addr) []netip.Addr {
	var inner []netip.Addr
	bytes := address.As16()
	for _, carrier := range ipv4Carriers {
		if carrier.prefix.Contains(address) {
			var carried [4]byte
			for i, at := range carrier.at {
				carried[i] = bytes[at] ^ carrier.mask
			}
			inner = append(inner, netip.AddrFrom4(carried))
		}
	}
	return inner
}
