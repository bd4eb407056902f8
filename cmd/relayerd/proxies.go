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

func parseProxies(list string) (trusted proxies, err error) {
	for text := range strings.SplitSeq(list, ",") {
		network, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("--trusted-proxies must be a comma-separated list of networks, such as 10.0.0.0/8,::1")
		}
		trusted = append(trusted, network)
	}
	return trusted, nil
}

// parseNetwork parses a network or an address.
func parseNetwork(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().Prefix(address.Unmap().BitLen())
	}
	return netip.ParsePrefix(text)
}

// clientAddress is a function for [httpapi.WithClientAddress]. Each proxy appends
// the address that it received the request from. So the client is the last address
// that is not a trusted proxy; earlier ones may be forged.
func (p proxies) clientAddress(r *http.Request) string {
	client, err := parseHop(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		address, err := parseHop(strings.TrimSpace(hop))
		if err != nil || !slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(client) }) {
			break
		}
		client = address
	}
	return client.String()
}

// parseHop parses an address with or without a port. It removes the zone, and the prefix of an
// IPv4 address in IPv6 form.
func parseHop(text string) (netip.Addr, error) {
	withPort, err := netip.ParseAddrPort(text)
	address := withPort.Addr()
	if err != nil {
		address, err = netip.ParseAddr(text)
	}
	return address.Unmap().WithZone(""), err
}
