package main

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxies are the networks of proxies whose X-Forwarded-For header is trusted.
type proxies []netip.Prefix

func parseProxies(list string) (proxies, error) {
	var trusted proxies
	for text := range strings.SplitSeq(list, ",") {
		network, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1")
		}
		trusted = append(trusted, network)
	}
	return trusted, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		network, err := netip.ParsePrefix(text)
		if err == nil && network.Addr().Is4In6() {
			// Addresses are compared without the prefix of the IPv6 form.
			const prefixBits = 96
			return network.Addr().Unmap().Prefix(network.Bits() - prefixBits)
		}
		return network, err
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, errors.New("not an address")
	}
	address = address.Unmap()
	return netip.PrefixFrom(address, address.BitLen()), nil
}

func (p proxies) trusts(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// clientAddress is a function for [httpapi.WithClientAddress]. Each proxy appends
// the address that it received the request from. So the client is the last address
// that is not a trusted proxy; earlier ones may be forged.
func (p proxies) clientAddress(r *http.Request) string {
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	client := normalized(connection.Addr())
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !p.trusts(client) {
			break
		}
		hop = strings.Trim(hop, " \t\"")
		if hop == "" {
			continue // an empty element of a header list has no meaning
		}
		address, err := parseHop(hop)
		if err != nil {
			break
		}
		client = normalized(address)
	}
	return client.String()
}

// parseHop parses an address with or without a port and brackets: proxies write all
// these forms.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr(), nil
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		text = strings.TrimSuffix(inner, "]")
	}
	return netip.ParseAddr(text)
}

// normalized removes the zone, and the prefix of an IPv4 address in IPv6 form.
func normalized(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
