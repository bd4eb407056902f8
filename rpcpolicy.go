package relayer

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/go-relayer/relayer/internal/mask"
	"github.com/go-relayer/relayer/internal/netguard"
)

// RPCPolicy restricts the custom RPC URLs that clients may set, and the addresses that the
// host connects to for them. The zero value permits what is permitted without a policy:
// every URL except those of cloud metadata services and of the unspecified address, which
// no policy can permit.
//
// It is enforced at two points, and a host that accepts URLs from untrusted clients needs
// both. [WithRPCPolicy] rejects a URL when it is written, with an error for the client.
// [RPCPolicy.DialControl] rejects an address when it is dialed, after name resolution.
//
// The Manager keeps a copy. A policy is safe for concurrent use if its slices are not
// modified.
type RPCPolicy struct {
	// AllowedHosts is an allowlist of host names: a name such as rpc.example.com, or
	// *.example.com for every name below example.com, at any depth, but not for
	// example.com itself. Nil allows every name and every address; an empty list allows
	// only AllowedAddresses.
	//
	// Letter case, trailing dots and compatibility forms of Unicode are ignored. The
	// Unicode form of an international name and its xn-- form are different names: list
	// both if both may be used. PublicOnly applies also to names on the list. Addresses
	// belong in AllowedAddresses.
	AllowedHosts []string

	// PublicOnly rejects every address that is not part of the public internet: loopback,
	// private, unique local, link-local, shared (carrier-grade NAT), multicast, broadcast,
	// and addresses reserved for documentation, benchmarks or the future. It also rejects
	// the IPv6 addresses that lead to such an IPv4 address, and the names of loopback, such
	// as localhost and node.localhost. Other names are not resolved when a URL is written:
	// [RPCPolicy.DialControl] checks their addresses.
	PublicOnly bool

	// AllowedAddresses are addresses that a URL may have as its host in addition to
	// AllowedHosts, and that are exempt from PublicOnly. A prefix of IPv4 includes the
	// mapped IPv6 form, and no other IPv6 address.
	AllowedAddresses []netip.Prefix

	// RefuseUserInfo rejects URLs with user information, as in
	// https://user:password@rpc.example.com.
	RefuseUserInfo bool
}

// folded returns a copy whose names are in the form in which they are compared.
func (p RPCPolicy) folded() (RPCPolicy, error) {
	p.AllowedHosts = slices.Clone(p.AllowedHosts)
	p.AllowedAddresses = slices.Clone(p.AllowedAddresses)
	for i, host := range p.AllowedHosts {
		name := mask.FoldHost(host)
		if len(netguard.ReadAddresses(name)) > 0 {
			return RPCPolicy{}, fmt.Errorf("relayer: allowed host %q is an address, which belongs in AllowedAddresses", mask.Text(host))
		}
		if !netguard.IsName(strings.TrimPrefix(name, "*.")) {
			return RPCPolicy{}, fmt.Errorf("relayer: allowed host %q must be a name such as rpc.example.com or *.example.com", mask.Text(host))
		}
		p.AllowedHosts[i] = name
	}
	for _, prefix := range p.AllowedAddresses {
		if !prefix.IsValid() {
			return RPCPolicy{}, errors.New("relayer: an allowed address is not a valid prefix")
		}
		if prefix.Addr().Is4In6() {
			return RPCPolicy{}, fmt.Errorf("relayer: allowed address %s must be written as IPv4", prefix)
		}
	}
	return p, nil
}

func (p RPCPolicy) checkURLs(endpoints []RPCConfig, found *problems) {
	for i, endpoint := range endpoints {
		text := endpoint.URL.Unmasked()
		if endpoint.URL.IsMasked() {
			text = endpoint.URL.String() // without the mark of hidden user information
		}
		if problem := p.urlProblem(text); problem != "" {
			found.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), problem)
		}
	}
}

// urlProblem returns why the policy rejects a URL, or "". The message quotes nothing of it.
// Text that is not a URL is rejected by rpcURLProblem. The policy permits a masked host: its
// full URL was checked when it was stored.
func (p RPCPolicy) urlProblem(text string) string {
	parsed, err := url.Parse(text)
	if err != nil || mask.IsHostMasked(parsed.Hostname()) {
		return ""
	}
	if p.RefuseUserInfo && parsed.User != nil {
		return "must not contain user information"
	}
	// Folding removes joiners, like older clients. Newer clients keep them in scripts that
	// need them, and look up another name, which may have another owner.
	if p.AllowedHosts != nil && strings.ContainsAny(parsed.Hostname(), "\u200c\u200d") {
		return hostNotAllowed
	}
	host := mask.FoldHost(parsed.Hostname())
	if addresses := netguard.ReadAddresses(host); len(addresses) > 0 {
		return p.literalsProblem(addresses)
	}
	return p.nameProblem(host)
}

const (
	hostNotAllowed = "must have a host that is allowed here"
	notPublic      = "must point at a public address"
)

// literalsProblem checks every address as which a client may interpret the host. All must
// be permitted.
func (p RPCPolicy) literalsProblem(addresses []netip.Addr) string {
	for _, address := range addresses {
		if p.AllowedHosts != nil && !p.allowsAddress(address) {
			return hostNotAllowed
		}
		if problem := p.addressProblem(address); problem != "" {
			return problem
		}
	}
	return ""
}

func (p RPCPolicy) nameProblem(name string) string {
	if p.AllowedHosts != nil && !p.allowsName(name) {
		return hostNotAllowed
	}
	if p.PublicOnly && !p.mayBePublic(name) {
		return notPublic
	}
	return ""
}

// mayBePublic reports whether a name can resolve to a permitted address.
func (p RPCPolicy) mayBePublic(name string) bool {
	if netguard.IsLoopbackName(name) {
		return slices.ContainsFunc(netguard.LoopbackAddresses(), p.allowsAddress)
	}
	return netguard.IsName(name)
}

func (p RPCPolicy) allowsName(name string) bool {
	return netguard.IsName(name) && slices.ContainsFunc(p.AllowedHosts, func(allowed string) bool {
		if suffix, ok := strings.CutPrefix(allowed, "*"); ok {
			return strings.HasSuffix(name, suffix)
		}
		return name == allowed
	})
}

func (p RPCPolicy) allowsAddress(address netip.Addr) bool {
	return slices.ContainsFunc(p.AllowedAddresses, func(allowed netip.Prefix) bool { return allowed.Contains(address) })
}

// addressProblem returns why connections to an address, without a zone and not mapped, are
// not permitted, or "".
func (p RPCPolicy) addressProblem(address netip.Addr) string {
	if problem := netguard.AddressProblem(address); problem != "" {
		return problem
	}
	if p.PublicOnly && !netguard.IsPublic(address) && !p.allowsAddress(address) {
		return notPublic
	}
	return ""
}

// DialControl is a Control function for the [net.Dialer] of the host code that connects to
// custom RPC URLs:
//
//	dialer := &net.Dialer{Control: policy.DialControl}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//
// It is called with each address after name resolution and before anything is sent, also
// for redirects. It therefore stops DNS rebinding: a name that resolved to a public address
// when its URL was checked, and resolves to another one now. It returns an error that
// matches [ErrAddressRefused] for
//
//   - cloud metadata services and the unspecified address;
//   - with PublicOnly, every address that is neither public nor in AllowedAddresses;
//   - everything that is not an IP address with a port, such as a Unix socket.
//
// A Dialer and an http.Client return the error wrapped.
//
// DialControl receives addresses, not names, so AllowedHosts has no effect on it. A name in
// AllowedHosts that resolves to a private address is rejected by PublicOnly, unless the
// address is in AllowedAddresses. Without PublicOnly, a redirect or the owner of a listed
// name can lead to private addresses: set PublicOnly if clients are not trusted.
//
// Behind a proxy the Dialer connects only to the proxy: leave http.Transport.Proxy nil, as
// above, or enforce the policy in the proxy. The error of an http.Client contains the URL,
// with any API key in it; the error that it wraps does not.
//
// It needs no Manager, is safe for concurrent use, and does not use the connection, which
// may be nil.
func (p RPCPolicy) DialControl(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not dialed by IP address and port", ErrAddressRefused, network)
	}
	if problem := p.addressProblem(target.Addr().WithZone("").Unmap()); problem != "" {
		return fmt.Errorf("%w: %s", ErrAddressRefused, problem)
	}
	return nil
}
