package rpcguard_test

import (
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"github.com/go-relayer/relayer/rpcguard"
)

// FuzzCheck checks any host, and all IPv6 addresses that contain any IPv4 address.
func FuzzCheck(f *testing.F) {
	for _, host := range append([]string{"rpc.example", "a@b.example", "8.8.8.8", "[2606:4700::1]", "127.0.0.1／x", ""}, notPublicHosts...) {
		f.Add(host, uint32(0x7f000001), byte(1))
	}
	for i, ip := range notPublicIPv4 {
		f.Add("*.Rpc.example.", ip[0]<<24|ip[1]<<16|ip[2]<<8|ip[3], byte(i))
	}
	for _, host := range numericHosts {
		f.Add(host, uint32(0), byte(1))
	}
	f.Add("10.0.0.0", uint32(0x08080808), byte(0xff))
	f.Fuzz(func(t *testing.T, host string, ip uint32, choices byte) {
		checkAgreement(t, fuzzPolicy(host, ip, choices), host)
		checkNumericHost(t, strings.ToLower(host))
		checkCarriers(t, ip)
	})
}

// fuzzPolicy omits a list that Validate rejects.
func fuzzPolicy(host string, ip uint32, choices byte) rpcguard.Policy {
	has := func(choice int) bool { return choices>>choice&1 == 1 }
	policy := rpcguard.Policy{PublicOnly: has(0), RefuseUserInfo: has(1)}
	if has(3) {
		policy.AllowedAddresses = []netip.Prefix{netip.PrefixFrom(ipv4(ip), int(choices>>5)*4)}
	}
	if has(4) {
		policy.AllowedHosts = []string{host}
	}
	if policy.Validate() != nil {
		policy.AllowedHosts = nil
	}
	return policy
}

func ipv4(ip uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// checkAgreement fails unless a URL with an address is accepted only if its dial is
// permitted.
func checkAgreement(t *testing.T, policy rpcguard.Policy, host string) {
	t.Helper()
	if problem(t, policy, "http://"+host) != "" {
		return
	}
	address, err := netip.ParseAddr(literal(host))
	if err != nil {
		return
	}
	if err := policy.DialControl("tcp", netip.AddrPortFrom(address, 80).String(), nil); err != nil {
		t.Errorf("%+v accepts %q and refuses its dial: %v", policy, host, err)
	}
}

// checkCarriers fails if an address that is not public according to netip is accepted
// in any notation, or at the dial.
func checkCarriers(t *testing.T, ip uint32) {
	t.Helper()
	a := ipv4(ip)
	if !a.IsPrivate() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() && !a.IsUnspecified() {
		return
	}
	parts := [4]uint32{ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff}
	for _, host := range append(spellings(parts[0], parts[1], parts[2], parts[3]), teredo(parts[0], parts[1], parts[2], parts[3])) {
		if problem(t, publicOnly, "http://"+host) == "" {
			t.Errorf("%s, a spelling of %s, is accepted", host, a)
		}
		address, err := netip.ParseAddr(literal(host))
		if err != nil {
			continue
		}
		if err := publicOnly.DialControl("tcp", netip.AddrPortFrom(address, 80).String(), nil); !errors.Is(err, rpcguard.ErrRefused) {
			t.Errorf("dial of %s, which is %s: error %v", address, a, err)
		}
	}
}

// checkNumericHost fails unless a host of digits, hex digits, x and dots is rejected if
// the WHATWG URL standard rejects it, and accepted if it is a name.
func checkNumericHost(t *testing.T, host string) {
	t.Helper()
	if strings.Trim(host, "0123456789abcdefx.") != "" || strings.Trim(host, ".") == "" || strings.Contains(host, "..") {
		return
	}
	isRefused := problem(t, rpcguard.Policy{}, "http://"+host) != ""
	isNumeric, isValid := whatwgIPv4(host)
	if isNumeric && !isValid && !isRefused {
		t.Errorf("%s accepted, which is not a valid host", host)
	}
	if !isNumeric && isRefused {
		t.Errorf("%s is rejected, and is a name", host)
	}
}

// whatwgIPv4 follows the steps of the "ends in a number" checker and of the IPv4
// parser in section 3.5 of the WHATWG URL standard.
func whatwgIPv4(host string) (isNumeric, isValid bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 1 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	last := parts[len(parts)-1]
	if _, isNumber := whatwgNumber(last); !isNumber && (last == "" || strings.Trim(last, "0123456789") != "") {
		return false, false
	}
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if number, ok := whatwgNumber(part); !ok || len(parts) > 4 || number.BitLen() > bits {
			return true, false
		}
	}
	return true, true
}

func whatwgNumber(part string) (*big.Int, bool) {
	if part == "" {
		return nil, false
	}
	base := 10
	switch {
	case strings.HasPrefix(part, "0x"):
		part, base = part[2:], 16
	case len(part) > 1 && part[0] == '0':
		part, base = part[1:], 8
	}
	if part == "" {
		return new(big.Int), true
	}
	return new(big.Int).SetString(part, base)
}

// literal returns the host of a URL in the form of netip.
func literal(host string) string {
	return strings.ReplaceAll(strings.Trim(host, "[]"), "%25", "%")
}
