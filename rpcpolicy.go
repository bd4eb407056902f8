package relayer

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/go-relayer/relayer/internal/netguard"
)

// RPCPolicy says which custom RPC URLs a host lets its clients give to a relayer
// (spec section 2.2), and which addresses it will connect to for them. The zero
// value allows what is allowed without a policy: every URL but those that point
// at a cloud metadata service or at the unspecified address, which no policy can
// allow.
//
// It is asked at two places, and a host that lets strangers write URLs needs
// both: [WithRPCPolicy] refuses a URL when it is written, with an answer to
// whoever wrote it; [RPCPolicy.DialControl] refuses an address when it is
// dialled, after the name in the URL has been resolved.
//
// The Manager keeps a copy. The policy itself may be used by many goroutines at
// once while nobody changes its slices.
type RPCPolicy struct {
	// AllowedHosts are the only names a URL may have as its host: a name such as
	// rpc.example.com, or *.example.com for every name below example.com, at any
	// depth, but not for example.com itself. Nil allows every name and every
	// address; an empty list allows none but AllowedAddresses.
	//
	// Letter case, trailing dots and compatibility forms of Unicode make no
	// difference. The Unicode form of an international name and its xn-- form do:
	// list each that may be used. A name that is listed is still held to
	// PublicOnly. Addresses belong into AllowedAddresses.
	AllowedHosts []string

	// PublicOnly refuses every address that is not one of the public internet:
	// loopback, private, unique local, link-local, shared (carrier-grade NAT),
	// multicast, broadcast, and what is reserved, for documentation or for
	// benchmarks, together with the IPv6 addresses that lead to such an IPv4
	// address. It refuses the names of loopback too, such as localhost and
	// node.localhost. What other names resolve to is not known before they are
	// dialled: that is the part of [RPCPolicy.DialControl].
	PublicOnly bool

	// AllowedAddresses are addresses that a URL may have as its host beside
	// AllowedHosts, and that may be used in spite of PublicOnly. Prefixes of IPv4
	// stand for IPv4 in its mapped IPv6 form too, and for no other IPv6 address.
	AllowedAddresses []netip.Prefix

	// RefuseUserInfo refuses URLs with user information, as in
	// https://user:password@rpc.example.com.
	RefuseUserInfo bool

	// RefuseFragment refuses URLs with a fragment, even an empty one. No client
	// sends it.
	RefuseFragment bool
}

// WithRPCPolicy makes the Manager refuse custom RPC URLs that the policy does not
// allow, on create and on every change that is checked ([Manager.Update],
// [Manager.PatchDocument]). Without it the zero [RPCPolicy] holds. The problem
// names the field, such as custom_rpc_urls[0].url, and does not repeat the URL.
//
// Relayers stored before are not looked at. Because a changed relayer is checked
// as a whole, one with a URL that is no longer allowed can be changed only
// together with that URL; pausing, resuming, disabling, enabling and deleting
// it work all the same.
//
// [New] returns an error where AllowedHosts has what is no name, or
// AllowedAddresses has what is no prefix or one of IPv4 mapped to IPv6.
func WithRPCPolicy(policy RPCPolicy) Option {
	return func(m *Manager) error {
		folded, err := policy.folded()
		if err != nil {
			return err
		}
		m.rpcPolicy = &folded
		return nil
	}
}

// folded returns a copy whose names are in the form they are compared in.
func (p RPCPolicy) folded() (RPCPolicy, error) {
	p.AllowedHosts = slices.Clone(p.AllowedHosts)
	p.AllowedAddresses = slices.Clone(p.AllowedAddresses)
	for i, host := range p.AllowedHosts {
		name := netguard.FoldHost(host)
		if len(netguard.ReadAddresses(name)) > 0 {
			return RPCPolicy{}, fmt.Errorf("relayer: allowed host %q is an address, which belongs into AllowedAddresses", host)
		}
		if !netguard.IsName(strings.TrimPrefix(name, "*.")) {
			return RPCPolicy{}, fmt.Errorf("relayer: allowed host %q must be a name such as rpc.example.com or *.example.com", host)
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

// checkURLs adds to found which of the URLs the policy refuses.
func (p RPCPolicy) checkURLs(endpoints []RPCConfig, found *problems) {
	for i, endpoint := range endpoints {
		if problem := p.urlProblem(string(endpoint.URL)); problem != "" {
			found.Add(fmt.Sprintf("custom_rpc_urls[%d].url", i), problem)
		}
	}
}

// urlProblem says why the policy refuses a URL, without repeating any of it, or
// returns "". What is no URL at all is refused elsewhere.
func (p RPCPolicy) urlProblem(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if p.RefuseUserInfo && parsed.User != nil {
		return "must not contain user information"
	}
	if p.RefuseFragment && strings.Contains(text, "#") {
		return "must not contain a fragment"
	}
	// Folding leaves out the joiners, as older clients do. To newer ones they make
	// another name, in scripts that need them, and no list can vouch for both.
	if p.AllowedHosts != nil && strings.ContainsAny(parsed.Hostname(), "\u200c\u200d") {
		return hostNotAllowed
	}
	host := netguard.FoldHost(parsed.Hostname())
	if addresses := netguard.ReadAddresses(host); len(addresses) > 0 {
		return p.literalsProblem(addresses)
	}
	return p.nameProblem(host)
}

const (
	hostNotAllowed = "must have a host that is allowed here"
	notPublic      = "must point at a public address"
)

// literalsProblem judges the addresses that a host is read as: where clients
// read it in different ways, every reading must be allowed.
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

// mayBePublic tells what can be told of a name that has not been resolved.
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

// addressProblem says why an address, without a zone and not mapped, may not be
// connected to, or returns "".
func (p RPCPolicy) addressProblem(address netip.Addr) string {
	if problem := netguard.AddressProblem(address); problem != "" {
		return problem
	}
	if p.PublicOnly && !netguard.IsPublic(address) && !p.allowsAddress(address) {
		return notPublic
	}
	return ""
}

// ErrAddressRefused says that an [RPCPolicy] does not allow a connection to an
// address.
var ErrAddressRefused = errors.New("RPC address refused")

// DialControl is a Control function for the [net.Dialer] of whoever connects to
// custom RPC URLs:
//
//	dialer := &net.Dialer{Control: policy.DialControl}
//	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
//
// It sees each address after the name has been resolved and before anything is
// sent, for redirects too, so that a name that meant a public address while its
// URL was checked and means another one now does not get through. It returns an
// error that matches [ErrAddressRefused], and that a Dialer and an http.Client
// pass on wrapped, for cloud metadata services, for the unspecified address, with
// PublicOnly for every address that is not public and not in AllowedAddresses,
// and for what is no IP address with a port, such as a socket file.
//
// No names are known here, so that AllowedHosts plays no part: a name on that
// list that resolves to an address that is not public is refused, unless
// AllowedAddresses has it; and with AllowedHosts alone, a redirect, or the owner
// of a name on the list, can lead to private addresses. Policies for strangers
// set PublicOnly.
//
// Behind a proxy the Dialer sees the address of the proxy and nothing else: leave
// http.Transport.Proxy nil, as above, or have the proxy refuse. The error of an
// http.Client repeats the URL, with any API key in it; what it wraps does not.
//
// It works on a policy that was never given to a Manager, and is safe for
// concurrent use. It does not touch the connection, which may be nil.
func (p RPCPolicy) DialControl(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is not dialled by IP address and port", ErrAddressRefused, network)
	}
	if problem := p.addressProblem(target.Addr().WithZone("").Unmap()); problem != "" {
		return fmt.Errorf("%w: %s", ErrAddressRefused, problem)
	}
	return nil
}
